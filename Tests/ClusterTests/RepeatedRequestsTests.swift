// Requests that a hub sends again, since they had no answer in time: they undo nothing that was done in between.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct RepeatedRequestsTests {
  private let desk = Actor(role: .ops, id: id("desk"))

  @Test("A change over HTTP that is sent again, since its trip's hub's disk was slow, does not undo a later one")
  func change() {
    let world = ClusterWorld(hasJournals: true)
    world.begin("t1", for: nil, at: "a", slot: 20)
    world.run(seconds: 0.5)
    let (first, later) = (Coordinate(latitude: 48.1, longitude: 11.5), Coordinate(latitude: 48.2, longitude: 11.6))
    world["a"].journal?.isStalled = true
    world["c"].inputs.append(.trips(world.session(30), .change(TripChange(tripID: id("t1"), pickup: first), desk)))
    world.run(seconds: 0.5)
    world["a"].inputs.append(.trips(world.session(31), .change(TripChange(tripID: id("t1"), pickup: later), desk)))
    world.run(seconds: 1)
    world["a"].journal?.isStalled = false
    world.run(seconds: 1)
    #expect(world["c"].trip(of: 30)?.pickup == first && world["a"].trip(of: 31)?.pickup == later)
    let query = TripQuery(id: id("t1"), actor: desk, grant: .granted)
    world["a"].inputs.append(.trips(world.session(34), .show(query)))
    world.run(seconds: 0.1)
    #expect(world["a"].trip(of: 34)?.pickup == later)
    // Asked for anew it is another change.
    for (slot, place) in [(UInt32(32), later), (33, first)] {
      world["c"].inputs.append(.trips(world.session(slot), .change(TripChange(tripID: id("t1"), pickup: place), desk)))
      world.run(seconds: 0.5)
      #expect(world["c"].trip(of: slot)?.pickup == place)
    }
  }

  @Test("Offers that are asked for without a key are asked for once: those that were stopped since do not begin again")
  func offers() {
    let world = offered()
    let driver = world.follow(.driver(id("d1")), at: "a", slot: 200)
    world.run(seconds: 0.5)
    world.engine.cuts = ["a>b"]
    ask(world, .begin(OfferCriteria(), key: nil), at: "b", slot: 30)
    world.run(seconds: 0.6)
    ask(world, .stop, at: "a", slot: 31)
    world.run(seconds: 1)
    world.engine.cuts = []
    world.run(seconds: 3)
    #expect(driver.offers.count == 2 && driver.faults == [], "made and stopped")
    #expect(world.answers(at: "b", slot: 30).errors == [.rateLimited] && world["b"].offers.isEmpty)
    // By a key they are known again.
    world.engine.cuts = ["a>b"]
    ask(world, .begin(OfferCriteria(), key: message(7)), at: "b", slot: 32)
    world.run(seconds: 0.6)
    ask(world, .stop, at: "a", slot: 33)
    world.run(seconds: 0.3)
    world.engine.cuts = []
    world.run(seconds: 3)
    #expect(driver.offers.count == 4 && world["b"].offers.last?.report.end == .stopped)
  }

  @Test("Offers are stopped once: those that were asked for since go on")
  func stop() {
    let world = offered()
    ask(world, .begin(OfferCriteria(), key: nil), at: "a", slot: 29)
    world.run(seconds: 0.5)
    world.engine.cuts = ["a>b"]
    ask(world, .stop, at: "b", slot: 30)
    world.run(seconds: 0.5)
    ask(world, .begin(OfferCriteria(), key: nil), at: "a", slot: 31)
    world.run(seconds: 1)
    world.engine.cuts = []
    world.run(seconds: 3)
    #expect(world.answers(at: "b", slot: 30).errors == [.rateLimited])
    ask(world, .show, at: "a", slot: 32)
    world.run(seconds: 0.5)
    #expect(world["a"].offers.map(\.isNew) == [true, true, false])
    #expect(world["a"].offers.last?.session.slot == 32 && world["a"].offers.last?.report.end == nil)
  }

  /// A trip at hub `a`, and a driver there whom it may be offered to.
  private func offered() -> ClusterWorld {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    world.fix(0, trip: nil, at: "a", slot: 1)
    let report = TripStatusReport(
      tripID: id("t1"), status: .requested, timestamp: world.now.timestamp,
      pickup: Coordinate(latitude: 48.1, longitude: 11.5))
    world["a"].inputs.append(.trips(world.session(20), .begin(report, by: desk)))
    world.run(seconds: 0.5)
    return world
  }

  private func ask(_ world: ClusterWorld, _ question: OffersQuestion, at name: String, slot: UInt32) {
    world[name].inputs.append(.trips(world.session(slot), .offers(id("t1"), question, desk)))
  }
}
