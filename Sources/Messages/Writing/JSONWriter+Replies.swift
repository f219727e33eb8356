// Replies to one session, as JSON.
public import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends a reply with its envelope; its `messageId` is `r` and the number.
  ///
  /// - Parameters:
  ///   - timestamp: the hub's clock at sending.
  ///   - messageID: numbers the replies of a session.
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

  /// Appends the part before the members of a query's answer, where these are written in pieces; `writeEnd` appends the
  /// part behind them.
  public static func writeResultHead(replyTo: MessageID, into buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"result\",\"payload\":{\"replyTo\":", replyTo.text)
    buffer.append(",")
  }

  /// Appends the end of a reply, from its payload's closing brace on; the parameters are those of `write`.
  public static func writeEnd(
    timestamp: Timestamp, messageID: UInt64, time: TimeFormat, into buffer: inout ByteBuffer
  ) {
    buffer.append("},\"timestamp\":", timestamp, as: time)
    buffer.append(",\"messageId\":\"r")
    buffer.append(integer: messageID)
    buffer.append("\"}")
  }

  // Each of these writes the message up to, but without, the payload's closing brace.

  private static func writeHead(
    _ connected: Connected, _ time: TimeFormat, _ buffer: inout ByteBuffer
  ) {
    buffer.append("{\"type\":\"connected\",\"payload\":{\"sessionId\":", connected.sessionID)
    buffer.append(",\"role\":", connected.role.name)
    buffer.append(",\"id\":", connected.id)
    buffer.append(",\"heartbeatInterval\":", connected.heartbeatInterval)
    buffer.append(",\"serverTime\":", connected.serverTime, as: time)
    buffer.append(",\"limits\":{\"maxMessageBytes\":", connected.limits.maxMessageBytes)
    buffer.append(",\"maxBatch\":", connected.limits.maxBatch)
    buffer.append(",\"rate\":", connected.limits.rate)
    buffer.append("}")
    guard let sampling = connected.sampling else { return }
    buffer.append(",\"sampling\":{\"interval\":", sampling.interval)
    buffer.append(",\"minDistance\":", sampling.minDistance)
    buffer.append("}")
  }

  private static func writeHead(
    _ subscribed: Subscribed, _ time: TimeFormat, _ buffer: inout ByteBuffer
  ) {
    buffer.append("{\"type\":\"subscribed\",\"payload\":{\"replyTo\":", subscribed.replyTo.text)
    buffer.append(",\"channel\":", subscribed.channel)
    buffer.append(",\"viewId\":", subscribed.viewID)
    buffer.append(subscribed.channel.isOfCounts ? ",\"blocks\":" : ",\"cells\":", subscribed.cells)
    buffer.append(",\"sequence\":", subscribed.sequence)
    buffer.append(",\"epoch\":", subscribed.epoch)
    buffer.append(",\"recovered\":", subscribed.recovered)
    if let history = subscribed.history { writeHistory(history, time, &buffer) }
    guard let snapshot = subscribed.snapshot else { return }
    buffer.append(",\"snapshot\":{")
    if let trip = snapshot.trip { writeMember(trip, time, &buffer) }
    if let position = snapshot.position {
      buffer.append(snapshot.trip == nil ? "\"position\":{" : ",\"position\":{")
      buffer.withRoom(for: MessageLimits.positionBytes) { room in
        unsafe withUnsafePointer(to: position) { unsafe writeMembers(at: $0, time, &room) }
      }
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
    buffer.append("\"trip\":{\"tripId\":", trip.tripID)
    buffer.append(",\"status\":", trip.status.name)
    buffer.append(",\"driverId\":", trip.driverID)
    buffer.append(",\"timestamp\":", trip.timestamp, as: time)
    buffer.append("}")
  }

  private static func writeHead(_ unsubscribed: Unsubscribed, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"unsubscribed\",\"payload\":{")
    buffer.append("\"replyTo\":", unsubscribed.replyTo?.text)
    buffer.append(unsubscribed.replyTo == nil ? "\"channel\":" : ",\"channel\":", unsubscribed.channel)
    buffer.append(",\"reason\":", unsubscribed.reason?.name)
  }

  private static func writeHead(_ ack: Ack, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"ack\",\"payload\":{\"replyTo\":", ack.replyTo.text)
    if let batch = ack.batch { writeMembers(batch, &buffer) }
    guard let trip = ack.trip else { return }
    buffer.append(",")
    writeMember(trip, time, &buffer)
  }

  private static func writeMembers(_ batch: Ack.Batch, _ buffer: inout ByteBuffer) {
    buffer.append(",\"accepted\":", batch.accepted)
    buffer.append(",\"duplicates\":", batch.duplicates)
    buffer.append(",\"rejected\":")
    buffer.append(list: batch.rejected) { buffer, rejection in
      buffer.append("{\"index\":", rejection.index)
      buffer.append(",\"code\":", rejection.code.name)
      buffer.append("}")
    }
  }

  private static func writeHead(_ pong: Pong, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"pong\",\"payload\":{")
    if let members = pong.ping.members {
      buffer.append(members)
      buffer.append(",")
    }
    buffer.append("\"replyTo\":", pong.replyTo.text)
    buffer.append(",\"serverTime\":", pong.serverTime, as: time)
    buffer.append(",\"storedThrough\":", pong.storedThrough, as: time)
  }

  private static func writeHead(_ reply: ResultReply, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    writeResultHead(replyTo: reply.replyTo, into: &buffer)
    writeMembers(reply.result, time, &buffer)
  }

  private static func writeHead(_ advice: SamplingAdvice, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"sampling\",\"payload\":{\"interval\":", advice.interval)
    buffer.append(",\"minDistance\":", advice.minDistance)
    buffer.append(",\"reason\":", advice.reason?.name)
  }

  private static func writeHead(_ error: ErrorReply, _ buffer: inout ByteBuffer) {
    buffer.append("{\"type\":\"error\",\"payload\":{\"code\":", error.code.name)
    buffer.append(",\"message\":", error.message)
    buffer.append(",\"replyTo\":", error.replyTo?.text)
    buffer.append(",\"retryAfter\":", error.retryAfter)
    guard let status = error.status else { return }
    buffer.append(",\"details\":{\"status\":", status.name)
    buffer.append("}")
  }
}
