// An event's position in the journal, and its id derived from it.
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

  /// The position in a `webhook-id`; nil for an invalid text.
  public init?(webhookID text: String) {
    let words = text.split(separator: "_", omittingEmptySubsequences: false)
    guard words.count == 4, words[0] == "evt", let group = UInt64(words[2]), let record = UInt32(words[3]) else {
      return nil
    }
    self.init(group: group, record: record)
  }

  /// The journal's order: by group, then by record.
  public static func < (a: JournalPosition, b: JournalPosition) -> Bool { (a.group, a.record) < (b.group, b.record) }

  /// The first position behind this one, where there may be no record.
  public var next: JournalPosition { JournalPosition(group: group, record: record + 1) }
}

/// An event to deliver. Its content stays in the journal until it is sent.
public struct PendingEvent: Sendable, Hashable {
  public var position: JournalPosition
  public var channel: Channel

  public init(position: JournalPosition, channel: Channel) {
    self.position = position
    self.channel = channel
  }

  /// `webhook-id`: constant over retries and restarts, since it is the event's position. `epoch` distinguishes
  /// journals, whose groups all count from 1. It has no full stop, which separates the parts that are signed.
  /// - Precondition: `epoch` has neither full stop nor underscore.
  public func webhookID(epoch: String) -> String {
    precondition(!epoch.utf8.contains { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") })
    return "evt_\(epoch)_\(position.group)_\(position.record)"
  }
}
