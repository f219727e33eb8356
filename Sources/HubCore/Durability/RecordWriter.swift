// Durable records as bytes: a length, a kind, and the members in order, without names (all numbers little-endian).
//
//     record    length 4 (of what follows), kind 1, members
//     text      length 2, UTF-8
//     optional  0, or 1 and the value
import HubBytes
import HubGeo
import HubMessages

/// The kinds and their numbers on the disk: new ones get new numbers, and no number is used twice.
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
}

/// Appends records to a buffer.
enum RecordWriter {
  static func write(_ record: DurableRecord, into bytes: inout ByteBuffer) {
    let start = bytes.count
    bytes.append(number: UInt32(0))
    switch record {
    case .epoch(let epoch, let seed, let pseudonymKey):
      bytes.append(RecordKind.epoch.rawValue)
      bytes.append(text: epoch)
      for number in [seed, pseudonymKey.first, pseudonymKey.second] { bytes.append(number: number) }
    case .trip(let trip):
      bytes.append(RecordKind.trip.rawValue)
      write(trip, into: &bytes)
    case .tripForgotten(let id):
      bytes.append(RecordKind.tripForgotten.rawValue)
      bytes.append(text: id.text)
    case .eta(let id, let eta):
      bytes.append(RecordKind.eta.rawValue)
      bytes.append(text: id.text)
      write(eta, into: &bytes)
    case .event(let publication): write(publication, into: &bytes)
    case .channel(let channel, let sequence):
      bytes.append(RecordKind.channel.rawValue)
      write(channel, into: &bytes)
      bytes.append(number: sequence)
    case .channelForgotten(let channel):
      bytes.append(RecordKind.channelForgotten.rawValue)
      write(channel, into: &bytes)
    case .highestSequence(let number):
      bytes.append(RecordKind.highestSequence.rawValue)
      bytes.append(number: number)
    case .fixes: preconditionFailure("fixes are written by themselves")
    case .driver(let driver):
      bytes.append(RecordKind.driver.rawValue)
      write(driver, into: &bytes)
    case .driverOffline(let id, let time):
      bytes.append(RecordKind.driverOffline.rawValue)
      bytes.append(text: id.text)
      bytes.append(number: time.milliseconds)
    case .driverForgotten(let id):
      bytes.append(RecordKind.driverForgotten.rawValue)
      bytes.append(text: id.text)
    case .highestTripNumber(let number):
      bytes.append(RecordKind.highestTripNumber.rawValue)
      bytes.append(number: number)
    case .fence(let fence):
      bytes.append(RecordKind.fence.rawValue)
      write(fence, into: &bytes)
    case .fenceDeleted(let id):
      bytes.append(RecordKind.fenceDeleted.rawValue)
      bytes.append(text: id.text)
    case .stay(let stay):
      bytes.append(RecordKind.stay.rawValue)
      write(stay, into: &bytes)
    case .stayEnded(let driver, let fence):
      bytes.append(RecordKind.stayEnded.rawValue)
      for id in [driver, fence] { bytes.append(text: id.text) }
    case .pair(let pair):
      bytes.append(RecordKind.pair.rawValue)
      write(pair, into: &bytes)
    case .pairEnded(let fence, let driver, let other):
      bytes.append(RecordKind.pairEnded.rawValue)
      for id in [fence, driver, other] { bytes.append(text: id.text) }
    }
    setLength(at: start, in: &bytes)
  }

  /// The length of the record that begins at `start` and ends here.
  private static func setLength(at start: Int, in bytes: inout ByteBuffer) {
    let length = UInt32(bytes.count - start - 4)
    bytes.withMutableBytes { $0.storeBytes(of: length.littleEndian, toByteOffset: start, as: UInt32.self) }
  }

  /// A message's fixes, of which `entries` holds `StoredFix.size` bytes each. Allocates nothing.
  static func write(
    fixes entries: borrowing ByteBuffer, driverID: Identifier, tripID: Identifier?, received: Timestamp,
    tracking: StoredTracking, progress: TripProgress?, published: Timestamp?, into bytes: inout ByteBuffer
  ) {
    let start = bytes.count
    bytes.append(number: UInt32(0))
    bytes.append(RecordKind.fixes.rawValue)
    bytes.append(text: driverID.text)
    if let tripID {
      bytes.append(UInt8(1))
      bytes.append(text: tripID.text)
    } else {
      bytes.append(UInt8(0))
    }
    bytes.append(number: received.milliseconds)
    write(tracking, into: &bytes)
    if let progress {
      bytes.append(UInt8(1))
      progress.write(into: &bytes)
    } else {
      bytes.append(UInt8(0))
    }
    if let published {
      bytes.append(UInt8(1))
      bytes.append(number: published.milliseconds)
    } else {
      bytes.append(UInt8(0))
    }
    bytes.append(number: UInt16(entries.count / StoredFix.size))
    entries.withBytes { bytes.append($0) }
    setLength(at: start, in: &bytes)
  }

  private static func write(_ driver: DurableDriver, into bytes: inout ByteBuffer) {
    bytes.append(text: driver.id.text)
    bytes.append(driver.status.rawValue)
    bytes.append(optional: driver.profile.vehicleType) { $0.append(text: $1) }
    bytes.append(UInt8(driver.profile.tags.count))
    for tag in driver.profile.tags { bytes.append(text: tag) }
    bytes.append(optional: driver.newest) { $0.append(number: $1.milliseconds) }
    bytes.append(optional: driver.published) { $0.append(number: $1.milliseconds) }
    bytes.append(number: driver.heard.milliseconds)
    bytes.append(UInt8(driver.isOffline ? 1 : 0))
    bytes.append(number: driver.lastTripEnded)
    bytes.append(optional: driver.tripID) { $0.append(text: $1.text) }
    bytes.append(UInt8(driver.isPositionOnTrip ? 1 : 0))
    bytes.append(optional: driver.position) { bytes, position in
      bytes.append(number: position.timestamp.milliseconds)
      bytes.append(atMost: StoredPosition.size) {
        StoredFix.write(position, into: $0, at: 0)
        return StoredPosition.size
      }
    }
    write(driver.tracking, into: &bytes)
  }

  @inline(__always)
  private static func write(_ tracking: StoredTracking, into bytes: inout ByteBuffer) {
    bytes.append(atMost: StoredTracking.size) {
      tracking.write(into: $0)
      return StoredTracking.size
    }
  }

  private static func write(_ eta: DurableETA, into bytes: inout ByteBuffer) {
    bytes.append(eta.target.rawValue)
    bytes.append(eta.basis.rawValue)
    bytes.append(number: eta.meters.bitPattern)
    bytes.append(number: eta.arrival.milliseconds)
  }

  private static func write(_ trip: DurableTrip, into bytes: inout ByteBuffer) {
    bytes.append(text: trip.id.text)
    bytes.append(number: trip.number)
    bytes.append(number: trip.created.milliseconds)
    bytes.append(number: trip.updated.milliseconds)
    bytes.append(trip.begunBy.rawValue)
    bytes.append(trip.status.rawValue)
    bytes.append(number: trip.changed.milliseconds)
    bytes.append(optional: trip.driverID) { $0.append(text: $1.text) }
    bytes.append(optional: trip.riderID) { $0.append(text: $1.text) }
    bytes.append(optional: trip.pickup) { $0.append(coordinate: $1) }
    bytes.append(optional: trip.dropoff) { $0.append(coordinate: $1) }
    bytes.append(optional: trip.route) { $0.append(longText: $1.polyline) }
    trip.progress.write(into: &bytes)
    bytes.append(optional: trip.ended) { $0.append(number: $1.milliseconds) }
    bytes.append(UInt8(trip.recentMoves.count))
    for move in trip.recentMoves { bytes.append(number: move) }
    bytes.append(optional: trip.eta) { write($1, into: &$0) }
  }

  private static func write(_ event: Publication, into bytes: inout ByteBuffer) {
    switch event.body {
    case .driverLocation, .etaUpdate, .areaUpdate: preconditionFailure("state is not stored as an event")
    case .tripUpdate(let update):
      bytes.append((update.isChange ? RecordKind.tripChange : .tripUpdate).rawValue)
      writeHead(event, sequence: update.sequence, into: &bytes)
      bytes.append(text: update.tripID.text)
      bytes.append(update.status.rawValue)
      bytes.append(optional: update.previousStatus) { $0.append($1.rawValue) }
      bytes.append(optional: update.driverID) { $0.append(text: $1.text) }
      bytes.append(number: update.timestamp.milliseconds)
      bytes.append(optional: update.location) { $0.append(coordinate: $1) }
      bytes.append(optional: update.summary) {
        $1.write(into: &$0)
      }
      if update.isChange {
        bytes.append(optional: update.pickup) { $0.append(coordinate: $1) }
        bytes.append(optional: update.dropoff) { $0.append(coordinate: $1) }
        bytes.append(optional: update.route) { $0.append(longText: $1) }
      }
    case .notification(let notification):
      let isPosted = notification.content != nil || notification.messageID != nil
      let kind =
        notification.fence != nil ? RecordKind.fenceNotification : isPosted ? .postedNotification : .notification
      bytes.append(kind.rawValue)
      writeHead(event, sequence: notification.sequence, into: &bytes)
      bytes.append(notification.kind.rawValue)
      bytes.append(longText: notification.title)
      bytes.append(longText: notification.body)
      bytes.append(optional: notification.driverID) { $0.append(text: $1.text) }
      bytes.append(optional: notification.leg) {
        $0.append($1.target.rawValue)
        $0.append(number: $1.distance.bitPattern)
        $0.append(number: $1.eta.bitPattern)
      }
      if let fence = notification.fence { return write(fence, into: &bytes) }
      guard isPosted else { return }
      bytes.append(optional: notification.content) { $0.append(longText: $1) }
      bytes.append(optional: notification.messageID) { $0.append(text: $1.text) }
    }
  }

  private static func writeHead(_ event: Publication, sequence: UInt64, into bytes: inout ByteBuffer) {
    write(event.channel, into: &bytes)
    bytes.append(number: sequence)
    bytes.append(number: event.number)
    bytes.append(number: event.timestamp.milliseconds)
  }

  /// Channels with events: a letter and an id.
  private static func write(_ channel: Channel, into bytes: inout ByteBuffer) {
    switch channel {
    case .trip(let id): bytes.append(channel: "t", id)
    case .driver(let id): bytes.append(channel: "d", id)
    case .fence(let id): bytes.append(channel: "f", id)
    case .area, .nearby, .fleet: preconditionFailure("channels of state have no events")
    }
  }
}

/// The pieces of records.
extension ByteBuffer {
  mutating func append(number: some FixedWidthInteger) {
    withUnsafeBytes(of: number.littleEndian) { append($0) }
  }

  mutating func append(text: InlineText) {
    append(number: UInt16(text.count))
    text.withBytes { append($0) }
  }

  mutating func append(longText text: String) {
    append(number: UInt32(text.utf8.count))
    append(utf8: text)
  }

  mutating func append(coordinate: Coordinate) {
    append(number: coordinate.latitude.bitPattern)
    append(number: coordinate.longitude.bitPattern)
  }

  mutating func append(channel letter: Unicode.Scalar, _ id: Identifier) {
    append(UInt8(truncatingIfNeeded: letter.value))
    append(text: id.text)
  }

  mutating func append<Value>(optional value: Value?, _ write: (inout ByteBuffer, Value) -> Void) {
    guard let value else { return append(UInt8(0)) }
    append(UInt8(1))
    write(&self, value)
  }
}
