// Publications in binary (protocol/binary.md). All subscribers of a loop get the same bytes, and a newer position may
// replace an unsent one. So no message is a difference from another; what a channel's positions have in common (the
// channel's name, ids, the lag of a clock) is in `subscribed` or `names`, which are never dropped.
public import HubBytes
import HubGeo

/// Writes messages in binary (`locationhub.v1.binary`).
public enum BinaryWriter {
  /// Appends a publication.
  ///
  /// - Parameters:
  ///   - handle: the channel's number from `subscribed`; none for an area, which needs none.
  ///   - names: the values that subscribers already have for the channel; the message has only those that differ.
  /// A `driver_location` and an `eta_update` allocate nothing.
  public static func write(
    _ publication: Publication, handle: UInt32, names: ImpliedNames, into buffer: inout ByteBuffer
  ) {
    switch publication.body {
    case .driverLocation(let location): write(location, at: publication.timestamp, handle, names, &buffer)
    case .etaUpdate(let update):
      buffer.withRoom(for: MessageLimits.binaryETABytes) {
        write(update, at: publication.timestamp, on: publication.channel, handle, &$0)
      }
    case .tripUpdate(let update):
      writeHead(.tripUpdate, publication, handle, &buffer)
      write(update, on: publication.channel, &buffer)
    case .notification(let notification):
      writeHead(.notification, publication, handle, &buffer)
      write(notification, &buffer)
    case .offer(let offer):
      switch offer.state {
      case .made: writeHead(.offer, publication, handle, &buffer)
      case .withdrawn: writeHead(.offerWithdrawn, publication, handle, &buffer)
      }
      write(offer, &buffer)
    case .areaUpdate(let update): write(update, of: publication, &buffer)
    case .countsUpdate(let update): write(update, at: publication.timestamp, &buffer)
    case .rawFix(let fix): buffer.append(values: { write(fix, of: publication, handle, &$0) })
    case .stats(let figures):
      buffer.append(values: { room in
        room.append(BinaryServerType.stats.rawValue)
        room.append(lowestOf: publication.timestamp)
      })
      write(figures, &buffer)
    }
  }

  /// Appends a position, as `write(_:handle:names:into:)` of its publication.
  public static func write(
    _ position: PublishedPosition, handle: UInt32, names: ImpliedNames, into buffer: inout ByteBuffer
  ) {
    write(position.location, at: position.timestamp, handle, names, &buffer)
  }

  private static func write(
    _ location: DriverLocation, at published: Timestamp, _ handle: UInt32, _ names: ImpliedNames,
    _ buffer: inout ByteBuffer
  ) {
    buffer.withRoom(for: MessageLimits.binaryPositionBytes) { write(location, at: published, handle, names, &$0) }
  }

  /// The hub's own figures, as text.
  static func write(_ figures: HubFigures, _ buffer: inout ByteBuffer) {
    buffer.append(values: { $0.append(figures.timestamp) })
    buffer.append(lengthAnd: figures.members)
  }

  /// Appends `names`: the values that a channel's positions leave out from here on.
  public static func write(_ names: ImpliedNames, handle: UInt32, into buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(BinaryServerType.names.rawValue)
      room.append(varint: UInt64(handle))
      write(names, &room)
    })
  }

  static func write(_ names: ImpliedNames, _ room: inout ByteRoom) {
    room.append((names.driverID == nil ? 0 : 0x01) | (names.tripID == nil ? 0 : 0x02))
    if let driver = names.driverID { room.append(driver) }
    if let trip = names.tripID { room.append(trip) }
    room.append(zigzag: names.lagMilliseconds)
  }

  @inline(__always)
  private static func write(
    _ location: DriverLocation, at published: Timestamp, _ handle: UInt32, _ names: ImpliedNames,
    _ room: inout ByteRoom
  ) {
    let age = FixedPoint.count(location.age, FixedPoint.milliseconds)
    let lag = published.milliseconds &- location.timestamp.milliseconds &- Int64(age)
    let saysNames = location.driverID != names.driverID || location.tripID != names.tripID
    let hasMore = location.timeSource == .hub || location.status != nil
    var flags = binaryFrequentBit | (hasMore ? PositionFlags.moreFollows : location.confidence.rawValue)
    if location.heading != nil { flags |= PositionFlags.heading }
    if location.speed != nil { flags |= PositionFlags.speed }
    if saysNames { flags |= PositionFlags.names | (location.tripID == nil ? 0 : PositionFlags.trip) }
    if lag != names.lagMilliseconds { flags |= PositionFlags.lag }
    room.append(flags)
    room.append(varint: UInt64(handle))
    if hasMore { room.append(moreFlags(location)) }
    if saysNames {
      room.append(location.driverID)
      if let trip = location.tripID { room.append(trip) }
    }
    room.append(lowestOf: published)
    if lag != names.lagMilliseconds { room.append(zigzag: lag) }
    room.append(varint: age)
    room.append(location.coordinate)
    if let heading = location.heading { room.append(heading: heading) }
    if let speed = location.speed { room.append(centi: speed) }
    room.append(centi: location.accuracy)
    room.append(varint: location.after)
  }

  private static func moreFlags(_ location: DriverLocation) -> UInt8 {
    let clock = location.timeSource == .hub ? PositionFlags.timedByHub : 0
    let status = location.status.map { PositionFlags.status | $0.rawValue << PositionFlags.statusShift } ?? 0
    return location.confidence.rawValue | clock | status
  }

  private static func write(
    _ update: ETAUpdate, at published: Timestamp, on channel: Channel, _ handle: UInt32, _ room: inout ByteRoom
  ) {
    let saysTrip = channel != .trip(update.tripID)
    let seconds = FixedPoint.count(update.eta, 1)
    room.append(BinaryServerType.etaUpdate.rawValue)
    room.append(varint: UInt64(handle))
    room.append(update.target.rawValue | update.basis.rawValue << 1 | (saysTrip ? 0x04 : 0))
    if saysTrip { room.append(update.tripID) }
    room.append(lowestOf: published)
    room.append(varint: seconds)
    room.append(varint: FixedPoint.count(update.distance, 1))
    room.append(zigzag: update.arrivalTime.milliseconds &- published.milliseconds &- Int64(seconds) &* 1000)
    room.append(varint: update.after)
  }

  // MARK: Events

  private static func writeHead(
    _ type: BinaryServerType, _ publication: borrowing Publication, _ handle: UInt32, _ buffer: inout ByteBuffer
  ) {
    let (number, timestamp) = (publication.number, publication.timestamp)
    buffer.append(values: { room in
      room.append(type.rawValue)
      room.append(varint: UInt64(handle))
      room.append(varint: number)
      room.append(timestamp)
    })
  }

  private static func write(_ update: TripUpdate, on channel: Channel, _ buffer: inout ByteBuffer) {
    let saysTrip = channel != .trip(update.tripID)
    buffer.append(values: { room in
      room.append(
        flagByte(
          update.previousStatus != nil, update.driverID != nil, update.location != nil, update.summary != nil, saysTrip,
          update.pickup != nil, update.dropoff != nil, update.route != nil))
      if saysTrip { room.append(update.tripID) }
      room.append(update.status.rawValue)
      if let previous = update.previousStatus { room.append(previous.rawValue) }
      if let driver = update.driverID { room.append(driver) }
      room.append(update.timestamp)
      for place in [update.location, update.pickup, update.dropoff] { if let place { room.append(place) } }
    })
    if let route = update.route { buffer.append(lengthAnd: route) }
    if let summary = update.summary { buffer.append(values: { write(summary, &$0) }) }
    buffer.append(varint: update.sequence)
    guard channel == .trips else { return }
    buffer.append(values: { room in
      room.append(flagByte(update.riderID != nil))
      if let rider = update.riderID { room.append(rider) }
    })
  }

  static func write(_ summary: TripSummary, _ room: inout ByteRoom) {
    room.append(centi: summary.distance)
    room.append(centi: summary.approach)
    room.append(centi: summary.track)
    room.append(seconds: summary.duration)
    room.append(seconds: summary.waiting)
    room.append(varint: summary.fixes)
    room.append(varint: summary.gaps)
    room.append(seconds: summary.gapDuration)
  }

  private static func write(_ notification: Notification, _ buffer: inout ByteBuffer) {
    buffer.append(
      flagByte(
        notification.driverID != nil, notification.leg != nil, notification.fence != nil, notification.content != nil))
    buffer.append(notification.kind.rawValue)
    buffer.append(lengthAnd: notification.title)
    buffer.append(lengthAnd: notification.body)
    buffer.append(values: { room in
      if let driver = notification.driverID { room.append(driver) }
      if let leg = notification.leg {
        room.append(leg.target.rawValue)
        room.append(varint: FixedPoint.count(leg.distance, 1))
        room.append(varint: FixedPoint.count(leg.eta, 1))
      }
    })
    if let fence = notification.fence { buffer.append(values: { write(fence, &$0) }) }
    if let content = notification.content { buffer.append(lengthAnd: content) }
    buffer.append(varint: notification.sequence)
  }

  private static func write(_ notice: FenceNotice, _ room: inout ByteRoom) {
    room.append(notice.fenceID)
    room.append(
      flagByte(
        notice.otherID != nil, notice.distance != nil, notice.location != nil, notice.duration != nil,
        notice.speed != nil, notice.speedLimit != nil, notice.reason != nil))
    room.append(notice.timestamp)
    if let other = notice.otherID { room.append(other) }
    if let distance = notice.distance { room.append(centi: distance) }
    if let location = notice.location { room.append(location) }
    if let duration = notice.duration { room.append(seconds: duration) }
    if let speed = notice.speed { room.append(centi: speed) }
    if let limit = notice.speedLimit { room.append(centi: limit) }
    if let reason = notice.reason { room.append(reason.rawValue) }
  }

  // MARK: Areas

  /// A driver's coordinate is relative to the one before it in the message.
  private static func write(
    _ update: AreaUpdate, of publication: borrowing Publication, _ buffer: inout ByteBuffer
  ) {
    let (channel, published) = (publication.channel, publication.timestamp)
    let saysChannel = channel != .area(update.cell)
    buffer.append(values: { room in
      room.append(BinaryServerType.areaUpdate.rawValue)
      room.append(flagByte(update.isFull, update.more != nil, saysChannel, !update.details.isEmpty))
      room.append(binary: update.cell)
      room.append(lowestOf: published)
      room.append(varint: update.tick)
      if let more = update.more { room.append(varint: UInt64(clamping: more)) }
    })
    if saysChannel { buffer.append(binary: channel) }
    buffer.append(varint: UInt64(update.drivers.count))
    var before: (latitude: Int64, longitude: Int64) = (0, 0)
    for driver in update.drivers {
      buffer.withRoom(for: MessageLimits.binaryAreaDriverBytes) { write(driver, published, &before, &$0) }
    }
    buffer.append(varint: UInt64(update.left.count))
    for id in update.left { buffer.withRoom(for: MessageLimits.binaryIDBytes) { $0.append(id) } }
    for details in update.details {
      buffer.withRoom(for: MessageLimits.binaryAreaDetailBytes) { write(details, &$0) }
    }
  }

  /// Writes a driver's details, behind all that riders get, where older readers ignore them.
  private static func write(_ details: AreaUpdate.Details, _ room: inout ByteRoom) {
    room.append(
      details.confidence.rawValue | (details.tripID == nil ? 0 : 0x04) | (details.vehicleType == nil ? 0 : 0x08)
        | (details.isOnline ? 0 : 0x10))
    room.append(centi: details.accuracy)
    if let trip = details.tripID { room.append(trip) }
    if let vehicleType = details.vehicleType { room.append(lengthAnd: vehicleType) }
  }

  private static func write(
    _ driver: AreaUpdate.Driver, _ published: Timestamp, _ before: inout (latitude: Int64, longitude: Int64),
    _ room: inout ByteRoom
  ) {
    let steps = driver.coordinate.steps
    room.append(
      driver.status.rawValue | (driver.heading == nil ? 0 : 0x04) | (driver.speed == nil ? 0 : 0x08)
        | (driver.timeSource == .fix ? 0 : 0x10))
    room.append(driver.driverID)
    room.append(zigzag: steps.latitude - before.latitude)
    room.append(zigzag: steps.longitude - before.longitude)
    if let heading = driver.heading { room.append(heading: heading) }
    if let speed = driver.speed { room.append(centi: speed) }
    room.append(zigzag: published.milliseconds &- driver.timestamp.milliseconds)
    before = steps
  }
}
