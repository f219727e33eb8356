// What a loop did since it began. Plain integers of the loop's thread; whoever shows them elsewhere copies the struct.

/// Sums since the loop began, but for the last group, which is how things stand.
public struct EventLoopCounters: Sendable, Hashable {
  public var turns: UInt64 = 0
  /// Reads that gave bytes, and how many.
  public var reads: UInt64 = 0
  public var bytesRead: UInt64 = 0
  /// Calls of send or sendmsg that took bytes, and how many.
  public var writes: UInt64 = 0
  public var bytesWritten: UInt64 = 0

  public var accepted: UInt64 = 0
  /// Outgoing connections that were started.
  public var connects: UInt64 = 0
  /// `closed` callbacks.
  public var closed: UInt64 = 0
  /// Newcomers turned away at `maximumConnections`.
  public var refused: UInt64 = 0
  /// Failed accepts, those for lack of descriptors included.
  public var acceptErrors: UInt64 = 0
  /// Times that accepting paused for lack of descriptors or memory.
  public var acceptPauses: UInt64 = 0
  /// Times that accepting waited because of `acceptsPerSecond`.
  public var acceptWaits: UInt64 = 0

  /// Those that another thread ran (EventLoop+Assists).
  public var assists: UInt64 = 0
  /// Times that the loop let its sockets gather before a turn (`EventLoopLimits.turnPaceMicroseconds`).
  public var pauses: UInt64 = 0
  /// Turns that left sockets which were ready to the next one, because of `readBytesPerTurn`.
  public var turnsCut: UInt64 = 0

  /// TLS handshakes that were done, at either end; those among them that resumed a session.
  public var tlsHandshakes: UInt64 = 0
  public var tlsHandshakesResumed: UInt64 = 0
  /// Those that were begun and not done: refused, cut off, out of time, or no TLS at all.
  public var tlsHandshakesFailed: UInt64 = 0
  /// Connections that broke TLS's rules, or ran into a limit of it, after their handshake.
  public var tlsFailures: UInt64 = 0
  /// Times that a handshake's next step was put off to the next turn.
  public var tlsHandshakesDeferred: UInt64 = 0

  /// Unsent frames replaced by a newer one of the same key.
  public var conflated: UInt64 = 0
  /// Frames that were never sent: behind an overflow, or forgotten by `dropPending`. Conflated ones are not among them,
  /// nor those of a connection that went.
  public var dropped: UInt64 = 0
  /// Connections that passed a limit of unsent bytes.
  public var overflowed: UInt64 = 0
  /// Of these, such that had room of their own left: it was the limit of all connections together.
  public var overflowedTogether: UInt64 = 0

  /// Connections that are open, connecting or closing.
  public var connections: Int = 0
  /// Those that have unsent bytes because the kernel takes no more.
  public var blockedConnections: Int = 0
  /// Unsent bytes of all blocked connections, counting `EventLoopLimits.frameOverheadBytes` beside each frame, and TLS
  /// records that the kernel did not take whole.
  public var outboxBytes: Int = 0

  public init() {}
}
