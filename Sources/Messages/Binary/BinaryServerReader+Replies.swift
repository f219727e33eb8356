// Replies in binary, as a client reads them.
import HubBytes
import HubGeo

extension BinaryServerReader {
  mutating func readReply(_ type: BinaryServerType, _ input: inout BinaryInput) throws(ValidationError) -> Reply {
    switch type {
    case .connected: return .connected(try input.connected())
    case .subscribed: return .subscribed(try readSubscribed(&input))
    case .unsubscribed:
      let answer = try input.unsubscribed()
      forget(answer.channel)
      return .unsubscribed(answer)
    case .ack: return .ack(try input.ack())
    case .pong: return .pong(try input.pong())
    case .sampling:
      return .sampling(
        SamplingAdvice(
          interval: try input.nonNegative(.interval), minDistance: try input.nonNegative(.minDistance),
          reason: try input.knownKeyword(.reason)))
    case .error: return .error(try input.errorReply())
    case .result: return .result(try input.resultReply())
    case .etaUpdate, .tripUpdate, .notification, .areaUpdate, .names, .rawFix, .countsUpdate, .stats, .offer,
      .offerWithdrawn:
      preconditionFailure("publications are read elsewhere")
    }
  }

  private mutating func readSubscribed(_ input: inout BinaryInput) throws(ValidationError) -> Subscribed {
    let replyTo = try input.messageID(.replyTo)
    let channel = try input.channel()
    let flags = try input.byte(.snapshot)
    var made = Subscribed(
      replyTo: replyTo, channel: channel, sequence: try input.varint(.sequence),
      epoch: try input.text(.epoch, atMost: MessageLimits.epochBytes), recovered: flags & 0x01 != 0, snapshot: nil)
    if flags & 0x02 != 0 {
      let handle = try readHandle(&input)
      try name(channel, handle, try input.channelNames())
    }
    if flags & 0x04 != 0 { made.viewID = try input.text(.viewId) }
    if flags & 0x08 != 0 {
      var cells: [GeohashCell] = []
      for _ in 0..<(try input.listCount(.cells)) { cells.append(try input.cell(.cells)) }
      made.cells = cells
    }
    if channel == .stats {
      var history: [HubFigures] = []
      for _ in 0..<(try input.listCount(.history)) { history.append(try input.figures()) }
      made.history = history
    }
    guard flags & 0x10 != 0 else { return made }
    var snapshot = Subscribed.Snapshot()
    if flags & 0x20 != 0 {
      snapshot.trip = try input.knownPart { (input) throws(ValidationError) in try input.tripState() }
    }
    if flags & 0x40 != 0 {
      snapshot.position = try input.knownPart { (input) throws(ValidationError) in try input.snapshotPosition() }
    }
    if flags & 0x80 != 0 {
      snapshot.eta = try input.knownPart { (input) throws(ValidationError) in try input.snapshotETA() }
    }
    made.snapshot = snapshot
    return made
  }
}

extension BinaryInput {
  fileprivate mutating func connected() throws(ValidationError) -> Connected {
    var made = Connected(
      sessionID: try text(.sessionId), role: try keyword(.role), id: try identifier(.id),
      heartbeatInterval: try nonNegative(.heartbeatInterval), serverTime: try timestamp(.serverTime),
      limits: Connected.Limits(
        maxMessageBytes: try smallCount(.maxMessageBytes), maxBatch: try smallCount(.maxBatch),
        rate: try nonNegative(.rate)),
      sampling: nil)
    if try byte(.sampling) & 0x01 != 0 {
      made.sampling = Connected.Sampling(
        interval: try nonNegative(.interval), minDistance: try nonNegative(.minDistance))
    }
    return made
  }

  fileprivate mutating func tripState() throws(ValidationError) -> TripState {
    let id = try identifier(.tripId)
    let status: TripStatus = try keyword(.status)
    let timestamp = try timestamp(.timestamp)
    let hasDriver = try byte(.driverId) & 0x01 != 0
    return TripState(
      tripID: id, status: status, driverID: hasDriver ? try identifier(.driverId) : nil, timestamp: timestamp)
  }

  fileprivate mutating func snapshotPosition() throws(ValidationError) -> DriverLocation {
    let flags = try byte(.position)
    return DriverLocation(
      driverID: try identifier(.driverId),
      tripID: flags & PositionFlags.trip != 0 ? try identifier(.tripId) : nil, coordinate: try coordinate(),
      heading: flags & PositionFlags.heading != 0 ? try heading() : nil,
      speed: flags & PositionFlags.speed != 0 ? try speed() : nil, accuracy: try hundredths(.accuracy),
      confidence: try keyword(.confidence), timestamp: try timestamp(.timestamp),
      timeSource: flags & PositionFlags.snapshotTimedByHub != 0 ? .hub : .fix, age: try duration(.age),
      after: try varint(.after))
  }

  fileprivate mutating func snapshotETA() throws(ValidationError) -> ETAUpdate {
    ETAUpdate(
      tripID: try identifier(.tripId), target: try keyword(.target), eta: Double(try varint(.eta)),
      distance: Double(try varint(.distance)), arrivalTime: try timestamp(.arrivalTime), basis: try keyword(.basis),
      after: try varint(.after))
  }

  fileprivate mutating func unsubscribed() throws(ValidationError) -> Unsubscribed {
    let hasReplyTo = try byte(.replyTo) & 0x01 != 0
    return Unsubscribed(
      replyTo: hasReplyTo ? try messageID(.replyTo) : nil, channel: try channel(),
      reason: try knownKeyword(.reason))
  }

  fileprivate mutating func ack() throws(ValidationError) -> Ack {
    var ack = Ack(replyTo: try messageID(.replyTo))
    let flags = try byte(.accepted)
    if flags & 0x01 != 0 { ack.batch = try batchOutcome() }
    if flags & 0x02 != 0 { ack.trip = try knownPart { (input) throws(ValidationError) in try input.tripState() } }
    return ack
  }

  private mutating func batchOutcome() throws(ValidationError) -> Ack.Batch {
    var batch = Ack.Batch(
      accepted: try smallCount(.accepted), duplicates: try smallCount(.duplicates), rejected: [])
    for _ in 0..<(try listCount(.rejected)) {
      let index = try smallCount(.index)
      batch.rejected.append(Ack.Batch.Rejection(index: index, code: try errorCode() ?? .internalError))
    }
    return batch
  }

  fileprivate mutating func pong() throws(ValidationError) -> Pong {
    let replyTo = try messageID(.replyTo)
    let serverTime = try timestamp(.serverTime)
    let isStored = try byte(.storedThrough) & 0x01 != 0
    let storedThrough = isStored ? try timestamp(.storedThrough) : nil
    return Pong(replyTo: replyTo, ping: try ping(), serverTime: serverTime, storedThrough: storedThrough)
  }

  fileprivate mutating func errorReply() throws(ValidationError) -> ErrorReply {
    let code = try errorCode()
    var error = ErrorReply(code: code ?? .internalError, message: try longText(.message))
    error.hasNewerCode = code == nil
    let flags = try byte(.replyTo)
    if flags & 0x01 != 0 { error.replyTo = try messageID(.replyTo) }
    if flags & 0x02 != 0 { error.retryAfter = try nonNegative(.retryAfter) }
    if flags & 0x04 != 0 { error.status = try knownKeyword(.status) }
    return error
  }

  /// An error code; nil for one that only a newer hub knows.
  private mutating func errorCode() throws(ValidationError) -> ErrorCode? { ErrorCode(rawValue: try byte(.code)) }

  // MARK: Results

  fileprivate mutating func resultReply() throws(ValidationError) -> ResultReply {
    let replyTo = try messageID(.replyTo)
    switch try byte(.kind) {
    case 0: return ResultReply(replyTo: replyTo, result: .driver(try driverReport()))
    case 1:
      var drivers: [DriverReport] = []
      for _ in 0..<(try listCount(.drivers)) { drivers.append(try driverReport()) }
      return ResultReply(replyTo: replyTo, result: .drivers(DriverList(drivers: drivers, more: try smallCount(.more))))
    case 2: return ResultReply(replyTo: replyTo, result: .trip(try tripReport()))
    case _:
      hasUnknownKeyword = true
      return ResultReply(replyTo: replyTo, result: .drivers(DriverList(drivers: [], more: 0)))
    }
  }

  private mutating func driverReport() throws(ValidationError) -> DriverReport {
    let flags = try word16(.status)
    let id = try identifier(.driverId)
    var report = DriverReport(driverID: id, status: try keyword(.status))
    if flags & 0x001 != 0 { report.vehicleType = try text(.vehicleType) }
    if flags & 0x002 != 0 { report.tags = try tags() }
    if flags & 0x004 != 0 {
      report.position = DriverReport.Place(
        coordinate: try coordinate(), heading: flags & 0x008 != 0 ? try heading() : nil,
        speed: flags & 0x010 != 0 ? try speed() : nil,
        accuracy: flags & 0x020 != 0 ? try hundredths(.accuracy) : nil, age: try duration(.age),
        timestamp: flags & 0x040 != 0 ? try timestamp(.timestamp) : nil,
        timeSource: flags & 0x800 != 0 ? .hub : .fix)
    }
    if flags & 0x080 != 0 { report.predicted = try coordinate() }
    if flags & 0x100 != 0 { report.distance = try hundredths(.distance) }
    if flags & 0x200 != 0 { report.isOnline = flags & 0x400 != 0 }
    return report
  }

  private mutating func tripReport() throws(ValidationError) -> TripReport {
    let flags = try byte(.trip)
    let id = try identifier(.tripId)
    var report = TripReport(
      tripID: id, status: try keyword(.status), timestamp: try timestamp(.timestamp), created: try timestamp(.created),
      updated: try timestamp(.updated))
    if flags & 0x01 != 0 { report.ended = try timestamp(.ended) }
    if flags & 0x02 != 0 { report.driverID = try identifier(.driverId) }
    if flags & 0x04 != 0 { report.riderID = try identifier(.riderId) }
    if flags & 0x08 != 0 { report.pickup = try coordinate() }
    if flags & 0x10 != 0 { report.dropoff = try coordinate() }
    if flags & 0x20 != 0 { report.route = try longText(.route) }
    if flags & 0x40 != 0 { report.summary = try tripSummary() }
    return report
  }
}
