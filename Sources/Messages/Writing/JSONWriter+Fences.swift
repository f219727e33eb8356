// Fences as JSON: the bodies of the fence endpoints, and what notifications say of fences.
import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends a fence: the body of `GET` and `PUT /v1/fences/{id}`, which may be put again as it is.
  public static func write(_ report: FenceReport, time: TimeFormat, into buffer: inout ByteBuffer) {
    write(report, isWhole: true, time, &buffer)
  }

  /// Appends the body of `GET /v1/fences`: polygons and corridors by the boxes around them. `next` is the cursor of the
  /// next page.
  public static func write(_ reports: [FenceReport], next: String?, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{\"fences\":[")
    for (index, report) in reports.enumerated() {
      if index > 0 { buffer.append(",") }
      write(report, isWhole: false, time, &buffer)
    }
    buffer.append("]")
    if let next {
      buffer.append(",\"next\":")
      buffer.append(json: next)
    }
    buffer.append("}")
  }

  private static func write(
    _ report: FenceReport, isWhole: Bool, _ time: TimeFormat, _ buffer: inout ByteBuffer
  ) {
    buffer.append("{")
    writeMembers(report.fence, isWhole: isWhole, &buffer)
    buffer.append(",\"updated\":")
    buffer.append(report.updated, as: time)
    buffer.append(",\"inside\":")
    buffer.append(integer: UInt64(max(0, report.inside)))
    buffer.append("}")
  }

  /// Appends the members of a fence without braces.
  public static func writeMembers(_ fence: Fence, isWhole: Bool, _ buffer: inout ByteBuffer) {
    buffer.append("\"fenceId\":")
    buffer.append(quoted: fence.id)
    buffer.append(",\"kind\":")
    buffer.append(quoted: fence.kind.name)
    if let title = fence.title {
      buffer.append(",\"title\":")
      buffer.append(json: title)
    }
    switch fence.shape {
    case .area(let area), .hazard(let area): write(area, isWhole: isWhole, &buffer)
    case .roaming(let meters, let others):
      buffer.append(",\"distance\":")
      buffer.append(double: meters)
      write(others, ",\"others\":{", &buffer)
    }
    write(fence.drivers, ",\"drivers\":{", &buffer)
    buffer.append(",\"dwell\":", ifPresent: fence.dwell)
    buffer.append(",\"speedLimit\":", ifPresent: fence.speedLimit)
  }

  private static func write(_ area: FenceArea, isWhole: Bool, _ buffer: inout ByteBuffer) {
    switch area {
    case .circle(let circle):
      buffer.append(",\"circle\":{\"latitude\":")
      buffer.append(double: circle.center.latitude)
      buffer.append(",\"longitude\":")
      buffer.append(double: circle.center.longitude)
      buffer.append(",\"radius\":")
      buffer.append(double: circle.radiusMeters)
      buffer.append("}")
    case .polygons(let polygons):
      guard isWhole else { return write(area.boundingBox, &buffer) }
      let isOne = polygons.positions.count == 1
      buffer.append(",\"polygon\":{\"type\":")
      buffer.append(quoted: isOne ? "Polygon" : "MultiPolygon")
      buffer.append(",\"coordinates\":")
      if isOne {
        write(polygons.positions[0], &buffer)
      } else {
        list(polygons.positions, &buffer) { write($0, &$1) }
      }
      buffer.append("}")
    case .corridor(let corridor, let route):
      guard isWhole else { return write(area.boundingBox, &buffer) }
      buffer.append(",\"corridor\":{\"route\":")
      buffer.append(json: route.polyline)
      buffer.append(",\"width\":")
      buffer.append(double: corridor.halfWidthMeters * 2)
      buffer.append("}")
    }
  }

  private static func write(_ rings: [[Coordinate]], _ buffer: inout ByteBuffer) {
    list(rings, &buffer) { ring, buffer in
      list(ring, &buffer) { position, buffer in
        buffer.append("[")
        buffer.append(double: position.longitude)
        buffer.append(",")
        buffer.append(double: position.latitude)
        buffer.append("]")
      }
    }
  }

  private static func list<Element>(
    _ elements: [Element], _ buffer: inout ByteBuffer, _ write: (Element, inout ByteBuffer) -> Void
  ) {
    buffer.append("[")
    for (index, element) in elements.enumerated() {
      if index > 0 { buffer.append(",") }
      write(element, &buffer)
    }
    buffer.append("]")
  }

  private static func write(_ box: BoundingBox, _ buffer: inout ByteBuffer) {
    buffer.append(",\"bbox\":")
    list([box.west, box.south, box.east, box.north], &buffer) { $1.append(double: $0) }
  }

  /// `key` has the comma and the brace.
  private static func write(_ filter: FenceFilter, _ key: StaticString, _ buffer: inout ByteBuffer) {
    guard !filter.isEmpty else { return }
    buffer.append(key)
    var hasMembers = false
    func begin(_ member: StaticString, _ buffer: inout ByteBuffer) {
      if hasMembers { buffer.append(",") }
      hasMembers = true
      buffer.append(member)
    }
    if let status = filter.status {
      begin("\"status\":", &buffer)
      buffer.append(quoted: status.name)
    }
    if let vehicleType = filter.vehicleType {
      begin("\"vehicleType\":", &buffer)
      buffer.append(json: vehicleType)
    }
    if !filter.tags.isEmpty {
      begin("\"tags\":", &buffer)
      list(filter.tags, &buffer) { $1.append(json: $0) }
    }
    buffer.append("}")
  }

  // MARK: Notifications

  /// Appends the members of a notification's `data` that are about a fence.
  static func writeMembers(_ notice: FenceNotice, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("\"fenceId\":")
    buffer.append(quoted: notice.fenceID)
    buffer.append(",\"otherId\":", ifPresent: notice.otherID)
    buffer.append(",\"distance\":", ifPresent: notice.distance)
    buffer.append(",\"timestamp\":")
    buffer.append(notice.timestamp, as: time)
    buffer.append(",\"location\":", ifPresent: notice.location)
    buffer.append(",\"duration\":", ifPresent: notice.duration)
    buffer.append(",\"speed\":", ifPresent: notice.speed)
    buffer.append(",\"speedLimit\":", ifPresent: notice.speedLimit)
    buffer.append(",\"reason\":", ifPresent: notice.reason?.name)
  }
}
