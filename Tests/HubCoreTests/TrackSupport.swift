// What the tests of tracking share: chance, places, drives, and the real traces where they are.
import Foundation
import HubGeo
import HubMessages
import HubTestSupport

@testable import HubCore

extension SplitMix64 {
  mutating func normals() -> SIMD2<Double> {
    let radius = (-2 * log(Double.random(in: 0x1p-60..<1, using: &self))).squareRoot()
    let angle = Double.random(in: 0..<2 * .pi, using: &self)
    return SIMD2(cos(angle), sin(angle)) * radius
  }
}

/// A place on the sphere as a vector, so that tests move about the globe by other formulas than the tracker does.
struct Globe {
  static let radius = 6_371_008.8

  /// From `start`, `meters` along the great circle that leaves in the direction of `bearing` (degrees).
  static func place(from start: Coordinate, bearing: Double, meters: Double) -> (place: Coordinate, heading: Double) {
    let (latitude, longitude) = (start.latitude * .pi / 180, start.longitude * .pi / 180)
    let up = SIMD3(cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude))
    let east = SIMD3(-sin(longitude), cos(longitude), 0)
    let north = SIMD3(-sin(latitude) * cos(longitude), -sin(latitude) * sin(longitude), cos(latitude))
    let course = sin(bearing * .pi / 180) * east + cos(bearing * .pi / 180) * north
    let angle = meters / radius
    let point = up * cos(angle) + course * sin(angle)
    let onward = course * cos(angle) - up * sin(angle)
    let there = coordinate(point)
    let turned = there.longitude * .pi / 180
    let tilt = there.latitude * .pi / 180
    let localEast = SIMD3(-sin(turned), cos(turned), 0)
    let localNorth = SIMD3(-sin(tilt) * cos(turned), -sin(tilt) * sin(turned), cos(tilt))
    let degrees = atan2((onward * localEast).sum(), (onward * localNorth).sum()) * 180 / .pi
    return (there, degrees < 0 ? degrees + 360 : degrees)
  }

  static func coordinate(_ point: SIMD3<Double>) -> Coordinate {
    let latitude = atan2(point.z, (point.x * point.x + point.y * point.y).squareRoot()) * 180 / .pi
    return Coordinate(latitude: latitude, longitude: atan2(point.y, point.x) * 180 / .pi)!
  }

  /// Metres, by the chord: exact for small distances.
  static func distance(_ first: Coordinate, _ second: Coordinate) -> Double {
    let a = vector(first)
    let b = vector(second)
    let chord = ((a - b) * (a - b)).sum().squareRoot()
    return 2 * radius * asin(min(1, chord / 2))
  }

  private static func vector(_ place: Coordinate) -> SIMD3<Double> {
    let (latitude, longitude) = (place.latitude * .pi / 180, place.longitude * .pi / 180)
    return SIMD3(cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude))
  }
}

extension Fix {
  /// A fix at a time in seconds after 1970 + 1,700,000,000.
  static func at(
    _ seconds: Double, _ place: Coordinate, accuracy: Double? = 5, speed: Double? = nil, heading: Double? = nil
  ) -> Fix {
    Fix(
      coordinate: place, timestamp: .test(seconds), accuracy: accuracy, heading: heading, speed: speed)
  }
}

extension Timestamp {
  static func test(_ seconds: Double) -> Timestamp {
    Timestamp(milliseconds: 1_700_000_000_000 + Int64((seconds * 1000).rounded()))
  }
}

extension Tracker {
  /// A fix that reaches the hub when it was measured.
  mutating func update(_ fix: Fix) -> Outcome {
    update(fix, receivedAt: (fix.timestamp.milliseconds - 1_700_000_000_000) * 1_000_000)
  }
}

extension Tracker.Outcome {
  /// The position of the fix itself, where it is published.
  var position: Position? {
    switch self {
    case .accepted(let position), .acceptedTwo(_, let position), .clockBelieved(let position, _): position
    case .acceptedHeld, .history, .duplicate, .held, .clockDoubted, .refused: nil
    }
  }

  /// All that is published, in order.
  var positions: [Position] {
    switch self {
    case .accepted(let position), .acceptedHeld(let position, _), .clockBelieved(let position, _): [position]
    case .acceptedTwo(let held, let position): [held, position]
    case .history, .duplicate, .held, .clockDoubted, .refused: []
    }
  }
}

/// A recorded drive with its truth.
struct TruthTrace {
  var fixes: [Fix] = []
  var truth: [Coordinate] = []

  /// Nil where the shared data is not beside the package.
  init?(_ name: String) {
    let root = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let file = root.appendingPathComponent("../shared/data/traces/\(name).csv")
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    guard let data = FileManager.default.contents(atPath: file.path) else { return nil }
    let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").dropFirst()
    for line in lines {
      let field = line.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
      guard let place = Coordinate(latitude: field[1]!, longitude: field[2]!) else { return nil }
      fixes.append(
        Fix(
          coordinate: place, timestamp: Timestamp(milliseconds: Int64(field[0]!)), accuracy: field[3],
          heading: field[5], speed: field[4]))
      truth.append(Coordinate(latitude: field[6]!, longitude: field[7]!)!)
    }
  }
}
