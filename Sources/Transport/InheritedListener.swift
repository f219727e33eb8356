// A socket that listens already: the service manager opened it and keeps it over restarts, so that a newcomer waits in
// its queue while no hub runs, and is not refused.
import Glibc
public import HubSystem

/// A listening socket of another process's making.
public struct InheritedListener: Sendable {
  public let address: SocketAddress
  private let descriptor: Int32

  /// Throws for what is no listening stream socket of an IP address.
  public init(_ descriptor: Int32) throws(SystemError) {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 else {
      throw SystemError("getsockopt")
    }
    guard value == 1 else { throw SystemError(call: "listen", errno: EINVAL) }
    address = try SocketCalls.localAddress(descriptor)
    self.descriptor = descriptor
  }

  /// A descriptor of its own for a loop, which does not wait in `accept`. Several loops take from one queue.
  func duplicate() throws(SystemError) -> Descriptor {
    let copy = try Descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 3), from: "fcntl")
    let flags = fcntl(copy.raw, F_GETFL)
    guard flags >= 0, fcntl(copy.raw, F_SETFL, flags | O_NONBLOCK) == 0 else { throw SystemError("fcntl") }
    return copy
  }

  /// Loops have their own by now; the manager's stays open there. Once.
  public func close() { _ = Glibc.close(descriptor) }
}
