// Questions of ops about webhooks over HTTP, and the answers of the webhooks' thread.
public import HubMessages

/// A question of ops about webhooks, or a change of one.
public enum WebhookQuestion: Sendable {
  case list
  case show(String)
  /// Sets a webhook, or replaces one, continuing its progress, and enables it after a 410.
  case put(WebhookDefinition)
  case delete(String)
  /// The newest dead letters, up to `limit`.
  case dead(String, limit: Int)
  case enable(String)
  case replay(String, WebhookReplay)
  /// Sends an event of type `test` at once; the answer comes with the receiver's.
  case test(String)
  /// Makes another secret; the one before signs as well for a day.
  case rotateSecret(String)
}

/// The events to deliver again.
public enum WebhookReplay: Sendable, Equatable {
  /// The event at a position, and all behind it.
  case from(EventID)
  /// All events that were published then or later.
  case since(Timestamp)
  /// These events, each with all behind it on its channel.
  case events([EventID])
}

/// A webhook for operators.
public struct WebhookReport: Sendable, Equatable {
  /// Whether the webhook delivers, by its name in reports.
  public enum State: String, Sendable {
    /// It delivers; it probes its receiver with one request at a time; it is off after a 410, or since the journal
    /// can't be read.
    case on, probing, off
    /// Its URL is not in `--webhook-allow` any more.
    case notAllowed = "not_allowed"
  }

  public var name: String
  /// It was set over HTTP, not in the operator's file.
  public var isOfHTTP: Bool
  /// Without path and query, which may contain a secret.
  public var url: String
  public var channels: [String]
  public var types: [String]
  public var concurrency: Int
  public var giveUpAfterSeconds: Double
  public var state: State
  /// Nil where it does not deliver.
  public var position: JournalPosition?
  public var figures: WebhookFigures
}

/// An event that was given up.
public struct DeadLetter: Sendable, Equatable {
  public var time: Timestamp
  public var id: String
  public var channel: String
  public var reason: String

  /// A line of `DeadLetterFile`; nil for an invalid one.
  init?(_ line: Substring) {
    let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
    guard words.count >= 3, var time = Optional(String(words[0])),
      let timestamp = time.withUTF8({ unsafe Timestamp(rfc3339: UnsafeRawBufferPointer($0)) })
    else { return nil }
    self.time = timestamp
    (id, channel) = (String(words[1]), String(words[2]))
    reason = words.count == 4 ? String(words[3]) : ""
  }
}

/// The answer to a `WebhookQuestion`.
public enum WebhookAnswer: Sendable {
  case list([WebhookReport])
  /// `secret` is that of a new webhook, nil for one that exists.
  case webhook(WebhookReport, secret: String?)
  /// Newest first.
  case dead([DeadLetter])
  case deleted
  /// `status` is the receiver's; nil without one: then `reason` says why.
  case tested(status: Int?, reason: String, milliseconds: Double)
  /// The new secret, and until when the previous one signs as well.
  case secret(String, previousUntil: Timestamp)
  case refused(WebhookFault)
}
