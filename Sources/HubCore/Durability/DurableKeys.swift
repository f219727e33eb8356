// The owner of each record of a journal, so that one driver's fixes or one trip's moves are found without reading all
// of it. A segment's index on disk is made of these keys, so they never change.
//
// A key is an FNV-1a hash (64 bits; draft-eastlake-fnv) of one byte for the kind of owner and the bytes of its id. It
// has no seed, since other processes and later versions must compute the same. Two owners may have the same key, by
// chance or by choice of ids; then records of both are found, and the reader compares the ids in them.
import HubBytes
public import HubMessages

/// The owners of durable records, as keys of an index.
public enum DurableKeys {
  /// The key of the records of a driver's fixes.
  public static func fixes(ofDriver id: Identifier) -> UInt64 {
    unsafe id.text.withBytes { unsafe key(Owner.driver, $0) }
  }

  /// The key of a trip's records: its states, and its `trip_update` events on whatever channel.
  public static func trip(_ id: Identifier) -> UInt64 { unsafe id.text.withBytes { unsafe key(Owner.trip, $0) } }

  /// The key under which all ended trips are listed as well.
  public static let endedTrips = UInt64(0x656E_6465_6454_7270)

  /// Gives each record in `group` that has an owner: the key, and the byte of `group` where the record begins (with its
  /// length). `group` holds complete records, as the hub hands them over; anything else ends the reading.
  public static func forEach(in group: UnsafeRawBufferPointer, _ body: (_ key: UInt64, _ offset: Int) -> Void) {
    var offset = 0
    while let (record, next) = unsafe record(in: group, at: offset) {
      if let key = unsafe key(of: record) { body(key, offset) }
      if unsafe isEndedTrip(record) { body(endedTrips, offset) }
      offset = next
    }
  }

  /// The record that begins at `offset`, without its length, and where the next one begins; nil where it is incomplete.
  public static func record(
    in group: UnsafeRawBufferPointer, at offset: Int
  ) -> (record: UnsafeRawBufferPointer, next: Int)? {
    let start = offset + 4
    guard offset >= 0, start <= group.count else { return nil }
    let length = unsafe Int(UInt32(littleEndian: group.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    guard length > 0, length <= group.count - start else { return nil }
    return unsafe (UnsafeRawBufferPointer(rebasing: group[start..<start + length]), start + length)
  }

  // MARK: Keys

  private enum Owner {
    static let driver = UInt8(ascii: "f")
    static let trip = UInt8(ascii: "t")
  }

  private static func key(_ owner: UInt8, _ id: UnsafeRawBufferPointer) -> UInt64 {
    var hash = (0xCBF2_9CE4_8422_2325 ^ UInt64(owner)) &* 0x100_0000_01B3
    for index in id.indices { hash = unsafe (hash ^ UInt64(id[index])) &* 0x100_0000_01B3 }
    return hash
  }

  /// The key of a record, which begins with its kind.
  private static func key(of record: UnsafeRawBufferPointer) -> UInt64? {
    switch unsafe RecordKind(rawValue: record[0]) {
    case .fixes: unsafe text(record, at: 1).map { unsafe key(Owner.driver, $0) }
    case .trip, .tripForgotten: unsafe text(record, at: 1).map { unsafe key(Owner.trip, $0) }
    case .tripUpdate, .tripChange, .listedTripUpdate: unsafe tripOfUpdate(record).map { unsafe key(Owner.trip, $0) }
    case .epoch, .notification, .channel, .channelForgotten, .highestSequence, .driver, .driverOffline,
      .driverForgotten, .highestTripNumber, .eta, .fence, .fenceDeleted, .stay, .stayEnded, .pair, .pairEnded,
      .fenceNotification, .postedNotification, .offers, .offersForgotten, .offer, .offerWithdrawn, .tokenFamily,
      .tokensRotated, .tokensSettled, .tokenFamilyEnded, .revocation, .unrevoked, .audit, nil:
      nil
    }
  }

  /// A trip's status follows its id, number, two times and its creator.
  private static func isEndedTrip(_ record: UnsafeRawBufferPointer) -> Bool {
    guard unsafe RecordKind(rawValue: record[0]) == .trip, let id = unsafe text(record, at: 1) else { return false }
    let offset = 1 + 2 + id.count + 25
    return unsafe offset < record.count && TripStatus(rawValue: record[offset])?.isFinal == true
  }

  /// A trip_update's trip follows its channel (a letter and an id, or none), sequence, number and time.
  private static func tripOfUpdate(_ record: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    unsafe text(record, at: 2).flatMap { unsafe text(record, at: 2 + 2 + $0.count + 24) }
  }

  private static func text(_ record: UnsafeRawBufferPointer, at offset: Int) -> UnsafeRawBufferPointer? {
    guard offset + 2 <= record.count else { return nil }
    let count = unsafe Int(UInt16(littleEndian: record.loadUnaligned(fromByteOffset: offset, as: UInt16.self)))
    guard count <= record.count - offset - 2 else { return nil }
    return unsafe UnsafeRawBufferPointer(rebasing: record[offset + 2..<offset + 2 + count])
  }
}
