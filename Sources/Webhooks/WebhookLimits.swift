// Every limit of webhooks, with what happens at it.

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
  /// Secrets that sign at once: the present one, and the former one during a rotation.
  public static let maximumSecrets = 2
}

extension EventReader {
  /// Places of events that one webhook remembers besides, for their channel is busy: some 400 kB. Beyond it they are
  /// looked up in the journal.
  static let rememberedEvents = 8192
  /// Bytes of the journal that one webhook reads before others have their turn.
  static let scanBytes = 4 << 20
}

extension WebhookEndpoint {
  /// Webhooks of one hub. A file with more is refused.
  public static let maximumCount = 16
}

extension ResponseReader {
  /// Bytes of an answer's head and body that are read; where there are more the connection is not used again, and what
  /// its status says holds.
  static let headBytes = 16 << 10
  static let bodyBytes = 64 << 10
}

extension WebhookLoop {
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

extension ProgressFile {
  /// Bytes that are appended before the file is written anew, at least; more where the state itself is larger.
  static let rewriteBytes = 256 << 10
  /// How often what was written is brought to stable storage, in nanoseconds. A power cut repeats what came since.
  static let syncInterval: Int64 = 1_000_000_000
}
