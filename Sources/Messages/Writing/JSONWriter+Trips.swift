// Trips as JSON: the bodies of the trip endpoints.
import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends a trip: the body of `GET /v1/trips/{id}` and of `POST /v1/trips`.
  public static func write(_ report: TripReport, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{")
    writeMembers(report, time, &buffer)
    buffer.append("}")
  }

  /// Appends the body of `GET /v1/trips`; `next` is the cursor of the next page.
  public static func write(
    _ reports: [TripReport], next: String?, time: TimeFormat, into buffer: inout ByteBuffer
  ) {
    buffer.append("{\"trips\":[")
    for (index, report) in reports.enumerated() {
      if index > 0 { buffer.append(",") }
      write(report, time: time, into: &buffer)
    }
    buffer.append("]")
    if let next {
      buffer.append(",\"next\":")
      buffer.append(json: next)
    }
    buffer.append("}")
  }

  /// The members of a trip, without its braces.
  static func writeMembers(_ report: TripReport, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("\"tripId\":")
    buffer.append(quoted: report.tripID)
    buffer.append(",\"status\":")
    buffer.append(quoted: report.status.name)
    buffer.append(",\"timestamp\":")
    buffer.append(report.timestamp, as: time)
    buffer.append(",\"created\":")
    buffer.append(report.created, as: time)
    buffer.append(",\"updated\":")
    buffer.append(report.updated, as: time)
    if let ended = report.ended {
      buffer.append(",\"ended\":")
      buffer.append(ended, as: time)
    }
    buffer.append(",\"driverId\":", ifPresent: report.driverID)
    buffer.append(",\"riderId\":", ifPresent: report.riderID)
    buffer.append(",\"pickup\":", ifPresent: report.pickup)
    buffer.append(",\"dropoff\":", ifPresent: report.dropoff)
    if let route = report.route {
      buffer.append(",\"route\":")
      buffer.append(json: route)
    }
    if let summary = report.summary { writeMember(summary, into: &buffer) }
  }
}
