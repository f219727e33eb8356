// Clients' messages in binary.
public import HubBytes
import HubGeo

extension BinaryWriter {
  /// Appends a client's message.
  ///
  /// - Parameters:
  ///   - timestamp: the sender's clock at sending.
  ///   - tripBefore: the trip that this connection's last `location_update` with a trip named; nil on a new connection.
  /// Numbers that are not on the steps of `protocol/binary.md` are rounded to them.
  /// - Precondition: all numbers are finite, and timestamps within `Timestamp.accepted`.
  public static func write(
    _ message: ClientMessage, messageID: MessageID, timestamp: Timestamp, tripBefore: Identifier?,
    into buffer: inout ByteBuffer
  ) {
    func head(_ type: BinaryClientType) {
      buffer.append(values: { room in
        room.append(type.rawValue)
        room.append(messageID)
        room.append(timestamp)
      })
    }
    switch message {
    case .locationUpdate(let update):
      buffer.withRoom(for: MessageLimits.binaryUpdateBytes) {
        write(update, messageID, timestamp, tripBefore, &$0)
      }
    case .locationBatch(let batch):
      head(.locationBatch)
      write(batch, &buffer)
    case .driverStatus(let report):
      head(.driverStatus)
      write(report, &buffer)
    case .tripStatus(let report):
      head(.tripStatus)
      write(report, &buffer)
    case .tripChange(let change):
      head(.tripChange)
      write(change, &buffer)
    case .offerDecline(let decline):
      head(.offerDecline)
      buffer.append(values: { $0.append(decline.tripID) })
    case .subscribe(let subscribe):
      head(.subscribe)
      write(subscribe, &buffer)
    case .unsubscribe(.channel(let channel)):
      head(.unsubscribe)
      buffer.append(UInt8(0))
      buffer.append(binary: channel)
    case .unsubscribe(.view(let id)):
      head(.unsubscribe)
      buffer.append(values: { room in
        room.append(UInt8(1))
        room.append(lengthAnd: id)
      })
    case .ping(let ping):
      head(.ping)
      write(ping, &buffer)
    case .refresh(let refresh):
      head(.refresh)
      buffer.append(lengthAnd: refresh.token)
    case .query(let query):
      head(.query)
      write(query, &buffer)
    }
  }

  // MARK: Fixes

  private static func flags(_ fix: Fix) -> (first: UInt8, more: UInt8) {
    var more = fix.source.map { $0.rawValue + 1 } ?? 0
    if fix.headingAccuracy != nil { more |= FixFlags.headingAccuracy }
    if fix.speedAccuracy != nil { more |= FixFlags.speedAccuracy }
    if fix.batteryLevel != nil { more |= FixFlags.batteryLevel }
    var first: UInt8 = more == 0 ? 0 : FixFlags.more
    if fix.accuracy != nil { first |= FixFlags.accuracy }
    if fix.heading != nil { first |= FixFlags.heading }
    if fix.speed != nil { first |= FixFlags.speed }
    if fix.altitude != nil { first |= FixFlags.altitude }
    return (first, more)
  }

  private static func write(
    _ update: LocationUpdate, _ messageID: MessageID, _ timestamp: Timestamp, _ tripBefore: Identifier?,
    _ room: inout ByteRoom
  ) {
    let flags = flags(update.fix)
    let naming: TripNaming = update.tripID == nil ? .none : update.tripID == tripBefore ? .asBefore : .inline
    room.append(binaryFrequentBit | naming.rawValue << FixFlags.tripShift | flags.first)
    room.append(messageID)
    if case .inline = naming, let trip = update.tripID { room.append(trip) }
    if flags.more != 0 { room.append(flags.more) }
    room.append(update.fix.coordinate)
    room.append(update.fix.timestamp)
    room.append(zigzag: timestamp.milliseconds &- update.fix.timestamp.milliseconds)
    writeMembers(update.fix, &room)
  }

  private static func writeMembers(_ fix: Fix, _ room: inout ByteRoom) {
    if let accuracy = fix.accuracy { room.append(centi: accuracy) }
    if let heading = fix.heading { room.append(heading: heading) }
    if let speed = fix.speed { room.append(centi: speed) }
    if let altitude = fix.altitude { room.append(zigzag: FixedPoint.signed(altitude, FixedPoint.hundredths)) }
    if let accuracy = fix.headingAccuracy { room.append(centi: accuracy) }
    if let accuracy = fix.speedAccuracy { room.append(centi: accuracy) }
    if let level = fix.batteryLevel { room.append(centi: level) }
  }

  /// A fix that could not be read keeps its index.
  private static func write(_ batch: LocationBatch, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(batch.tripID == nil ? 0 : 0x01)
      if let trip = batch.tripID { room.append(trip) }
      room.append(varint: UInt64(batch.fixes.count))
    })
    var before = FixSteps()
    for fix in batch.fixes {
      buffer.withRoom(for: MessageLimits.binaryUpdateBytes) { room in
        switch fix {
        case .success(let fix): write(fix, &before, &room)
        case .failure: room.append(FixFlags.none)
        }
      }
    }
  }

  private static func write(_ fix: Fix, _ before: inout FixSteps, _ room: inout ByteRoom) {
    let flags = flags(fix)
    let steps = fix.coordinate.steps
    room.append(flags.first)
    if flags.more != 0 { room.append(flags.more) }
    room.append(zigzag: steps.latitude - before.latitude)
    room.append(zigzag: steps.longitude - before.longitude)
    room.append(zigzag: fix.timestamp.milliseconds &- before.milliseconds)
    writeMembers(fix, &room)
    before = FixSteps(
      latitude: steps.latitude, longitude: steps.longitude, milliseconds: fix.timestamp.milliseconds)
  }

  // MARK: Others

  private static func write(_ report: DriverStatusReport, _ buffer: inout ByteBuffer) {
    buffer.append(report.status.rawValue)
    buffer.append((report.vehicleType == nil ? 0 : 0x01) | (report.tags == nil ? 0 : 0x02))
    if let vehicleType = report.vehicleType { buffer.append(values: { $0.append(lengthAnd: vehicleType) }) }
    if let tags = report.tags { write(tags, &buffer) }
  }

  private static func write(_ report: TripStatusReport, _ buffer: inout ByteBuffer) {
    let isRequest = report.status == .requested
    let driver = isRequest || report.status == .accepted ? report.driverID : nil
    buffer.append(values: { room in
      room.append(report.tripID)
      room.append(report.status.rawValue)
      room.append(report.timestamp)
      room.append(
        flagByte(
          report.location != nil, report.expectedStatus != nil, isRequest && report.pickup != nil,
          isRequest && report.dropoff != nil, driver != nil, isRequest && report.riderID != nil,
          isRequest && report.route != nil, isRequest && report.offer != nil))
      if let location = report.location { room.append(location) }
      if let expected = report.expectedStatus { room.append(expected.rawValue) }
    })
    guard isRequest else {
      if let driver { buffer.append(values: { $0.append(driver) }) }
      return
    }
    buffer.append(values: { room in
      if let pickup = report.pickup { room.append(pickup) }
      if let dropoff = report.dropoff { room.append(dropoff) }
      if let driver { room.append(driver) }
      if let rider = report.riderID { room.append(rider) }
    })
    if let route = report.route { buffer.append(lengthAnd: route.polyline) }
    if let offer = report.offer { write(offer, &buffer) }
  }

  private static func write(_ change: TripChange, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(change.tripID)
      room.append(flagByte(change.pickup != nil, change.dropoff != nil, change.route != nil))
      if let pickup = change.pickup { room.append(pickup) }
      if let dropoff = change.dropoff { room.append(dropoff) }
    })
    if let route = change.route { buffer.append(lengthAnd: route.polyline) }
  }

  private static func write(_ subscribe: Subscribe, _ buffer: inout ByteBuffer) {
    buffer.append(binary: subscribe.channel)
    buffer.append(values: { room in
      room.append(
        flagByte(subscribe.resume != nil, subscribe.viewID != nil, subscribe.precision != nil, subscribe.isEventsOnly))
      if let resume = subscribe.resume {
        room.append(varint: resume.since)
        room.append(lengthAnd: resume.epoch)
      }
      if let viewID = subscribe.viewID { room.append(lengthAnd: viewID) }
      if let precision = subscribe.precision { room.append(UInt8(clamping: precision)) }
    })
  }

  // MARK: Queries

  private static func write(_ query: QueryRequest, _ buffer: inout ByteBuffer) {
    switch query {
    case .driver(let id):
      buffer.append(values: { room in
        room.append(QueryKind.driver.rawValue)
        room.append(id)
      })
    case .trip(let id):
      buffer.append(values: { room in
        room.append(QueryKind.trip.rawValue)
        room.append(id)
      })
    case .drivers(let search):
      write(search.area, flags(search), &buffer)
      writeFilter(search, &buffer)
    }
  }

  /// The flags of a search, without the lowest, which belongs to the area.
  private static func flags(_ search: DriverSearch) -> UInt8 {
    flagByte(
      false, search.limit != nil, search.filter.status != nil, search.filter.vehicleType != nil,
      !search.filter.tags.isEmpty, search.filter.maxAge != nil, search.filter.includesStale)
  }

  private static func write(_ area: DriverSearch.Area, _ flags: UInt8, _ buffer: inout ByteBuffer) {
    switch area {
    case .nearby(let center, let radius):
      buffer.append(values: { room in
        room.append(QueryKind.nearby.rawValue)
        room.append(center)
        room.append(flags | (radius == nil ? 0 : 0x01))
        if let radius { room.append(exactly: radius) }
      })
    case .box(let box):
      buffer.append(values: { room in
        room.append(QueryKind.within.rawValue)
        room.append(flags)
        room.append(box)
      })
    case .polygons(let polygons):
      buffer.append(QueryKind.within.rawValue)
      buffer.append(flags | 0x01)
      buffer.append(varint: UInt64(polygons.positions.count))
      for rings in polygons.positions {
        buffer.append(varint: UInt64(rings.count))
        for ring in rings {
          buffer.append(varint: UInt64(ring.count))
          for position in ring { buffer.append(values: { $0.append(position) }) }
        }
      }
    }
  }

  private static func writeFilter(_ search: DriverSearch, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      if let limit = search.limit { room.append(varint: UInt64(clamping: limit)) }
      if let status = search.filter.status { room.append(status.rawValue) }
      if let vehicleType = search.filter.vehicleType { room.append(lengthAnd: vehicleType) }
    })
    if !search.filter.tags.isEmpty { write(search.filter.tags, &buffer) }
    if let maxAge = search.filter.maxAge { buffer.append(values: { $0.append(exactly: maxAge) }) }
  }
}
