// Durable records read from bytes, and the members of the larger ones in order.
import HubBytes
import HubGeo
import HubMessages

extension DurableRecord {
  /// The next record; nil behind the last one.
  static func next(from reader: inout RecordReader) throws(RecordError) -> DurableRecord? {
    if reader.isAtEnd { return nil }
    return try reader.record { (kind, reader) throws(RecordError) in try DurableRecord(kind, from: &reader) }
  }

  init(_ kind: UInt8, from reader: inout RecordReader) throws(RecordError) {
    guard let kind = RecordKind(rawValue: kind) else { throw reader.failure(.kind(kind)) }
    switch kind {
    case .epoch:  // any bits
      self = .epoch(
        try reader.read(), seed: try reader.read(), pseudonymKey: SipKey(try reader.read(), try reader.read()))
    case .trip: self = .trip(try reader.read())
    case .tripForgotten: self = .tripForgotten(try reader.read())
    case .eta: self = .eta(try reader.read(), try reader.read())
    case .tripUpdate, .tripChange, .listedTripUpdate, .notification, .fenceNotification, .postedNotification, .offer,
      .offerWithdrawn:
      self = .event(try Publication(kind, from: &reader))
    case .channel: self = .channel(try reader.read(), sequence: try reader.count())
    case .channelForgotten: self = .channelForgotten(try reader.read())
    case .highestSequence: self = .highestSequence(try reader.count())
    case .fixes: self = .fixes(DurableFixes(try FixesRecord(from: &reader)))
    case .driver: self = .driver(try reader.read())
    case .driverOffline: self = .driverOffline(try reader.read(), at: try reader.read())
    case .driverForgotten: self = .driverForgotten(try reader.read())
    case .highestTripNumber: self = .highestTripNumber(try reader.count())
    case .fence: self = .fence(try reader.read())
    case .fenceDeleted: self = .fenceDeleted(try reader.read())
    case .stay: self = .stay(try reader.read())
    case .stayEnded: self = .stayEnded(driver: try reader.read(), fence: try reader.read())
    case .pair: self = .pair(try reader.read())
    case .pairEnded:
      self = .pairEnded(fence: try reader.read(), driver: try reader.read(), other: try reader.read())
    case .tokenFamily: self = .tokenFamily(try reader.read())
    case .tokensRotated:
      self = .tokensRotated(try reader.read(), serial: try reader.count(), at: try reader.read())
    case .tokensSettled: self = .tokensSettled(try reader.read())
    case .tokenFamilyEnded: self = .tokenFamilyEnded(try reader.read())
    case .revocation: self = .revocation(try reader.read())
    case .unrevoked: self = .unrevoked(try reader.read())
    case .audit: self = .audit(try reader.read())
    case .offers: self = .offers(try reader.read())
    case .offersForgotten: self = .offersForgotten(try reader.read())
    }
  }
}

extension DurableTrip: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(
      id, number, created, updated, begunBy, status, changed, accepted, driverID, riderID, pickup, dropoff, route,
      progress, ended, recentMoves, eta, shares, sharesMade)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(
      id: try reader.read(), number: try reader.count(), created: try reader.read(), updated: try reader.read(),
      begunBy: try reader.read(), status: try reader.read(), changed: try reader.read(), accepted: try reader.read(),
      driverID: try reader.read(), riderID: try reader.read(), pickup: try reader.read(),
      dropoff: try reader.read(), route: try reader.read(), progress: try reader.read(), ended: try reader.read(),
      recentMoves: try reader.read(), eta: try reader.read(), shares: try reader.read(),
      sharesMade: try reader.read())
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
      isPositionOnTrip, position, statusChanges, tracking)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    let (id, status): (Identifier, DriverStatus) = (try reader.read(), try reader.read())
    guard status != .onTrip else { throw reader.failure(.status) }
    self.init(
      id: id, status: status, profile: DriverProfile(vehicleType: try reader.read(), tags: try reader.read()),
      newest: try reader.read(), published: try reader.read(), heard: try reader.read(),
      isOffline: try reader.read(), lastTripEnded: (try reader.read() as Timestamp).milliseconds,
      tripID: try reader.read(), isPositionOnTrip: try reader.read(), position: try reader.read())
    if let published { position?.published = published }
    statusChanges = try reader.read()
    tracking = try reader.read()
  }
}

extension Position: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(timestamp)
    unsafe bytes.append(atMost: StoredPosition.size) {
      unsafe write(into: $0, at: 0)
      return StoredPosition.size
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    let time: Timestamp = try reader.read()
    guard let position = unsafe StoredPosition(try reader.take(StoredPosition.size), at: 0) else {
      throw reader.failure(.fix)
    }
    self.init(position, at: time)
  }
}

extension StoredTracking: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) {
    unsafe bytes.append(atMost: StoredTracking.size) {
      unsafe write(into: $0)
      return StoredTracking.size
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    guard let tracking = unsafe StoredTracking(try reader.take(StoredTracking.size)) else { throw reader.failure(.fix) }
    self = tracking
  }
}

// MARK: - Events

extension Publication {
  /// The event of a record of this kind.
  fileprivate init(_ kind: RecordKind, from reader: inout RecordReader) throws(RecordError) {
    let channel: Channel = try reader.read()
    let (sequence, number) = (try reader.count(), try reader.count())
    let published: Timestamp = try reader.read()
    let body: Publication.Body =
      if kind == .tripUpdate || kind == .tripChange || kind == .listedTripUpdate {
        .tripUpdate(try TripUpdate(kind, sequence, from: &reader))
      } else if kind == .offer || kind == .offerWithdrawn {
        .offer(try Offer(kind, sequence, from: &reader))
      } else {
        .notification(try Notification(kind, sequence, from: &reader))
      }
    self.init(channel: channel, number: number, timestamp: published, body: body)
  }
}

extension TripUpdate {
  fileprivate init(
    _ kind: RecordKind, _ sequence: UInt64, from reader: inout RecordReader
  ) throws(RecordError) {
    self.init(
      tripID: try reader.read(), status: try reader.read(), previousStatus: try reader.read(),
      driverID: try reader.read(), timestamp: try reader.read(), location: try reader.read(),
      summary: try reader.read(), sequence: sequence)
    guard kind != .tripUpdate else { return }
    (pickup, dropoff) = (try reader.read(), try reader.read())
    route = try reader.read()
    if kind == .listedTripUpdate {
      riderID = try reader.read()
    } else if !isChange {
      throw reader.failure(.optional)
    }
  }
}

extension Notification {
  fileprivate init(
    _ kind: RecordKind, _ sequence: UInt64, from reader: inout RecordReader
  ) throws(RecordError) {
    self.init(
      kind: try reader.read(), title: try reader.read(), body: try reader.read(), driverID: try reader.read(),
      leg: try reader.read(), sequence: sequence)
    if kind == .fenceNotification { fence = try reader.read() as FenceNotice }
    guard kind == .postedNotification else { return }
    (content, messageID) = (try reader.read(), try reader.read())
    guard content != nil || messageID != nil else { throw reader.failure(.optional) }
  }
}

extension Offer {
  fileprivate init(
    _ kind: RecordKind, _ sequence: UInt64, from reader: inout RecordReader
  ) throws(RecordError) {
    let tripID: Identifier = try reader.read()
    let state: State =
      if kind == .offerWithdrawn {
        .withdrawn(try reader.read())
      } else {
        .made(
          Terms(
            pickup: try reader.read(), dropoff: try reader.read(), distance: try reader.distance(),
            eta: try reader.finite(in: 0...1e15), expires: try reader.read()))
      }
    self.init(tripID: tripID, state: state, sequence: sequence)
  }
}

extension Notification.Leg: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(target, distance, eta) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(target: try reader.read(), distance: try reader.distance(), eta: try reader.finite(in: 0...1e15))
  }
}
