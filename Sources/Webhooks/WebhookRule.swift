// How a webhook delivers, as its owner set it.

/// A webhook's settings for its queue.
public struct WebhookRule: Sendable, Equatable {
  /// Requests under way at once.
  public let concurrency: Int
  /// Seconds from an event's first try after which it is a dead letter.
  public let giveUpAfterSeconds: Double

  /// Nil where `concurrency` is not 1 to `maximumConcurrency`, or the time is not above 0 and finite.
  public init?(concurrency: Int = 4, giveUpAfterSeconds: Double = 3 * 86_400) {
    guard 1...Self.maximumConcurrency ~= concurrency, giveUpAfterSeconds > 0, giveUpAfterSeconds.isFinite
    else { return nil }
    self.concurrency = concurrency
    self.giveUpAfterSeconds = giveUpAfterSeconds
  }
}

/// What a request came to.
public enum WebhookReply: Sendable, Equatable {
  /// An answer with this status; `retryAfterSeconds` is its Retry-After.
  case status(Int, retryAfterSeconds: Double? = nil)
  /// There was none: no address, no connection, no trust, or silence.
  case none
}

/// What follows from a reply.
public enum DeliveryOutcome: Sendable, Equatable {
  case delivered
  /// It is tried again at this uptime in nanoseconds, or later where other events must wait as well.
  case retry(at: Int64)
  /// It is given up. Its channel goes on with the next event.
  case dead
  /// The receiver said 410: nothing more is sent until the webhook is enabled.
  case disabled
}
