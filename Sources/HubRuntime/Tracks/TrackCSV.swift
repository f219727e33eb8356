// A track as CSV (RFC 4180): the columns of `watch --format csv` and two more, so that `replay` and `filter` read it.
// Times are always milliseconds since 1970; a field is empty for an unknown value.
import HubBytes
import HubGeo
import HubMessages

enum TrackCSV {
  static let header: StaticString = "t_ms,lat,lon,speed,bearing,accuracy,altitude\r\n"

  static func write(_ track: Track, into bytes: inout ByteBuffer) {
    bytes.reserve(64 + track.points.count * 72)
    bytes.append(header)
    for point in track.points {
      bytes.append(integer: point.timestamp.milliseconds)
      field(point.coordinate.latitude, decimals: 7, &bytes)
      field(point.coordinate.longitude, decimals: 7, &bytes)
      field(point.speed, decimals: 3, &bytes)
      field(point.heading, decimals: 7, &bytes)
      field(point.accuracy, decimals: 3, &bytes)
      field(point.altitude, decimals: 3, &bytes)
      bytes.append("\r\n")
    }
  }

  private static func field(_ value: Double?, decimals: Int, _ bytes: inout ByteBuffer) {
    bytes.append(",")
    if let value { bytes.append(fixed: value, decimals: decimals) }
  }
}
