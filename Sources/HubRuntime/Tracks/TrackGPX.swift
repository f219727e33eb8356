// A track as GPX 1.1 (http://www.topografix.com/GPX/1/1): one track of one segment, elements in the schema's order,
// times in UTC. GPX has no elements for speed, heading and accuracy.
import HubBytes
import HubGeo
import HubMessages

enum TrackGPX {
  static func write(_ track: Track, into bytes: inout ByteBuffer) {
    bytes.reserve(512 + track.points.count * 112)
    bytes.append(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <gpx version="1.1" creator="locationhub" xmlns="http://www.topografix.com/GPX/1/1">
      <trk><name>
      """)
    bytes.append(utf8: "\(track.tripID)</name><src>")  // ids need no escapes
    if let driver = track.driverID { bytes.append(utf8: "driver \(driver), ") }
    bytes.append(utf8: "\(track.source.rawValue)</src><trkseg>\n")
    for point in track.points { write(point, into: &bytes) }
    bytes.append("</trkseg></trk>\n</gpx>\n")
  }

  private static func write(_ point: TrackPoint, into bytes: inout ByteBuffer) {
    // Rounded first: other values would be written with an exponent, which xsd:decimal does not allow.
    let latitude = rounded(point.coordinate.latitude, 1e7)
    let longitude = rounded(point.coordinate.longitude, 1e7)
    bytes.append("<trkpt lat=\"")
    bytes.append(fixed: latitude, decimals: 7)
    bytes.append("\" lon=\"")
    bytes.append(fixed: longitude == 180 ? -180 : longitude, decimals: 7)  // longitudeType: −180 ≤ longitude < 180
    bytes.append("\">")
    if let altitude = point.altitude {
      bytes.append("<ele>")
      bytes.append(fixed: rounded(altitude, 1000), decimals: 3)
      bytes.append("</ele>")
    }
    bytes.append("<time>")
    bytes.append(rfc3339: point.timestamp)
    bytes.append("</time></trkpt>\n")
  }

  private static func rounded(_ value: Double, _ unit: Double) -> Double { (value * unit).rounded() / unit }
}
