// Durable records as JSON, for people and programs that inspect a journal: one object a line, with the names of
// protocol/ where it has them. Nothing reads these lines back.
public import HubBytes
import HubGeo
import HubMessages

/// What is in the bytes of durable records.
public enum RecordJSON {
  /// Throws where `records` are invalid.
  public static func check(_ records: UnsafeRawBufferPointer) throws(RecordError) {
    var reader = unsafe RecordReader(records)
    while try DurableRecord.next(from: &reader) != nil {}
  }

  /// The epoch that the last `epoch` record in `records` begins; nil without one.
  public static func lastEpoch(in records: UnsafeRawBufferPointer) throws(RecordError) -> String? {
    var reader = unsafe RecordReader(records)
    var found: InlineText?
    while let record = try DurableRecord.next(from: &reader) {
      if case .epoch(let epoch, _, _) = record { found = epoch }
    }
    return found.map { "\($0)" }
  }

  /// Appends a line for each record in `records`, the payload of the journal's group of this number, or for those of
  /// the audit trail. Times are in ms since 1970.
  public static func write(
    _ records: UnsafeRawBufferPointer, group: UInt64, onlyAudit: Bool = false, into buffer: inout ByteBuffer
  ) throws(RecordError) {
    var offset = 0
    while let (record, next) = unsafe DurableKeys.record(in: records, at: offset) {
      guard unsafe !onlyAudit || record[0] == RecordKind.audit.rawValue else {
        offset = next
        continue
      }
      let whole = unsafe UnsafeRawBufferPointer(rebasing: records[offset..<next])
      buffer.append("{\"group\":", group)
      if unsafe record[0] == RecordKind.fixes.rawValue {
        unsafe write(try FixesRecord(whole), &buffer)
      } else {
        var reader = unsafe RecordReader(whole)
        if let record = try DurableRecord.next(from: &reader) { write(record, &buffer) }
      }
      buffer.append("}\n")
      offset = next
    }
    guard offset == records.count else { throw RecordError(fault: .short, offset: offset) }
  }

  // MARK: Records

  private static func write(_ record: DurableRecord, _ buffer: inout ByteBuffer) {
    switch record {
    case .epoch(let epoch, _, _):
      buffer.begin("epoch")
      buffer.append(",\"epoch\":", epoch)
    case .trip(let trip): write(trip, &buffer)
    case .tripForgotten(let id):
      buffer.begin("trip_forgotten")
      buffer.append(",\"tripId\":", id)
    case .eta(let id, let eta):
      buffer.begin("eta")
      buffer.append(",\"tripId\":", id)
      write(eta, &buffer)
    case .event(let publication):
      buffer.begin("event")
      buffer.append(",\"message\":")
      JSONWriter.write(publication, time: .unixMilliseconds, into: &buffer)
    case .channel(let channel, let sequence):
      buffer.begin("channel")
      buffer.append(",\"channel\":", channel)
      buffer.append(",\"sequence\":", sequence)
    case .channelForgotten(let channel):
      buffer.begin("channel_forgotten")
      buffer.append(",\"channel\":", channel)
    case .highestSequence(let number):
      buffer.begin("highest_sequence")
      buffer.append(",\"sequence\":", number)
    case .fixes: preconditionFailure("they are read as FixesRecord")
    case .driver(let driver): write(driver, &buffer)
    case .driverOffline(let id, let time):
      buffer.begin("driver_offline")
      buffer.append(",\"driverId\":", id)
      buffer.append(",\"timestamp\":", time)
    case .driverForgotten(let id):
      buffer.begin("driver_forgotten")
      buffer.append(",\"driverId\":", id)
    case .highestTripNumber(let number):
      buffer.begin("highest_trip_number")
      buffer.append(",\"number\":", number)
    case .fence(let fence):
      buffer.begin("fence")
      buffer.append(",")
      JSONWriter.writeMembers(fence.fence, isWhole: true, &buffer)
      buffer.append(",\"number\":", fence.number)
      buffer.append(",\"updated\":", fence.updated)
    case .fenceDeleted(let id):
      buffer.begin("fence_deleted")
      buffer.append(",\"fenceId\":", id)
    case .stay(let stay):
      buffer.begin("stay")
      buffer.append(",\"driverId\":", stay.driverID)
      buffer.append(",\"fenceId\":", stay.fenceID)
      buffer.append(",\"entered\":", stay.entered)
      buffer.append(",\"speedingNotified\":", stay.speedingNotified)
    case .stayEnded(let driver, let fence):
      buffer.begin("stay_ended")
      buffer.append(",\"driverId\":", driver)
      buffer.append(",\"fenceId\":", fence)
    case .pair(let pair):
      buffer.begin("pair")
      write(pair.fenceID, pair.driverID, pair.otherID, &buffer)
      buffer.append(",\"entered\":", pair.entered)
    case .pairEnded(let fence, let driver, let other):
      buffer.begin("pair_ended")
      write(fence, driver, other, &buffer)
    case .tokenFamily(let family):
      buffer.begin("token_family")
      buffer.append(",\"jti\":", family.id)
      buffer.append(",\"sub\":", family.subject)
      buffer.append(",\"role\":", family.role.name)
      buffer.append(",\"created\":", family.created)
      buffer.append(",\"refreshed\":", family.rotated)
    case .tokensRotated(let id, let serial, let time):
      buffer.begin("tokens_refreshed")
      buffer.append(",\"jti\":", id)
      buffer.append(",\"serial\":", serial)
      buffer.append(",\"timestamp\":", time)
    case .tokensSettled(let id):
      buffer.begin("tokens_settled")
      buffer.append(",\"jti\":", id)
    case .tokenFamilyEnded(let id):
      buffer.begin("token_family_ended")
      buffer.append(",\"jti\":", id)
    case .revocation(let revocation):
      buffer.begin("revocation")
      write(revocation.name, &buffer)
      buffer.append(",\"until\":", revocation.until)
    case .unrevoked(let name):
      buffer.begin("unrevoked")
      write(name, &buffer)
    case .audit(let audit): write(audit, &buffer)
    case .offers(let search):
      buffer.begin("offers")
      buffer.append(",\"offers\":")
      JSONWriter.write(search.report, time: .unixMilliseconds, into: &buffer)
    case .offersForgotten(let id):
      buffer.begin("offers_forgotten")
      buffer.append(",\"tripId\":", id)
    }
  }

  private static func write(
    _ fence: Identifier, _ driver: Identifier, _ other: Identifier, _ buffer: inout ByteBuffer
  ) {
    buffer.append(",\"fenceId\":", fence)
    buffer.append(",\"driverId\":", driver)
    buffer.append(",\"otherId\":", other)
  }

  private static func write(_ name: RevokedName, _ buffer: inout ByteBuffer) {
    switch name {
    case .subject(let id): buffer.append(",\"sub\":", id)
    case .tokenID(let id): buffer.append(",\"jti\":", id)
    case .families(let id): buffer.append(",\"familiesOf\":", id)
    }
  }

  private static func write(_ audit: DurableAudit, _ buffer: inout ByteBuffer) {
    let source = audit.entry.source
    buffer.begin("audit")
    buffer.append(",\"timestamp\":", audit.time)
    buffer.append(",\"action\":", source.action.name)
    buffer.append(",\"role\":", source.actor?.role.name)
    buffer.append(",\"sub\":", source.actor?.id)
    buffer.append(",\"address\":", source.address)
    buffer.append(",\"target\":", audit.entry.target)
    buffer.append(",\"status\":", audit.entry.status)
    if audit.leftOut > 0 { buffer.append(",\"leftOut\":", audit.leftOut) }
  }

  private static func write(_ trip: DurableTrip, _ buffer: inout ByteBuffer) {
    buffer.begin("trip")
    buffer.append(",\"tripId\":", trip.id)
    buffer.append(",\"number\":", trip.number)
    buffer.append(",\"status\":", trip.status.name)
    buffer.append(",\"timestamp\":", trip.changed)
    buffer.append(",\"created\":", trip.created)
    buffer.append(",\"updated\":", trip.updated)
    buffer.append(",\"accepted\":", trip.accepted)
    buffer.append(",\"begunBy\":", trip.begunBy.name)
    buffer.append(",\"driverId\":", trip.driverID)
    buffer.append(",\"riderId\":", trip.riderID)
    buffer.append(",\"pickup\":", trip.pickup)
    buffer.append(",\"dropoff\":", trip.dropoff)
    buffer.append(",\"route\":", trip.route?.polyline)
    buffer.append(",\"distance\":", trip.progress.odometer.meters)
    buffer.append(",\"approach\":", trip.progress.approachMeters)
    buffer.append(",\"ended\":", trip.ended)
    if let eta = trip.eta {
      buffer.append(",\"eta\":{\"tripId\":", trip.id)
      write(eta, &buffer)
      buffer.append("}")
    }
    let shares = trip.shares.filter { !$0.isEnded }
    if !shares.isEmpty {
      buffer.append(",\"shares\":")
      buffer.append(list: shares) { buffer, share in
        buffer.append("{")
        JSONWriter.writeMembers(share, time: .unixMilliseconds, into: &buffer)
        buffer.append("}")
      }
    }
  }

  private static func write(_ eta: DurableETA, _ buffer: inout ByteBuffer) {
    buffer.append(",\"target\":", eta.target.name)
    buffer.append(",\"distance\":", eta.meters)
    buffer.append(",\"arrivalTime\":", eta.arrival)
    buffer.append(",\"basis\":", eta.basis.name)
  }

  private static func write(_ driver: DurableDriver, _ buffer: inout ByteBuffer) {
    buffer.begin("driver")
    buffer.append(",\"driverId\":", driver.id)
    buffer.append(",\"status\":", driver.status.name)
    buffer.append(",\"vehicleType\":", driver.profile.vehicleType)
    buffer.append(",\"tags\":", driver.profile.tags)
    buffer.append(",\"newestFix\":", driver.newest)
    buffer.append(",\"publishedAs\":", driver.published)
    buffer.append(",\"heard\":", driver.heard)
    buffer.append(",\"online\":", !driver.isOffline)
    buffer.append(",\"tripId\":", driver.isPositionOnTrip ? driver.tripID : nil)
    if let position = driver.position {
      buffer.append(",\"timestamp\":", position.timestamp)
      write(position, &buffer)
    }
  }

  private static func write(_ record: FixesRecord, _ buffer: inout ByteBuffer) {
    buffer.begin("fixes")
    buffer.append(",\"driverId\":", record.driverID)
    buffer.append(",\"tripId\":", record.tripID)
    buffer.append(",\"received\":", record.received)
    buffer.append(",\"publishedAs\":", record.published)
    buffer.append(",\"fixes\":[")
    for index in 0..<record.count {
      let fix = record[index]
      buffer.append(index > 0 ? ",{\"disposition\":" : "{\"disposition\":", fix.disposition.name)
      buffer.append(",\"measured\":")
      JSONWriter.write(LocationUpdate(tripID: nil, fix: fix.measured), time: .unixMilliseconds, into: &buffer)
      if let position = fix.position { write(Position(position, at: fix.measured.timestamp), &buffer) }
      buffer.append("}")
    }
    buffer.append("]")
  }

  private static func write(_ position: Position, _ buffer: inout ByteBuffer) {
    buffer.append(",\"published\":{")
    buffer.append(members: position.coordinate)
    buffer.append(",\"heading\":", position.heading)
    buffer.append(",\"speed\":", position.speed)
    buffer.append(",\"accuracy\":", position.accuracy)
    buffer.append(",\"confidence\":", position.confidence.name)
    buffer.append("}")
  }
}

extension StoredFix.Disposition {
  var name: StaticString {
    switch self {
    case .live: "live"
    case .history: "history"
    case .held: "held"
    case .confirmed: "confirmed"
    }
  }
}

extension ByteBuffer {
  fileprivate mutating func begin(_ record: StaticString) { append(",\"record\":", record) }

  fileprivate mutating func append(_ key: StaticString, _ time: Timestamp?) {
    append(key, time, as: .unixMilliseconds)
  }
}
