// Between a client of this process and its hub: hands on what comes, and sees when the client reads it.
//
// Behind each write to the client, FIONREAD (tcp(7), SIOCINQ) is asked of the client's own descriptor until nothing is
// unread. The last moment at which something was, taken before the question (or before the write), is not later than
// the reading, so that a time from there is never too short, whenever this thread is held up. It spins only until then:
// the client's threads have the core when they need it.
import Glibc
import HubCommandLine
import HubLoadTestKit
import HubSystem
import HubTransport

/// For one connection.
final class FeedRelay: Sendable {
  struct Frame {
    /// When it was about to be handed on, and when it was last seen unread (uptimes, ns).
    var handedOnAt: Int64
    var unreadAt: Int64
  }

  let port: UInt16
  /// What comes in fewer bytes is not looked at.
  private let leastBytes: Int
  private let latest = Locked<Frame?>(nil)

  /// The first that came since `forget`.
  var frame: Frame { latest.withLock { $0 } ?? Frame(handedOnAt: 0, unreadAt: 0) }

  func forget() { latest.withLock { $0 = nil } }

  init(to hub: SocketAddress, framesFrom leastBytes: Int) throws(LoadTestError) {
    self.leastBytes = leastBytes
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = FeedRelay.loopback(port: 0)
    guard listener >= 0, FeedRelay.with(&address, { bind(listener, $0, $1) }) == 0, listen(listener, 1) == 0 else {
      throw .failed("the relay: \(SystemError.text(errno))")
    }
    port = FeedRelay.localPort(of: listener)
    do throws(SystemError) {
      _ = try startThread(name: "relay") { self.run(listener, hub.port) }
    } catch {
      throw .failed("the relay's thread: \(error)")
    }
  }

  private func run(_ listener: Int32, _ hubPort: UInt16) {
    let near = accept(listener, nil, nil)
    close(listener)
    let far = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = FeedRelay.loopback(port: hubPort)
    guard near >= 0, far >= 0, FeedRelay.with(&address, { connect(far, $0, $1) }) == 0 else { return }
    var yes: Int32 = 1
    for end in [near, far] {
      setsockopt(end, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    }
    let client = FeedRelay.otherEnd(of: near)
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    var ends = [near, far].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    while poll(&ends, 2, -1) > 0 {
      for (from, to) in [(0, far), (1, near)] where ends[from].revents != 0 {
        let count = read(ends[from].fd, &buffer, buffer.count)
        guard count > 0 else {
          close(near)
          close(far)
          return
        }
        handOn(buffer[..<count], to, watching: to == near && count >= leastBytes ? client : nil)
      }
    }
  }

  private func handOn(_ bytes: ArraySlice<UInt8>, _ to: Int32, watching client: Int32?) {
    let start = ClockReading.uptime()
    // The client may run before this thread goes on.
    if client != nil { latest.withLock { $0 = $0 ?? Frame(handedOnAt: start, unreadAt: start) } }
    guard bytes.withUnsafeBytes({ send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }) == bytes.count, let client
    else { return }
    while true {
      let before = ClockReading.uptime()
      var unread: Int32 = 0
      guard ioctl(client, UInt(FIONREAD), &unread) == 0, unread > 0 else { return }
      latest.withLock { if $0?.handedOnAt == start { $0?.unreadAt = before } }
    }
  }

  /// The descriptor of this process at the other end of a connection.
  private static func otherEnd(of end: Int32) -> Int32? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    guard with(&address, { pointer, _ in getpeername(end, pointer, &length) }) == 0 else { return nil }
    let port = UInt16(bigEndian: address.sin_port)
    return (3..<4096).first { $0 != end && localPort(of: $0) == port }
  }

  /// 0 where it is no socket with one.
  private static func localPort(of descriptor: Int32) -> UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    guard with(&address, { pointer, _ in getsockname(descriptor, pointer, &length) }) == 0,
      address.sin_family == sa_family_t(AF_INET)
    else { return 0 }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func loopback(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private static func with<R>(
    _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> R
  ) -> R {
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
