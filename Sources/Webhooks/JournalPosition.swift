// Where an event stands in the journal, and the id that follows from it.
public import HubMessages

/// The place of one record: its group's number, and where in the group it begins.
public struct JournalPosition: Sendable, Hashable, Comparable {
  public var group: UInt64
  /// Bytes from the start of the group's payload.
  public var record: UInt32

  public init(group: UInt64, record: UInt32) {
    self.group = group
    self.record = record
  }

  /// The place that a `webhook-id` names; nil where the text is none.
  public init?(webhookID text: String) {
    let words = text.split(separator: "_", omittingEmptySubsequences: false)
    guard words.count == 4, words[0] == "evt", let group = UInt64(words[2]), let record = UInt32(words[3]) else {
      return nil
    }
    self.init(group: group, record: record)
  }

  public static func < (a: JournalPosition, b: JournalPosition) -> Bool { (a.group, a.record) < (b.group, b.record) }

  /// The first place behind this one. A group need not have a record there.
  public var next: JournalPosition { JournalPosition(group: group, record: record + 1) }
}

/// An event that a webhook is to deliver. What it says stays in the journal until it is sent.
public struct PendingEvent: Sendable, Hashable {
  public var place: JournalPosition
  public var channel: Channel

  public init(place: JournalPosition, channel: Channel) {
    self.place = place
    self.channel = channel
  }

  /// `webhook-id`: the same for each try and after a restart, for it says where the event stands. `epoch` tells
  /// journals apart, whose groups all count from 1. There is no full stop in it, for it is a part of what is signed,
  /// and the parts are separated by full stops.
  /// - Precondition: `epoch` has neither full stop nor underscore.
  public func webhookID(epoch: String) -> String {
    precondition(!epoch.utf8.contains { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") })
    return "evt_\(epoch)_\(place.group)_\(place.record)"
  }
}
