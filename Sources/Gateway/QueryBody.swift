// Bodies of the HTTP endpoints' answers.
import Bytes
import HubCore
import Messages

enum QueryBody {
  /// `GET /v1/drivers/{id}`: the driver, with its position flattened in.
  static func driver(_ report: DriverReport, time: TimeFormat) -> [UInt8] {
    var body = ByteBuffer(capacity: 512)
    body.append("{")
    write(report, time, into: &body)
    body.append(report.isOnline ? ",\"online\":true}" : ",\"online\":false}")
    return body.array()
  }

  /// `GET /v1/drivers/nearby`: nearest first. `completeWithin` (metres) where the search had to stop early.
  static func nearby(_ reports: [DriverReport], _ outcome: NearestOutcome, time: TimeFormat) -> [UInt8] {
    var body = ByteBuffer(capacity: 64 + reports.count * 256)
    body.append("{\"drivers\":[")
    for (place, report) in reports.enumerated() {
      body.append(place == 0 ? "{" : ",{")
      write(report, time, into: &body)
      body.append("}")
    }
    body.append("]")
    switch outcome {
    case .complete: break
    case .exhausted(let meters):
      body.append(",\"completeWithin\":")
      body.append(fixed: meters, decimals: 1)
    }
    body.append("}")
    return body.array()
  }

  /// `POST /v1/locations`: what became of the fixes.
  static func batch(_ batch: Ack.Batch?) -> [UInt8] {
    var body = ByteBuffer(capacity: 128)
    body.append("{\"accepted\":")
    body.append(integer: Int64(batch?.accepted ?? 0))
    body.append(",\"duplicates\":")
    body.append(integer: Int64(batch?.duplicates ?? 0))
    body.append(",\"rejected\":[")
    for (place, rejection) in (batch?.rejected ?? []).enumerated() {
      body.append(place == 0 ? "{\"index\":" : ",{\"index\":")
      body.append(integer: Int64(rejection.index))
      body.append(",\"code\":\"")
      body.append(rejection.code.name)
      body.append("\"}")
    }
    body.append("]}")
    return body.array()
  }

  private static func write(_ report: DriverReport, _ time: TimeFormat, into body: inout ByteBuffer) {
    body.append("\"driverId\":\"")
    report.driverID.text.withBytes { body.append($0) }  // ids need no escaping
    body.append("\",\"status\":\"")
    body.append(report.status.name)
    body.append("\"")
    if let vehicleType = report.vehicleType {
      body.append(",\"vehicleType\":")
      body.append(json: vehicleType)
    }
    if !report.tags.isEmpty {
      body.append(",\"tags\":[")
      for (place, tag) in report.tags.enumerated() {
        if place > 0 { body.append(",") }
        body.append(json: tag)
      }
      body.append("]")
    }
    if let position = report.position {
      body.append(",\"latitude\":")
      body.append(fixed: position.coordinate.latitude, decimals: 7)
      body.append(",\"longitude\":")
      body.append(fixed: position.coordinate.longitude, decimals: 7)
      write("heading", position.heading, into: &body)
      write("speed", position.speed, into: &body)
      write("accuracy", position.accuracy, into: &body)
      write("age", position.age, into: &body)
      body.append(",\"timestamp\":")
      body.append(position.timestamp, as: time)
    }
    if let predicted = report.predicted {
      body.append(",\"predicted\":{\"latitude\":")
      body.append(fixed: predicted.latitude, decimals: 7)
      body.append(",\"longitude\":")
      body.append(fixed: predicted.longitude, decimals: 7)
      body.append("}")
    }
    write("distance", report.distance.map { ($0 * 100).rounded() / 100 }, into: &body)
  }

  private static func write(_ name: StaticString, _ value: Double?, into body: inout ByteBuffer) {
    guard let value else { return }
    body.append(",\"")
    body.append(name)
    body.append("\":")
    body.append(double: value)
  }
}
