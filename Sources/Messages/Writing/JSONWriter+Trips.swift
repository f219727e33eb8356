// Trips as JSON: the bodies of the trip endpoints.
public import HubBytes
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
    buffer.append("{\"trips\":")
    buffer.append(list: reports) { write($1, time: time, into: &$0) }
    buffer.append(",\"next\":", next)
    buffer.append("}")
  }

  /// The members of a trip, without its braces.
  static func writeMembers(_ report: TripReport, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("\"tripId\":", report.tripID)
    buffer.append(",\"status\":", report.status.name)
    buffer.append(",\"timestamp\":", report.timestamp, as: time)
    buffer.append(",\"created\":", report.created, as: time)
    buffer.append(",\"updated\":", report.updated, as: time)
    buffer.append(",\"ended\":", report.ended, as: time)
    buffer.append(",\"driverId\":", report.driverID)
    buffer.append(",\"riderId\":", report.riderID)
    buffer.append(",\"pickup\":", report.pickup)
    buffer.append(",\"dropoff\":", report.dropoff)
    buffer.append(",\"route\":", report.route)
    buffer.append(",\"summary\":", report.summary)
  }
}
