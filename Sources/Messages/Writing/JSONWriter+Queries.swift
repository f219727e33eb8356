// Questions about drivers and their answers as JSON; the body of an answer is that of the HTTP endpoint.
import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends the payload of a `query`.
  static func write(_ query: QueryRequest, _ buffer: inout ByteBuffer) {
    switch query {
    case .driver(let id):
      buffer.append("{\"kind\":\"driver\",\"driverId\":")
      buffer.append(quoted: id)
    case .trip(let id):
      buffer.append("{\"kind\":\"trip\",\"tripId\":")
      buffer.append(quoted: id)
    case .drivers(let search):
      write(search.area, &buffer)
      if let limit = search.limit {
        buffer.append(",\"limit\":")
        buffer.append(integer: Int64(limit))
      }
      write(search.filter, &buffer)
    }
    buffer.append("}")
  }

  private static func write(_ area: DriverSearch.Area, _ buffer: inout ByteBuffer) {
    switch area {
    case .nearby(let center, let radius):
      buffer.append("{\"kind\":\"nearby\",\"latitude\":")
      buffer.append(double: center.latitude)
      buffer.append(",\"longitude\":")
      buffer.append(double: center.longitude)
      buffer.append(",\"radius\":", ifPresent: radius)
    case .box(let box):
      buffer.append("{\"kind\":\"within\",\"bbox\":[")
      buffer.append(double: box.west)
      for value in [box.south, box.east, box.north] {
        buffer.append(",")
        buffer.append(double: value)
      }
      buffer.append("]")
    case .polygons(let polygons):
      buffer.append("{\"kind\":\"within\",\"polygon\":")
      write(polygons, into: &buffer)
    }
  }

  private static func write(_ filter: DriverFilter, _ buffer: inout ByteBuffer) {
    buffer.append(",\"status\":", ifPresent: filter.status?.name)
    if let vehicleType = filter.vehicleType {
      buffer.append(",\"vehicleType\":")
      buffer.append(json: vehicleType)
    }
    writeTags(filter.tags, &buffer)
    buffer.append(",\"maxAge\":", ifPresent: filter.maxAge)
    if filter.includesStale { buffer.append(",\"stale\":true") }
  }

  /// Appends polygons as a GeoJSON geometry: a Polygon where there is one.
  public static func write(_ polygons: MultiPolygon, into buffer: inout ByteBuffer) {
    let isOne = polygons.positions.count == 1
    buffer.append(isOne ? "{\"type\":\"Polygon\",\"coordinates\":" : "{\"type\":\"MultiPolygon\",\"coordinates\":[")
    for (number, rings) in polygons.positions.enumerated() {
      if number > 0 { buffer.append(",") }
      buffer.append("[")
      for (index, ring) in rings.enumerated() {
        if index > 0 { buffer.append(",") }
        writeRing(ring, &buffer)
      }
      buffer.append("]")
    }
    buffer.append(isOne ? "}" : "]}")
  }

  private static func writeRing(_ ring: [Coordinate], _ buffer: inout ByteBuffer) {
    var separator: StaticString = "[["
    for position in ring {
      buffer.append(separator)
      buffer.append(double: position.longitude)
      buffer.append(",")
      buffer.append(double: position.latitude)
      separator = "],["
    }
    buffer.append("]]")
  }

  // MARK: Answers

  /// Appends the body of an answer, which is also that of the HTTP endpoint.
  public static func write(_ result: QueryResult, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{")
    writeMembers(result, time, &buffer)
    buffer.append("}")
  }

  /// The members of an answer's body, without its braces.
  static func writeMembers(_ result: QueryResult, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    switch result {
    case .driver(let report): writeMembers(report, time, &buffer)
    case .trip(let report): writeMembers(report, time, &buffer)
    case .drivers(let list):
      beginDrivers(&buffer)
      for (index, report) in list.drivers.enumerated() { writeDriver(report, isFirst: index == 0, time, &buffer) }
      endDrivers(more: list.more, &buffer)
    }
  }

  // The parts of a list, for those who write it in pieces.

  static func beginDrivers(_ buffer: inout ByteBuffer) { buffer.append("\"drivers\":[") }

  static func writeDriver(_ report: DriverReport, isFirst: Bool, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(isFirst ? "{" : ",{")
    writeMembers(report, time, &buffer)
    buffer.append("}")
  }

  static func endDrivers(more: Int, _ buffer: inout ByteBuffer) {
    buffer.append("]")
    if more > 0 {
      buffer.append(",\"more\":")
      buffer.append(integer: Int64(more))
    }
  }

  private static func writeMembers(_ report: DriverReport, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("\"driverId\":")
    buffer.append(quoted: report.driverID)
    buffer.append(",\"status\":")
    buffer.append(quoted: report.status.name)
    if let vehicleType = report.vehicleType {
      buffer.append(",\"vehicleType\":")
      buffer.append(json: vehicleType)
    }
    writeTags(report.tags, &buffer)
    if let position = report.position {
      buffer.append(",")
      buffer.append(members: position.coordinate)
      buffer.append(",\"heading\":", ifPresent: position.heading)
      buffer.append(",\"speed\":", ifPresent: position.speed)
      buffer.append(",\"accuracy\":", ifPresent: position.accuracy)
      buffer.append(",\"age\":")
      buffer.append(double: position.age)
      if let timestamp = position.timestamp {
        buffer.append(",\"timestamp\":")
        buffer.append(timestamp, as: time)
        switch position.timeSource {
        case .fix: break
        case .hub: buffer.append(",\"timeSource\":\"hub\"")
        }
      }
    }
    buffer.append(",\"predicted\":", ifPresent: report.predicted)
    buffer.append(",\"distance\":", ifPresent: report.distance)
    if let isOnline = report.isOnline { buffer.append(isOnline ? ",\"online\":true" : ",\"online\":false") }
  }

  private static func writeTags(_ tags: [InlineText], _ buffer: inout ByteBuffer) {
    var separator: StaticString = ",\"tags\":["
    for tag in tags {
      buffer.append(separator)
      buffer.append(json: tag)
      separator = ","
    }
    if !tags.isEmpty { buffer.append("]") }
  }
}
