// Replies to one session, in binary.
public import HubBytes
import HubGeo

extension BinaryWriter {
  /// Appends a reply.
  ///
  /// - Parameters:
  ///   - timestamp: the hub's clock at sending.
  ///   - messageID: numbers the replies of a session.
  ///   - naming: with `subscribed`, the channel's number in messages, and the values that they leave out.
  public static func write(
    _ reply: Reply, timestamp: Timestamp, messageID: UInt64, naming: (handle: UInt32, names: ImpliedNames)? = nil,
    into buffer: inout ByteBuffer
  ) {
    func head(_ type: BinaryServerType) { writeHead(type, timestamp, messageID, &buffer) }
    switch reply {
    case .connected(let connected):
      head(.connected)
      write(connected, &buffer)
    case .subscribed(let subscribed):
      head(.subscribed)
      write(subscribed, naming, &buffer)
    case .unsubscribed(let unsubscribed):
      head(.unsubscribed)
      buffer.append(unsubscribed.replyTo == nil ? 0 : 0x01)
      if let replyTo = unsubscribed.replyTo { buffer.append(values: { $0.append(replyTo) }) }
      buffer.append(binary: unsubscribed.channel)
      buffer.append(unsubscribed.reason?.rawValue ?? .max)
    case .ack(let ack):
      head(.ack)
      write(ack, &buffer)
    case .pong(let pong):
      head(.pong)
      write(pong, &buffer)
    case .sampling(let advice):
      head(.sampling)
      buffer.append(values: { room in
        room.append(exactly: advice.interval)
        room.append(exactly: advice.minDistance)
        room.append(advice.reason?.rawValue ?? .max)
      })
    case .error(let error):
      head(.error)
      write(error, &buffer)
    case .result(let result):
      writeResultHead(replyTo: result.replyTo, timestamp: timestamp, messageID: messageID, into: &buffer)
      write(result.result, &buffer)
    }
  }

  private static func writeHead(
    _ type: BinaryServerType, _ timestamp: Timestamp, _ messageID: UInt64, _ buffer: inout ByteBuffer
  ) {
    buffer.append(values: { room in
      room.append(type.rawValue)
      room.append(varint: messageID)
      room.append(timestamp)
    })
  }

  /// Appends the part before the result of a query, where that is written in pieces; the parameters are those of
  /// `write`.
  public static func writeResultHead(
    replyTo: MessageID, timestamp: Timestamp, messageID: UInt64, into buffer: inout ByteBuffer
  ) {
    writeHead(.result, timestamp, messageID, &buffer)
    buffer.append(values: { $0.append(replyTo) })
  }

  private static func write(_ connected: Connected, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(lengthAnd: connected.sessionID)
      room.append(connected.role.rawValue)
      room.append(connected.id)
    })
    buffer.append(values: { room in
      room.append(exactly: connected.heartbeatInterval)
      room.append(connected.serverTime)
      room.append(varint: UInt64(clamping: connected.limits.maxMessageBytes))
      room.append(varint: UInt64(clamping: connected.limits.maxBatch))
      room.append(exactly: connected.limits.rate)
      room.append(connected.sampling == nil ? 0 : 0x01)
      guard let sampling = connected.sampling else { return }
      room.append(exactly: sampling.interval)
      room.append(exactly: sampling.minDistance)
    })
  }

  private static func write(
    _ subscribed: Subscribed, _ naming: (handle: UInt32, names: ImpliedNames)?, _ buffer: inout ByteBuffer
  ) {
    buffer.append(values: { $0.append(subscribed.replyTo) })
    buffer.append(binary: subscribed.channel)
    let snapshot = subscribed.snapshot
    buffer.append(
      flagByte(
        subscribed.recovered, naming != nil, subscribed.viewID != nil, subscribed.cells != nil, snapshot != nil,
        snapshot?.trip != nil, snapshot?.position != nil, snapshot?.eta != nil))
    buffer.append(values: { room in
      room.append(varint: subscribed.sequence)
      room.append(lengthAnd: subscribed.epoch)
    })
    if let naming {
      buffer.append(values: { room in
        room.append(varint: UInt64(naming.handle))
        write(naming.names, &room)
      })
    }
    if let viewID = subscribed.viewID { buffer.append(values: { $0.append(lengthAnd: viewID) }) }
    if let cells = subscribed.cells {
      buffer.append(varint: UInt64(cells.count))
      for cell in cells { buffer.append(values: { $0.append(binary: cell) }) }
    }
    // All eight flags are taken, so on this channel the history is always present.
    if subscribed.channel == .stats {
      let history = subscribed.history ?? []
      buffer.append(varint: UInt64(history.count))
      for figures in history { write(figures, &buffer) }
    }
    if let trip = snapshot?.trip { buffer.append(values: { write(trip, &$0) }) }
    if let position = snapshot?.position { buffer.append(values: { write(position, &$0) }) }
    if let eta = snapshot?.eta { buffer.append(values: { write(eta, &$0) }) }
  }

  private static func write(_ trip: TripState, _ room: inout ByteRoom) {
    room.append(trip.tripID)
    room.append(trip.status.rawValue)
    room.append(trip.timestamp)
    room.append(trip.driverID == nil ? 0 : 0x01)
    if let driver = trip.driverID { room.append(driver) }
  }

  private static func write(_ position: DriverLocation, _ room: inout ByteRoom) {
    var flags: UInt8 = position.tripID == nil ? 0 : PositionFlags.trip
    if position.heading != nil { flags |= PositionFlags.heading }
    if position.speed != nil { flags |= PositionFlags.speed }
    if position.timeSource == .hub { flags |= PositionFlags.snapshotTimedByHub }
    room.append(flags)
    room.append(position.driverID)
    if let trip = position.tripID { room.append(trip) }
    room.append(position.coordinate)
    if let heading = position.heading { room.append(heading: heading) }
    if let speed = position.speed { room.append(centi: speed) }
    room.append(centi: position.accuracy)
    room.append(position.confidence.rawValue)
    room.append(position.timestamp)
    room.append(seconds: position.age)
    room.append(varint: position.after)
  }

  private static func write(_ eta: ETAUpdate, _ room: inout ByteRoom) {
    room.append(eta.tripID)
    room.append(eta.target.rawValue)
    room.append(varint: FixedPoint.count(eta.eta, 1))
    room.append(varint: FixedPoint.count(eta.distance, 1))
    room.append(eta.arrivalTime)
    room.append(eta.basis.rawValue)
    room.append(varint: eta.after)
  }

  private static func write(_ ack: Ack, _ buffer: inout ByteBuffer) {
    buffer.append(values: { $0.append(ack.replyTo) })
    buffer.append((ack.batch == nil ? 0 : 0x01) | (ack.trip == nil ? 0 : 0x02))
    if let batch = ack.batch { write(batch, &buffer) }
    if let trip = ack.trip { buffer.append(values: { write(trip, &$0) }) }
  }

  private static func write(_ batch: Ack.Batch, _ buffer: inout ByteBuffer) {
    buffer.append(varint: UInt64(clamping: batch.accepted))
    buffer.append(varint: UInt64(clamping: batch.duplicates))
    buffer.append(varint: UInt64(batch.rejected.count))
    for rejection in batch.rejected {
      buffer.append(varint: UInt64(clamping: rejection.index))
      buffer.append(rejection.code.rawValue)
    }
  }

  private static func write(_ pong: Pong, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(pong.replyTo)
      room.append(pong.serverTime)
      room.append(pong.storedThrough == nil ? 0 : 0x01)
      if let storedThrough = pong.storedThrough { room.append(storedThrough) }
    })
    write(pong.ping, &buffer)
  }

  static func write(_ ping: Ping, _ buffer: inout ByteBuffer) {
    buffer.append(varint: UInt64(ping.members?.count ?? 0))
    if let members = ping.members { buffer.append(members) }
  }

  private static func write(_ error: ErrorReply, _ buffer: inout ByteBuffer) {
    buffer.append(error.code.rawValue)
    buffer.append(lengthAnd: error.message)
    buffer.append(values: { room in
      room.append(flagByte(error.replyTo != nil, error.retryAfter != nil, error.status != nil))
      if let replyTo = error.replyTo { room.append(replyTo) }
      if let retryAfter = error.retryAfter { room.append(exactly: retryAfter) }
      if let status = error.status { room.append(status.rawValue) }
    })
  }
}
