// What ops ask about webhooks over HTTP, and what the thread of the webhooks answers.
public import HubMessages

public enum WebhookQuestion: Sendable {
  case list
  case show(String)
  /// Sets a webhook, or another in its place, which goes on where that was, and delivers again after a 410.
  case put(WebhookDefinition)
  case delete(String)
  /// The newest dead letters, so many at most.
  case dead(String, limit: Int)
  case enable(String)
  case replay(String, WebhookReplay)
  /// Sends an event of type `test` at once, whatever waits; the answer comes with the receiver's.
  case test(String)
  /// Another secret; the one before signs as well for a day.
  case rotateSecret(String)
}

/// Which events are delivered once more.
public enum WebhookReplay: Sendable, Equatable {
  /// This one and all behind it.
  case from(JournalPosition)
  /// All that were published then or later.
  case since(Timestamp)
  /// These, each with all behind it on its channel.
  case events([JournalPosition])
}

/// A webhook, as operators see it.
public struct WebhookReport: Sendable, Equatable {
  public enum State: String, Sendable {
    /// It delivers; it asks its receiver with one request at a time; it is off after a 410.
    case on, probing, off
    /// `--webhook-allow` does not have its URL any more.
    case notAllowed = "not_allowed"
  }

  public var name: String
  /// It was set over HTTP, not in the operator's file.
  public var isOfHTTP: Bool
  /// Without path and query, in which there may be a secret.
  public var url: String
  public var channels: [String]
  public var types: [String]
  public var concurrency: Int
  public var giveUpAfterSeconds: Double
  public var state: State
  /// Nil where it does not deliver.
  public var place: JournalPosition?
  public var figures: WebhookFigures
}

/// An event that was given up.
public struct DeadLetter: Sendable, Equatable {
  public var time: Timestamp
  public var id: String
  public var channel: String
  public var reason: String

  /// A line of `DeadLetterFile`; nil where it is none.
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

public enum WebhookAnswer: Sendable {
  case list([WebhookReport])
  /// `secret`: of one that is new.
  case webhook(WebhookReport, secret: String?)
  /// The newest first.
  case dead([DeadLetter])
  case deleted
  /// `status` is the receiver's; nil, and `reason` says why, where it gave none.
  case tested(status: Int?, reason: String, milliseconds: Double)
  /// The one before signs until then.
  case secret(String, previousUntil: Timestamp)
  case refused(WebhookFault)
}
