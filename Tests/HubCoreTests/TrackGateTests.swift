import HubGeo
import HubMessages
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

  @Test("A lone outlier is absorbed: the position is where the motion leads", arguments: [80, 300, 4500])
  func outlier(meters: Double) throws {
    var tracker = settled()
    let off = Globe.place(from: east(60), bearing: 10, meters: meters).place
    let absorbed = try #require(tracker.update(.at(60, off, speed: 15, heading: 90)).position)
    #expect(absorbed.absorbed == (meters > 90 ? .tooFast : .gated))
    #expect(Globe.distance(absorbed.coordinate, east(60)) < 1)
    #expect(absorbed.confidence == .medium && absorbed.timestamp == .test(60))
    let position = try #require(tracker.update(.at(61, east(61), speed: 15, heading: 90)).position)
    #expect(Globe.distance(position.coordinate, east(61)) < 1)
    #expect(position.absorbed == nil && position.confidence == .high)
  }

  @Test("A leap to another town is refused, and leaves the track as it was", arguments: [6000, 1e6])
  func teleport(meters: Double) throws {
    var tracker = settled()
    let off = Globe.place(from: east(60), bearing: 10, meters: meters).place
    #expect(tracker.update(.at(60, off, speed: 15, heading: 90)) == .refused(.tooFast))
    let position = try #require(tracker.update(.at(61, east(61), speed: 15, heading: 90)).position)
    #expect(Globe.distance(position.coordinate, east(61)) < 1)
  }

  @Test("Outliers in a row that do not agree are all absorbed; the longer it takes, the lower the confidence")
  func scattered() throws {
    var tracker = settled()
    var accuracy = 0.0
    for step in 0..<15 {
      let off = Globe.place(from: east(60 + step), bearing: Double(step) * 95, meters: 4000).place
      let position = try #require(tracker.update(.at(60 + Double(step), off, speed: 15, heading: 90)).position)
      #expect(position.absorbed == .tooFast && Globe.distance(position.coordinate, east(60 + step)) < 20)
      #expect(position.accuracy >= accuracy)
      #expect(position.confidence == (step < 10 ? .medium : .low), "\(step)")
      accuracy = position.accuracy
    }
    let position = try #require(tracker.update(.at(75, east(75), speed: 15, heading: 90)).position)
    #expect(Globe.distance(position.coordinate, east(75)) < 2)
  }

  @Test("A fix far off right after a gap is not believed for the length of the gap")
  func afterGap() throws {
    var tracker = settled()
    let off = Globe.place(from: east(120), bearing: 0, meters: 3000).place
    let absorbed = try #require(tracker.update(.at(120, off, speed: 15, heading: 90)).position)
    #expect(absorbed.absorbed == .gated && absorbed.confidence == .low && absorbed.accuracy > 300)
    #expect(Globe.distance(absorbed.coordinate, east(120)) < 20)
    let position = try #require(tracker.update(.at(121, east(121), speed: 15, heading: 90)).position)
    #expect(position.absorbed == nil && Globe.distance(position.coordinate, east(121)) < 5)
  }

  @Test("Without a motion that is known well enough, an outlier is refused")
  func unknownMotion() throws {
    var tracker = Tracker()
    for step in 0..<3 {
      let position = try #require(tracker.update(.at(Double(step) * 45, munich)).position)
      #expect(position.absorbed == nil)
    }
    let off = Globe.place(from: munich, bearing: 10, meters: 4990).place
    #expect(tracker.update(.at(135, off)) == .refused(.tooFast))
  }

  @Test("Where the filter was wrong, fixes that say so for two seconds are believed")
  func reacquired() throws {
    var tracker = settled()
    func shifted(_ second: Int) -> Coordinate { Globe.place(from: east(second), bearing: 0, meters: 70).place }
    for second in 60..<62 {
      let position = tracker.update(.at(Double(second), shifted(second), speed: 15, heading: 90)).position
      #expect(try #require(position).absorbed == .gated)
    }
    let position = try #require(tracker.update(.at(62, shifted(62), speed: 15, heading: 90)).position)
    #expect(position.absorbed == nil && Globe.distance(position.coordinate, shifted(62)) < 5)
  }

  @Test("A parked driver is moved by fixes that agree only after eight seconds: reflections agree for a while")
  func parked() throws {
    var tracker = Tracker()
    for second in 0..<60 { _ = tracker.update(.at(Double(second), munich, speed: 0)) }
    let off = Globe.place(from: munich, bearing: 0, meters: 60).place
    for second in 60..<68 {
      let position = try #require(tracker.update(.at(Double(second), off, speed: 0)).position)
      #expect(position.absorbed == .gated && Globe.distance(position.coordinate, munich) < 1)
    }
    let position = try #require(tracker.update(.at(68, off, speed: 0)).position)
    #expect(position.absorbed == nil && Globe.distance(position.coordinate, off) < 5)
  }

  @Test("A phone that says a speed of 0 whatever it does is soon followed by its places", arguments: [5.0, 15, 30])
  func alwaysZero(speed: Double) throws {
    var tracker = Tracker()
    for second in 0..<120 {
      let truth = Globe.place(from: munich, bearing: 90, meters: speed * Double(second)).place
      let position = try #require(tracker.update(.at(Double(second), truth, speed: 0, heading: 0)).position)
      if second > 30 {
        #expect(position.absorbed == nil && Globe.distance(position.coordinate, truth) < 5, "\(second)")
        #expect(abs((position.speed ?? 0) - speed) < 1, "\(second)")
      }
    }
    // Where it says that it moves, it is believed again, and then that it stands.
    var (meters, now) = (speed * 119, speed)
    for second in 120..<150 {
      meters += now
      let truth = Globe.place(from: munich, bearing: 90, meters: meters).place
      if second > 125 { now = max(0, now - 3) }
      _ = tracker.update(.at(Double(second), truth, speed: now, heading: 90))
    }
    #expect(try #require(tracker.filter).isStanding)
  }

  @Test("A driver whose fixes are absorbed for a minute is where the next one says")
  func longestHold() throws {
    var tracker = Tracker()
    for second in 0..<60 { _ = tracker.update(.at(Double(second), munich, speed: 0)) }
    for step in 0..<30 {
      let off = Globe.place(from: munich, bearing: Double(step) * 95, meters: 60).place
      let position = try #require(tracker.update(.at(60 + Double(step) * 2, off, speed: 0)).position)
      #expect(position.absorbed != nil, "\(step)")
    }
    let off = Globe.place(from: munich, bearing: 200, meters: 60).place
    let position = try #require(tracker.update(.at(120, off, speed: 0)).position)
    #expect(position.absorbed == nil && Globe.distance(position.coordinate, off) < 10)
  }

  @Test("A place out of a vehicle's reach is believed when four fixes agree", arguments: [3000.0, 400_000])
  func farAway(meters: Double) throws {
    var tracker = settled()
    func far(_ second: Int) -> Coordinate { Globe.place(from: east(second), bearing: 45, meters: meters).place }
    for second in 60..<63 {
      let outcome = tracker.update(.at(Double(second), far(second), speed: 15, heading: 90))
      if meters < 5000 {
        #expect(outcome.position?.absorbed == .tooFast)
      } else {
        #expect(outcome == .refused(.tooFast))
      }
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
      if position.absorbed == nil { #expect(Globe.distance(position.coordinate, east(second)) < 10) }
    }
    #expect(published >= 16)
  }
}
