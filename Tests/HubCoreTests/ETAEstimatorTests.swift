// When an ETA is news, and what legs teach of an area.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct ETAEstimatorTests {
  private let rules = TripRules()
  private let second: Int64 = 1_000_000_000

  private func moment(_ seconds: Double) -> Moment {
    Moment(uptime: Int64(seconds * 1e9), timestamp: .test(seconds))
  }

  /// Published at 0: 100 s or more to go.
  private func published(arrival: Double) -> PublishedETA {
    PublishedETA(target: .pickup, basis: .direct, meters: 1000, arrival: .test(arrival), publishedAt: 0)
  }

  private func isOutdated(_ published: PublishedETA, by arrival: Double, at seconds: Double) -> Bool {
    published.isOutdated(by: .test(arrival), target: .pickup, basis: .direct, at: moment(seconds), rules: rules)
  }

  @Test(
    "a reader who is off by more than 4 % of what is left is put right, either way, and one who is off by less is not")
  func part() {
    let published = published(arrival: 1000)
    for (arrival, isNews) in [(1041.0, false), (1042, true), (962, false), (961, true), (1000, false)] {
      #expect(isOutdated(published, by: arrival, at: 5) == isNews, "\(arrival)")
    }
    for seconds in stride(from: 5.0, to: 900, by: 5) { #expect(!isOutdated(published, by: 1004, at: seconds)) }
  }

  @Test("4 s are never too much, and 60 s always")
  func bounds4And60() {
    let near = published(arrival: 100)
    #expect(!isOutdated(near, by: 104, at: 20) && isOutdated(near, by: 104.001, at: 20))
    #expect(!isOutdated(near, by: 96, at: 20) && isOutdated(near, by: 95.999, at: 20))
    #expect(isOutdated(near, by: 131, at: 130), "it should be there by now")
    let far = published(arrival: 10_000)
    #expect(!isOutdated(far, by: 10_060, at: 5) && isOutdated(far, by: 10_060.001, at: 5))
  }

  @Test("nothing is news within 5 s; then another target or basis is, whatever the time")
  func interval() {
    let published = published(arrival: 100)
    #expect(!isOutdated(published, by: 500, at: 4.999) && isOutdated(published, by: 500, at: 5))
    let now = moment(5)
    #expect(published.isOutdated(by: .test(100), target: .dropoff, basis: .direct, at: now, rules: rules))
    #expect(published.isOutdated(by: .test(100), target: .pickup, basis: .route, at: now, rules: rules))
    #expect(!published.isOutdated(by: .test(100), target: .dropoff, basis: .route, at: moment(4.9), rules: rules))
  }

  @Test("an area's factor begins at the prior and comes to what its legs say; others know nothing of it")
  func detours() {
    var table = CircuityTable()
    let munich = at(48.1, 11.5)
    #expect(table.factor(at: munich) == CircuityTable.priorFactor)
    table.learn(from: munich, crowMeters: 10_000, drivenMeters: 17_000)
    #expect(abs(table.factor(at: munich) - 1.5) < 1e-6, "10 km of 1.3 that were assumed and 10 km of 1.7")
    for _ in 0..<500 { table.learn(from: munich, crowMeters: 4000, drivenMeters: 6800) }
    #expect(abs(table.factor(at: munich) - 1.7) < 0.01)
    #expect(table.factor(at: at(40.7, -74)) == CircuityTable.priorFactor)
    // What is old fades: half is forgotten each 500 km.
    for _ in 0..<1000 { table.learn(from: munich, crowMeters: 4000, drivenMeters: 4800) }
    #expect(abs(table.factor(at: munich) - 1.2) < 0.01)
  }

  @Test("short legs, and legs that were no way to a place, teach nothing; a gap's straight line counts as straight")
  func unfitLegs() {
    var table = CircuityTable()
    let here = at(48.1, 11.5)
    table.learn(from: here, crowMeters: 499, drivenMeters: 900)
    table.learn(from: here, crowMeters: 1000, drivenMeters: 3001)
    // The driver said that it was there when it was not.
    table.learn(from: here, crowMeters: 10_000, drivenMeters: 8999)
    #expect(table.factor(at: here) == CircuityTable.priorFactor)
    // Missing fixes, over which the straight line counts.
    table.learn(from: here, crowMeters: 10_000, drivenMeters: 9000)
    #expect(abs(table.factor(at: here) - 1.15) < 1e-6)
    // The longest leg there is.
    table.learn(from: here, crowMeters: 2e7, drivenMeters: 5e7)
    #expect(table.factor(at: here) < 2.5)
  }

  @Test("the table has a fixed size, and its factors stay between 1 and 3, whatever its input")
  func bounds() {
    var table = CircuityTable()
    var random = SplitMix64(seed: 8)
    var places: [Coordinate] = []
    for _ in 0..<50_000 {
      let place = random.coordinate()
      places.append(place)
      let crow = Double.random(in: 0...3e5, using: &random)
      table.learn(from: place, crowMeters: crow, drivenMeters: crow * .random(in: 0...5, using: &random))
    }
    for place in places { #expect((1...3).contains(table.factor(at: place))) }
  }
}
