// Publications in binary, as a client reads them.
import HubBytes
import HubGeo

extension BinaryServerReader {
  func readPosition(_ flags: UInt8, _ input: inout BinaryInput) throws(ValidationError) -> PublishedPosition {
    let entry = try entry(&input)
    let hasMore = flags & PositionFlags.confidence == PositionFlags.moreFollows
    let more = hasMore ? try input.byte(.confidence) : flags & PositionFlags.confidence
    var (driver, trip, lag) = (entry.names.driverID, entry.names.tripID, entry.names.lagMilliseconds)
    if flags & PositionFlags.names != 0 {
      driver = try input.identifier(.driverId)
      trip = flags & PositionFlags.trip != 0 ? try input.identifier(.tripId) : nil
    }
    guard let driver else { throw ValidationError(.driverId, "neither the message nor its channel names the driver") }
    let published = try time(lowest: try input.word32(.timestamp), input)
    if flags & PositionFlags.lag != 0 { lag = try input.zigzag(.age) }
    let age = try input.varint(.age)
    let measured = published.milliseconds &- lag &- Int64(truncatingIfNeeded: age)
    var location = DriverLocation(
      driverID: driver, tripID: trip, coordinate: try input.coordinate(),
      heading: flags & PositionFlags.heading != 0 ? try input.heading() : nil,
      speed: flags & PositionFlags.speed != 0 ? try input.speed() : nil,
      accuracy: try input.hundredths(.accuracy), confidence: try input.confidence(more),
      timestamp: try input.accepted(measured, .timestamp),
      timeSource: more & PositionFlags.timedByHub == 0 ? .fix : .hub, age: Double(age) / FixedPoint.milliseconds,
      after: try input.varint(.after))
    if hasMore, more & PositionFlags.status != 0 {
      location.status = DriverStatus(rawValue: more >> PositionFlags.statusShift & 0x03)
    }
    return PublishedPosition(channel: entry.channel, number: 0, timestamp: published, location: location)
  }

  func readETA(_ input: inout BinaryInput) throws(ValidationError) -> Publication {
    let entry = try entry(&input)
    let flags = try input.byte(.target)
    let trip = try input.tripID(of: entry.channel, isInline: flags & 0x04 != 0)
    let published = try time(lowest: try input.word32(.timestamp), input)
    let seconds = try input.varint(.eta)
    let meters = try input.varint(.distance)
    let reckoned = published.milliseconds &+ Int64(truncatingIfNeeded: seconds &* 1000)
    let arrival = reckoned &+ (try input.zigzag(.arrivalTime))
    let update = ETAUpdate(
      tripID: trip, target: flags & 0x01 == 0 ? .pickup : .dropoff, eta: Double(seconds), distance: Double(meters),
      arrivalTime: try input.accepted(arrival, .arrivalTime), basis: flags & 0x02 == 0 ? .route : .direct,
      after: try input.varint(.after))
    return Publication(channel: entry.channel, number: 0, timestamp: published, body: .etaUpdate(update))
  }

  func readPublication(_ type: BinaryServerType, _ input: inout BinaryInput) throws(ValidationError) -> Publication {
    let entry = try entry(&input)
    let number = try input.varint(.messageId)
    let published = try input.timestamp(.timestamp)
    let body: Publication.Body =
      if type == .tripUpdate {
        .tripUpdate(try input.tripUpdate(on: entry.channel))
      } else if type == .notification {
        .notification(try input.notification())
      } else {
        .offer(try input.offer(type))
      }
    return Publication(channel: entry.channel, number: number, timestamp: published, body: body)
  }

  /// Reads an area update, which needs nothing from earlier messages but the high half of its time.
  func readArea(_ input: inout BinaryInput) throws(ValidationError) -> Publication {
    let flags = try input.byte(.full)
    let cell = try input.cell(.cell)
    let published = try time(lowest: try input.word32(.timestamp), input)
    var update = AreaUpdate(
      cell: cell, tick: try input.varint(.tick), isFull: flags & 0x01 != 0, drivers: [])
    if flags & 0x02 != 0 { update.more = try input.smallCount(.more) }
    let channel = flags & 0x04 != 0 ? try input.channel() : .area(cell)
    let count = try input.listCount(.drivers)
    update.drivers.reserveCapacity(count)
    var before = FixSteps()
    for _ in 0..<count { update.drivers.append(try input.areaDriver(&before, published)) }
    for _ in 0..<(try input.listCount(.left)) { update.left.append(try input.identifier(.left)) }
    if flags & 0x08 != 0 { for _ in 0..<count { update.details.append(try input.areaDetails()) } }
    return Publication(channel: channel, number: 0, timestamp: published, body: .areaUpdate(update))
  }
}

extension BinaryInput {
  mutating func figures() throws(ValidationError) -> HubFigures {
    HubFigures(timestamp: try timestamp(.timestamp), members: try longText(.history))
  }

  fileprivate func confidence(_ flags: UInt8) throws(ValidationError) -> Confidence {
    guard let confidence = Confidence(rawValue: flags & PositionFlags.confidence) else {
      var failure = ValidationError(.confidence, "no keyword has this number")
      failure.isUnknownKeyword = true
      throw failure
    }
    return confidence
  }

  /// The trip of a trip channel's messages, unless they name it.
  fileprivate mutating func tripID(of channel: Channel, isInline: Bool) throws(ValidationError) -> Identifier {
    if isInline { return try identifier(.tripId) }
    guard case .trip(let id) = channel else { throw ValidationError(.tripId, "the channel is no trip's") }
    return id
  }

  fileprivate mutating func tripUpdate(on channel: Channel) throws(ValidationError) -> TripUpdate {
    let flags = try byte(.status)
    let trip = try tripID(of: channel, isInline: flags & 0x10 != 0)
    var update = TripUpdate(
      tripID: trip, status: try keyword(.status),
      previousStatus: flags & 0x01 != 0 ? try keyword(.previousStatus) : nil,
      driverID: flags & 0x02 != 0 ? try identifier(.driverId) : nil, timestamp: try timestamp(.timestamp),
      location: flags & 0x04 != 0 ? try coordinate() : nil, pickup: flags & 0x20 != 0 ? try coordinate() : nil,
      dropoff: flags & 0x40 != 0 ? try coordinate() : nil, route: flags & 0x80 != 0 ? try longText(.route) : nil,
      summary: flags & 0x08 != 0 ? try tripSummary() : nil,
      sequence: try varint(.sequence))
    if channel == .trips, try byte(.riderId) & 0x01 != 0 { update.riderID = try identifier(.riderId) }
    return update
  }

  mutating func tripSummary() throws(ValidationError) -> TripSummary {
    TripSummary(
      distance: try hundredths(.distance), approach: try hundredths(.approach), track: try hundredths(.track),
      duration: try duration(.duration), waiting: try duration(.waiting), fixes: try varint(.fixes),
      gaps: try varint(.gaps), gapDuration: try duration(.gapDuration))
  }

  fileprivate mutating func notification() throws(ValidationError) -> Notification {
    let flags = try byte(.kind)
    return Notification(
      kind: try keyword(.kind), title: try longText(.title), body: try longText(.body),
      driverID: flags & 0x01 != 0 ? try identifier(.driverId) : nil,
      leg: flags & 0x02 != 0
        ? Notification.Leg(
          target: try keyword(.target), distance: Double(try varint(.distance)), eta: Double(try varint(.eta))) : nil,
      fence: flags & 0x04 != 0 ? try fenceNotice() : nil, content: flags & 0x08 != 0 ? try longText(.data) : nil,
      sequence: try varint(.sequence))
  }

  private mutating func fenceNotice() throws(ValidationError) -> FenceNotice {
    let id = try identifier(.fenceId)
    let flags = try byte(.fenceId)
    var notice = FenceNotice(fenceID: id, timestamp: try timestamp(.timestamp))
    if flags & 0x01 != 0 { notice.otherID = try identifier(.otherId) }
    if flags & 0x02 != 0 { notice.distance = try hundredths(.distance) }
    if flags & 0x04 != 0 { notice.location = try coordinate() }
    if flags & 0x08 != 0 { notice.duration = try duration(.duration) }
    if flags & 0x10 != 0 { notice.speed = try hundredths(.speed) }
    if flags & 0x20 != 0 { notice.speedLimit = try hundredths(.speedLimit) }
    if flags & 0x40 != 0 { notice.reason = try keyword(.reason) }
    return notice
  }

  fileprivate mutating func areaDetails() throws(ValidationError) -> AreaUpdate.Details {
    let flags = try byte(.confidence)
    let accuracy = try hundredths(.accuracy)
    var details = AreaUpdate.Details(
      tripID: flags & 0x04 != 0 ? try identifier(.tripId) : nil, accuracy: accuracy,
      confidence: try confidence(flags), vehicleType: flags & 0x08 != 0 ? try text(.vehicleType) : nil)
    details.isOnline = flags & 0x10 == 0
    return details
  }

  fileprivate mutating func areaDriver(
    _ before: inout FixSteps, _ published: Timestamp
  ) throws(ValidationError) -> AreaUpdate.Driver {
    let flags = try byte(.status)
    guard let status = DriverStatus(rawValue: flags & 0x03) else { preconditionFailure("each two bits are a status") }
    let id = try identifier(.driverId)
    before.latitude &+= try zigzag(.latitude)
    before.longitude &+= try zigzag(.longitude)
    return AreaUpdate.Driver(
      driverID: id, coordinate: try coordinate(before.latitude, before.longitude),
      heading: flags & 0x04 != 0 ? try heading() : nil, speed: flags & 0x08 != 0 ? try speed() : nil,
      status: status, timestamp: try accepted(published.milliseconds &- (try zigzag(.timestamp)), .timestamp),
      timeSource: flags & 0x10 != 0 ? .hub : .fix)
  }
}
