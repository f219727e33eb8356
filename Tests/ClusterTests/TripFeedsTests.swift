// The channel `trips` over several hubs: whoever follows it, at whichever hub, sees the moves of all trips, each once
// and each trip's in order; and where one may be missing, that is reported.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

/// Drivers with trips at all hubs, and what of them happened when.
final class TripsWorld {
  let world: ClusterWorld
  var watchers: [Follower] = []
  /// Of each watcher, the time of its last notice of a gap.
  private var begun: [(beginnings: Int, at: Int64)] = []
  private var moves: [(trip: Identifier, status: TripStatus, at: Int64)] = []
  /// Active trips: where, with which driver, and how far they are.
  private var trips: [(trip: String, driver: String, hub: String, slot: UInt32, next: Int)] = []
  private var lastTrip = 0
  private let course: [TripStatus] = [
    .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed,
  ]

  init(_ world: ClusterWorld) { self.world = world }

  /// The hub that counts; nil while hubs do not agree.
  var counter: String? {
    let counters = world.members.filter { $0.node.node.context.tripCounter == .here }.map(\.name)
    return counters.count == 1 ? counters[0] : nil
  }

  func watch(at name: String) -> Follower {
    let watcher = world.follow(.trips, at: name, slot: world.nextSlot())
    watchers.append(watcher)
    begun.append((0, 0))
    return watcher
  }

  func leave(_ watcher: Follower) {
    for member in world.members where member.followers.contains(where: { $0 === watcher }) { member.leave(watcher) }
  }

  /// A watcher continues at another hub, or at the same, with what it has.
  func reconnect(_ index: Int, at name: String) {
    watchers[index] = world.reconnect(watchers[index], at: name)
  }

  func begin(at name: String) {
    lastTrip += 1
    let (trip, driver, slot) = ("t\(lastTrip)", "d\(lastTrip)", world.nextSlot())
    world.connect(driver, at: name, slot: slot)
    run(milliseconds: 10)
    // As where no other hub has the trip, which the ledger would first be asked.
    let report = TripStatusReport(tripID: id(trip), status: .requested, timestamp: world.now.timestamp)
    let input = TripStatusInput(
      session: world.session(slot), actor: Actor(role: .driver, id: id(driver)), messageID: message(1), report: report,
      tripIsGranted: true)
    world[name].inputs.append(.cluster(.tripRequestHere(.move(input))))
    note(trip, .requested)
    run(milliseconds: 10)
    world.move(trip, .accepted, by: driver, at: name, slot: slot)
    note(trip, .accepted)
    trips.append((trip, driver, name, slot, 0))
  }

  func move(_ index: Int) {
    let trip = trips[index]
    world.move(trip.trip, course[trip.next], by: trip.driver, at: trip.hub, slot: trip.slot)
    note(trip.trip, course[trip.next])
    trips[index].next += 1
    if trips[index].next == course.count { trips.remove(at: index) }
  }

  func moveAny(_ random: inout SplitMix64) {
    if !trips.isEmpty { move(Int(random.next() % UInt64(trips.count))) }
  }

  /// All trips of a hub are gone.
  func lose(_ name: String) { trips.removeAll { $0.hub == name } }

  private func note(_ trip: String, _ status: TripStatus) { moves.append((id(trip), status, world.now.uptime)) }

  func run(milliseconds: Int) {
    for _ in 0..<milliseconds / 10 {
      world.step()
      for (index, watcher) in watchers.enumerated() where watcher.beginnings != begun[index].beginnings {
        begun[index] = (watcher.beginnings, world.now.uptime)
      }
      // Who is refused for a while comes again.
      for watcher in watchers where !watcher.refusals.isEmpty {
        watcher.refusals.removeAll()
        watcher.wantsToAsk = true
      }
    }
  }

  /// What is wrong, once it is quiet: of everything that happened after a watcher's last notice that it may have missed
  /// something, it has each move once, in the order of each trip; and all watchers have the same numbers.
  func faults() -> [String] {
    var faults: [String] = []
    for (index, watcher) in watchers.enumerated() {
      faults += watcher.faults
      if watcher.point == nil || watcher.point != watchers[0].point { faults.append("watcher \(index) is elsewhere") }
      var rest = watcher.moves.map { ($0.tripID, $0.status) }
      for move in moves where move.at > begun[index].at {
        guard let found = rest.firstIndex(where: { $0.0 == move.trip }), rest[found].1 == move.status else {
          // Those of before may have come behind.
          guard let later = rest.firstIndex(where: { $0.0 == move.trip && $0.1 == move.status }),
            rest[..<later].allSatisfy({ $0.0 != move.trip || $0.1 < move.status })
          else {
            faults.append("watcher \(index) lacks \(move.trip) \(move.status)")
            continue
          }
          for earlier in stride(from: later, through: 0, by: -1) where rest[earlier].0 == move.trip {
            rest.remove(at: earlier)
          }
          continue
        }
        rest.remove(at: found)
      }
      let known = Set(moves.filter { $0.at <= begun[index].at }.map { "\($0.trip) \($0.status)" })
      for move in rest where !known.contains("\(move.0) \(move.1)") {
        faults.append("watcher \(index) has \(move.0) \(move.1) twice, or it never was")
      }
      var last: [Identifier: TripStatus] = [:]
      for move in watcher.moves {
        if let before = last[move.tripID], move.status <= before { faults.append("\(move.tripID) goes back") }
        last[move.tripID] = move.status
      }
    }
    return faults
  }
}

@Suite struct TripFeedsTests {
  @Test("At every hub the moves of all hubs' trips come under the same numbers, and who comes back has missed nothing")
  func allHubs() {
    let trips = TripsWorld(ClusterWorld())
    let first = trips.watch(at: "b")
    trips.run(milliseconds: 500)
    for name in ["a", "b", "c"] { trips.begin(at: name) }
    for name in ["a", "c"] { _ = trips.watch(at: name) }
    trips.run(milliseconds: 500)
    let beginnings = trips.watchers.map(\.beginnings)
    for _ in 0..<3 {
      for index in 0..<3 { trips.move(index) }
      trips.run(milliseconds: 100)
    }
    #expect(trips.faults() == [] && first.moves.count == 15 && trips.counter != nil)
    // Away for a while, and back at another hub.
    let since = first.point?.since
    trips.leave(first)
    for index in 0..<3 { trips.move(index) }
    trips.run(milliseconds: 100)
    trips.reconnect(0, at: "c")
    trips.run(milliseconds: 200)
    #expect(trips.watchers[0].answers.last?.recovered == true)
    #expect(trips.watchers[0].point?.since == since.map { $0 + 3 })
    #expect(trips.faults() == [] && trips.watchers.map(\.beginnings) == beginnings)
    #expect(trips.watchers.allSatisfy { $0.gaps == 0 && $0.doubles == 0 })
  }

  @Test("Where nobody has asked for it, no trip of another hub is sent; the last who leaves ends what it cost")
  func interest() {
    let trips = TripsWorld(ClusterWorld())
    let world = trips.world
    for name in ["a", "b", "c"] { trips.begin(at: name) }
    trips.run(milliseconds: 500)
    #expect(world.members.allSatisfy { $0.node.node.counters.relayed == 0 && $0.node.node.counters.followed == 0 })
    let counter = trips.counter
    guard let other = world.members.map(\.name).first(where: { $0 != counter }) else { return }
    let watcher = trips.watch(at: other)
    trips.run(milliseconds: 500)
    #expect(world[other].node.node.counters.follows == 1)
    world[other].leave(watcher)
    trips.run(milliseconds: 500)
    #expect(world[other].node.node.counters.follows == 0)
  }

  @Test(
    "The hub that counts is killed, starts anew, or one joins that is to count: the answer says what may be missing")
  func counterChanges() throws {
    let trips = TripsWorld(ClusterWorld())
    let world = trips.world
    let first = try #require(trips.counter)
    let others = ["a", "b", "c"].filter { $0 != first }
    for name in others { _ = trips.watch(at: name) }
    for name in others { trips.begin(at: name) }
    trips.run(milliseconds: 500)
    func moveAll() {
      for index in 0..<2 { trips.move(index) }
      trips.run(milliseconds: 200)
    }
    moveAll()
    #expect(trips.faults() == [])
    let beginnings = trips.watchers.map(\.beginnings)
    // Its process starts anew: it counts again, under another epoch.
    world.restart(first)
    trips.run(milliseconds: 4000)
    #expect(trips.counter == first && zip(trips.watchers, beginnings).allSatisfy { $0.beginnings > $1 })
    moveAll()
    #expect(trips.faults() == [])
    // It is gone: another one counts.
    world.kill(first)
    trips.run(milliseconds: 12_000)
    let second = try #require(trips.counter)
    #expect(second != first)
    moveAll()
    #expect(trips.faults() == [])
    // It is back: it counts again.
    let before = trips.watchers.map(\.beginnings)
    world.join(first)
    trips.run(milliseconds: 5000)
    #expect(trips.counter == first && zip(trips.watchers, before).allSatisfy { $0.beginnings > $1 })
    trips.begin(at: first)
    moveAll()
    #expect(trips.faults() == [])
  }

  @Test("A member that is never heard does not count, however much its name weighs")
  func neverHeard() throws {
    let trips = TripsWorld(ClusterWorld())
    let counter = try #require(trips.counter)
    for name in ["a", "b", "c"] {
      _ = trips.watch(at: name)
      trips.begin(at: name)
    }
    trips.run(milliseconds: 500)
    let name = try #require((0..<1000).map { "n\($0)" }.max { Peer.weight(of: $0) < Peer.weight(of: $1) })
    let member = MemberRecord(name: name, incarnation: 9, address: "127.0.0.1:9", version: "test")
    let ledger = MemoryLedger(trips.world.engine, member: name)
    #expect(ledger.ask(.renew(member, leaseMilliseconds: 60_000), ticket: 1))
    trips.run(milliseconds: 6000)
    #expect(trips.world.members.allSatisfy { $0.node.node.context.member(name) != nil } && trips.counter == counter)
    for index in 0..<3 { trips.move(index) }
    trips.run(milliseconds: 500)
    #expect(trips.faults() == [] && trips.watchers.allSatisfy { $0.moves.count >= 3 })
  }

  @Test("A link is cut for as many events as are kept: nothing is missing; for more: the rider is notified")
  func longCut() throws {
    var hubLimits = HubLimits()
    hubLimits.eventsPerChannel = 8
    let trips = TripsWorld(ClusterWorld(hubLimits: hubLimits))
    let first = try #require(trips.counter)
    let others = ["a", "b", "c"].filter { $0 != first }
    for name in ["a", "b", "c"] { _ = trips.watch(at: name) }
    trips.run(milliseconds: 500)
    for cut in ["\(others[0])>\(first)", "\(first)>\(others[1])"] {
      for (begins, isSaid) in [(3, false), (8, true)] {
        let beginnings = trips.watchers.map(\.beginnings)
        trips.world.engine.cuts = [cut]
        for _ in 0..<begins { trips.begin(at: others[0]) }
        trips.run(milliseconds: 1500)
        trips.world.engine.cuts = []
        trips.run(milliseconds: 4000)
        let wasSaid = zip(trips.watchers, beginnings).contains { $0.beginnings > $1 }
        #expect(wasSaid == isSaid && trips.faults() == [], "\(cut) \(begins)")
      }
    }
  }

  @Test("Frames lost, doubled, late, links cut, hubs that stall, die, start anew and join: what is shown is so")
  func histories() {
    for seed in historySeeds(12) {
      let faults = history(seed)
      #expect(faults == [], replay(seed, "TripFeedsTests"))
    }
  }

  private func history(_ seed: UInt64) -> [String] {
    var random = SplitMix64(seed: seed)
    let world = ClusterWorld(seed: seed)
    let trips = TripsWorld(world)
    for name in ["a", "b", "c", "b"] { _ = trips.watch(at: name) }
    trips.run(milliseconds: 1000)
    (world.engine.faults.lost, world.engine.faults.doubled, world.engine.faults.delayed) = (0.05, 0.02, 0.2)
    world.engine.faults.unknown = 0.1
    let names = ["a", "b", "c"]
    func any() -> String { names[Int(random.next() % 3)] }
    for step in 0..<60 {
      if random.next() % 4 == 0 { world.engine.cuts = random.next() % 2 == 0 ? [] : ["\(any())>\(any())"] }
      if random.next() % 12 == 0 { world.stalled = random.next() % 2 == 0 ? [] : [any()] }
      if random.next() % 12 == 0 { world.engine.isolated = random.next() % 2 == 0 ? [] : [any()] }
      if step % 20 == 19 {
        let name = any()
        trips.lose(name)
        world.restart(name)
        // Whoever was there comes back, there or elsewhere.
        for index in trips.watchers.indices
        where !world.members.contains(where: { member in
          member.followers.contains { $0 === trips.watchers[index] }
        }) {
          trips.reconnect(index, at: index % 2 == 0 ? name : any())
        }
      }
      if random.next() % 10 == 0 { trips.reconnect(Int(random.next() % 4), at: any()) }
      let hub = any()
      if random.next() % 3 == 0, !world.stalled.contains(hub) { trips.begin(at: hub) }
      trips.moveAny(&random)
      trips.run(milliseconds: 300)
    }
    world.engine.faults = .init()
    (world.engine.cuts, world.engine.isolated, world.stalled) = ([], [], [])
    trips.run(milliseconds: 12_000)
    var faults = trips.faults()
    let beginnings = trips.watchers.map(\.beginnings)
    for _ in 0..<5 { trips.moveAny(&random) }
    trips.run(milliseconds: 500)
    faults += trips.faults()
    if trips.watchers.map(\.beginnings) != beginnings { faults.append("still something is missing") }
    return faults
  }
}
