// Every limit of webhooks, with what happens at it.
public import HubTransport

extension DeliveryQueue {
  /// Channels of one webhook that have an undelivered event behind the cursor. At this many the scan stops until one of
  /// them is through; nothing is lost, for the journal keeps what was not read. Each takes some 150 bytes.
  public static let maximumLanes = 1024
  /// Failures in a row, of whatever channels, after which one request at a time goes out.
  public static let failuresBeforeProbing = 10
}

extension WebhookRule {
  /// Requests of one webhook under way at once. A larger setting is refused by `init`.
  public static let maximumConcurrency = 16
}

extension RetrySchedule {
  /// Seconds that a receiver may ask for by Retry-After; it is not heard beyond.
  public static let maximumRetryAfterSeconds = 3600.0
}

extension WebhookSecret {
  /// Bytes of a secret. The specification allows 24 to 64; HMAC-SHA-256 has no use for fewer than its own 32
  /// (RFC 7518 §3.2), and this hub makes 32.
  public static let byteRange = 32...64
}

extension WebhookSigner {
  /// Secrets that sign at once: the present one, and those that were replaced within 24 h.
  public static let maximumSecrets = 4
}

extension EventReader {
  /// Places of events that one webhook remembers besides, for their channel is busy: some 400 kB. Beyond it they are
  /// looked up in the journal.
  static let rememberedEvents = 8192
  /// Bytes of the journal that one webhook reads before others have their turn: of what is ahead of its cursor, and
  /// as many once more for channels that are behind. Of a stream likewise.
  static let scanBytes = 4 << 20
}

extension EventFilter {
  /// Channels of a webhook that is set over HTTP. A question with more is refused.
  static let maximumChannels = 64
}

extension WebhookControl {
  /// Questions that wait for the thread of the webhooks. Past it a further one is refused, to be asked again.
  static let maximumQuestions = 64
}

extension WebhookReplay {
  /// Events that one question names. For each, a part of the journal is read. A question with more is refused.
  public static let maximumEvents = 16
}

extension WebhookDefinition {
  /// For how long the secret before signs as well, in milliseconds.
  static let rotationMilliseconds: Int64 = 86_400_000
}

extension WebhookEndpoint {
  /// Webhooks of one hub, of the file and set over HTTP. A file with more is refused, and so is one more over HTTP.
  public static let maximumCount = 16
}

extension ReplyReader {
  /// Bytes of an answer's head and body that are read; where there are more the connection is not used again, and what
  /// its status says holds.
  static let headBytes = 16 << 10
  static let bodyBytes = 64 << 10
}

extension WebhookLoop {
  /// A stream's connection may have all positions of an interval unsent, beside its events.
  public static var loopLimits: EventLoopLimits {
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 16 << 20
    return limits
  }

  /// Nanoseconds from a try's begin to the head of its answer, with the look-up of the name. Past it the try has
  /// failed.
  static let answerTime: Int64 = 15_000_000_000
  /// For how long a connection that has nothing to send is kept, in nanoseconds.
  static let idleTime: Int64 = 30_000_000_000
  /// For how long addresses of a name are used, in nanoseconds: the system's resolver does not say.
  static let addressTime: Int64 = 30_000_000_000
  /// Steps that one webhook takes before others have their turn.
  static let stepsPerTurn = 256
}

extension AddressOrder {
  /// Nanoseconds until a connection stands, where the name has another address: then that one is tried.
  static let connectTime: Int64 = 3_000_000_000
}

extension DeadLetterFile {
  /// Bytes at which a file of dead letters takes the place of the one before.
  static let maximumBytes = 256 << 10
}

extension ProgressFile {
  /// Bytes that are appended before the file is written anew, at least; more where the state itself is larger.
  static let rewriteBytes = 256 << 10
  /// How often what was written is brought to stable storage, in nanoseconds. A power cut repeats what came since.
  static let syncInterval: Int64 = 1_000_000_000
}

extension StreamEndpoint {
  /// Streams of one hub. A file with more is refused.
  public static let maximumCount = 4
}

extension StreamQueue {
  /// Events of one stream that wait or are under way, and what they take in bytes, or one event more. The journal keeps
  /// what is behind them.
  static let maximumUnderWay = 256
  static let windowBytes = 256 << 10
}

extension BatchSink {
  /// For how long a batch that is not full waits for more, in nanoseconds.
  static let delay: Int64 = 100_000_000
}

extension NATSReader {
  /// Bytes of a line. INFO with the addresses of a large cluster has some thousand.
  static let lineBytes = 64 << 10
  /// Bytes of a message with its headers: answers have some hundred.
  static let payloadBytes = 64 << 10
}

extension PositionSource {
  /// Positions that wait to be taken, some 300 bytes each; what comes beyond is left out.
  static let waitingPositions = 16_384
}

extension PositionFeed {
  /// How often positions are taken, in nanoseconds.
  static let interval: Int64 = 100_000_000
}

extension PositionTable {
  /// Drivers whose newest position waits to be sent to a stream's server, some 300 bytes each. Those of others are left
  /// out.
  static let maximumCount = 16_384
}

extension StreamSet {
  /// Unsent bytes of a connection at which no positions are sent over it.
  static let unsentBytes = 1 << 20
  /// Nanoseconds without a word from a server that owes an answer, after which its connection is given up.
  static let answerTime: Int64 = 15_000_000_000
  /// From a connection's end to the next one, in nanoseconds: the first wait and the longest. Each is twice the one
  /// before, and up to half as long again by chance.
  static let firstBackOff: Int64 = 50_000_000
  static let longestBackOff: Int64 = 5_000_000_000
}
