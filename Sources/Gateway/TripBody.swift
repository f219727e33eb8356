// A trip, and a list of them, as the bodies of answers.
import Bytes
import Geo
import HubCore
import Messages

enum TripBody {
  /// `GET /v1/trips/{id}` and `POST /v1/trips`.
  static func trip(_ report: TripReport, time: TimeFormat) -> [UInt8] {
    var body = ByteBuffer(capacity: 512)
    write(report, time, into: &body)
    return body.array()
  }

  /// `GET /v1/trips`; `next` is the cursor of the next page.
  static func list(_ reports: [TripReport], next: String?, time: TimeFormat) -> [UInt8] {
    var body = ByteBuffer(capacity: 64 + reports.count * 384)
    body.append("{\"trips\":[")
    for (place, report) in reports.enumerated() {
      if place > 0 { body.append(",") }
      write(report, time, into: &body)
    }
    body.append("]")
    if let next {
      body.append(",\"next\":")
      body.append(json: next)
    }
    body.append("}")
    return body.array()
  }

  private static func write(_ report: TripReport, _ time: TimeFormat, into body: inout ByteBuffer) {
    body.append("{\"tripId\":")
    body.append(json: report.tripID.text)
    body.append(",\"status\":\"")
    body.append(report.status.name)
    body.append("\",\"timestamp\":")
    body.append(report.timestamp, as: time)
    body.append(",\"created\":")
    body.append(report.created, as: time)
    body.append(",\"updated\":")
    body.append(report.updated, as: time)
    if let ended = report.ended {
      body.append(",\"ended\":")
      body.append(ended, as: time)
    }
    write(",\"driverId\":", report.driverID, into: &body)
    write(",\"riderId\":", report.riderID, into: &body)
    write(",\"pickup\":", report.pickup, into: &body)
    write(",\"dropoff\":", report.dropoff, into: &body)
    if let route = report.route {
      body.append(",\"route\":")
      body.append(json: route)
    }
    if let summary = report.summary { JSONWriter.writeMember(summary, into: &body) }
    body.append("}")
  }

  private static func write(_ key: StaticString, _ id: Identifier?, into body: inout ByteBuffer) {
    guard let id else { return }
    body.append(key)
    body.append(json: id.text)
  }

  private static func write(_ key: StaticString, _ place: Coordinate?, into body: inout ByteBuffer) {
    guard let place else { return }
    body.append(key)
    body.append("{\"latitude\":")
    body.append(fixed: place.latitude, decimals: 7)
    body.append(",\"longitude\":")
    body.append(fixed: place.longitude, decimals: 7)
    body.append("}")
  }
}
