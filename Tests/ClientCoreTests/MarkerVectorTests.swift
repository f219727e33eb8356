// The marker's vectors, protocol/marker-vectors.ndjson, which the tests of the JavaScript client read as well: both
// draw a driver at the same place.
import Foundation
import HubGeo
import HubMessages
import Testing

@testable import HubClientCore

/// A line of the file: one driver's positions as they come, and what is drawn at times between.
struct MarkerVector: Decodable, Sendable, CustomTestStringConvertible {
  struct Position: Decodable, Sendable {
    var latitude: Double
    var longitude: Double
    var heading: Double?
    var speed: Double?
    var accuracy: Double
    var timestamp: Int64
    var timeSource: String?
    var age: Double
  }

  struct Shown: Decodable, Sendable {
    var latitude: Double
    var longitude: Double
    var heading: Double?
    var age: Double
  }

  /// Either a position comes, or something is drawn: nothing where `shown` is null.
  struct Step: Decodable, Sendable {
    /// Milliseconds.
    var at: Int64
    var position: Position?
    var shown: Shown?

    /// Nanoseconds, from a time that is not 0.
    var uptime: Int64 { 7_000_000_000 + at * 1_000_000 }
  }

  var name: String
  var steps: [Step]

  var testDescription: String { name }

  static func all() throws -> [MarkerVector] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "protocol/marker-vectors.ndjson"), encoding: .utf8)
    return try text.split(separator: "\n").map {
      try JSONDecoder().decode(MarkerVector.self, from: Data($0.utf8))
    }
  }
}

extension MarkerVector.Position {
  fileprivate var location: DriverLocation? {
    guard let coordinate = Coordinate(latitude: latitude, longitude: longitude), let driver = Identifier("D1") else {
      return nil
    }
    return DriverLocation(
      driverID: driver, tripID: nil, coordinate: coordinate, heading: heading, speed: speed, accuracy: accuracy,
      confidence: .high, timestamp: Timestamp(milliseconds: timestamp), timeSource: timeSource == "hub" ? .hub : .fix,
      age: age, after: 0)
  }
}

@Suite struct MarkerVectorTests {
  @Test("the marker is where the shared vectors say, to 1 cm", arguments: try MarkerVector.all())
  func vector(_ vector: MarkerVector) throws {
    var marker = MarkerInterpolator()
    for step in vector.steps {
      if let position = step.position {
        marker.take(try #require(position.location), at: step.uptime)
        continue
      }
      let drawn = marker.marker(at: step.uptime)
      guard let shown = step.shown else {
        #expect(drawn == nil, "at \(step.at) ms there is nothing to draw")
        continue
      }
      let found = try #require(drawn)
      let place = try #require(Coordinate(latitude: shown.latitude, longitude: shown.longitude))
      #expect(found.coordinate.distance(to: place) <= 0.01, "at \(step.at) ms")
      #expect(abs(found.age - shown.age) < 1e-5, "at \(step.at) ms")
      #expect((found.heading == nil) == (shown.heading == nil), "at \(step.at) ms")
      if let heading = found.heading, let expected = shown.heading {
        let turn = abs(heading - expected)
        #expect(min(turn, 360 - turn) < 1e-3, "at \(step.at) ms")
      }
    }
  }
}
