// A listening socket from the service manager, which keeps it over restarts, so that new connections wait in its queue
// while no hub runs, and are not refused.
import Glibc
public import HubSystem

/// A listening socket that another process made.
public struct InheritedListener: Sendable {
  public let address: SocketAddress
  private let descriptor: Int32

  /// Throws unless it is a listening stream socket of an IP address.
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

  /// A duplicate for a loop, non-blocking. Several loops accept from one queue.
  func duplicate() throws(SystemError) -> Descriptor {
    let copy = try Descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 3), from: "fcntl")
    let flags = fcntl(copy.raw, F_GETFL)
    guard flags >= 0, fcntl(copy.raw, F_SETFL, flags | O_NONBLOCK) == 0 else { throw SystemError("fcntl") }
    return copy
  }

  /// Closes this process's descriptor, once loops have duplicates; the manager's stays open. To be called once.
  public func close() { _ = Glibc.close(descriptor) }
}
