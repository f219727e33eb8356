// Publications as JSON. Keys and punctuation are literals between the values, so that a message is a series of copies;
// members are in the order of the examples in protocol/. Nothing is allocated but for the buffer's growth.
public import HubBytes
import HubGeo

/// Writes messages as JSON text (`locationhub.v1.json`).
public enum JSONWriter {
  /// Appends a publication with its envelope; its `messageId` is `p` and the publication's number.
  ///
  /// The same bytes go to all subscribers with this time format. A `driver_location` and an `eta_update` allocate
  /// nothing.
  /// - Precondition: all numbers are finite, and timestamps within `Timestamp.accepted`.
  public static func write(_ publication: Publication, time: TimeFormat, into buffer: inout ByteBuffer) {
    switch publication.body {
    case .driverLocation(let location):
      write(
        PublishedPosition(
          channel: publication.channel, number: publication.number, timestamp: publication.timestamp,
          location: location),
        time: time, into: &buffer)
      return
    case .etaUpdate(let update):
      buffer.withRoom(for: MessageLimits.etaBytes) { write(update, of: publication, time, &$0) }
      return
    case .tripUpdate(let update):
      buffer.append("{\"type\":\"trip_update\",\"payload\":{\"channel\":", publication.channel)
      writeMembers(update, time, &buffer)
    case .notification(let notification):
      buffer.append("{\"type\":\"notification\",\"payload\":{\"channel\":", publication.channel)
      writeMembers(notification, time, &buffer)
    case .offer(let offer):
      buffer.append("{\"type\":", offer.type)
      buffer.append(",\"payload\":{\"channel\":", publication.channel)
      writeMembers(offer, time, &buffer)
    case .areaUpdate(let update): writeHead(update, on: publication.channel, time, &buffer)
    case .rawFix(let fix):
      buffer.append("{\"type\":\"raw_fix\",\"payload\":{\"channel\":", publication.channel)
      writeMembers(fix, time, &buffer)
    case .countsUpdate(let update):
      buffer.append("{\"type\":\"counts_update\",\"payload\":{\"channel\":", publication.channel)
      writeMembers(update, &buffer)
    case .stats(let figures):
      buffer.append("{\"type\":\"stats\",\"payload\":{")
      writeMembers(figures, time, &buffer)
    }
    buffer.append("},\"timestamp\":", publication.timestamp, as: time)
    buffer.append(",\"messageId\":\"p")
    buffer.append(integer: publication.number)
    buffer.append("\"}")
  }

  /// Appends the payload alone of an event (`trip_update`, `notification`, `offer`), for another envelope.
  /// - Precondition: the publication is one of these, and as for `write`.
  public static func writePayload(ofEvent event: Publication, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{\"channel\":", event.channel)
    switch event.body {
    case .tripUpdate(let update): writeMembers(update, time, &buffer)
    case .notification(let notification): writeMembers(notification, time, &buffer)
    case .offer(let offer): writeMembers(offer, time, &buffer)
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats:
      preconditionFailure("it is no event")
    }
    buffer.append("}")
  }

  private static func writeMembers(_ update: TripUpdate, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(",\"tripId\":", update.tripID)
    buffer.append(",\"status\":", update.status.name)
    buffer.append(",\"previousStatus\":", update.previousStatus?.name)
    buffer.append(",\"driverId\":", update.driverID)
    buffer.append(",\"riderId\":", update.riderID)
    buffer.append(",\"timestamp\":", update.timestamp, as: time)
    buffer.append(",\"location\":", update.location)
    buffer.append(",\"pickup\":", update.pickup)
    buffer.append(",\"dropoff\":", update.dropoff)
    buffer.append(",\"route\":", update.route)
    buffer.append(",\"summary\":", update.summary)
    buffer.append(",\"sequence\":", update.sequence)
  }

  private static func writeMembers(_ notification: Notification, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(",\"kind\":", notification.kind.name)
    buffer.append(",\"title\":", notification.title)
    buffer.append(",\"body\":", notification.body)
    writeData(notification, time, &buffer)
    buffer.append(",\"sequence\":", notification.sequence)
  }

  private static func writeData(_ notification: Notification, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    if notification.driverID == nil, notification.leg == nil, notification.fence == nil, notification.content == nil {
      return
    }
    buffer.append(",\"data\":{")
    buffer.append("\"driverId\":", notification.driverID)
    if let leg = notification.leg {
      buffer.append(notification.driverID == nil ? "\"target\":" : ",\"target\":", leg.target.name)
      buffer.append(",\"distance\":", leg.distance)
      buffer.append(",\"eta\":", leg.eta)
    }
    if let fence = notification.fence {
      if notification.driverID != nil { buffer.append(",") }
      writeMembers(fence, time, &buffer)
    }
    if let content = notification.content {
      if notification.driverID != nil { buffer.append(",") }
      buffer.append(utf8: content)
    }
    buffer.append("}")
  }

  /// Appends the body of the answer to `POST /v1/notifications`.
  public static func writeNotified(_ channel: Channel, sequence: UInt64, into buffer: inout ByteBuffer) {
    buffer.append("{\"channel\":", channel)
    buffer.append(",\"sequence\":", sequence)
    buffer.append("}")
  }

  /// Appends the body of an HTTP error: `{"error":{"code":…,"message":…}}`.
  public static func writeError(_ code: ErrorCode, message: String, into buffer: inout ByteBuffer) {
    buffer.append("{\"error\":{\"code\":", code.name)
    buffer.append(",\"message\":", message)
    buffer.append("}}")
  }
}

extension TripSummary: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) {
    buffer.append("{\"distance\":", distance)
    buffer.append(",\"approach\":", approach)
    buffer.append(",\"track\":", track)
    buffer.append(",\"duration\":", duration)
    buffer.append(",\"waiting\":", waiting)
    buffer.append(",\"fixes\":", fixes)
    buffer.append(",\"gaps\":", gaps)
    buffer.append(",\"gapDuration\":", gapDuration)
    buffer.append("}")
  }
}
