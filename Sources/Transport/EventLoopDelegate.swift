// A loop's callbacks to its owner. One object for all connections: the owner keeps its own slab beside the loop's,
// indexed by `ConnectionID.slot`, so a connection needs no closure and no object.

/// Identifies one connection of one loop. A stale id (its connection is gone, the slot may be reused) is harmless:
/// every operation on it does nothing.
public struct ConnectionID: Hashable, Sendable, BitwiseCopyable {
  /// Index in the loop's slab, small and reused: suitable for the owner's own table.
  public let slot: UInt32
  /// Distinguishes the connections of a slot; never 0 for a real one.
  public let generation: UInt32

  @inlinable public init(slot: UInt32, generation: UInt32) {
    self.slot = slot
    self.generation = generation
  }

  /// No connection; always stale.
  public static let none = ConnectionID(slot: 0, generation: 0)
}

/// Why a connection ended.
public enum CloseCause: Sendable, Hashable {
  /// The peer closed in order (FIN), and everything it sent before was delivered.
  case peerClosed
  /// The peer reset the connection (RST).
  case peerReset
  /// Reading or writing failed otherwise, for instance ETIMEDOUT.
  case failed(errno: Int32)
  /// `close` or `abort` was called.
  case closedByUs
  /// An outgoing connection failed, for instance with ECONNREFUSED.
  case connectFailed(errno: Int32)
  /// TLS failed.
  case tlsFailed(TLSFailure)
}

/// Callbacks of a loop. All calls come on the loop's thread, one at a time, never from within an operation of the loop;
/// each may call any operation on any connection.
///
/// The order in a turn: `accepted`, `connected`, `received` as the sockets come; `timerFired`; `loopTimerFired`;
/// `woken`; `closed`; `turnEnding`; the flush; `drained`, `overflowed`, `closed`, and again the flush while these send
/// something; `turnEnded`.
public protocol EventLoopDelegate: AnyObject {
  /// A peer connected to a listener.
  func accepted(_ id: ConnectionID, from peer: SocketAddress)
  /// A connection made with `connect` is established, including TLS.
  func connected(_ id: ConnectionID)
  /// Input: at least one byte, at most `readBufferBytes`, in the loop's own buffer, valid for this call. It may be
  /// changed in place.
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer)
  /// The connection was blocked, and everything sent to it is now in the kernel.
  func drained(_ id: ConnectionID)
  /// The connection's unsent bytes exceeded their limit. Called once; further sends are dropped until `dropPending`.
  func overflowed(_ id: ConnectionID)
  /// The connection has ended: exactly once for each id of `accepted` or `connect`. The id is stale already.
  func closed(_ id: ConnectionID, _ cause: CloseCause)
  /// The connection's timer, set with `setTimer`, is due. It is unset before the call.
  func timerFired(_ id: ConnectionID)
  /// The loop's waker was called, at least once since the last call.
  func woken()
  /// The loop's timer, set with `setLoopTimer`, is due. It is unset before the call.
  func loopTimerFired()
  /// All sockets were read and all timers fired; sends still leave in this turn.
  func turnEnding()
  /// The turn's output is in the kernel or in outboxes, and the arena is empty again: drop ranges of it. Sends leave in
  /// the next turn, which follows at once.
  func turnEnded()
}

/// Callbacks that an owner may omit.
extension EventLoopDelegate {
  /// Does nothing, for an owner without listeners.
  public func accepted(_ id: ConnectionID, from peer: SocketAddress) {}
  /// Does nothing, for an owner that does not wait until blocked connections can be written to again.
  public func drained(_ id: ConnectionID) {}
  /// Does nothing, for an owner that sets no timer of a connection.
  public func timerFired(_ id: ConnectionID) {}
  /// Does nothing, for an owner that no other thread wakes.
  public func woken() {}
  /// Does nothing, for an owner whose timer only begins a turn, or that sets none.
  public func loopTimerFired() {}
  /// Does nothing, for an owner that sends as its input comes.
  public func turnEnding() {}
  /// Does nothing, for an owner that keeps no ranges of the arena.
  public func turnEnded() {}
}
