// What a client sends, as JSON.
import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends a client's message with its envelope.
  ///
  /// - Parameter timestamp: the sender's clock when it sends.
  /// - Precondition: all numbers are finite, and timestamps within `Timestamp.accepted`.
  public static func write(
    _ message: ClientMessage, messageID: MessageID, timestamp: Timestamp, time: TimeFormat,
    into buffer: inout ByteBuffer
  ) {
    switch message {
    case .locationUpdate(let update):
      buffer.append("{\"type\":\"location_update\",\"payload\":")
      write(update, time: time, into: &buffer)
    case .locationBatch(let batch):
      buffer.append("{\"type\":\"location_batch\",\"payload\":")
      write(batch, time: time, into: &buffer)
    case .driverStatus(let report):
      buffer.append("{\"type\":\"driver_status\",\"payload\":")
      write(report, &buffer)
    case .tripStatus(let report):
      buffer.append("{\"type\":\"trip_status\",\"payload\":")
      write(report, time, &buffer)
    case .tripChange(let change):
      buffer.append("{\"type\":\"trip_change\",\"payload\":")
      write(change, &buffer)
    case .subscribe(let subscribe):
      buffer.append("{\"type\":\"subscribe\",\"payload\":{\"channel\":")
      buffer.append(quoted: subscribe.channel)
      if let resume = subscribe.resume {
        buffer.append(",\"since\":")
        buffer.append(integer: resume.since)
        buffer.append(",\"epoch\":")
        buffer.append(json: resume.epoch)
      }
      if let viewID = subscribe.viewID {
        buffer.append(",\"viewId\":")
        buffer.append(json: viewID)
      }
      buffer.append("}")
    case .unsubscribe(.channel(let channel)):
      buffer.append("{\"type\":\"unsubscribe\",\"payload\":{\"channel\":")
      buffer.append(quoted: channel)
      buffer.append("}")
    case .unsubscribe(.view(let id)):
      buffer.append("{\"type\":\"unsubscribe\",\"payload\":{\"viewId\":")
      buffer.append(json: id)
      buffer.append("}")
    case .ping(let ping):
      buffer.append("{\"type\":\"ping\",\"payload\":{")
      if let members = ping.members { buffer.append(members) }
      buffer.append("}")
    case .refresh(let refresh):
      buffer.append("{\"type\":\"refresh\",\"payload\":{\"token\":")
      buffer.append(json: refresh.token)
      buffer.append("}")
    case .query(let query):
      buffer.append("{\"type\":\"query\",\"payload\":")
      write(query, &buffer)
    }
    buffer.append(",\"timestamp\":")
    buffer.append(timestamp, as: time)
    buffer.append(",\"messageId\":")
    buffer.append(json: messageID.text)
    buffer.append("}")
  }

  /// Appends the payload of a `location_update`, which is also a body for `POST /v1/locations`.
  public static func write(_ update: LocationUpdate, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{")
    if let tripID = update.tripID {
      buffer.append("\"tripId\":")
      buffer.append(quoted: tripID)
      buffer.append(",")
    }
    writeMembers(update.fix, time, &buffer)
    buffer.append("}")
  }

  /// Appends the payload of a `location_batch`, which is also a body for `POST /v1/locations`. A fix that could not be
  /// read is written as null, so that the others keep their places.
  public static func write(_ batch: LocationBatch, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{")
    if let tripID = batch.tripID {
      buffer.append("\"tripId\":")
      buffer.append(quoted: tripID)
      buffer.append(",")
    }
    buffer.append("\"locations\":[")
    for i in 0..<batch.fixes.count {
      if i > 0 { buffer.append(",") }
      switch batch.fixes[i] {
      case .success(let fix):
        buffer.append("{")
        writeMembers(fix, time, &buffer)
        buffer.append("}")
      case .failure:
        buffer.append("null")
      }
    }
    buffer.append("]}")
  }

  private static func writeMembers(_ fix: Fix, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(members: fix.coordinate)
    buffer.append(",\"accuracy\":", ifPresent: fix.accuracy)
    buffer.append(",\"timestamp\":")
    buffer.append(fix.timestamp, as: time)
    buffer.append(",\"heading\":", ifPresent: fix.heading)
    buffer.append(",\"speed\":", ifPresent: fix.speed)
    buffer.append(",\"altitude\":", ifPresent: fix.altitude)
    buffer.append(",\"source\":", ifPresent: fix.source?.name)
    buffer.append(",\"headingAccuracy\":", ifPresent: fix.headingAccuracy)
    buffer.append(",\"speedAccuracy\":", ifPresent: fix.speedAccuracy)
    buffer.append(",\"batteryLevel\":", ifPresent: fix.batteryLevel)
  }

  private static func write(_ report: DriverStatusReport, _ buffer: inout ByteBuffer) {
    buffer.append("{\"status\":")
    buffer.append(quoted: report.status.name)
    if let vehicleType = report.vehicleType {
      buffer.append(",\"vehicleType\":")
      buffer.append(json: vehicleType)
    }
    if let tags = report.tags {
      var separator: StaticString = ",\"tags\":["
      for tag in tags {
        buffer.append(separator)
        buffer.append(json: tag)
        separator = ","
      }
      buffer.append(tags.isEmpty ? ",\"tags\":[]" : "]")
    }
    buffer.append("}")
  }

  private static func write(_ report: TripStatusReport, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("{\"tripId\":")
    buffer.append(quoted: report.tripID)
    buffer.append(",\"status\":")
    buffer.append(quoted: report.status.name)
    buffer.append(",\"timestamp\":")
    buffer.append(report.timestamp, as: time)
    buffer.append(",\"location\":", ifPresent: report.location)
    buffer.append(",\"expectedStatus\":", ifPresent: report.expectedStatus?.name)
    buffer.append(",\"pickup\":", ifPresent: report.pickup)
    buffer.append(",\"dropoff\":", ifPresent: report.dropoff)
    buffer.append(",\"driverId\":", ifPresent: report.driverID)
    buffer.append(",\"riderId\":", ifPresent: report.riderID)
    if let route = report.route {
      buffer.append(",\"route\":")
      buffer.append(json: route.polyline)
    }
    buffer.append("}")
  }

  private static func write(_ change: TripChange, _ buffer: inout ByteBuffer) {
    buffer.append("{\"tripId\":")
    buffer.append(quoted: change.tripID)
    buffer.append(",\"pickup\":", ifPresent: change.pickup)
    buffer.append(",\"dropoff\":", ifPresent: change.dropoff)
    if let route = change.route {
      buffer.append(",\"route\":")
      buffer.append(json: route.polyline)
    }
    buffer.append("}")
  }
}
