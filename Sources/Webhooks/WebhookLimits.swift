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
