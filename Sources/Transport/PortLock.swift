// One hub for a port. Loops listen with SO_REUSEPORT, with which the kernel would let a second hub of the same user
// listen on the same port, too, and take half of the connections unnoticed. So before listening a hub takes a lock and
// probes the port.
//
// The probe is a bind without SO_REUSEPORT: it fails when anybody listens there, with or without the option, on this
// address or on a wildcard that includes it (inet_csk_bind_conflict in the kernel). The lock is an abstract Unix socket
// (unix(7)) named after address and port, which closes the gap between the probe and listening, and ends with the
// process. A wildcard's lock and a specific address's have different names, so each hub first takes its own and then
// looks for the other's in /proc/net/unix: of two that begin at once each sees the other, and at least one gives up.

import CHubLinux
import Glibc
public import HubSystem

/// Why a port is not available.
public enum PortLockError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Another hub (or this one, a second time) holds the port, on this address or on an overlapping one.
  case heldByAnotherHub(SocketAddress)
  /// Another program listens there.
  case taken(SocketAddress)
  /// The kernel refused otherwise, for instance EACCES for a port below 1024 or EADDRNOTAVAIL.
  case system(SocketAddress, SystemError)

  /// Who has the port, for operators.
  public var description: String {
    switch self {
    case .heldByAnotherHub(let address): "another location hub serves \(address)"
    case .taken(let address): "another program listens on \(address)"
    case .system(let address, let error): "cannot listen on \(address): \(error)"
    }
  }
}

/// The right to listen on an address and port, until it is deinitialised. Keep it as long as anything listens there.
public struct PortLock: ~Copyable, Sendable {
  /// The locked address, with the actual port where 0 was requested.
  public let address: SocketAddress
  private let lock: Descriptor

  /// Locks `address` and checks that nobody listens there.
  ///
  /// Port 0 asks the kernel for a free port. Take the lock first, then let each loop listen on `address` with
  /// `reusePort: true`.
  public init(_ address: SocketAddress) throws(PortLockError) {
    let (locked, socket) = try address.port == 0 ? PortLock.takeAnyPort(address) : PortLock.take(address)
    self.address = locked
    lock = Descriptor(owning: socket)
  }

  /// The lock first, then the probe: no other hub comes between probe and listening.
  private static func take(_ address: SocketAddress) throws(PortLockError) -> (SocketAddress, Int32) {
    let lock = try claim(address)
    _ = try probe(address)
    return (address, lock.release())
  }

  /// A port that the kernel chose may be taken before it is locked; then another is requested.
  private static func takeAnyPort(_ address: SocketAddress) throws(PortLockError) -> (SocketAddress, Int32) {
    var attempts = 0
    while true {
      attempts += 1
      let chosen = try probe(address)
      do throws(PortLockError) {
        return try take(chosen)
      } catch {
        guard attempts < 16 else { throw error }
      }
    }
  }

  /// Binds without SO_REUSEPORT, and returns the bound address.
  private static func probe(_ address: SocketAddress) throws(PortLockError) -> SocketAddress {
    do throws(SystemError) {
      let socket = try SocketCalls.boundSocket(address, reusePort: false)
      return try SocketCalls.localAddress(socket.raw)
    } catch {
      throw error.errno == EADDRINUSE ? .taken(address) : .system(address, error)
    }
  }

  private static let prefix = "locationhub-port/"

  private static func claim(_ address: SocketAddress) throws(PortLockError) -> Descriptor {
    let name = "\(prefix)\(address.port)/\(address.host)"
    let socket: Descriptor
    do throws(SystemError) {
      socket = try bindAbstract(name)
    } catch {
      throw error.errno == EADDRINUSE ? .heldByAnotherHub(address) : .system(address, error)
    }
    if namesInUse().contains(where: { $0 != name && overlaps(address, $0) }) { throw .heldByAnotherHub(address) }
    return socket
  }

  /// Whether the lock `name` is for an address that conflicts with `address`.
  private static func overlaps(_ address: SocketAddress, _ name: String) -> Bool {
    guard name.hasPrefix("\(prefix)\(address.port)/") else { return false }
    let host = String(name.dropFirst("\(prefix)\(address.port)/".count))
    return SocketAddress(host: host, port: address.port)?.overlaps(address) == true
  }

  /// A Unix socket with an abstract name: a zero byte, then the name, no file.
  private static func bindAbstract(_ name: String) throws(SystemError) -> Descriptor {
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let socket = try Descriptor(Glibc.socket(AF_UNIX, type, 0), from: "socket")
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(name.utf8)
    // 108 bytes, of which the longest name (IPv6 address, 5 digits) takes 69.
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { path in
      precondition(bytes.count < path.count)
      unsafe UnsafeMutableRawBufferPointer(rebasing: path[1...]).copyBytes(from: bytes)
    }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + 1 + bytes.count)
    // The C idiom: every sockaddr begins with its family, and the length gives its size.
    let outcome = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(socket.raw, $0, length) }
    }
    guard outcome == 0 else { throw SystemError("bind") }
    return socket
  }

  /// The names of all port locks on this machine (network namespace), own ones included.
  private static func namesInUse() -> Set<String> {
    guard let text = ProcessFacts.contents(of: "/proc/net/unix") else { return [] }
    var names: Set<String> = []
    for line in text.split(separator: UInt8(ascii: "\n")) {
      // The name is the last column; abstract ones are shown with @ for the zero byte.
      guard let last = line.split(separator: UInt8(ascii: " ")).last, last.first == UInt8(ascii: "@") else { continue }
      let name = String(decoding: last.dropFirst(), as: UTF8.self)
      if name.hasPrefix(prefix) { names.insert(name) }
    }
    return names
  }
}
