// An operator's request for a webhook: a small file beside its progress, which `locationhub webhooks` writes, and the
// hub reads at its start and on SIGHUP, and removes when done.
import HubJournal
import HubSystem

/// What an operator wants of a webhook.
public enum DeliveryCommand: Sendable, Equatable {
  /// Enable it, after a 410.
  case enable
  /// Deliver this event and all behind it again.
  case replay(from: EventID)
  /// Deliver all from this position on again. Over HTTP only, like `replayEvents`: `init` reads neither.
  case replayFrom(JournalPosition)
  /// Deliver these again, each with all behind it on its channel.
  case replayEvents([PendingEvent])

  /// The folder beside a journal's files.
  public static let folder = "webhooks"

  /// Nil for an invalid text.
  public init?(_ text: String) {
    let words = text.split { $0 == " " || $0 == "\n" }
    if words == ["enable"] {
      self = .enable
    } else {
      guard words.count == 2, words[0] == "replay", let id = EventID(String(words[1])) else { return nil }
      self = .replay(from: id)
    }
  }

  static func file(_ name: String) -> String { name + ".request" }
}

extension JournalFiles {
  /// Replaces a file's content, atomically and synced; gives the new file, open for appending.
  @discardableResult
  func replace(_ name: String, by bytes: [UInt8]) throws(SystemError) -> any JournalFile {
    let file = try open(name + ".new")
    try file.truncate(to: 0)
    let span = unsafe bytes.span.bytes
    try unsafe span.withUnsafeBytes { (bytes) throws(SystemError) in unsafe try file.append(bytes) }
    try file.synchronize()
    try rename(name + ".new", to: name)
    try synchronize()
    return file
  }
}
