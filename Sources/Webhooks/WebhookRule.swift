// A webhook's delivery settings.

/// A webhook's settings for its queue.
public struct WebhookRule: Sendable, Equatable {
  /// Concurrent requests.
  public let concurrency: Int
  /// Seconds from an event's first try after which it becomes a dead letter.
  public let giveUpAfterSeconds: Double

  /// Nil where `concurrency` is not 1 to `maximumConcurrency`, or the time is not above 0 and finite.
  public init?(concurrency: Int = 4, giveUpAfterSeconds: Double = usualGiveUpSeconds) {
    guard 1...Self.maximumConcurrency ~= concurrency, giveUpAfterSeconds > 0, giveUpAfterSeconds.isFinite
    else { return nil }
    self.concurrency = concurrency
    self.giveUpAfterSeconds = giveUpAfterSeconds
  }
}

/// The outcome of a request.
enum WebhookReply: Sendable, Equatable {
  /// An answer with this status; `retryAfterSeconds` is its Retry-After.
  case status(Int, retryAfterSeconds: Double? = nil)
  /// No answer: no address, no connection, no trust, or a timeout.
  case none
}

/// The consequence of a reply.
enum DeliveryOutcome: Sendable, Equatable {
  case delivered
  /// It is retried at this uptime (ns), or later if other events must wait as well.
  case retry(at: Int64)
  /// It is given up. Its channel continues with the next event.
  case dead
  /// The receiver answered 410: nothing more is sent until the webhook is enabled.
  case disabled
}
