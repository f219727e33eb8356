// A track as GeoJSON (RFC 7946): one feature, a LineString; a MultiLineString where it crosses the antimeridian, cut
// there as in §3.1.9; a Point for one fix; no geometry for none. Positions are longitude, latitude and, if known,
// altitude (§3.1.1).
//
// `properties.times` has the time of each position, in the order and nesting of the coordinates, since GeoJSON has
// none.
import HubBytes
import HubGeo
import HubMessages

enum TrackGeoJSON {
  static func write(_ track: Track, time: TimeFormat, into bytes: inout ByteBuffer) {
    let lines = lines(track.points)
    bytes.reserve(512 + track.points.count * 64)
    bytes.append("{\"type\":\"Feature\",\"geometry\":")
    writeGeometry(lines, into: &bytes)
    bytes.append(",\"properties\":{\"tripId\":\"")
    bytes.append(utf8: "\(track.tripID)")  // ids need no escapes
    if let driver = track.driverID { bytes.append(utf8: "\",\"driverId\":\"\(driver)") }
    bytes.append(utf8: "\",\"source\":\"\(track.source.rawValue)\",\"count\":\(track.points.count),\"times\":")
    writeNested(lines, into: &bytes) { $0.append(Timestamp(milliseconds: $1.milliseconds), as: time) }
    bytes.append("}}")
  }

  private static func writeGeometry(_ lines: [[Vertex]], into bytes: inout ByteBuffer) {
    guard let first = lines.first?.first else { return bytes.append("null") }  // §3.2: unlocated
    let isPoint = lines.count == 1 && lines[0].count == 1
    bytes.append(
      isPoint
        ? "{\"type\":\"Point\",\"coordinates\":"
        : lines.count == 1
          ? "{\"type\":\"LineString\",\"coordinates\":" : "{\"type\":\"MultiLineString\",\"coordinates\":")
    if isPoint { writePosition(&bytes, first) } else { writeNested(lines, into: &bytes, writePosition) }
    bytes.append("}")
  }

  private static func writePosition(_ bytes: inout ByteBuffer, _ vertex: Vertex) {
    bytes.append("[")
    bytes.append(fixed: vertex.longitude, decimals: 7)
    bytes.append(",")
    bytes.append(fixed: vertex.latitude, decimals: 7)
    if let altitude = vertex.altitude {
      bytes.append(",")
      bytes.append(fixed: altitude, decimals: 3)
    }
    bytes.append("]")
  }

  /// An array of one line's values, or of arrays where there are several lines.
  private static func writeNested(
    _ lines: [[Vertex]], into bytes: inout ByteBuffer, _ write: (inout ByteBuffer, Vertex) -> Void
  ) {
    if lines.count == 1 { return bytes.append(list: lines[0], write) }
    bytes.append(list: lines) { $0.append(list: $1, write) }
  }

  // MARK: The antimeridian

  struct Vertex: Equatable {
    var longitude: Double
    var latitude: Double
    var altitude: Double?
    var milliseconds: Int64
  }

  /// The track as lines that do not cross the antimeridian: cut where two neighbours are nearer across it, by a
  /// position on either side, on the straight line between them in degrees (§3.1.1).
  static func lines(_ points: [TrackPoint]) -> [[Vertex]] {
    var lines: [[Vertex]] = []
    var line: [Vertex] = []
    for point in points {
      let vertex = Vertex(
        longitude: point.coordinate.longitude, latitude: point.coordinate.latitude, altitude: point.altitude,
        milliseconds: point.timestamp.milliseconds)
      if let last = line.last, abs(vertex.longitude - last.longitude) > 180 {
        let (end, start) = cut(last, vertex)
        if end.longitude != last.longitude || end.latitude != last.latitude { line.append(end) }
        lines.append(line)
        line = start.longitude != vertex.longitude || start.latitude != vertex.latitude ? [start] : []
      }
      line.append(vertex)
    }
    if !line.isEmpty { lines.append(line) }
    // A line has two positions or more (§3.1.4). Shorter ones lie on the antimeridian, where their neighbour ends.
    let whole = lines.filter { $0.count > 1 }
    return whole.isEmpty ? Array(lines.prefix(1)) : whole
  }

  /// Where the line from `a` to `b` meets the antimeridian, on `a`'s side and on `b`'s.
  private static func cut(_ a: Vertex, _ b: Vertex) -> (Vertex, Vertex) {
    let goesEast = b.longitude < a.longitude
    let border = goesEast ? 180.0 : -180.0
    let way = b.longitude - a.longitude + (goesEast ? 360 : -360)
    let share = way == 0 ? 0 : (border - a.longitude) / way
    let end = Vertex(
      longitude: border,
      latitude: ((a.latitude + share * (b.latitude - a.latitude)) * 1e7).rounded() / 1e7, altitude: nil,
      milliseconds: a.milliseconds + Int64((share * Double(b.milliseconds - a.milliseconds)).rounded()))
    var start = end
    start.longitude = -border
    return (end, start)
  }
}
