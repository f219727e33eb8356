// All limits between a hub and its engine, with what happens at each.
public import HubTransport

/// Limits and timeouts of one connection to the engine. Times are in nanoseconds.
public struct BackplaneLimits: Sendable, Equatable {
  // MARK: Replies

  /// Bytes of a line: a status, an error, a number, a length. Past it the connection is closed.
  public var lineBytes = 4096
  /// Bytes of one bulk string. Past it the connection is closed.
  public var bulkBytes = 1024 * 1024
  /// Values of one reply, those inside arrays included. Past it the connection is closed.
  public var valuesPerReply = 65_536
  /// Bytes of one reply. Past it the connection is closed.
  public var replyBytes = 8 * 1024 * 1024
  /// Arrays within arrays. Past it the connection is closed.
  public var replyDepth = 4

  // MARK: Commands

  /// Commands without a reply yet. Past it a command is refused.
  public var pendingCommands = 16_384
  /// Bytes of commands that the engine has not taken yet. Past it a command is refused; the connection stays.
  public var unsentBytes = 8 * 1024 * 1024
  /// Limits of an event loop whose connections are all to engines: `unsentBytes` is reached before an outbox is full,
  /// at which the loop would end the connection. An outbox counts 64 bytes besides for the commands of each turn
  /// (`EventLoopLimits.frameOverheadBytes`), which are longer themselves.
  public var loop: EventLoopLimits {
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 2 * unsentBytes
    return limits
  }

  // MARK: Time

  /// The timeout for connecting, and then, while replies are due, for each. Past it the connection is closed, and each
  /// command without a reply has an unknown outcome.
  public var replyTime: Int64 = 1_000_000_000
  /// After this silence the engine is pinged; an unanswered ping closes the connection.
  public var pingTime: Int64 = 1_000_000_000
  /// After this silence a subscribed connection is pinged. With `replyTime` it is closed 1.25 s after the network has
  /// cut it off silently, which nothing else would show.
  public var listenerPingTime: Int64 = 250_000_000
  /// From a connection's end to the next attempt: the first wait, and the longest. Each wait is twice the one before,
  /// and up to as much longer by chance as `backOffJitter` says. Frames must flow within 3 s of the engine's return.
  public var firstBackOff: Int64 = 50_000_000
  public var longestBackOff: Int64 = 1_000_000_000
  public var backOffJitter = 0.5
  /// The interval at which sentinels are asked for the master: usually, and while the ledger is down.
  public var sentinelTime: Int64 = 1_000_000_000
  public var sentinelTimeAway: Int64 = 200_000_000
  /// How long a node that refuses to publish this hub's frames is avoided, unless it accepts one before.
  public var refusalTime: Int64 = 60_000_000_000
  /// The interval at which the ledger's node is asked for its memory.
  public var memoryTime: Int64 = 10_000_000_000
  /// The interval at which a node of the bus is asked whether a member that did not listen there does now.
  public var listenerTime: Int64 = 1_000_000_000
  /// The interval at which a frame of states for one member gets a reply; those in between get none.
  public var statesReplyTime: Int64 = 100_000_000
  /// Members with a known path on the bus. Past it all are forgotten, and found again.
  public static let maximumTargets = 1024
  /// Nodes of the bus, which are bits of `Bus.unheard`. Past it the configuration is refused.
  public static let maximumNodes = 63
  /// Ledgers. Past it the configuration is refused.
  public static let maximumLedgers = 16
  /// Sentinels of a ledger. Past it the configuration is refused.
  public static let maximumSentinels = 9

  public init() {}
}
