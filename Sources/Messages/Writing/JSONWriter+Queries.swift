// Queries for drivers and their answers as JSON; an answer's body is that of the HTTP endpoint.
public import HubBytes
public import HubGeo

extension JSONWriter {
  /// Appends the payload of a `query`.
  static func write(_ query: QueryRequest, _ buffer: inout ByteBuffer) {
    switch query {
    case .driver(let id):
      buffer.append("{\"kind\":\"driver\",\"driverId\":", id)
    case .trip(let id):
      buffer.append("{\"kind\":\"trip\",\"tripId\":", id)
    case .drivers(let search):
      write(search.area, &buffer)
      buffer.append(",\"limit\":", search.limit)
      write(search.filter, &buffer)
    }
    buffer.append("}")
  }

  private static func write(_ area: DriverSearch.Area, _ buffer: inout ByteBuffer) {
    switch area {
    case .nearby(let center, let radius):
      buffer.append("{\"kind\":\"nearby\",\"latitude\":", center.latitude)
      buffer.append(",\"longitude\":", center.longitude)
      buffer.append(",\"radius\":", radius)
    case .box(let box):
      buffer.append("{\"kind\":\"within\",\"bbox\":", [box.west, box.south, box.east, box.north])
    case .polygons(let polygons):
      buffer.append("{\"kind\":\"within\",\"polygon\":")
      write(polygons, into: &buffer)
    }
  }

  private static func write(_ filter: DriverFilter, _ buffer: inout ByteBuffer) {
    buffer.append(",\"status\":", filter.status?.name)
    buffer.append(",\"vehicleType\":", filter.vehicleType)
    buffer.append(",\"tags\":", filter.tags.isEmpty ? nil : filter.tags)
    buffer.append(",\"maxAge\":", filter.maxAge)
    if filter.includesStale { buffer.append(",\"stale\":true") }
  }

  /// Appends polygons as a GeoJSON geometry: a Polygon where there is one.
  public static func write(_ polygons: MultiPolygon, into buffer: inout ByteBuffer) {
    func writeRings(_ buffer: inout ByteBuffer, _ rings: [[Coordinate]]) {
      buffer.append(list: rings) { buffer, ring in
        buffer.append(list: ring) { buffer, position in
          buffer.append("[", position.longitude)
          buffer.append(",", position.latitude)
          buffer.append("]")
        }
      }
    }
    let isOne = polygons.positions.count == 1
    buffer.append("{\"type\":", isOne ? "Polygon" : "MultiPolygon")
    buffer.append(",\"coordinates\":")
    if isOne {
      writeRings(&buffer, polygons.positions[0])
    } else {
      buffer.append(list: polygons.positions, writeRings)
    }
    buffer.append("}")
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
      endDrivers(more: list.more, next: list.cursor, &buffer)
    }
  }

  // The parts of a list, for writing it in pieces.

  static func beginDrivers(_ buffer: inout ByteBuffer) { buffer.append("\"drivers\":[") }

  static func writeDriver(_ report: DriverReport, isFirst: Bool, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(isFirst ? "{" : ",{")
    writeMembers(report, time, &buffer)
    buffer.append("}")
  }

  static func endDrivers(more: Int, next: String? = nil, _ buffer: inout ByteBuffer) {
    buffer.append("]")
    buffer.append(",\"more\":", more > 0 ? more : nil)
    buffer.append(",\"next\":", next)
  }

  private static func writeMembers(_ report: DriverReport, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("\"driverId\":", report.driverID)
    buffer.append(",\"status\":", report.status.name)
    buffer.append(",\"vehicleType\":", report.vehicleType)
    buffer.append(",\"tags\":", report.tags.isEmpty ? nil : report.tags)
    if let position = report.position {
      buffer.append(",")
      buffer.append(members: position.coordinate)
      buffer.append(",\"heading\":", position.heading)
      buffer.append(",\"speed\":", position.speed)
      buffer.append(",\"accuracy\":", position.accuracy)
      buffer.append(",\"age\":", position.age)
      if let timestamp = position.timestamp {
        buffer.append(",\"timestamp\":", timestamp, as: time)
        switch position.timeSource {
        case .fix: break
        case .hub: buffer.append(",\"timeSource\":\"hub\"")
        }
      }
    }
    buffer.append(",\"predicted\":", report.predicted)
    buffer.append(",\"distance\":", report.distance)
    buffer.append(",\"online\":", report.isOnline)
    buffer.append(",\"confidence\":", report.confidence?.name)
    buffer.append(",\"tripId\":", report.tripID)
  }
}
