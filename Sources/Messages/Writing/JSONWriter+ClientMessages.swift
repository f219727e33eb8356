// Clients' messages as JSON.
public import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends a client's message with its envelope.
  ///
  /// - Parameter timestamp: the sender's clock at sending.
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
    case .offerDecline(let decline):
      buffer.append("{\"type\":\"offer_decline\",\"payload\":{\"tripId\":", decline.tripID)
      buffer.append("}")
    case .subscribe(let subscribe):
      buffer.append("{\"type\":\"subscribe\",\"payload\":{\"channel\":", subscribe.channel)
      if let resume = subscribe.resume {
        buffer.append(",\"since\":", resume.since)
        buffer.append(",\"epoch\":", resume.epoch)
      }
      buffer.append(",\"viewId\":", subscribe.viewID)
      buffer.append(",\"precision\":", subscribe.precision)
      buffer.append(subscribe.isEventsOnly ? ",\"eventsOnly\":true}" : "}")
    case .unsubscribe(.channel(let channel)):
      buffer.append("{\"type\":\"unsubscribe\",\"payload\":{\"channel\":", channel)
      buffer.append("}")
    case .unsubscribe(.view(let id)):
      buffer.append("{\"type\":\"unsubscribe\",\"payload\":{\"viewId\":", id)
      buffer.append("}")
    case .ping(let ping):
      buffer.append("{\"type\":\"ping\",\"payload\":{")
      if let members = ping.members { buffer.append(members) }
      buffer.append("}")
    case .refresh(let refresh):
      buffer.append("{\"type\":\"refresh\",\"payload\":{\"token\":", refresh.token)
      buffer.append("}")
    case .query(let query):
      buffer.append("{\"type\":\"query\",\"payload\":")
      write(query, &buffer)
    }
    buffer.append(",\"timestamp\":", timestamp, as: time)
    buffer.append(",\"messageId\":", messageID.text)
    buffer.append("}")
  }

  /// Appends the payload of a `location_update`, which is also a body for `POST /v1/locations`.
  public static func write(_ update: LocationUpdate, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{")
    if let tripID = update.tripID {
      buffer.append("\"tripId\":", tripID)
      buffer.append(",")
    }
    writeMembers(update.fix, time, &buffer)
    buffer.append("}")
  }

  /// Appends the payload of a `location_batch`, which is also a body for `POST /v1/locations`. An invalid fix is
  /// written as null, so that the others keep their indices.
  public static func write(_ batch: LocationBatch, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{")
    if let tripID = batch.tripID {
      buffer.append("\"tripId\":", tripID)
      buffer.append(",")
    }
    buffer.append("\"locations\":")
    buffer.append(list: batch.fixes) { buffer, fix in
      switch fix {
      case .success(let fix):
        buffer.append("{")
        writeMembers(fix, time, &buffer)
        buffer.append("}")
      case .failure: buffer.append("null")
      }
    }
    buffer.append("}")
  }

  private static func writeMembers(_ fix: Fix, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(members: fix.coordinate)
    buffer.append(",\"accuracy\":", fix.accuracy)
    buffer.append(",\"timestamp\":", fix.timestamp, as: time)
    buffer.append(",\"heading\":", fix.heading)
    buffer.append(",\"speed\":", fix.speed)
    buffer.append(",\"altitude\":", fix.altitude)
    buffer.append(",\"source\":", fix.source?.name)
    buffer.append(",\"headingAccuracy\":", fix.headingAccuracy)
    buffer.append(",\"speedAccuracy\":", fix.speedAccuracy)
    buffer.append(",\"batteryLevel\":", fix.batteryLevel)
  }

  private static func write(_ report: DriverStatusReport, _ buffer: inout ByteBuffer) {
    buffer.append("{\"status\":", report.status.name)
    buffer.append(",\"vehicleType\":", report.vehicleType)
    buffer.append(",\"tags\":", report.tags)
    buffer.append("}")
  }

  private static func write(_ report: TripStatusReport, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("{\"tripId\":", report.tripID)
    buffer.append(",\"status\":", report.status.name)
    buffer.append(",\"timestamp\":", report.timestamp, as: time)
    buffer.append(",\"location\":", report.location)
    buffer.append(",\"expectedStatus\":", report.expectedStatus?.name)
    buffer.append(",\"pickup\":", report.pickup)
    buffer.append(",\"dropoff\":", report.dropoff)
    buffer.append(",\"driverId\":", report.driverID)
    buffer.append(",\"riderId\":", report.riderID)
    buffer.append(",\"route\":", report.route?.polyline)
    if let offer = report.offer {
      buffer.append(",\"offer\":")
      write(offer, &buffer)
    }
    buffer.append("}")
  }

  private static func write(_ change: TripChange, _ buffer: inout ByteBuffer) {
    buffer.append("{\"tripId\":", change.tripID)
    buffer.append(",\"pickup\":", change.pickup)
    buffer.append(",\"dropoff\":", change.dropoff)
    buffer.append(",\"route\":", change.route?.polyline)
    buffer.append("}")
  }
}
