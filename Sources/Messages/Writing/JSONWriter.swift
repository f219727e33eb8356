// Publications as JSON. Keys and punctuation are literals between the values, so that a message is a row of copies; the
// members stand in the order of the examples in protocol/. Nothing is allocated but for the buffer's growth.
import HubBytes
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
      buffer.append("{\"type\":\"trip_update\",\"payload\":{\"channel\":")
      buffer.append(quoted: publication.channel)
      writeMembers(update, time, &buffer)
    case .notification(let notification):
      buffer.append("{\"type\":\"notification\",\"payload\":{\"channel\":")
      buffer.append(quoted: publication.channel)
      writeMembers(notification, time, &buffer)
    case .areaUpdate(let update): writeHead(update, on: publication.channel, time, &buffer)
    }
    buffer.append("},\"timestamp\":")
    buffer.append(publication.timestamp, as: time)
    buffer.append(",\"messageId\":\"p")
    buffer.append(integer: publication.number)
    buffer.append("\"}")
  }

  private static func writeMembers(_ update: TripUpdate, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(",\"tripId\":")
    buffer.append(quoted: update.tripID)
    buffer.append(",\"status\":")
    buffer.append(quoted: update.status.name)
    buffer.append(",\"previousStatus\":", ifPresent: update.previousStatus?.name)
    buffer.append(",\"driverId\":", ifPresent: update.driverID)
    buffer.append(",\"timestamp\":")
    buffer.append(update.timestamp, as: time)
    buffer.append(",\"location\":", ifPresent: update.location)
    buffer.append(",\"pickup\":", ifPresent: update.pickup)
    buffer.append(",\"dropoff\":", ifPresent: update.dropoff)
    if let route = update.route {
      buffer.append(",\"route\":")
      buffer.append(json: route)
    }
    if let summary = update.summary { writeMember(summary, into: &buffer) }
    buffer.append(",\"sequence\":")
    buffer.append(integer: update.sequence)
  }

  /// Appends `,"summary":{…}`.
  static func writeMember(_ summary: TripSummary, into buffer: inout ByteBuffer) {
    buffer.append(",\"summary\":{\"distance\":")
    buffer.append(double: summary.distance)
    buffer.append(",\"approach\":")
    buffer.append(double: summary.approach)
    buffer.append(",\"track\":")
    buffer.append(double: summary.track)
    buffer.append(",\"duration\":")
    buffer.append(double: summary.duration)
    buffer.append(",\"waiting\":")
    buffer.append(double: summary.waiting)
    buffer.append(",\"fixes\":")
    buffer.append(integer: summary.fixes)
    buffer.append(",\"gaps\":")
    buffer.append(integer: summary.gaps)
    buffer.append(",\"gapDuration\":")
    buffer.append(double: summary.gapDuration)
    buffer.append("}")
  }

  private static func writeMembers(_ notification: Notification, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(",\"kind\":")
    buffer.append(quoted: notification.kind.name)
    buffer.append(",\"title\":")
    buffer.append(json: notification.title)
    buffer.append(",\"body\":")
    buffer.append(json: notification.body)
    writeData(notification, time, &buffer)
    buffer.append(",\"sequence\":")
    buffer.append(integer: notification.sequence)
  }

  private static func writeData(_ notification: Notification, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    if notification.driverID == nil, notification.leg == nil, notification.fence == nil, notification.content == nil {
      return
    }
    buffer.append(",\"data\":{")
    if let driverID = notification.driverID {
      buffer.append("\"driverId\":")
      buffer.append(quoted: driverID)
    }
    if let leg = notification.leg {
      buffer.append(notification.driverID == nil ? "\"target\":" : ",\"target\":")
      buffer.append(quoted: leg.target.name)
      buffer.append(",\"distance\":")
      buffer.append(double: leg.distance)
      buffer.append(",\"eta\":")
      buffer.append(double: leg.eta)
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
    buffer.append("{\"channel\":")
    buffer.append(quoted: channel)
    buffer.append(",\"sequence\":")
    buffer.append(integer: sequence)
    buffer.append("}")
  }

  /// Appends the body of an HTTP error: `{"error":{"code":…,"message":…}}`.
  public static func writeError(_ code: ErrorCode, message: String, into buffer: inout ByteBuffer) {
    buffer.append("{\"error\":{\"code\":")
    buffer.append(quoted: code.name)
    buffer.append(",\"message\":")
    buffer.append(json: message)
    buffer.append("}}")
  }
}
