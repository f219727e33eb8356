// An IPv4 or IPv6 address with a port, as a plain value. Numeric addresses only: resolving names blocks for seconds,
// and is done on a thread of its own (NameResolver.swift). An IPv4 peer of a dual-stack listener (::ffff:a.b.c.d, RFC
// 4291 §2.5.5.2) becomes its IPv4 address, so that limits by address see one host once.

import CHubLinux
public import Glibc

/// The address of a TCP socket.
public struct SocketAddress: Sendable, Hashable {
  /// The address in network order: all 128 bits of IPv6, or IPv4 in the last 32 bits of `low`.
  let high: UInt64
  let low: UInt64
  public let isIPv6: Bool
  /// 0–65535; 0 asks the kernel to choose one.
  public let port: UInt16

  init(high: UInt64, low: UInt64, isIPv6: Bool, port: UInt16) {
    let isMapped = isIPv6 && high == 0 && low >> 32 == 0xFFFF
    self.high = high
    self.low = isMapped ? low & 0xFFFF_FFFF : low
    self.isIPv6 = isIPv6 && !isMapped
    self.port = port
  }

  /// An address from its numeric form (`127.0.0.1`, `::1`, also `[::1]`) or the word `localhost`, which is 127.0.0.1.
  /// Nil for anything else, names included.
  public init?(host: String, port: UInt16) {
    if host == "localhost" {
      self = .loopback(port: port)
      return
    }
    self.init(numeric: host, port: port)
  }

  /// An address from its numeric form alone; nil for anything else, `localhost` included.
  init?(numeric host: String, port: UInt16 = 0) {
    var four = in_addr()
    if unsafe inet_pton(AF_INET, host, &four) == 1 {
      self.init(high: 0, low: UInt64(UInt32(bigEndian: four.s_addr)), isIPv6: false, port: port)
      return
    }
    var bare = host
    if bare.hasPrefix("["), bare.hasSuffix("]") { bare = String(bare.dropFirst().dropLast()) }
    var six = in6_addr()
    guard unsafe inet_pton(AF_INET6, bare, &six) == 1 else { return nil }
    self.init(six, port: port)
  }

  /// The result of getaddrinfo(3); nil for a family that is not IP.
  public init?(_ info: addrinfo, port: UInt16) {
    guard let name = unsafe info.ai_addr, let found = unsafe SocketAddress(UnsafeRawPointer(name)) else { return nil }
    self = found.with(port: port)
  }

  /// An address in the kernel's form, as large as its family asks for; nil for a family that is not IP.
  private init?(_ name: UnsafeRawPointer) {
    switch unsafe Int32(name.loadUnaligned(as: sa_family_t.self)) {
    case AF_INET:
      let four = unsafe name.loadUnaligned(as: sockaddr_in.self)
      let host = UInt64(UInt32(bigEndian: four.sin_addr.s_addr))
      self.init(high: 0, low: host, isIPv6: false, port: UInt16(bigEndian: four.sin_port))
    case AF_INET6:
      let six = unsafe name.loadUnaligned(as: sockaddr_in6.self)
      self.init(six.sin6_addr, port: UInt16(bigEndian: six.sin6_port))
    case _: return nil
    }
  }

  init(_ six: in6_addr, port: UInt16) {
    // in6_addr is 16 bytes without padding, so it may be read as two words.
    let words = unsafe withUnsafeBytes(of: six) {
      unsafe ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    self.init(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1), isIPv6: true, port: port)
  }

  /// 127.0.0.1.
  public static func loopback(port: UInt16) -> SocketAddress {
    SocketAddress(high: 0, low: 0x7F00_0001, isIPv6: false, port: port)
  }

  /// This address with another port.
  public func with(port: UInt16) -> SocketAddress {
    SocketAddress(high: high, low: low, isIPv6: isIPv6, port: port)
  }

  /// 127.0.0.0/8 (RFC 1122 §3.2.1.3) or ::1 (RFC 4291 §2.5.3).
  public var isLoopback: Bool { isIPv6 ? high == 0 && low == 1 : low >> 24 == 127 }

  /// 0.0.0.0 or `::`.
  public var isWildcard: Bool { high == 0 && low == 0 }

  /// Whether a listener at one of them leaves no room for one at the other: `::` accepts IPv4 as well, 0.0.0.0 no IPv6.
  /// False for ports that the kernel chooses.
  public func overlaps(_ other: SocketAddress) -> Bool {
    guard port == other.port, port != 0 else { return false }
    if isWildcard && (isIPv6 || !other.isIPv6) { return true }
    if other.isWildcard && (other.isIPv6 || !isIPv6) { return true }
    return self == other
  }

  /// The key of limits by peer: the IPv4 address, or the /64 of an IPv6 address, since one subscriber line usually has
  /// a whole /64 and could use a new address for each connection. Without the port. The two families cannot collide:
  /// IPv4 keys are in ::/8, which is reserved (RFC 4291 §2.4).
  public var limitKey: UInt64 { isIPv6 ? high : 0xFFFF << 32 | low }

  /// The address without its port, for instance `127.0.0.1` or `::1`.
  public var host: String {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
      let written: UnsafePointer<CChar>?
      if isIPv6 {
        var address = in6()
        unsafe written = inet_ntop(AF_INET6, &address, text.baseAddress!, socklen_t(text.count))
      } else {
        var address = in_addr(s_addr: UInt32(truncatingIfNeeded: low).bigEndian)
        unsafe written = inet_ntop(AF_INET, &address, text.baseAddress!, socklen_t(text.count))
      }
      return unsafe written.map { unsafe String(cString: $0) } ?? "?"
    }
  }
}

extension SocketAddress: CustomStringConvertible {
  /// For instance `127.0.0.1:8080` or `[::1]:8080`.
  public var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

// The kernel's form. The rebinding below is the C idiom: sockaddr_storage is as large and as strictly aligned as every
// sockaddr, and the first field gives the kind.
extension SocketAddress {
  var family: Int32 { isIPv6 ? AF_INET6 : AF_INET }

  private func in6() -> in6_addr {
    var address = in6_addr()
    unsafe withUnsafeMutableBytes(of: &address) {
      unsafe $0.storeBytes(of: high.bigEndian, as: UInt64.self)
      unsafe $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    return address
  }

  /// Calls `body` with this address in the kernel's form.
  func withSockaddr<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    if isIPv6 {
      var six = sockaddr_in6()
      six.sin6_family = sa_family_t(AF_INET6)
      six.sin6_port = port.bigEndian
      six.sin6_addr = in6()
      return unsafe withUnsafePointer(to: &six) {
        unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe body($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
        }
      }
    }
    var four = sockaddr_in()
    four.sin_family = sa_family_t(AF_INET)
    four.sin_port = port.bigEndian
    four.sin_addr = in_addr(s_addr: UInt32(truncatingIfNeeded: low).bigEndian)
    return unsafe withUnsafePointer(to: &four) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  /// Makes `fill` (accept4, getsockname) write an address, and reads it. Nil for a family that is not IP; `fill`
  /// returns the call's result.
  static func reading(
    _ fill: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> (result: Int32, address: SocketAddress?) {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = unsafe withUnsafeMutablePointer(to: &storage) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe fill($0, &length) }
    }
    guard result >= 0 else { return (result, nil) }
    return unsafe (result, withUnsafeBytes(of: &storage) { unsafe $0.baseAddress.flatMap { unsafe SocketAddress($0) } })
  }
}
