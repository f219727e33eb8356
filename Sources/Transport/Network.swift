// The network of a loop for simulations: tests drive whole servers over a network of their own, which decides what
// arrives, when, in which pieces, and what fails. A real server has none: SocketCalls and Poller use the kernel, after
// one check of a flag.

import CHubLinux
package import HubSystem

/// A network without a kernel. Its sockets have its own numbers, from 0 on, and behave like non-blocking sockets.
///
/// All calls come on the thread of the socket's loop.
package protocol Network: AnyObject {
  /// A listening socket, and its address.
  func listen(_ address: SocketAddress) throws(SystemError) -> (socket: Int32, SocketAddress)
  /// The next waiting connection of a listener.
  func accept(_ listener: Int32) -> Accepted
  /// An outgoing connection under way, and the errno of one that failed at once; 0 for none.
  func connect(to address: SocketAddress) throws(SystemError) -> (descriptor: Int32, errno: Int32)
  /// Takes the socket's pending error, 0 for none: the outcome of a connection that was under way.
  func takeError(_ socket: Int32) -> Int32
  /// One read.
  func receive(_ socket: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer
  /// One write of at least one byte.
  func send(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer
  /// Sends no more bytes (FIN). False when the peer is gone already.
  func finish(_ socket: Int32) -> Bool
  /// Ends the socket and its watch; with `reset` the peer gets RST, and unsent bytes are discarded.
  func close(_ socket: Int32, reset: Bool)
  /// Sets the events to report the socket for, and its token.
  func watch(_ socket: Int32, token: UInt64, for interest: Interest) throws(SystemError)
  /// What watched sockets are ready for, `limit` of them at most; reported as long as it applies.
  func ready(limit: Int) -> [Readiness]
}

/// The events to watch a descriptor for. Errors and hang-ups are always reported. EPOLLRDHUP is left out on purpose: a
/// peer's FIN makes the socket readable, the read after the last bytes returns 0, and while reading is paused nothing
/// may be done about it anyway.
package struct Interest: OptionSet, Sendable {
  package let rawValue: UInt8
  package static let readable = Interest(rawValue: 1)
  package static let writable = Interest(rawValue: 2)

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  var events: UInt32 {
    (contains(.readable) ? EPOLLIN.rawValue : 0) | (contains(.writable) ? EPOLLOUT.rawValue : 0)
  }
}

/// What one descriptor is ready for.
package struct Readiness {
  let token: UInt64
  let events: UInt32
  var isReadable: Bool { events & EPOLLIN.rawValue != 0 }
  var isWritable: Bool { events & EPOLLOUT.rawValue != 0 }
  /// EPOLLERR or EPOLLHUP: reset, failed, or shut down in both directions.
  var isBroken: Bool { events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 }
}

extension Readiness {
  package init(token: UInt64, _ interest: Interest, isBroken: Bool) {
    self.init(token: token, events: interest.events | (isBroken ? EPOLLHUP.rawValue : 0))
  }
}

/// The result of a read or write on a non-blocking socket.
package enum Transfer {
  /// At least one byte was moved.
  case moved(Int)
  /// The peer sent FIN, and everything before was read. Only for reads.
  case ended
  /// Nothing can be moved now.
  case wouldBlock
  /// The connection is unusable.
  case failed(errno: Int32)
}

/// The result of an accept.
package enum Accepted {
  case connection(Int32, SocketAddress)
  /// None is waiting.
  case none
  /// This connection was lost before the accept (accept(2), "Error handling"); the next may be fine.
  case lost
  /// No descriptors or memory: an immediate retry would spin.
  case exhausted
}
