// Durable records as bytes: a length, a kind, and the members in order, without names (all numbers little-endian).
//
//     record    length 4 (of what follows), kind 1, members
//     text      length 2, UTF-8
//     optional  0, or 1 and the value
import HubBytes
import HubGeo
import HubMessages

/// The kinds and their numbers on disk: new kinds get new numbers, and no number is reused.
enum RecordKind: UInt8 {
  case epoch = 1
  case trip = 2
  case tripForgotten = 3
  case tripUpdate = 4
  case notification = 5
  case channel = 6
  case channelForgotten = 7
  case highestSequence = 8
  case fixes = 9
  case driver = 10
  case driverForgotten = 11
  case highestTripNumber = 12
  case driverOffline = 13
  case eta = 14
  case fence = 20
  case fenceDeleted = 21
  case stay = 22
  case stayEnded = 23
  case pair = 24
  case pairEnded = 25
  case fenceNotification = 26
  case tripChange = 27
  case postedNotification = 28
  case listedTripUpdate = 29
  case tokenFamily = 40
  case tokensRotated = 41
  case tokenFamilyEnded = 42
  case revocation = 43
  case unrevoked = 44
  case audit = 45
  case tokensSettled = 46
  case offers = 69
  case offersForgotten = 70
  case offer = 71
  case offerWithdrawn = 72
}

/// Appends records to a buffer.
enum RecordWriter {
  static func write(_ record: DurableRecord, into bytes: inout ByteBuffer) {
    let start = bytes.count
    bytes.record(UInt32(0))
    switch record {
    case .epoch(let epoch, let seed, let key): bytes.record(RecordKind.epoch, epoch, seed, key.first, key.second)
    case .trip(let trip): bytes.record(RecordKind.trip, trip)
    case .tripForgotten(let id): bytes.record(RecordKind.tripForgotten, id)
    case .eta(let id, let eta): bytes.record(RecordKind.eta, id, eta)
    case .event(let event): write(event, into: &bytes)
    case .channel(let channel, let sequence): bytes.record(RecordKind.channel, channel, sequence)
    case .channelForgotten(let channel): bytes.record(RecordKind.channelForgotten, channel)
    case .highestSequence(let number): bytes.record(RecordKind.highestSequence, number)
    case .fixes: preconditionFailure("fixes are written by themselves")
    case .driver(let driver): bytes.record(RecordKind.driver, driver)
    case .driverOffline(let id, let time): bytes.record(RecordKind.driverOffline, id, time)
    case .driverForgotten(let id): bytes.record(RecordKind.driverForgotten, id)
    case .highestTripNumber(let number): bytes.record(RecordKind.highestTripNumber, number)
    case .fence(let fence): bytes.record(RecordKind.fence, fence)
    case .fenceDeleted(let id): bytes.record(RecordKind.fenceDeleted, id)
    case .stay(let stay): bytes.record(RecordKind.stay, stay)
    case .stayEnded(let driver, let fence): bytes.record(RecordKind.stayEnded, driver, fence)
    case .pair(let pair): bytes.record(RecordKind.pair, pair)
    case .pairEnded(let fence, let driver, let other): bytes.record(RecordKind.pairEnded, fence, driver, other)
    case .tokenFamily(let family): bytes.record(RecordKind.tokenFamily, family)
    case .tokensRotated(let id, let serial, let time): bytes.record(RecordKind.tokensRotated, id, serial, time)
    case .tokensSettled(let id): bytes.record(RecordKind.tokensSettled, id)
    case .tokenFamilyEnded(let id): bytes.record(RecordKind.tokenFamilyEnded, id)
    case .revocation(let revocation): bytes.record(RecordKind.revocation, revocation)
    case .unrevoked(let name): bytes.record(RecordKind.unrevoked, name)
    case .audit(let audit): bytes.record(RecordKind.audit, audit)
    case .offers(let search): bytes.record(RecordKind.offers, search)
    case .offersForgotten(let id): bytes.record(RecordKind.offersForgotten, id)
    }
    setLength(at: start, in: &bytes)
  }

  /// Sets the length of the record that begins at `start` and ends with the buffer.
  private static func setLength(at start: Int, in bytes: inout ByteBuffer) {
    let length = UInt32(bytes.count - start - 4)
    unsafe bytes.withMutableBytes {
      unsafe $0.storeBytes(of: length.littleEndian, toByteOffset: start, as: UInt32.self)
    }
  }

  /// A message's fixes, of which `entries` holds `StoredFix.size` bytes each. Allocates nothing.
  static func write(
    fixes entries: borrowing ByteBuffer, driverID: Identifier, tripID: Identifier?, received: Timestamp,
    tracking: StoredTracking, progress: TripProgress?, published: Timestamp?, into bytes: inout ByteBuffer
  ) {
    let start = bytes.count
    // One by one, since this is on the path of each fix; a parameter pack is as fast only where it is specialised.
    UInt32(0).write(into: &bytes)
    RecordKind.fixes.write(into: &bytes)
    driverID.write(into: &bytes)
    tripID.write(into: &bytes)
    received.write(into: &bytes)
    tracking.write(into: &bytes)
    progress.write(into: &bytes)
    published.write(into: &bytes)
    UInt16(entries.count / StoredFix.size).write(into: &bytes)
    unsafe entries.withBytes { unsafe bytes.append($0) }
    setLength(at: start, in: &bytes)
  }

  private static func write(_ event: Publication, into bytes: inout ByteBuffer) {
    func begin(_ kind: RecordKind, _ sequence: UInt64) {
      bytes.record(kind, event.channel, sequence, event.number, event.timestamp)
    }
    switch event.body {
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats:
      preconditionFailure("state is not stored as an event")
    case .tripUpdate(let update):
      let isListed = event.channel == .trips
      begin(isListed ? .listedTripUpdate : update.isChange ? .tripChange : .tripUpdate, update.sequence)
      bytes.record(
        update.tripID, update.status, update.previousStatus, update.driverID, update.timestamp, update.location,
        update.summary)
      if isListed || update.isChange { bytes.record(update.pickup, update.dropoff, update.route) }
      if isListed { bytes.record(update.riderID) }
    case .notification(let made):
      let isPosted = made.content != nil || made.messageID != nil
      begin(
        made.fence != nil ? .fenceNotification : isPosted ? .postedNotification : .notification, made.sequence)
      bytes.record(made.kind, made.title, made.body, made.driverID, made.leg)
      if let fence = made.fence { return bytes.record(fence) }
      if isPosted { bytes.record(made.content, made.messageID) }
    case .offer(let offer):
      switch offer.state {
      case .made(let terms):
        begin(.offer, offer.sequence)
        bytes.record(offer.tripID, terms.pickup, terms.dropoff, terms.distance, terms.eta, terms.expires)
      case .withdrawn(let reason):
        begin(.offerWithdrawn, offer.sequence)
        bytes.record(offer.tripID, reason)
      }
    }
  }
}

/// Collects records into parts of about a size, without splitting a record.
struct RecordParts: ~Copyable {
  private let size: Int
  private var part = ByteBuffer()

  init(bytes: Int) { size = bytes }

  /// Adds a record; gives `body` the part when it is full.
  mutating func add<E: Error>(
    _ record: DurableRecord, _ body: (UnsafeRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    RecordWriter.write(record, into: &part)
    if part.count >= size { unsafe try finish(body) }
  }

  /// Gives `body` the rest.
  mutating func finish<E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> Void) throws(E) {
    if part.isEmpty { return }
    unsafe try part.withBytes(body)
    part.removeAll()
  }
}
