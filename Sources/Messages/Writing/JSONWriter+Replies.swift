// Replies as JSON: what one session is told.
import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends a reply with its envelope; its `messageId` is `r` and the number.
  ///
  /// - Parameters:
  ///   - timestamp: the hub's clock when it sends.
  ///   - messageID: counts the replies of a session.
  /// - Precondition: all numbers are finite, and timestamps within `Timestamp.accepted`.
  public static func write(
    _ reply: Reply, timestamp: Timestamp, messageID: UInt64, time: TimeFormat, into buffer: inout ByteBuffer
  ) {
    switch reply {
    case .connected(let connected): writeHead(connected, time, &buffer)
    case .subscribed(let subscribed): writeHead(subscribed, time, &buffer)
    case .unsubscribed(let unsubscribed): writeHead(unsubscribed, &buffer)
    case .ack(let ack): writeHead(ack, time, &buffer)
    case .pong(let pong): writeHead(pong, time, &buffer)
    case .sampling(let advice): writeHead(advice, &buffer)
    case .error(let error): writeHead(error, &buffer)
    case .result(let result): writeHead(result, time, &buffer)
    }
    writeEnd(timestamp: timestamp, messageID: messageID, time: time, into: &buffer)
  }

  /// Appends what stands before the members of the answer to a query, where these are written in pieces. What stands
  /// behind them: `writeEnd`.
  public static func writeResultHead(replyTo: MessageID, into buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"result\",\"payload\":{\"replyTo\":")
    buffer.append(json: replyTo.text)
    buffer.append(",")
  }

  /// Appends the end of a reply, from its payload's closing brace on; the parameters are those of `write`.
  public static func writeEnd(
    timestamp: Timestamp, messageID: UInt64, time: TimeFormat, into buffer: inout ByteBuffer
  ) {
    buffer.append("},\"timestamp\":")
    buffer.append(timestamp, as: time)
    buffer.append(",\"messageId\":\"r")
    buffer.append(integer: messageID)
    buffer.append("\"}")
  }

  // Each writes all up to the payload's closing brace.

  private static func writeHead(
    _ connected: Connected, _ time: TimeFormat, _ buffer: inout ByteBuffer
  ) {
    buffer.append("{\"type\":\"connected\",\"payload\":{\"sessionId\":")
    buffer.append(json: connected.sessionID)
    buffer.append(",\"role\":")
    buffer.append(quoted: connected.role.name)
    buffer.append(",\"id\":")
    buffer.append(quoted: connected.id)
    buffer.append(",\"heartbeatInterval\":")
    buffer.append(double: connected.heartbeatInterval)
    buffer.append(",\"serverTime\":")
    buffer.append(connected.serverTime, as: time)
    buffer.append(",\"limits\":{\"maxMessageBytes\":")
    buffer.append(integer: Int64(connected.limits.maxMessageBytes))
    buffer.append(",\"maxBatch\":")
    buffer.append(integer: Int64(connected.limits.maxBatch))
    buffer.append(",\"rate\":")
    buffer.append(double: connected.limits.rate)
    buffer.append("}")
    guard let sampling = connected.sampling else { return }
    buffer.append(",\"sampling\":{\"interval\":")
    buffer.append(double: sampling.interval)
    buffer.append(",\"minDistance\":")
    buffer.append(double: sampling.minDistance)
    buffer.append("}")
  }

  private static func writeHead(
    _ subscribed: Subscribed, _ time: TimeFormat, _ buffer: inout ByteBuffer
  ) {
    buffer.append("{\"type\":\"subscribed\",\"payload\":{\"replyTo\":")
    buffer.append(json: subscribed.replyTo.text)
    buffer.append(",\"channel\":")
    buffer.append(quoted: subscribed.channel)
    if let viewID = subscribed.viewID {
      buffer.append(",\"viewId\":")
      buffer.append(json: viewID)
    }
    if let cells = subscribed.cells {
      buffer.append(",\"cells\":[")
      for (index, cell) in cells.enumerated() {
        if index > 0 { buffer.append(UInt8(ascii: ",")) }
        buffer.append(quoted: cell)
      }
      buffer.append("]")
    }
    buffer.append(",\"sequence\":")
    buffer.append(integer: subscribed.sequence)
    buffer.append(",\"epoch\":")
    buffer.append(json: subscribed.epoch)
    buffer.append(subscribed.recovered ? ",\"recovered\":true" : ",\"recovered\":false")
    guard let snapshot = subscribed.snapshot else { return }
    buffer.append(",\"snapshot\":{")
    if let trip = snapshot.trip { writeMember(trip, time, &buffer) }
    if let position = snapshot.position {
      buffer.append(snapshot.trip == nil ? "\"position\":{" : ",\"position\":{")
      buffer.withRoom(for: MessageLimits.positionBytes) { writeMembers(position, time, &$0) }
      buffer.append("}")
    }
    if let eta = snapshot.eta {
      buffer.append(snapshot.trip == nil && snapshot.position == nil ? "\"eta\":{" : ",\"eta\":{")
      buffer.withRoom(for: MessageLimits.etaBytes) { writeMembers(eta, time, &$0) }
      buffer.append("}")
    }
    buffer.append("}")
  }

  /// Appends `"trip":{…}`.
  private static func writeMember(_ trip: TripState, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("\"trip\":{\"tripId\":")
    buffer.append(quoted: trip.tripID)
    buffer.append(",\"status\":")
    buffer.append(quoted: trip.status.name)
    buffer.append(",\"driverId\":", ifPresent: trip.driverID)
    buffer.append(",\"timestamp\":")
    buffer.append(trip.timestamp, as: time)
    buffer.append("}")
  }

  private static func writeHead(_ unsubscribed: Unsubscribed, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"unsubscribed\",\"payload\":{")
    if let replyTo = unsubscribed.replyTo {
      buffer.append("\"replyTo\":")
      buffer.append(json: replyTo.text)
      buffer.append(",")
    }
    buffer.append("\"channel\":")
    buffer.append(quoted: unsubscribed.channel)
    buffer.append(",\"reason\":")
    buffer.append(quoted: unsubscribed.reason.name)
  }

  private static func writeHead(_ ack: Ack, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"ack\",\"payload\":{\"replyTo\":")
    buffer.append(json: ack.replyTo.text)
    if let batch = ack.batch { writeMembers(batch, &buffer) }
    guard let trip = ack.trip else { return }
    buffer.append(",")
    writeMember(trip, time, &buffer)
  }

  private static func writeMembers(_ batch: Ack.Batch, _ buffer: inout ByteBuffer) {
    buffer.append(",\"accepted\":")
    buffer.append(integer: Int64(batch.accepted))
    buffer.append(",\"duplicates\":")
    buffer.append(integer: Int64(batch.duplicates))
    buffer.append(",\"rejected\":[")
    var separator: StaticString = "{\"index\":"
    for rejection in batch.rejected {
      buffer.append(separator)
      buffer.append(integer: Int64(rejection.index))
      buffer.append(",\"code\":")
      buffer.append(quoted: rejection.code.name)
      buffer.append("}")
      separator = ",{\"index\":"
    }
    buffer.append("]")
  }

  private static func writeHead(_ pong: Pong, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"pong\",\"payload\":{")
    if let members = pong.ping.members {
      buffer.append(members)
      buffer.append(",")
    }
    buffer.append("\"replyTo\":")
    buffer.append(json: pong.replyTo.text)
    buffer.append(",\"serverTime\":")
    buffer.append(pong.serverTime, as: time)
    guard let storedThrough = pong.storedThrough else { return }
    buffer.append(",\"storedThrough\":")
    buffer.append(storedThrough, as: time)
  }

  private static func writeHead(_ reply: ResultReply, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    writeResultHead(replyTo: reply.replyTo, into: &buffer)
    writeMembers(reply.result, time, &buffer)
  }

  private static func writeHead(_ advice: SamplingAdvice, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"sampling\",\"payload\":{\"interval\":")
    buffer.append(double: advice.interval)
    buffer.append(",\"minDistance\":")
    buffer.append(double: advice.minDistance)
    buffer.append(",\"reason\":")
    buffer.append(quoted: advice.reason.name)
  }

  private static func writeHead(_ error: ErrorReply, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"error\",\"payload\":{\"code\":")
    buffer.append(quoted: error.code.name)
    buffer.append(",\"message\":")
    buffer.append(json: error.message)
    if let replyTo = error.replyTo {
      buffer.append(",\"replyTo\":")
      buffer.append(json: replyTo.text)
    }
    buffer.append(",\"retryAfter\":", ifPresent: error.retryAfter)
    guard let status = error.status else { return }
    buffer.append(",\"details\":{\"status\":")
    buffer.append(quoted: status.name)
    buffer.append("}")
  }
}
