// Every limit of what a hub shares with its engine, in one place, with what happens at it.

/// What one connection to the engine may hold and how long it may take. Times are in nanoseconds.
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
  /// Bytes of commands that the engine has not taken yet. Past it a command is refused.
  public var unsentBytes = 8 * 1024 * 1024

  // MARK: Time

  /// For a connection to be made, and from then on or from one reply to the next while commands have none. Past it the
  /// connection is closed, and each command without a reply has an unknown outcome.
  public var replyTime: Int64 = 1_000_000_000
  /// Without a word from the engine so long, it is pinged; a ping that is not answered in time closes the connection.
  public var pingTime: Int64 = 1_000_000_000
  /// Without a word so long, a connection that listens is pinged: with `replyTime` it is over 1.25 s after a network
  /// has cut it off silently, which it would not notice in any other way.
  public var listenerPingTime: Int64 = 250_000_000
  /// From a connection's end to the next attempt: the first wait, and the longest. Each wait is twice the one before,
  /// and up to as much longer by chance as `backOffJitter` says. All must flow within 3 s of the engine's return.
  public var firstBackOff: Int64 = 50_000_000
  public var longestBackOff: Int64 = 1_000_000_000
  public var backOffJitter = 0.5
  /// Sentinels are asked for the master so often, and so often while the ledger is away.
  public var sentinelTime: Int64 = 1_000_000_000
  public var sentinelTimeAway: Int64 = 200_000_000
  /// A node of the bus where a member did not listen is asked so often whether it does.
  public var listenerTime: Int64 = 1_000_000_000
  /// Members that the bus knows a way to. Past it all are forgotten, and found again.
  public static let maximumTargets = 1024
  /// Sentinels of a ledger. Past it the configuration is refused.
  public static let maximumSentinels = 9

  public init() {}
}
