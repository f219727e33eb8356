// All limits of webhooks, with what happens at each.
public import HubTransport

extension DeliveryQueue {
  /// Channels of one webhook with an undelivered event behind the cursor. At the limit the scan pauses until one of
  /// them is done; nothing is lost, since the journal keeps the rest. Each takes some 150 bytes.
  static let maximumLanes = 1024
  /// Consecutive failures, on any channels, after which one request at a time is sent.
  static let failuresBeforeProbing = 10
}

extension WebhookRule {
  /// Concurrent requests of one webhook. A larger setting is refused by `init`.
  public static let maximumConcurrency = 16
  /// Seconds from an event's first try after which it becomes a dead letter, unless the operator says otherwise: three
  /// days. Also a stream's, from the first refusal.
  public static let usualGiveUpSeconds = 259_200.0
}

extension RetrySchedule {
  /// The largest Retry-After in seconds; a longer one is reduced to it.
  static let maximumRetryAfterSeconds = 3600.0
}

extension WebhookSecret {
  /// Bytes of a secret. The specification allows 24 to 64; HMAC-SHA-256 should have at least 32 (RFC 7518 §3.2), and
  /// this hub makes 32.
  public static let byteRange = 32...64
}

extension WebhookSigner {
  /// Secrets that sign at once: the present one, and those that were replaced within 24 h.
  public static let maximumSecrets = 4
}

extension EventReader {
  /// Positions of skipped events that one webhook remembers: some 400 kB. Beyond it they are looked up in the journal.
  static let rememberedEvents = 8192
  /// Bytes of the journal that one webhook reads in a turn ahead of its cursor, and as many for channels behind it. A
  /// stream reads as many.
  static let scanBytes = 4 << 20
}

extension EventFilter {
  /// Channels of a webhook that is set over HTTP. A question with more is refused.
  static let maximumChannels = 64
}

extension WebhookControl {
  /// Questions that wait for the webhooks' thread; as many of one loop's may be unanswered. Past it a further one is
  /// refused, to be asked again.
  public static let maximumQuestions = 64
}

extension WebhookReplay {
  /// Events of one question. For each, a part of the journal is read. A question with more is refused.
  public static let maximumEvents = 16
}

extension WebhookDefinition {
  /// How long the previous secret signs as well, in milliseconds.
  static let rotationMilliseconds: Int64 = 86_400_000
}

extension WebhookEndpoint {
  /// Webhooks of one hub, of the file and set over HTTP. A file with more is refused, and so is one more over HTTP.
  public static let maximumCount = 16
}

extension ReplyReader {
  /// Bytes of an answer's head and body that are read; with more the connection is not reused, and the status still
  /// counts.
  static let headBytes = 16 << 10
  static let bodyBytes = 64 << 10
}

extension WebhookLoop {
  /// Nanoseconds after which a webhook or stream that could not be opened is tried again.
  static let retryTime: Int64 = 60_000_000_000
  /// A stream's connection may have all positions of an interval unsent, besides its events.
  public static var loopLimits: EventLoopLimits {
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 16 << 20
    return limits
  }

  /// Nanoseconds from a try's beginning to the head of its answer, with the look-up of the name. Past it the try has
  /// failed.
  static let answerTime: Int64 = 15_000_000_000
  /// How long an idle connection is kept, in nanoseconds.
  static let idleTime: Int64 = 30_000_000_000
  /// How long addresses of a name are used, in nanoseconds: the system's resolver gives no lifetime.
  static let addressTime: Int64 = 30_000_000_000
  /// Open look-ups of one webhook: of the host of its URL, and of one that it had before. Past them a further host is
  /// looked up when one has ended.
  static let openLookups = 2
  /// Steps that one webhook takes in a turn.
  static let stepsPerTurn = 256
}

extension AddressOrder {
  /// Nanoseconds until a connection is established, if the name has another address: then that one is tried.
  static let connectTime: Int64 = 3_000_000_000
}

extension DeadLetterFile {
  /// The size in bytes at which a file of dead letters replaces the one before.
  static let maximumBytes = 256 << 10
}

extension ProgressFile {
  /// Bytes that are appended before the file is rewritten, at least; more where the state itself is larger.
  static let rewriteBytes = 256 << 10
  /// The interval of syncs, in nanoseconds. A power failure repeats the events since the last one.
  static let syncInterval: Int64 = 1_000_000_000
}

extension StreamEndpoint {
  /// Streams of one hub. A file with more is refused.
  public static let maximumCount = 4
}

extension StreamQueue {
  /// Waiting and unanswered events of one stream, and their bytes, or one event more. The journal keeps those behind
  /// them.
  static let maximumUnderWay = 256
  static let windowBytes = 256 << 10
}

extension BatchSink {
  /// How long a batch that is not full waits for more, in nanoseconds.
  static let delay: Int64 = 100_000_000
}

extension NATSReader {
  /// Bytes of a line. INFO with the addresses of a large cluster has some thousand.
  static let lineBytes = 64 << 10
  /// Bytes of a message with its headers: answers have some hundred.
  static let payloadBytes = 64 << 10
}

extension PositionSource {
  /// Waiting positions, some 300 bytes each; further ones are dropped.
  static let waitingPositions = 16_384
}

extension PositionFeed {
  /// The interval at which positions are taken, in nanoseconds.
  static let interval: Int64 = 100_000_000
}

extension PositionTable {
  /// Drivers with an unsent position for a stream's server, some 300 bytes each. Those of others are dropped.
  static let maximumCount = 16_384
}

extension StreamSet {
  /// Unsent bytes of a connection at which no more positions are sent.
  static let unsentBytes = 1 << 20
  /// Nanoseconds for which a server may owe an answer, or the rest of one: past it the connection is given up.
  static let answerTime: Int64 = 15_000_000_000
  /// The first and the longest wait from a connection's end to the next one, in nanoseconds. Each is twice the one
  /// before, and up to half as long again at random.
  static let firstBackOff: Int64 = 50_000_000
  static let longestBackOff: Int64 = 5_000_000_000
}

extension StreamEndpoint {
  /// Entries that Redis keeps of a stream, approximately, unless the operator says otherwise; it removes older ones.
  static let usualLength = 1_000_000
}
