// A loop's counters: plain integers of its thread; copied for other threads.

/// Sums since the loop began, except for the last group, which is the present state.
public struct EventLoopCounters: Sendable, Hashable {
  public var turns: UInt64 = 0
  /// Reads that gave bytes, and the number of these bytes.
  public var reads: UInt64 = 0
  public var bytesRead: UInt64 = 0
  /// Writes of which the kernel took bytes, and the number of these bytes.
  public var writes: UInt64 = 0
  public var bytesWritten: UInt64 = 0
  /// System calls that made several writes (SendRing.swift).
  public var sendBatches: UInt64 = 0

  public var accepted: UInt64 = 0
  /// Outgoing connections that were started.
  public var connects: UInt64 = 0
  /// `closed` callbacks.
  public var closed: UInt64 = 0
  /// New connections refused at `maximumConnections`.
  public var refused: UInt64 = 0
  /// Failed accepts, those for lack of descriptors included.
  public var acceptErrors: UInt64 = 0
  /// Times that accepting paused for lack of descriptors or memory.
  public var acceptPauses: UInt64 = 0
  /// Times that accepting waited because of `acceptsPerSecond`.
  public var acceptWaits: UInt64 = 0

  /// Turns run by another thread (EventLoop+Assists).
  public var assists: UInt64 = 0
  /// Times that the loop let its sockets gather before a turn (`EventLoopLimits.turnPaceMicroseconds`).
  public var pauses: UInt64 = 0
  /// Turns that left ready sockets to the next one, because of `readBytesPerTurn`.
  public var turnsCut: UInt64 = 0

  /// Completed TLS handshakes, at either end; those that resumed a session.
  public var tlsHandshakes: UInt64 = 0
  public var tlsHandshakesResumed: UInt64 = 0
  /// Failed handshakes: refused, aborted, timed out, or no TLS at all.
  public var tlsHandshakesFailed: UInt64 = 0
  /// Connections that violated TLS, or exceeded a limit of it, after their handshake.
  public var tlsFailures: UInt64 = 0
  /// Times that a handshake's next step was deferred to the next turn.
  public var tlsHandshakesDeferred: UInt64 = 0

  /// Unsent frames replaced by a newer one of the same key.
  public var conflated: UInt64 = 0
  /// Frames that were never sent: after an overflow, or dropped by `dropPending`. Without conflated ones, and those of
  /// ended connections.
  public var dropped: UInt64 = 0
  /// Connections that exceeded a limit of unsent bytes.
  public var overflowed: UInt64 = 0
  /// Connections counted in `overflowed` that were within their own limit, though all together were not within theirs.
  public var overflowedTogether: UInt64 = 0

  /// Connections that are open, connecting or closing.
  public var connections: Int = 0
  /// Connections with unsent bytes because the kernel takes no more.
  public var blockedConnections: Int = 0
  /// Unsent bytes of all blocked connections, counting `EventLoopLimits.frameOverheadBytes` for each frame, and partly
  /// sent TLS records.
  public var outboxBytes: Int = 0

  public init() {}
}
