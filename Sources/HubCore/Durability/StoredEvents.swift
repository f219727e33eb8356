// The events among a journal's records, for webhooks and streams.
public import HubMessages

/// Reads the events out of a journal's groups of records.
public enum StoredEvents {
  /// Gives each event in `group`, from the record at byte `start` on, with the byte where its record begins, until
  /// `body` returns false. `group` holds complete records, as the hub hands them over; anything else ends the reading,
  /// and an event of a newer program is skipped. O(records), with the cost of parsing for events alone.
  public static func forEach(
    in group: UnsafeRawBufferPointer, from start: Int = 0, _ body: (_ event: Publication, _ offset: Int) -> Bool
  ) {
    var offset = start
    while let (record, next) = unsafe DurableKeys.record(in: group, at: offset) {
      if unsafe isEvent(record), let event = unsafe event(in: group, at: offset, through: next),
        !body(event, offset)
      {
        return
      }
      offset = next
    }
  }

  /// The event whose record begins at byte `offset`; nil where there is none.
  public static func event(in group: UnsafeRawBufferPointer, at offset: Int) -> Publication? {
    guard let (_, next) = unsafe DurableKeys.record(in: group, at: offset) else { return nil }
    return unsafe event(in: group, at: offset, through: next)
  }

  private static func event(in group: UnsafeRawBufferPointer, at offset: Int, through end: Int) -> Publication? {
    var reader = unsafe RecordReader(UnsafeRawBufferPointer(rebasing: group[offset..<end]))
    do throws(RecordError) {
      guard case .event(let event)? = try DurableRecord.next(from: &reader) else { return nil }
      return event
    } catch {
      return nil  // its group's sum is right, so a newer program wrote it
    }
  }

  /// Whether `record`, which begins with its kind, is an event.
  private static func isEvent(_ record: UnsafeRawBufferPointer) -> Bool {
    switch unsafe RecordKind(rawValue: record[0]) {
    case .tripUpdate, .tripChange, .listedTripUpdate, .notification, .fenceNotification, .postedNotification, .offer,
      .offerWithdrawn:
      true
    case .epoch, .trip, .tripForgotten, .channel, .channelForgotten, .highestSequence, .fixes, .driver,
      .driverForgotten, .highestTripNumber, .driverOffline, .eta, .fence, .fenceDeleted, .stay, .stayEnded, .pair,
      .pairEnded, .tokenFamily, .tokensRotated, .tokensSettled, .tokenFamilyEnded, .revocation, .unrevoked, .audit,
      .offers,
      .offersForgotten, nil:
      false
    }
  }
}
