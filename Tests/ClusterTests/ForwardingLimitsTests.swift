// What those who may ask nothing of a trip can take from those who may.
import HubBackplaneSupport
import HubCore
import HubGeo
import HubMessages
import Testing

@testable import HubCluster

@Suite struct ForwardingLimitsTests {
  @Test("Who asks ever more of one trip takes no room from those who ask of others")
  func oneTrip() {
    var limits = ClusterLimits()
    limits.pendingPerReceiver = 2
    let world = ClusterWorld(limits: limits)
    for trip in ["t1", "t2"] { world.ask(trip, .requested, at: "a", slot: 9) }
    world.run(seconds: 1)
    for slot in 20..<25 { world.ask("t1", .cancelled, at: "b", slot: UInt32(slot)) }
    world.ask("t2", .cancelled, at: "b", slot: 30)
    world.run(seconds: 1)
    let errors = (20..<25).map { world.answers(at: "b", slot: UInt32($0)).errors }
    #expect(errors[2...].allSatisfy { $0 == [.rateLimited] } && !errors[..<2].joined().contains(.rateLimited))
    #expect(world.answers(at: "b", slot: 30).acks == 1)
  }

  @Test("A rider or driver has part of the room of a trip's requests, ops all of it; what it gets is free again")
  func oneSender() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9)
    world.run(seconds: 1)
    world.engine.cuts = ["a>b"]
    for slot in 20..<31 { world.move("t1", .accepted, by: "d1", at: "b", slot: UInt32(slot)) }
    world.move("t1", .accepted, by: "d2", at: "b", slot: 40)
    for slot in 50..<61 { world.ask("t1", .cancelled, at: "b", slot: UInt32(slot)) }
    world.run(seconds: 0.2)
    let refused = world["b"].replies.map(\.0.slot)
    #expect(refused == [28, 29, 30])
    world.engine.cuts = []
    world.run(seconds: 3)
    world.move("t1", .accepted, by: "d1", at: "b", slot: 70)
    world.run(seconds: 1)
    let (acks, errors) = world.answers(at: "b", slot: 70)
    #expect(acks + errors.count == 1 && !errors.contains(.rateLimited))
  }

  @Test("A request that was refused since its hub did not answer is not carried out when that hub goes on")
  func stalled() {
    let world = ClusterWorld()
    world.connect("d1", at: "b", slot: 1)
    for trip in ["t1", "t2"] { world.ask(trip, .requested, at: "b", slot: 9) }
    world.run(seconds: 1)
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 50)
    world.run(seconds: 1)
    world.stalled = ["b"]
    world.ask("t1", .cancelled, at: "a", slot: 20)
    world.ask("t3", .requested, for: "d1", at: "a", slot: 21)
    world.run(seconds: 60)
    #expect((20...21).map { world.answers(at: "a", slot: $0).errors } == [[.rateLimited], [.rateLimited]])
    world.stalled = []
    world.run(seconds: 5)
    #expect(rider.moves.isEmpty && world.trips == 2 && rider.faults == [])
    // One that comes in time is.
    world.stalled = ["b"]
    world.ask("t2", .cancelled, at: "a", slot: 22)
    world.run(seconds: 2.3)
    world.stalled = []
    world.run(seconds: 0.5)
    #expect(world.answers(at: "a", slot: 22).acks == 1)
    world.ask("t1", .cancelled, at: "a", slot: 23)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "a", slot: 23).acks == 1 && rider.moves.map(\.status) == [.cancelled])
  }

  @Test("Fixes that were posted while their driver's hub did not answer count when it goes on, as of their time")
  func stalledPosts() {
    let world = ClusterWorld()
    world.connect("d1", at: "b", slot: 1)
    world.run(seconds: 1)
    world.stalled = ["b"]
    let fix = Fix(
      coordinate: Coordinate(latitude: 48.1, longitude: 11.5)!, timestamp: world.now.timestamp, accuracy: 5)
    world["a"].inputs.append(
      .batch(
        BatchInput(
          session: world.session(20), driverID: id("d1"), messageID: message(600), sent: world.now.timestamp,
          received: world.now, batch: LocationBatch(fixes: [.success(fix)]), tripIsGranted: true)))
    world.run(seconds: 60)
    world.stalled = []
    world.run(seconds: 5)
    #expect(world["b"].hub.hub.counters.fixesAccepted == 1)
  }

  @Test("A trip that a hub has no room for begins at another hub, where it is asked for again, once")
  func noRoom() {
    var limits = HubLimits()
    limits.trips = 1
    let world = ClusterWorld(hubLimits: limits)
    world.connect("d1", at: "a", slot: 1)
    world.ask("t0", .requested, at: "a", slot: 9)
    world.run(seconds: 0.5)
    world.ask("t1", .requested, at: "a", slot: 10)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "a", slot: 10).errors == [.storageFull] && world.engine.owner(of: "i:t1") == nil)
    for name in ["b", "c", "a"] {
      world.ask("t1", .requested, at: name, slot: 10)
      world.run(seconds: 0.5)
      #expect(world.answers(at: name, slot: 10).acks == 1)
    }
    #expect(world.trips == 2 && world.engine.owner(of: "t:t1") == "b" && world.engine.owner(of: "i:t1") == "b")
    // Over HTTP, and at the driver's hub for another one.
    let report = TripStatusReport(
      tripID: id("t2"), status: .requested, timestamp: world.now.timestamp, driverID: id("d1"))
    world["c"].inputs.append(.trips(world.session(20), .begin(report, by: Actor(role: .ops, id: id("desk")))))
    world.run(seconds: 0.5)
    #expect(world.answers(at: "c", slot: 20).errors == [.storageFull] && world.engine.owner(of: "i:t2") == nil)
    // What is refused of a trip that is here changes nothing of where it is.
    world.ask("t0", .requested, for: "d1", at: "b", slot: 30)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 30).errors.count == 1 && world.engine.owner(of: "i:t0") == "a")
  }

  @Test("A trip that has begun without the ledger is remembered for its time, and not for ever however many follow")
  func recentBeginnings() {
    var limits = ClusterLimits()
    limits.pending = 8
    var recent = RecentBeginnings()
    let time = limits.beginningTime
    for step in 0..<100 as Range<Int64> {
      let now = 1_000_000_000 + step * time / 4
      recent.insert(.trip(id("t\(step)")), at: now, limits)
      for age in 0...step {
        let isKnown = recent.contains(.trip(id("t\(step - age)")), at: now, limits)
        #expect(age > 4 || isKnown, "within its time")
        #expect(age <= 12 || !isKnown, "behind three times its time")
      }
    }
  }

  @Test("A request of somebody who may not begin the trip is refused, and takes nothing of the ledger")
  func noRight() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9, by: Actor(role: .rider, id: id("r1")), isGranted: false)
    world.ask("t2", .requested, at: "a", slot: 9, by: Actor(role: .rider, id: id("r1")))
    world.run(seconds: 1)
    #expect(world.answers(at: "a", slot: 9).errors == [.forbidden] && world.answers(at: "a", slot: 9).acks == 1)
    #expect(world.engine.owner(of: "i:t1") == nil && world.engine.owner(of: "i:t2") == "a")
  }
}
