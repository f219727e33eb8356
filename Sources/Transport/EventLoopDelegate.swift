// What a loop tells its owner. One object for all connections: the owner keeps its own slab beside the loop's, indexed
// by `ConnectionID.slot`, so no closure and no object is made for a connection.

/// Names one connection of one loop for as long as it lives. A stale id (its connection is gone, the slot may have
/// another one) is harmless: every operation on it does nothing.
public struct ConnectionID: Hashable, Sendable, BitwiseCopyable {
  /// Index in the loop's slab, small and reused: fit to index the owner's own table.
  public let slot: UInt32
  /// Which of the connections that have had the slot; never 0 for a real connection.
  public let generation: UInt32

  @inlinable public init(slot: UInt32, generation: UInt32) {
    self.slot = slot
    self.generation = generation
  }

  /// No connection; stale for ever.
  public static let none = ConnectionID(slot: 0, generation: 0)
}

/// Why a connection ended.
public enum CloseCause: Sendable, Hashable {
  /// The peer closed in order (FIN), and everything it sent before was delivered.
  case peerClosed
  /// The peer cut the connection off (RST).
  case peerReset
  /// Reading or writing failed otherwise, for instance ETIMEDOUT.
  case failed(errno: Int32)
  /// `close` or `abort` was called.
  case closedByUs
  /// An outgoing connection did not come about, for instance ECONNREFUSED.
  case connectFailed(errno: Int32)
  /// TLS did not come about, or broke.
  case tlsFailed(TLSFailure)
}

/// What happens on a loop. All calls come on the loop's thread, one at a time, never from within an operation of the
/// loop; each may call any operation on any connection.
///
/// The order in a turn: `accepted`, `connected`, `received` as the sockets come; `timerFired`; `loopTimerFired`;
/// `woken`; `closed`; `turnEnding`; the flush; `drained`, `overflowed`, `closed`, and again the flush while
/// these send something; `turnEnded`.
public protocol EventLoopDelegate: AnyObject {
  /// A peer connected to a listener.
  func accepted(_ id: ConnectionID, from peer: SocketAddress)
  /// A connection made with `connect` stands, and its TLS.
  func connected(_ id: ConnectionID)
  /// Bytes came: at least one, at most `readBufferBytes`. They lie in the loop's own buffer, valid for this call,
  /// and may be changed in place.
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer)
  /// The connection was blocked, and everything sent to it is now with the kernel.
  func drained(_ id: ConnectionID)
  /// The connection's unsent bytes passed their limit. Called once; what is sent to it is dropped until `dropPending`.
  func overflowed(_ id: ConnectionID)
  /// The connection is gone: exactly once for each id of `accepted` or `connect`. The id is stale already.
  func closed(_ id: ConnectionID, _ cause: CloseCause)
  /// The connection's timer, set with `setTimer`, is due. It is unset before the call.
  func timerFired(_ id: ConnectionID)
  /// Somebody called `wake` on the loop's waker, at least once since the last call.
  func woken()
  /// The loop's timer, set with `setLoopTimer`, is due. It is unset before the call.
  func loopTimerFired()
  /// All sockets were read and all timers fired; what is sent now still leaves in this turn.
  func turnEnding()
  /// The turn's output is with the kernel or in outboxes, and the arena is empty again: forget ranges of it.
  /// What is sent now leaves in the next turn, which follows at once.
  func turnEnded()
}

/// What an owner has no use for.
extension EventLoopDelegate {
  public func accepted(_ id: ConnectionID, from peer: SocketAddress) {}
  public func drained(_ id: ConnectionID) {}
  public func timerFired(_ id: ConnectionID) {}
  public func woken() {}
  public func loopTimerFired() {}
  public func turnEnding() {}
  public func turnEnded() {}
}
