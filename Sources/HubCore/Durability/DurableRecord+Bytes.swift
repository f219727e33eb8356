// The members of durable records as bytes, in their order, and read again.
import HubBytes
import HubGeo
import HubMessages

extension DurableTrip: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(
      id, number, created, updated, begunBy, status, changed, driverID, riderID, pickup, dropoff, route, progress,
      ended, recentMoves, eta)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(
      id: try reader.read(), number: try reader.count(), created: try reader.read(), updated: try reader.read(),
      begunBy: try reader.read(), status: try reader.read(), changed: try reader.read(),
      driverID: try reader.read(), riderID: try reader.read(), pickup: try reader.read(),
      dropoff: try reader.read(), route: try reader.read(), progress: try reader.read(), ended: try reader.read(),
      recentMoves: try reader.read(), eta: try reader.read())
  }
}

extension DurableETA: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(target, basis, meters, arrival) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(
      target: try reader.read(), basis: try reader.read(), meters: try reader.distance(), arrival: try reader.read())
  }
}

extension DurableDriver: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(
      id, status, profile.vehicleType, profile.tags, newest, published, heard, isOffline, lastTripEnded, tripID,
      isPositionOnTrip, position, tracking)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    let (id, status): (Identifier, DriverStatus) = (try reader.read(), try reader.read())
    guard status != .onTrip else { throw reader.failure(.status) }
    self.init(
      id: id, status: status, profile: DriverProfile(vehicleType: try reader.read(), tags: try reader.read()),
      newest: try reader.read(), published: try reader.read(), heard: try reader.read(),
      isOffline: try reader.read(), lastTripEnded: (try reader.read() as Timestamp).milliseconds,
      tripID: try reader.read(), isPositionOnTrip: try reader.read(), position: try reader.read(),
      tracking: try reader.read())
    if let published { position?.published = published }
  }
}

extension Position: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(timestamp)
    bytes.append(atMost: StoredPosition.size) {
      StoredFix.write(self, into: $0, at: 0)
      return StoredPosition.size
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    let time: Timestamp = try reader.read()
    guard let position = StoredPosition(try reader.take(StoredPosition.size), at: 0) else { throw reader.failure(.fix) }
    self.init(position, at: time)
  }
}

extension StoredTracking: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) {
    bytes.append(atMost: StoredTracking.size) {
      write(into: $0)
      return StoredTracking.size
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    guard let tracking = StoredTracking(try reader.take(StoredTracking.size)) else { throw reader.failure(.fix) }
    self = tracking
  }
}

// MARK: - Events

extension RecordReader {
  /// The event of a record of this kind.
  mutating func event(_ kind: RecordKind) throws(RecordError) -> Publication {
    let channel: Channel = try read()
    let (sequence, number) = (try count(), try count())
    let published: Timestamp = try read()
    let body: Publication.Body =
      kind == .tripUpdate || kind == .tripChange
      ? .tripUpdate(try tripUpdate(kind, sequence)) : .notification(try notification(kind, sequence))
    return Publication(channel: channel, number: number, timestamp: published, body: body)
  }

  private mutating func tripUpdate(_ kind: RecordKind, _ sequence: UInt64) throws(RecordError) -> TripUpdate {
    var update = TripUpdate(
      tripID: try read(), status: try read(), previousStatus: try read(), driverID: try read(),
      timestamp: try read(), location: try read(), summary: try read(), sequence: sequence)
    guard kind == .tripChange else { return update }
    (update.pickup, update.dropoff) = (try read(), try read())
    update.route = (try read() as Route?)?.polyline
    guard update.isChange else { throw failure(.optional) }
    return update
  }

  private mutating func notification(_ kind: RecordKind, _ sequence: UInt64) throws(RecordError) -> Notification {
    var made = Notification(
      kind: try read(), title: try read(), body: try read(), driverID: try read(), leg: try read(), sequence: sequence)
    if kind == .fenceNotification { made.fence = try read() as FenceNotice }
    guard kind == .postedNotification else { return made }
    (made.content, made.messageID) = (try read(), try read())
    guard made.content != nil || made.messageID != nil else { throw failure(.optional) }
    return made
  }
}

extension Notification.Leg: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(target, distance, eta) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(target: try reader.read(), distance: try reader.distance(), eta: try reader.finite(in: 0...1e15))
  }
}
