// Where an event stands in the journal, and the id that follows from it.
public import HubMessages

/// The place of one record: its group's number, and which record of the group it is.
public struct JournalPlace: Sendable, Hashable, Comparable {
  public var group: UInt64
  /// Counted from 0 within the group.
  public var record: UInt32

  public init(group: UInt64, record: UInt32) {
    self.group = group
    self.record = record
  }

  public static func < (a: JournalPlace, b: JournalPlace) -> Bool { (a.group, a.record) < (b.group, b.record) }

  /// The first place behind this one. A group need not have a record there.
  public var next: JournalPlace { JournalPlace(group: group, record: record + 1) }
}

/// An event that a webhook is to deliver. What it says stays in the journal until it is sent.
public struct PendingEvent: Sendable, Hashable {
  public var place: JournalPlace
  public var channel: Channel

  public init(place: JournalPlace, channel: Channel) {
    self.place = place
    self.channel = channel
  }

  /// `webhook-id`: the same for each try and after a restart, for it says where the event stands. `epoch` tells
  /// journals apart, whose groups all count from 1. There is no full stop in it, for it is a part of what is signed,
  /// and the parts are separated by full stops.
  /// - Precondition: `epoch` has no full stop.
  public func webhookID(epoch: String) -> String {
    precondition(!epoch.utf8.contains(UInt8(ascii: ".")))
    return "evt_\(epoch)_\(place.group)_\(place.record)"
  }
}
