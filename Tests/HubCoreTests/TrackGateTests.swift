import Geo
import Messages
import Testing

@testable import HubCore

private let munich = Coordinate(latitude: 48.137, longitude: 11.575)!

/// A driver going east at 15 m/s, and where it is at a second.
private func east(_ second: Int) -> Coordinate {
  Globe.place(from: munich, bearing: 90, meters: 15 * Double(second)).place
}

private func settled(until second: Int = 60) -> Tracker {
  var tracker = Tracker()
  for at in 0..<second { _ = tracker.update(.at(Double(at), east(at), speed: 15, heading: 90)) }
  return tracker
}

@Suite("What a tracker refuses")
struct TrackGateTests {
  @Test("A fix that knows itself to be wrong, or lies at 0° 0°, is refused and changes nothing")
  func implausible() throws {
    var tracker = settled()
    let island = try #require(Coordinate(latitude: 0, longitude: 0))
    let before = tracker.newest
    #expect(tracker.update(.at(60, east(60), accuracy: 100.1)) == .refused(.inaccurate))
    #expect(tracker.update(.at(60, east(60), accuracy: .infinity)) == .refused(.inaccurate))
    #expect(tracker.update(.at(60, island)) == .refused(.nullIsland))
    #expect(tracker.newest == before)
    let rules = Tracker.Rules(maximumAccuracyMeters: 500)
    #expect(tracker.update(.at(60, east(60), accuracy: 400), receivedAt: 60_000_000_000, rules: rules).position != nil)
    #expect(Tracker.Refusal.allCases.allSatisfy { $0.code == .implausibleLocation })
  }

  @Test("A place near 0° 0° is a place like any other")
  func gulfOfGuinea() throws {
    var tracker = Tracker()
    let place = try #require(Coordinate(latitude: 0, longitude: 0.0001))
    #expect(tracker.update(.at(0, place)).position != nil)
  }

  @Test(
    "A lone outlier is refused, whatever its distance, and leaves the track as it was", arguments: [80, 300, 4500, 1e6])
  func outlier(meters: Double) throws {
    var tracker = settled()
    let off = Globe.place(from: east(60), bearing: 10, meters: meters).place
    let outcome = tracker.update(.at(60, off, speed: 15, heading: 90))
    #expect(outcome == .refused(meters > 90 ? .tooFast : .gated))
    let position = try #require(tracker.update(.at(61, east(61), speed: 15, heading: 90)).position)
    #expect(Globe.distance(position.coordinate, east(61)) < 1)
  }

  @Test("Outliers in a row that do not agree are all refused")
  func scattered() throws {
    var tracker = settled()
    for step in 0..<4 {
      let off = Globe.place(from: east(60 + step), bearing: Double(step) * 95, meters: 3000).place
      #expect(tracker.update(.at(60 + Double(step), off, speed: 15, heading: 90)) == .refused(.tooFast))
    }
    let position = try #require(tracker.update(.at(64, east(64), speed: 15, heading: 90)).position)
    #expect(Globe.distance(position.coordinate, east(64)) < 2)
  }

  @Test("Where the filter was wrong, the second fix that says so is believed")
  func reacquired() throws {
    var tracker = settled()
    func shifted(_ second: Int) -> Coordinate { Globe.place(from: east(second), bearing: 0, meters: 70).place }
    #expect(tracker.update(.at(60, shifted(60), speed: 15, heading: 90)) == .refused(.gated))
    let position = try #require(tracker.update(.at(61, shifted(61), speed: 15, heading: 90)).position)
    #expect(Globe.distance(position.coordinate, shifted(61)) < 5)
  }

  @Test("A place out of a vehicle's reach is believed when four fixes agree", arguments: [3000.0, 400_000])
  func farAway(meters: Double) throws {
    var tracker = settled()
    func far(_ second: Int) -> Coordinate { Globe.place(from: east(second), bearing: 45, meters: meters).place }
    for second in 60..<63 {
      #expect(tracker.update(.at(Double(second), far(second), speed: 15, heading: 90)) == .refused(.tooFast))
    }
    for second in 63..<90 {
      let position = try #require(tracker.update(.at(Double(second), far(second), speed: 15, heading: 90)).position)
      #expect(Globe.distance(position.coordinate, far(second)) < 5)
      #expect(abs(try #require(position.speed) - 15) < 3)
    }
  }

  @Test("A wrong first fix is left behind")
  func wrongStart() throws {
    var tracker = Tracker()
    let wrong = Globe.place(from: munich, bearing: 200, meters: 700_000).place
    #expect(tracker.update(.at(-1, wrong)).position != nil)
    var published = 0
    for second in 0..<20 {
      guard let position = tracker.update(.at(Double(second), east(second), speed: 15, heading: 90)).position else {
        continue
      }
      published += 1
      #expect(Globe.distance(position.coordinate, east(second)) < 10)
    }
    #expect(published >= 16)
  }
}
