// Fences, stays and pairs as bytes, in the form of RecordValues.swift. A shape is stored as it was read from its `PUT`,
// a polygon's positions to 1e-7°, and checked again when it is read back.
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

extension DurableFence: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(fence.id, number, updated, fence.kind, fence.title)
    switch fence.shape {
    case .area(let area), .hazard(let area): bytes.record(area)
    case .roaming(let meters, let others): bytes.record(ShapeKind.roaming, meters, others)
    }
    bytes.record(fence.drivers, fence.dwell, fence.speedLimit)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    let (id, number): (Identifier, UInt64) = (try reader.read(), try reader.count())
    let (updated, kind): (Timestamp, Fence.Kind) = (try reader.read(), try reader.read())
    let title: InlineText? = try reader.read()
    let shape: Fence.Shape =
      switch kind {
      case .area: .area(try reader.read())
      case .hazard: .hazard(try reader.read())
      case .roaming: try DurableFence.roaming(from: &reader)
      }
    let fence = Fence(
      id: id, title: title, shape: shape, drivers: try reader.read(),
      dwell: try reader.read() ? try reader.finite(in: Fence.dwellSeconds) : nil,
      speedLimit: try reader.read() ? try reader.finite(in: Fence.speedLimits) : nil)
    self.init(number: number, updated: updated, fence: fence)
  }

  private static func roaming(from reader: inout RecordReader) throws(RecordError) -> Fence.Shape {
    guard try reader.read() as ShapeKind == .roaming else { throw reader.failure(.status) }
    return .roaming(meters: try reader.finite(in: 0...Fence.maximumRoamingMeters), others: try reader.read())
  }
}

/// The kinds of shapes and their numbers on the disk.
private enum ShapeKind: UInt8, Recorded {
  case circle = 1
  case polygons = 2
  case corridor = 3
  case roaming = 4
}

extension FenceArea: Recorded {
  func write(into bytes: inout ByteBuffer) {
    switch self {
    case .circle(let circle): bytes.record(ShapeKind.circle, circle.center, circle.radiusMeters)
    case .polygons(let polygons):
      bytes.record(ShapeKind.polygons, UInt16(polygons.positions.count))
      for rings in polygons.positions {
        bytes.record(UInt16(rings.count))
        for ring in rings {
          bytes.record(UInt16(ring.count))
          for position in ring { position.write(into: &bytes) }
        }
      }
    case .corridor(let corridor, let route): bytes.record(ShapeKind.corridor, route, corridor.halfWidthMeters * 2)
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    switch try reader.read() as ShapeKind {
    case .circle:
      let center: Coordinate = try reader.read()
      let radius = try reader.finite(in: 0...Fence.maximumRadiusMeters)
      guard let circle = Circle(center: center, radiusMeters: radius) else { throw reader.failure(.distance) }
      self = .circle(circle)
    case .polygons:
      let positions = try reader.positions()
      do throws(MultiPolygonError) {
        self = .polygons(try MultiPolygon(positions, limit: DriverSearch.maximumPositions))
      } catch {
        throw reader.failure(.coordinate)
      }
    case .corridor:
      let route: Route = try reader.read()
      let width = try reader.finite(in: 0...Fence.maximumWidthMeters)
      do throws(Corridor.Fault) {
        self = .corridor(try Corridor(route, widthMeters: width), route)
      } catch {
        throw reader.failure(.distance)
      }
    case .roaming: throw reader.failure(.status)
    }
  }
}

extension RecordReader {
  fileprivate mutating func positions() throws(RecordError) -> [[[Coordinate]]] {
    var polygons: [[[Coordinate]]] = []
    for _ in 0..<(try read() as UInt16) {
      var rings: [[Coordinate]] = []
      for _ in 0..<(try read() as UInt16) {
        var ring: [Coordinate] = []
        for _ in 0..<(try read() as UInt16) { ring.append(try read()) }
        rings.append(ring)
      }
      polygons.append(rings)
    }
    return polygons
  }
}

extension FenceFilter: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(status, vehicleType, tags) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(status: try reader.read(), vehicleType: try reader.read(), tags: try reader.read())
  }
}

extension DurableStay: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(driverID, fenceID, entered, speedingNotified, isSpeeding, isDwellNotified)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(
      driverID: try reader.read(), fenceID: try reader.read(), entered: try reader.read(),
      speedingNotified: try reader.read(), isSpeeding: try reader.read(), isDwellNotified: try reader.read())
  }
}

extension DurablePair: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(fenceID, driverID, otherID, entered) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(
      fenceID: try reader.read(), driverID: try reader.read(), otherID: try reader.read(), entered: try reader.read())
  }
}

/// A notice is stored behind the other members of its notification.
extension FenceNotice: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(fenceID, timestamp, otherID, location, distance, duration, speed, speedLimit, reason)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(fenceID: try reader.read(), timestamp: try reader.read())
    (otherID, location) = (try reader.read(), try reader.read())
    distance = try reader.read() ? try reader.distance() : nil
    duration = try reader.read() ? try reader.finite(in: 0...1e15) : nil
    speed = try reader.read() ? try reader.finite(in: 0...1e9) : nil
    speedLimit = try reader.read() ? try reader.finite(in: 0...1e9) : nil
    reason = try reader.read()
  }
}
