// Fences as JSON: the bodies of the fence endpoints, and the fence members of notifications.
public import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends a fence: the body of `GET` and `PUT /v1/fences/{id}`, which may be put again unchanged.
  public static func write(_ report: FenceReport, time: TimeFormat, into buffer: inout ByteBuffer) {
    write(report, isWhole: true, time, &buffer)
  }

  /// Appends the body of `GET /v1/fences`: polygons and corridors as bounding boxes unless `isWhole`. `next` is the
  /// cursor of the next page.
  public static func write(
    _ reports: [FenceReport], isWhole: Bool = false, next: String?, time: TimeFormat, into buffer: inout ByteBuffer
  ) {
    buffer.append("{\"fences\":")
    buffer.append(list: reports) { write($1, isWhole: isWhole, time, &$0) }
    buffer.append(",\"next\":", next)
    buffer.append("}")
  }

  private static func write(
    _ report: FenceReport, isWhole: Bool, _ time: TimeFormat, _ buffer: inout ByteBuffer
  ) {
    buffer.append("{")
    writeMembers(report.fence, isWhole: isWhole, &buffer)
    buffer.append(",\"updated\":", report.updated, as: time)
    buffer.append(",\"inside\":", UInt64(max(0, report.inside)))
    buffer.append("}")
  }

  /// Appends the members of a fence without braces.
  public static func writeMembers(_ fence: Fence, isWhole: Bool, _ buffer: inout ByteBuffer) {
    buffer.append("\"fenceId\":", fence.id)
    buffer.append(",\"kind\":", fence.kind.name)
    buffer.append(",\"title\":", fence.title)
    switch fence.shape {
    case .area(let area), .hazard(let area): write(area, isWhole: isWhole, &buffer)
    case .roaming(let meters, let others):
      buffer.append(",\"distance\":", meters)
      write(others, ",\"others\":{", &buffer)
    }
    write(fence.drivers, ",\"drivers\":{", &buffer)
    buffer.append(",\"dwell\":", fence.dwell)
    buffer.append(",\"speedLimit\":", fence.speedLimit)
  }

  private static func write(_ area: FenceArea, isWhole: Bool, _ buffer: inout ByteBuffer) {
    switch area {
    case .circle(let circle):
      buffer.append(",\"circle\":{\"latitude\":", circle.center.latitude)
      buffer.append(",\"longitude\":", circle.center.longitude)
      buffer.append(",\"radius\":", circle.radiusMeters)
      buffer.append("}")
    case .polygons(let polygons):
      guard isWhole else { return write(area.boundingBox, &buffer) }
      buffer.append(",\"polygon\":")
      write(polygons, into: &buffer)
    case .corridor(let corridor, let route):
      guard isWhole else { return write(area.boundingBox, &buffer) }
      buffer.append(",\"corridor\":{\"route\":", route.polyline)
      buffer.append(",\"width\":", corridor.halfWidthMeters * 2)
      buffer.append("}")
    }
  }

  private static func write(_ box: BoundingBox, _ buffer: inout ByteBuffer) {
    buffer.append(",\"bbox\":", [box.west, box.south, box.east, box.north])
  }

  /// `key` includes the comma before the member and the object's opening brace.
  private static func write(_ filter: FenceFilter, _ key: StaticString, _ buffer: inout ByteBuffer) {
    guard !filter.isEmpty else { return }
    buffer.append(key)
    buffer.append("\"status\":", filter.status?.name)
    let hasStatus = filter.status != nil
    buffer.append(hasStatus ? ",\"vehicleType\":" : "\"vehicleType\":", filter.vehicleType)
    if !filter.tags.isEmpty {
      buffer.append(hasStatus || filter.vehicleType != nil ? ",\"tags\":" : "\"tags\":", filter.tags)
    }
    buffer.append("}")
  }

  // MARK: Notifications

  /// Appends the members of a notification's `data` that are about a fence.
  static func writeMembers(_ notice: FenceNotice, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("\"fenceId\":", notice.fenceID)
    buffer.append(",\"otherId\":", notice.otherID)
    buffer.append(",\"distance\":", notice.distance)
    buffer.append(",\"timestamp\":", notice.timestamp, as: time)
    buffer.append(",\"location\":", notice.location)
    buffer.append(",\"duration\":", notice.duration)
    buffer.append(",\"speed\":", notice.speed)
    buffer.append(",\"speedLimit\":", notice.speedLimit)
    buffer.append(",\"reason\":", notice.reason?.name)
  }
}
