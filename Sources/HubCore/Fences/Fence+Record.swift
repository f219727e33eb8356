// Fences, stays and pairs as bytes, in the form of RecordWriter. A shape is stored as it was drawn and checked again
// when it is read.
import HubBytes
import HubGeo
import HubMessages

/// What is stored of a fence.
struct DurableFence: Equatable {
  var number: UInt64
  /// By the hub's wall clock.
  var updated: Timestamp
  var fence: Fence
}

/// A driver in a fence.
struct DurableStay: Equatable {
  var driverID: Identifier
  var fenceID: Identifier
  var entered: Timestamp
  var speedingNotified: Timestamp?
  var isSpeeding: Bool
  var isDwellNotified: Bool
}

/// Two drivers near each other.
struct DurablePair: Equatable {
  var fenceID: Identifier
  var driverID: Identifier
  var otherID: Identifier
  var entered: Timestamp
}

extension RecordWriter {
  static func write(_ durable: DurableFence, into bytes: inout ByteBuffer) {
    let fence = durable.fence
    bytes.append(text: fence.id.text)
    bytes.append(number: durable.number)
    bytes.append(number: durable.updated.milliseconds)
    bytes.append(fence.kind.rawValue)
    bytes.append(optional: fence.title) { $0.append(text: $1) }
    switch fence.shape {
    case .area(let area), .hazard(let area): write(area, into: &bytes)
    case .roaming(let meters, let others):
      bytes.append(ShapeKind.roaming.rawValue)
      bytes.append(number: meters.bitPattern)
      write(others, into: &bytes)
    }
    write(fence.drivers, into: &bytes)
    bytes.append(optional: fence.dwell) { $0.append(number: $1.bitPattern) }
    bytes.append(optional: fence.speedLimit) { $0.append(number: $1.bitPattern) }
  }

  private static func write(_ area: FenceArea, into bytes: inout ByteBuffer) {
    switch area {
    case .circle(let circle):
      bytes.append(ShapeKind.circle.rawValue)
      bytes.append(coordinate: circle.center)
      bytes.append(number: circle.radiusMeters.bitPattern)
    case .polygons(let polygons):
      bytes.append(ShapeKind.polygons.rawValue)
      write(polygons, into: &bytes)
    case .corridor(let corridor, let route):
      bytes.append(ShapeKind.corridor.rawValue)
      bytes.append(longText: route.polyline)
      bytes.append(number: (corridor.halfWidthMeters * 2).bitPattern)
    }
  }

  private static func write(_ polygons: MultiPolygon, into bytes: inout ByteBuffer) {
    bytes.append(number: UInt16(polygons.positions.count))
    for rings in polygons.positions {
      bytes.append(number: UInt16(rings.count))
      for ring in rings {
        bytes.append(number: UInt16(ring.count))
        for position in ring { bytes.append(coordinate: position) }
      }
    }
  }

  private static func write(_ filter: FenceFilter, into bytes: inout ByteBuffer) {
    bytes.append(optional: filter.status) { $0.append($1.rawValue) }
    bytes.append(optional: filter.vehicleType) { $0.append(text: $1) }
    bytes.append(UInt8(filter.tags.count))
    for tag in filter.tags { bytes.append(text: tag) }
  }

  static func write(_ stay: DurableStay, into bytes: inout ByteBuffer) {
    bytes.append(text: stay.driverID.text)
    bytes.append(text: stay.fenceID.text)
    bytes.append(number: stay.entered.milliseconds)
    bytes.append(optional: stay.speedingNotified) { $0.append(number: $1.milliseconds) }
    bytes.append(UInt8(stay.isSpeeding ? 1 : 0))
    bytes.append(UInt8(stay.isDwellNotified ? 1 : 0))
  }

  static func write(_ pair: DurablePair, into bytes: inout ByteBuffer) {
    bytes.append(text: pair.fenceID.text)
    bytes.append(text: pair.driverID.text)
    bytes.append(text: pair.otherID.text)
    bytes.append(number: pair.entered.milliseconds)
  }

  /// Behind the members of a notification.
  static func write(_ notice: FenceNotice, into bytes: inout ByteBuffer) {
    bytes.append(text: notice.fenceID.text)
    bytes.append(number: notice.timestamp.milliseconds)
    bytes.append(optional: notice.otherID) { $0.append(text: $1.text) }
    bytes.append(optional: notice.location) { $0.append(coordinate: $1) }
    for value in [notice.distance, notice.duration, notice.speed, notice.speedLimit] {
      bytes.append(optional: value) { $0.append(number: $1.bitPattern) }
    }
    bytes.append(optional: notice.reason) { $0.append($1.rawValue) }
  }
}

/// The kinds of shapes and their numbers on the disk.
private enum ShapeKind: UInt8 {
  case circle = 1
  case polygons = 2
  case corridor = 3
  case roaming = 4
}

extension RecordReader {
  mutating func fence() throws(RecordError) -> DurableFence {
    let id = try identifier()
    let number = try count()
    let updated = try timestamp()
    guard let kind = Fence.Kind(rawValue: try self.number(UInt8.self)) else { throw failure(.status) }
    let title = try isPresent() ? try text() : nil
    var fence = Fence(id: id, title: title, shape: try shape(kind), drivers: try fenceFilter())
    if try isPresent() { fence.dwell = try finite(in: Fence.dwellSeconds) }
    if try isPresent() { fence.speedLimit = try finite(in: Fence.speedLimits) }
    return DurableFence(number: number, updated: updated, fence: fence)
  }

  private mutating func shape(_ kind: Fence.Kind) throws(RecordError) -> Fence.Shape {
    let shape = ShapeKind(rawValue: try number(UInt8.self))
    guard let shape, (shape == .roaming) == (kind == .roaming) else { throw failure(.status) }
    switch kind {
    case .area: return .area(try fenceArea(shape))
    case .hazard: return .hazard(try fenceArea(shape))
    case .roaming:
      return .roaming(meters: try finite(in: 0...Fence.maximumRoamingMeters), others: try fenceFilter())
    }
  }

  private mutating func fenceArea(_ shape: ShapeKind) throws(RecordError) -> FenceArea {
    switch shape {
    case .circle:
      let center = try coordinate()
      let radius = try finite(in: 0...Fence.maximumRadiusMeters)
      guard let circle = Circle(center: center, radiusMeters: radius) else { throw failure(.distance) }
      return .circle(circle)
    case .polygons:
      let positions = try positions()
      do throws(MultiPolygonError) {
        return .polygons(try MultiPolygon(positions, limit: DriverSearch.maximumPositions))
      } catch {
        throw failure(.coordinate)
      }
    case .corridor:
      let route = try route()
      let width = try finite(in: 0...Fence.maximumWidthMeters)
      do throws(Corridor.Fault) {
        return .corridor(try Corridor(route, widthMeters: width), route)
      } catch {
        throw failure(.distance)
      }
    case .roaming: throw failure(.status)
    }
  }

  private mutating func positions() throws(RecordError) -> [[[Coordinate]]] {
    var polygons: [[[Coordinate]]] = []
    for _ in 0..<(try number(UInt16.self)) {
      var rings: [[Coordinate]] = []
      for _ in 0..<(try number(UInt16.self)) {
        var ring: [Coordinate] = []
        for _ in 0..<(try number(UInt16.self)) { ring.append(try coordinate()) }
        rings.append(ring)
      }
      polygons.append(rings)
    }
    return polygons
  }

  private mutating func fenceFilter() throws(RecordError) -> FenceFilter {
    var filter = FenceFilter()
    if try isPresent() {
      guard let status = DriverStatus(rawValue: try number(UInt8.self)) else { throw failure(.status) }
      filter.status = status
    }
    if try isPresent() { filter.vehicleType = try text() }
    for _ in 0..<(try number(UInt8.self)) { filter.tags.append(try text()) }
    return filter
  }

  mutating func stay() throws(RecordError) -> DurableStay {
    let (driver, fence, entered) = (try identifier(), try identifier(), try timestamp())
    let told = try isPresent() ? try timestamp() : nil
    return DurableStay(
      driverID: driver, fenceID: fence, entered: entered, speedingNotified: told, isSpeeding: try isPresent(),
      isDwellNotified: try isPresent())
  }

  mutating func pair() throws(RecordError) -> DurablePair {
    DurablePair(
      fenceID: try identifier(), driverID: try identifier(), otherID: try identifier(), entered: try timestamp())
  }

  mutating func fenceNotice() throws(RecordError) -> FenceNotice {
    var notice = FenceNotice(fenceID: try identifier(), timestamp: try timestamp())
    if try isPresent() { notice.otherID = try identifier() }
    if try isPresent() { notice.location = try coordinate() }
    if try isPresent() { notice.distance = try distance() }
    if try isPresent() { notice.duration = try finite(in: 0...1e15) }
    if try isPresent() { notice.speed = try finite(in: 0...1e9) }
    if try isPresent() { notice.speedLimit = try finite(in: 0...1e9) }
    if try isPresent() {
      guard let reason = FenceNotice.Reason(rawValue: try number(UInt8.self)) else { throw failure(.status) }
      notice.reason = reason
    }
    return notice
  }
}
