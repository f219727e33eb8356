// A TCP connection that a test holds in its hand: any bytes may be sent, in any pieces, and every wait has an end.
//
// It is written against the kernel, not against Transport, so that a mistake there cannot hide itself.
import Foundation
import Glibc
import HubSystem

/// What did not go as a test expected, with what came instead.
enum PeerError: Error, CustomStringConvertible {
  case timedOut(waitingFor: String)
  case ended(waitingFor: String)
  case unexpected(String)
  case system(String, errno: Int32)

  var description: String {
    switch self {
    case .timedOut(let what): "nothing came in time; waited for \(what)"
    case .ended(let what): "the connection ended; waited for \(what)"
    case .unexpected(let what): what
    case .system(let call, let number): "\(call): \(String(cString: strerror(number)))"
    }
  }
}

/// A point in time up to which a test waits.
struct Deadline {
  /// How long a test waits for what must come. Long, because the machine may be busy; nothing waits this long if all is
  /// well.
  static let patience = 20.0

  private let end: Int64

  init(seconds: Double = Deadline.patience) {
    end = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
  }

  /// Rounded up; 0 when it is over.
  var millisecondsLeft: Int32 {
    let left = end - ClockReading.read().uptimeNanoseconds
    return left <= 0 ? 0 : Int32(clamping: left / 1_000_000 + 1)
  }

  var isOver: Bool { millisecondsLeft == 0 }
}

/// Seconds of the monotonic clock, to measure how long something took.
func uptime() -> Double { Double(ClockReading.read().uptimeNanoseconds) / 1e9 }

/// Does what may take so many seconds at most, three times if need be: a machine that stalls for a moment is no
/// fault, what takes too long each time is. Gives whether it was quick enough once.
func isWithin(_ seconds: Double, _ body: () throws -> Double) throws -> Bool {
  for _ in 0..<3 where try body() < bound(seconds) { return true }
  return false
}

/// What a test holds against the clock: so many seconds, but ten times as many where a sanitizer makes everything slow.
func bound(_ seconds: Double) -> Double { isSanitized ? seconds * 10 : seconds }

let isSanitized = ProcessInfo.processInfo.environment["HUB_SANITIZER"] != nil

final class RawConnection {
  private var descriptor: Int32
  /// What was read and not taken yet.
  private var unread: [UInt8] = []

  /// Connects to a port of the loopback. A small `receiveBuffer` makes a reader that is slow at once; `source` is the
  /// last number of the address 127.0.0.x that it comes from.
  init(port: UInt16, receiveBuffer: Int32? = nil, source: UInt32? = nil) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw PeerError.system("socket", errno: errno) }
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    if var size = receiveBuffer {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    if let source { try bind(to: 0x7F00_0000 + source) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let outcome = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard outcome == 0 else {
      let number = errno
      close()
      throw PeerError.system("connect", errno: number)
    }
    // From here on waiting is poll's work, so that every wait has an end.
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  /// One that a `Listener` has accepted.
  fileprivate init(accepted descriptor: Int32) {
    self.descriptor = descriptor
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  deinit { close() }

  private func bind(to host: UInt32) throws {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = host.bigEndian
    let outcome = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard outcome == 0 else { throw PeerError.system("bind", errno: errno) }
  }

  // MARK: Sending

  func send(_ bytes: [UInt8], within seconds: Double = Deadline.patience) throws {
    let deadline = Deadline(seconds: seconds)
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
      }
      if count > 0 {
        sent += count
      } else if errno == EAGAIN {
        try wait(for: POLLOUT, until: deadline, "room to send")
      } else if errno != EINTR {
        throw PeerError.system("send", errno: errno)
      }
    }
  }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  /// As much as the kernel takes now; 0 when that is nothing.
  func sendWhatFits(_ bytes: [UInt8]) throws -> Int {
    let count = bytes.withUnsafeBytes {
      Glibc.send(descriptor, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL))
    }
    if count >= 0 { return count }
    if errno == EAGAIN { return 0 }
    throw PeerError.system("send", errno: errno)
  }

  // MARK: Receiving

  /// What comes next: at least one byte, or none at the end of the connection (FIN or RST).
  func receive(until deadline: Deadline = Deadline(), waitingFor what: String = "bytes") throws -> [UInt8] {
    if !unread.isEmpty {
      defer { unread = [] }
      return unread
    }
    while true {
      var buffer = [UInt8](repeating: 0, count: 64 * 1024)
      let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count > 0 { return Array(buffer[..<count]) }
      if count == 0 || errno == ECONNRESET { return [] }
      guard errno == EAGAIN || errno == EINTR else { throw PeerError.system("recv", errno: errno) }
      try wait(for: POLLIN, until: deadline, what)
    }
  }

  /// Puts back what was received too much.
  func putBack(_ bytes: some Sequence<UInt8>) { unread = Array(bytes) + unread }

  /// Reads and throws away until the connection ends.
  func waitForEnd(within seconds: Double = Deadline.patience) throws {
    let deadline = Deadline(seconds: seconds)
    while try !receive(until: deadline, waitingFor: "the end of the connection").isEmpty {}
  }

  private func wait(for events: Int32, until deadline: Deadline, _ what: String) throws {
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    if poll(&entry, 1, deadline.millisecondsLeft) == 0 { throw PeerError.timedOut(waitingFor: what) }
  }

  // MARK: Ending

  /// FIN: no more will be sent, but the other side's bytes are still read.
  func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  /// RST: what a phone does that lost its network and came back.
  func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close()
  }
}

/// A program that listens on a free port of the loopback; or one that only has the port, where `isDeaf`: connections
/// to it are refused, and nobody else gets it.
final class Listener {
  private let descriptor: Int32
  let port: UInt16

  init(isDeaf: Bool = false) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    self.descriptor = descriptor
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let outcome = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, length) == 0 && (isDeaf || listen(descriptor, 1) == 0)
          && getsockname(descriptor, address, &length) == 0
      }
    }
    guard outcome else { throw PeerError.system("listen", errno: errno) }
    port = UInt16(bigEndian: address.sin_port)
  }

  /// Waits for who connects.
  func accept() throws -> RawConnection {
    let accepted = Glibc.accept(descriptor, nil, nil)
    guard accepted >= 0 else { throw PeerError.system("accept", errno: errno) }
    return RawConnection(accepted: accepted)
  }

  deinit { close(descriptor) }
}
