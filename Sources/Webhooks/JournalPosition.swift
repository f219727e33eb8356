// An event's position in the journal, and its id, which is made of it.
public import HubMessages

/// The position of one record: its group's number, and its offset in the group.
public struct JournalPosition: Sendable, Hashable, Comparable {
  public var group: UInt64
  /// Bytes from the start of the group's payload.
  public var record: UInt32

  public init(group: UInt64, record: UInt32) {
    self.group = group
    self.record = record
  }

  /// The journal's order: by group, then by record.
  public static func < (a: JournalPosition, b: JournalPosition) -> Bool { (a.group, a.record) < (b.group, b.record) }

  /// The first position behind this one, where there may be no record.
  public var next: JournalPosition { JournalPosition(group: group, record: record + 1) }
}

/// A `webhook-id`: constant over retries and restarts, since it is the event's position in a journal.
public struct EventID: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// Distinguishes journals, whose groups all count from 1, and a journal from itself before it lost something.
  public let epoch: String
  public let position: JournalPosition

  /// - Precondition: `epoch` has neither a full stop, which separates the parts that are signed, nor an underscore.
  init(epoch: String, position: JournalPosition) {
    precondition(Self.isEpoch(epoch))
    self.epoch = epoch
    self.position = position
  }

  /// Nil for an invalid text.
  public init?(_ text: String) {
    let words = text.split(separator: "_", omittingEmptySubsequences: false)
    guard words.count == 4, words[0] == "evt", let group = UInt64(words[2]), let record = UInt32(words[3]) else {
      return nil
    }
    epoch = String(words[1])
    position = JournalPosition(group: group, record: record)
  }

  public var description: String { "evt_\(epoch)_\(position.group)_\(position.record)" }

  /// The journal's order.
  public static func < (a: EventID, b: EventID) -> Bool { a.position < b.position }

  static func isEpoch(_ text: String) -> Bool { !text.isEmpty && !text.contains { $0 == "." || $0 == "_" } }
}

/// An event to deliver. Its content stays in the journal until it is sent.
public struct PendingEvent: Sendable, Hashable {
  public var position: JournalPosition
  public var channel: Channel

  public init(position: JournalPosition, channel: Channel) {
    self.position = position
    self.channel = channel
  }
}
