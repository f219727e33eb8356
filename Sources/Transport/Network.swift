// The network as a loop needs it, for a world without one: tests drive whole servers over a network of their own, where
// they choose what arrives, when, in which pieces, and what fails. A real server has none: then SocketCalls and Poller
// ask the kernel, after one look at a flag.

import CHubLinux
package import HubSystem

/// A network without a kernel. Its sockets have numbers of its own, from 0 on, and behave as non-blocking sockets do.
///
/// All calls come on the thread of the loop that has the socket.
package protocol Network: AnyObject {
  /// A listening socket, and the address that it got.
  func listen(_ address: SocketAddress) throws(SystemError) -> (socket: Int32, SocketAddress)
  /// The next connection that waits at a listener.
  func accept(_ listener: Int32) -> Accepted
  /// An outgoing connection under way, and the errno of one that failed at once; 0 for none.
  func connect(to address: SocketAddress) throws(SystemError) -> (descriptor: Int32, errno: Int32)
  /// Takes the socket's pending error, 0 for none: the outcome of a connection that was under way.
  func takeError(_ socket: Int32) -> Int32
  /// One read.
  func receive(_ socket: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer
  /// One write of at least one byte.
  func send(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer
  /// No more bytes will come from here (FIN). False when the peer is gone already.
  func finish(_ socket: Int32) -> Bool
  /// Ends the socket and its watch; with `reset` the peer gets RST, and what is unsent is thrown away.
  func close(_ socket: Int32, reset: Bool)
  /// What to report the socket for from now on, and by which token.
  func watch(_ socket: Int32, token: UInt64, for interest: Interest) throws(SystemError)
  /// What the watched sockets are ready for now, `limit` of them at most; told again as long as it is so.
  func ready(limit: Int) -> [Readiness]
}

/// What to watch a descriptor for. Errors and hang-ups are always reported. EPOLLRDHUP is left out on purpose: a peer's
/// FIN makes the socket readable, the read after the last bytes returns 0, and while reading is paused nothing may be
/// done about it anyway.
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

/// What one read or write on a non-blocking socket came to.
package enum Transfer {
  /// At least one byte was moved.
  case moved(Int)
  /// The peer sent FIN, and everything before was read. Reads only.
  case ended
  /// Nothing can be moved now.
  case wouldBlock
  /// The connection is beyond use.
  case failed(errno: Int32)
}

/// What one accept came to.
package enum Accepted {
  case connection(Int32, SocketAddress)
  /// Nobody is waiting.
  case none
  /// This newcomer was lost on the way (accept(2), "Error handling"); the next may be fine.
  case lost
  /// No descriptors or memory: asking again at once would spin.
  case exhausted
}
