// A track as GPX 1.1 (http://www.topografix.com/GPX/1/1): one track of one segment, elements in the schema's order, times in
// UTC. GPX has no place for speed, heading and accuracy.
import Bytes
import Messages

enum TrackGPX {
  static func write(_ track: Track, into bytes: inout ByteBuffer) {
    bytes.reserve(512 + track.points.count * 112)
    bytes.append(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <gpx version="1.1" creator="locationhub" xmlns="http://www.topografix.com/GPX/1/1">
      <trk><name>
      """)
    bytes.append(utf8: "\(track.tripID)</name><src>")  // no character of an id needs escaping
    if let driver = track.driverID { bytes.append(utf8: "driver \(driver), ") }
    bytes.append(utf8: "\(track.source.rawValue)</src><trkseg>\n")
    for point in track.points { write(point, into: &bytes) }
    bytes.append("</trkseg></trk>\n</gpx>\n")
  }

  private static func write(_ point: TrackPoint, into bytes: inout ByteBuffer) {
    // longitudeType is −180 ≤ longitude < 180, also when it is rounded to seven decimals.
    let longitude = point.coordinate.longitude >= 179.999_999_95 ? -180 : point.coordinate.longitude
    bytes.append("<trkpt lat=\"")
    bytes.append(fixed: point.coordinate.latitude, decimals: 7)
    bytes.append("\" lon=\"")
    bytes.append(fixed: longitude, decimals: 7)
    bytes.append("\">")
    if let altitude = point.altitude {
      bytes.append("<ele>")
      bytes.append(fixed: altitude, decimals: 3)
      bytes.append("</ele>")
    }
    bytes.append("<time>")
    bytes.append(rfc3339: point.timestamp)
    bytes.append("</time></trkpt>\n")
  }
}
