// What hubs say of themselves and of all their drivers: figures of all hubs as one, and the whole fleet once a second.
import Foundation
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubCluster

@Suite struct FeedsTests {
  private func object(_ figures: HubFigures?) throws -> [String: Any] {
    let members = try #require(figures?.members)
    return try #require(try JSONSerialization.jsonObject(with: Data("{\(members)}".utf8)) as? [String: Any])
  }

  private func follow(_ channel: Channel, _ world: ClusterWorld, at name: String, slot: UInt32) -> Follower {
    world.follow(channel, at: name, slot: slot)
  }

  // MARK: Figures

  @Test("Counts are added, by reason and role; quantiles are those of all deliveries; of journals the latest counts")
  func sum() throws {
    let time = Timestamp(milliseconds: 1_763_680_000_000)
    var (one, other, times) = (LatencyHistogram(), LatencyHistogram(), LatencyHistogram())
    for value in 1..<4000 {
      let microseconds = UInt64(value * value % 70_000)
      if value % 3 == 0 { one.record(microseconds: microseconds) } else { other.record(microseconds: microseconds) }
      times.record(microseconds: microseconds)
    }
    func figures(_ members: String, _ times: LatencyHistogram) -> HubFigures {
      HubFigures(
        timestamp: time, members: members,
        times: times.buckets.map { .init(microseconds: $0.microseconds, count: $0.count) })
    }
    let sum = HubFigures.sum([
      figures(
        #""fixes":7,"p50":1,"sessions":{"driver":2,"ops":1},"cpuSeconds":1.25,"drops":{"a":1},"journalLag":0.5"#, one),
      figures(#""fixes":5,"p50":9,"sessions":{"driver":40},"cpuSeconds":2,"drops":{},"journalLag":2"#, other),
      HubFigures(timestamp: time, members: #""fixes":"#),
    ])
    let found = try object(sum)
    #expect(sum.timestamp == time && found["fixes"] as? Int == 12 && found["hubs"] as? Int == 3)
    #expect(found["sessions"] as? [String: Int] == ["driver": 42, "ops": 1])
    #expect(found["cpuSeconds"] as? Double == 3.25 && found["drops"] as? [String: Int] == ["a": 1])
    #expect(found["journalLag"] as? Double == 2)
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
      let expected = Double(times.value(atQuantile: share)) / 1e6
      #expect(abs(try #require(found[name] as? Double) - expected) <= expected * 0.01, "\(name)")
    }
    #expect(try object(HubFigures.sum([figures(#""p50":null"#, LatencyHistogram())]))["p50"] is NSNull)
    let huge = figures(#""cpuSeconds":1e308"#, LatencyHistogram())
    #expect(try object(HubFigures.sum([huge, huge]))["cpuSeconds"] is NSNull)
  }

  @Test("Who has stats at one hub sees the sum of all, each second and of ten minutes before; nobody else costs a byte")
  func stats() throws {
    let world = ClusterWorld()
    world.beats(20)
    func bytes(_ seconds: Int) -> UInt64 {
      let before = world["a"].node.node.counters.bytesOut
      world.beats(seconds)
      return world["a"].node.node.counters.bytesOut - before
    }
    let (quiet, silent) = (bytes(5), world["c"].node.node.counters.questions)
    #expect(silent == 0)
    let ops = follow(.stats, world, at: "b", slot: 5)
    world.run(seconds: 0.2)
    let late = follow(.stats, world, at: "b", slot: 6)
    world.run(seconds: 0.2)
    let history = try #require(ops.answers.first?.history)
    #expect(history.count == 25 && late.answers.first?.history == history)
    #expect(try history.allSatisfy { try object($0)["fixes"] as? Int == 6 && object($0)["hubs"] as? Int == 3 })
    #expect(bytes(5) > quiet)
    #expect(ops.figures.count == 5 && late.figures == ops.figures)
    #expect(try object(ops.figures.last)["fixes"] as? Int == 6)
    #expect(try object(ops.figures.last)["p50"] as? Double == 0.0002)
    #expect(ops.faults == [] && world["b"].node.node.counters.questions == 1)
    world["b"].leave(ops)
    world["b"].leave(late)
    world.beats(4)
    #expect(bytes(5) == quiet)
    let again = follow(.stats, world, at: "c", slot: 7)
    world.run(seconds: 0.5)
    #expect(again.answers.first?.history?.count == 39)
  }

  @Test("A hub that is not heard is left out of the sum, and nobody waits for its past more than 0.3 s")
  func silent() throws {
    let world = ClusterWorld()
    world.beats(3)
    world.engine.isolated = ["c"]
    let ops = follow(.stats, world, at: "b", slot: 5)
    world.run(seconds: 0.35)
    #expect(ops.answers.count == 1)
    #expect(try object(ops.answers.first?.history?.last)["hubs"] as? Int == 2)
    #expect(world["b"].node.node.counters.questionsIncomplete == 1)
    world.beats(4)
    #expect(try object(ops.figures.last)["hubs"] as? Int == 2)
    let alone = follow(.stats, world, at: "c", slot: 6)
    world.beats(4)
    #expect(try object(alone.figures.last)["hubs"] as? Int == 1)
    world.engine.isolated = []
    world.run(seconds: 3)
    world.beats(3)
    #expect(try object(ops.figures.last)["hubs"] as? Int == 3)
    #expect(try object(alone.figures.last)["hubs"] as? Int == 3)
  }

  @Test("Past the limits sessions are refused, and the oldest seconds go; a long past comes in parts")
  func limits() throws {
    var limits = ClusterLimits()
    (limits.pending, limits.figures, limits.figuresPerRecord) = (2, 7, 2)
    let world = ClusterWorld(limits: limits)
    world.beats(10)
    let ops = (0..<3).map { follow(.stats, world, at: "b", slot: UInt32(5 + $0)) }
    world.run(seconds: 0.5)
    #expect(ops.map(\.answers.count) == [1, 1, 0] && ops[2].refusals.map(\.code) == [.rateLimited])
    let history = try #require(ops[0].answers.first?.history)
    #expect(history.count == 7)
    #expect(try history.allSatisfy { try object($0)["hubs"] as? Int == 3 })
  }

  // MARK: The fleet

  @Test("Who watches the fleet at one hub sees the drivers of all, those of others once a second at most")
  func fleet() {
    let world = ClusterWorld()
    for (slot, name) in [(1, "a"), (2, "b"), (3, "c")] as [(UInt32, String)] {
      world.connect("d\(slot)", at: name, slot: slot)
    }
    func drive(_ seconds: Int) {
      for _ in 0..<seconds {
        for part in 0..<5 {
          for (slot, name) in [(1, "a"), (2, "b"), (3, "c")] as [(UInt32, String)] {
            world.fix(part, trip: nil, at: name, slot: slot)
          }
          world.run(seconds: 0.2)
        }
        world.beat()
      }
    }
    drive(3)
    #expect(world.members.allSatisfy { $0.node.node.counters.statesOut == 0 })
    let ops = follow(.fleet, world, at: "b", slot: 50)
    let other = follow(.fleet, world, at: "b", slot: 51)
    drive(3)
    let before = ops.positions.count
    drive(10)
    func seen(_ follower: Follower, _ driver: String) -> Int {
      follower.positions[before...].count { $0.driverID == id(driver) }
    }
    #expect((9...11).contains(seen(ops, "d1")) && (9...11).contains(seen(ops, "d3")))
    #expect(seen(ops, "d2") == 50, "its own as ever")
    #expect(ops.faults == [] && ops.gaps == 0 && other.positions == ops.positions)
    #expect(world["c"].node.node.counters.relayed == 0)
    world["b"].leave(ops)
    world["b"].leave(other)
    drive(2)
    let sent = world.members.map { $0.node.node.counters.statesOut }
    drive(5)
    #expect(world.members.map { $0.node.node.counters.statesOut } == sent)
    #expect(world.members.allSatisfy { $0.node.node.counters.followed == 0 })
  }

  @Test("Both see each other's fleet, without an echo; after lost frames and of a hub that starts anew it comes again")
  func gaps() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "a", slot: 1)
    world.connect("d2", at: "b", slot: 2)
    let (atA, atB) = (
      follow(.fleet, world, at: "a", slot: 50), follow(.fleet, world, at: "b", slot: 51)
    )
    func drive(_ seconds: Int) -> (ofD1AtB: Int, ofD2AtA: Int, ofD1AtA: Int) {
      let (first, second) = (atA.positions.count, atB.positions.count)
      for step in 0..<seconds {
        world.fix(step, trip: nil, at: "a", slot: 1)
        world.fix(step, trip: nil, at: "b", slot: 2)
        world.run(seconds: 1)
        world.beat()
      }
      let (newA, newB) = (atA.positions[first...], atB.positions[second...])
      return (
        newB.count { $0.driverID == id("d1") }, newA.count { $0.driverID == id("d2") },
        newA.count { $0.driverID == id("d1") }
      )
    }
    _ = drive(3)
    #expect(drive(5) == (5, 5, 5))
    world.engine.cuts = ["a>b"]
    #expect(drive(5).ofD1AtB <= 1)
    world.engine.cuts = []
    _ = drive(5)
    #expect(drive(5) == (5, 5, 5))
    world.restart("a")
    world.run(seconds: 3)
    world.connect("d1", at: "a", slot: 1)
    _ = drive(3)
    #expect(drive(5).ofD1AtB == 5)
    #expect(atB.faults == [] && atB.gaps == 0)
  }

  @Test("Of more drivers than may wait for the end of a second the others wait for the next one")
  func fleetLimit() {
    var limits = ClusterLimits()
    limits.fleetDrivers = 2
    let world = ClusterWorld(["a", "b"], limits: limits)
    for slot in 1...5 { world.connect("d\(slot)", at: "a", slot: UInt32(slot)) }
    let ops = follow(.fleet, world, at: "b", slot: 50)
    world.beats(3)
    for step in 0..<5 {
      for slot in 1...5 { world.fix(step, trip: nil, at: "a", slot: UInt32(slot)) }
      world.run(seconds: 1)
      world.beat()
    }
    world.run(seconds: 0.5)
    #expect(ops.positions.count == 10)
    #expect(world["a"].node.node.counters.overflows == 15)
  }

  @Test("Of more drivers than may wait for a hub each is shown there, none more often than others, and nothing is lost")
  func largeFleet() {
    var limits = ClusterLimits()
    limits.waitingStates = 8
    let world = ClusterWorld(limits: limits)
    for slot in 1...20 { world.connect("d\(slot)", at: "a", slot: UInt32(slot)) }
    let followers = ["b", "c"].map { follow(.fleet, world, at: $0, slot: 50) }
    world.beats(3)
    let before = world.members.map { $0.node.node.counters.restarts }
    /// Five turns in each second, and four positions in each of them.
    func drive(_ seconds: Int) {
      for step in 0..<seconds {
        for slot in 1...20 { world.fix(step, trip: nil, at: "a", slot: UInt32(slot)) }
        for _ in 0..<5 { world.step(milliseconds: 200) }
        world.beat()
      }
    }
    drive(3)
    let node = world["a"].node
    #expect(node.node.nextTurn > world.now.uptime)
    world.step()
    #expect(node.node.nextTurn == world.now.uptime, "more can go at once")
    // Three turns in each second: most drivers wait for the next one.
    for follower in followers { follower.positions.removeAll() }
    for step in 0..<20 {
      for slot in 1...20 { world.fix(step, trip: nil, at: "a", slot: UInt32(slot)) }
      for _ in 0..<3 { world.step(milliseconds: 333) }
      world.beat()
    }
    for follower in followers {
      let counts = (1...20).map { slot in follower.positions.count { $0.driverID == id("d\(slot)") } }
      #expect(counts.min() ?? 0 >= 10 && (counts.max() ?? 0) - (counts.min() ?? 0) <= 2, "\(counts)")
      #expect(follower.faults == [] && follower.gaps == 0)
    }
    world.run(seconds: 1)
    let newest = followers.map { Set($0.positions.suffix(20).map(\.driverID)).count }
    #expect(newest == [20, 20], "the newest of all have come")
    #expect(world.members.map { $0.node.node.counters.restarts } == before)
    #expect(world.members.allSatisfy { $0.node.node.counters.overflows == 0 })
    // While nothing leaves, as many wait as may: none are dropped.
    for slot in 1...20 { world.fix(21, trip: nil, at: "a", slot: UInt32(slot)) }
    world.step()
    world.engine.isolated = ["a"]
    world.beat()
    for _ in 0..<30 {
      world.step()
      #expect(node.node.context.peers.allSatisfy { $0.stateCount <= 4 })
    }
    world.engine.isolated = []
    world.run(seconds: 2)
    #expect(node.node.counters.overflows == 0)
    // Who follows no longer is kept nothing for.
    drive(1)
    world["b"].leave(followers[0])
    world["c"].leave(followers[1])
    world.beats(2)
    #expect(node.node.context.peers.allSatisfy { $0.fleetQueue.isEmpty })
  }
}

extension ClusterWorld {
  /// A second of every hub is over: `a` had 1 fix, `b` 2 and so on, and deliveries of 0.1, 0.2 … ms.
  func beat() {
    for (index, member) in members.enumerated() {
      member.inputs.append(
        .figures(
          HubFigures(
            timestamp: now.timestamp, members: "\"fixes\":\(index + 1)",
            times: [.init(microseconds: UInt64(100 * (index + 1)), count: 3)])))
    }
  }

  func beats(_ count: Int) {
    for _ in 0..<count {
      beat()
      run(seconds: 1)
    }
  }
}
