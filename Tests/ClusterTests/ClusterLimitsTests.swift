// What happens at each limit of ClusterLimits.swift.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubCluster

@Suite struct ClusterLimitsTests {
  private func world(_ change: (inout ClusterLimits) -> Void) -> ClusterWorld {
    var limits = ClusterLimits()
    change(&limits)
    return ClusterWorld(limits: limits)
  }

  private func connectDrivers(_ count: Int, _ world: ClusterWorld) {
    for number in 0..<count { world.connect("d\(number)", at: "a", slot: UInt32(number + 1)) }
    world.run(seconds: 0.5)
  }

  private func followDrivers(_ count: Int, _ world: ClusterWorld) -> [Follower] {
    (0..<count).map { world.follow(.driver(id("d\($0)")), at: "b", slot: UInt32(500 + $0)) }
  }

  @Test("Events for a hub that takes nothing are dropped past their limit; none is missing when it takes them again")
  func waitingControlBytes() {
    let world = world { $0.waitingControlBytes = 1000 }
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    let own = world.follow(.trip(id("t1")), at: "a", slot: 4)
    let rider = world.follow(.trip(id("t1")), at: "b", slot: 5)
    world.run(seconds: 1)
    world.engine.isolated = ["a"]
    for number in 0..<60 {
      world.notify("t1", at: "a", number: number)
      world.run(seconds: 0.1)
      #expect(world["a"].node.node.counters.waitingBytes <= 2 * 1000)
    }
    #expect(world["a"].node.node.counters.overflows > 0)
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(rider.point == own.point && rider.faults == [] && rider.gaps == 0)
    #expect(own.point?.since ?? 0 >= 60)
  }

  @Test("A position after a pause leaves at once; a stream leaves in frames a while apart, and the thread may sleep")
  func stream() {
    let world = world { ($0.gatherTime, $0.gatherSleep) = (50_000_000, 20_000_000) }
    connectDrivers(5, world)
    let riders = followDrivers(5, world)
    world.run(seconds: 0.5)
    let node = world["a"].node
    var before = node.node.counters
    world.fix(0, trip: nil, at: "a", slot: 1)
    world.step()
    #expect(node.node.counters.statesOut == before.statesOut + 1)
    #expect(node.node.gathersUntil <= world.now.uptime, "a lone one is no stream")
    world.run(seconds: 0.5)
    before = node.node.counters
    var sleeps = 0
    for step in 1...100 {
      world.fix(step, trip: nil, at: "a", slot: UInt32(step % 5 + 1))
      world.step()
      let (now, until) = (world.now.uptime, node.node.gathersUntil)
      if until > now { sleeps += 1 }
      #expect(until <= now + 20_000_000 && node.node.nextTurn > now)
    }
    // One in 50 ms, and what shows that the hub lives, to both others.
    let frames = node.node.counters.framesOut - before.framesOut
    #expect((20...36).contains(frames) && sleeps > 70, "\(frames), \(sleeps)")
    world.run(seconds: 0.2)
    #expect(node.node.gathersUntil <= world.now.uptime)
    #expect(node.node.counters.statesOut - before.statesOut + node.node.counters.statesConflated >= 90)
    #expect(riders.allSatisfy { $0.positions.count >= 15 && $0.faults == [] && $0.gaps == 0 })
  }

  @Test("Where many hubs follow a hub, each gets its positions the less often, and the newest come")
  func gathered() {
    var limits = ClusterLimits()
    limits.peerGatherTime = 20_000_000
    let names = ["a", "b", "c", "d", "e", "f"]
    let world = ClusterWorld(names, limits: limits)
    connectDrivers(5, world)
    let riders = names[1...].map { world.follow(.driver(id("d1")), at: $0, slot: 50) }
    world.run(seconds: 0.5)
    for rider in riders { rider.positions.removeAll() }
    let before = world["a"].node.node.counters.framesOut
    for step in 100..<200 {
      world.fix(step, trip: nil, at: "a", slot: UInt32(step % 5 + 1))
      world.step()
    }
    // Five hubs: a frame to each in 0.1 s, and what shows that the hub lives.
    let sent = world["a"].node.node.counters.framesOut - before
    #expect((40...70).contains(sent), "\(sent)")
    world.run(seconds: 0.2)
    let own = world.follow(.driver(id("d1")), at: "a", slot: 60)
    world.run(seconds: 0.1)
    #expect(riders.allSatisfy { $0.positions.last?.coordinate == own.positions.last?.coordinate && $0.faults == [] })
    #expect(riders.allSatisfy { (8...11).contains($0.positions.count) })
  }

  @Test("What is gathered is sent before it is dropped for its number")
  func gatheredMuch() {
    var limits = ClusterLimits()
    (limits.gatherTime, limits.waitingStates) = (400_000_000, 4)
    let names = ["a", "b", "c", "d", "e"]
    let world = ClusterWorld(names, limits: limits)
    connectDrivers(12, world)
    let riders = names[1...].flatMap { name in
      (0..<12).map { world.follow(.driver(id("d\($0)")), at: name, slot: UInt32(50 + $0)) }
    }
    world.run(seconds: 1)
    for step in 0..<20 {
      for number in 0..<3 { world.fix(step, trip: nil, at: "a", slot: UInt32((3 * step + number) % 12 + 1)) }
      world.step()
    }
    world.run(seconds: 0.5)
    #expect(world["a"].node.node.counters.overflows == 0 && riders.allSatisfy { !$0.positions.isEmpty })
  }

  @Test("Positions for a hub that takes nothing are dropped past their limit, and the newest come when it takes them")
  func waitingStates() {
    let world = world { $0.waitingStates = 5 }
    connectDrivers(12, world)
    let riders = followDrivers(12, world)
    world.run(seconds: 0.5)
    world.engine.isolated = ["a"]
    for step in 0..<5 {
      for number in 0..<12 { world.fix(step, trip: nil, at: "a", slot: UInt32(number + 1)) }
      world.run(seconds: 1)
      #expect(world["a"].node.node.counters.waitingStates <= 5)
    }
    #expect(world["a"].node.node.counters.overflows > 0)
    world.engine.isolated = []
    world.run(seconds: 3)
    for number in 0..<12 { world.fix(9, trip: nil, at: "a", slot: UInt32(number + 1)) }
    world.run(seconds: 1)
    let newest = riders[0].positions.last?.timestamp
    #expect(newest != nil)
    #expect(riders.allSatisfy { $0.faults.isEmpty && $0.positions.last?.timestamp == newest })
  }

  @Test("A hub that follows as many channels of another as it may is refused a further one")
  func followedPerPeer() {
    let world = world { $0.followedPerPeer = 2 }
    connectDrivers(3, world)
    let riders = followDrivers(2, world)
    world.run(seconds: 0.5)
    let late = world.follow(.driver(id("d2")), at: "b", slot: 600)
    world.run(seconds: 0.5)
    #expect(riders.allSatisfy { $0.answers.count == 1 && $0.refusals.isEmpty })
    #expect(late.refusals.map(\.code) == [.rateLimited] && late.answers.isEmpty)
    let second = world.follow(.driver(id("d1")), at: "b", slot: 601)
    world.run(seconds: 0.5)
    #expect(second.answers.count == 1 && second.refusals.isEmpty, "that channel is followed already")
    world["b"].leave(riders[0])
    world.run(seconds: 0.5)
    late.wantsToAsk = true
    world.run(seconds: 0.5)
    #expect(late.answers.count == 1)
  }

  @Test("Behind four billion channels that a hub has followed, numbers begin again without those that are in use")
  func bindings() {
    let world = ClusterWorld()
    connectDrivers(4, world)
    var riders = followDrivers(1, world)
    world.run(seconds: 0.5)
    let peer = world["a"].node.node.context.peers[0]
    peer.lastBinding = .max - 1
    riders += (1..<4).map { world.follow(.driver(id("d\($0)")), at: "b", slot: UInt32(500 + $0)) }
    world.run(seconds: 0.5)
    #expect(Set(peer.interest.values.map(\.number)) == [1, .max, 2, 3])
    for number in 0..<4 { world.fix(number, trip: nil, at: "a", slot: UInt32(number + 1)) }
    world.run(seconds: 0.5)
    for (number, rider) in riders.enumerated() {
      #expect(rider.positions.map(\.driverID) == [id("d\(number)")] && rider.faults == [] && rider.gaps == 0)
    }
  }

  @Test("Sessions' questions past their limit are refused at once, the others when nobody has answered")
  func pending() {
    let world = world { $0.pending = 2 }
    connectDrivers(3, world)
    world.engine.cuts = ["b>a"]
    let riders = followDrivers(3, world)
    world.run(seconds: 0.2)
    #expect(riders.map(\.refusals.count) == [0, 0, 1])
    world.run(seconds: 4)
    #expect(riders.allSatisfy { $0.refusals.map(\.code) == [.rateLimited] })
    #expect(world["b"].node.node.counters.pending == 0)
  }

  @Test("Questions of one hub past their limit in a turn are refused, and may be put again")
  func asksPerPeer() {
    let world = world { $0.asksPerPeer = 1 }
    connectDrivers(3, world)
    let riders = followDrivers(3, world)
    world.run(seconds: 0.5)
    #expect(riders.reduce(0) { $0 + $1.answers.count } == 1)
    #expect(riders.reduce(0) { $0 + $1.refusals.count } == 2)
    for rider in riders where rider.answers.isEmpty {
      rider.wantsToAsk = true
      world.run(seconds: 0.5)
    }
    #expect(riders.allSatisfy { $0.answers.count == 1 })
  }

  @Test("Many drivers that come together are written to the ledger over several turns, all of them")
  func claimsPerTurn() {
    let world = world { $0.claimsPerTurn = 2 }
    for number in 0..<20 { world.connect("d\(number)", at: "a", slot: UInt32(number + 1)) }
    world.step()
    world.step()
    #expect(world["a"].node.node.counters.unclaimed > 0)
    world.run(seconds: 0.3)
    #expect(world["a"].node.node.counters.unclaimed == 0)
    #expect((0..<20).allSatisfy { world.engine.owner(of: "d:d\($0)") == "a" })
  }

  @Test("After a gap many channels are asked for anew over several turns, all of them")
  func resumesPerTurn() {
    let world = world { $0.resumesPerTurn = 2 }
    connectDrivers(20, world)
    let riders = followDrivers(20, world)
    world.run(seconds: 1)
    world.engine.faults.lost = 1
    for number in 0..<20 { world.fix(1, trip: nil, at: "a", slot: UInt32(number + 1)) }
    world.run(seconds: 0.5)
    world.engine.faults.lost = 0
    world.run(seconds: 3)
    #expect(world["b"].node.node.counters.restarts > 0)
    for rider in riders { rider.positions.removeAll() }
    for number in 0..<20 { world.fix(2, trip: nil, at: "a", slot: UInt32(number + 1)) }
    world.run(seconds: 0.5)
    #expect(riders.allSatisfy { $0.positions.count >= 1 && $0.faults.isEmpty })
  }

  @Test("However often something may have been missed, what that leads to is done at most once in its time")
  func gapsWithoutEnd() {
    let world = ClusterWorld(["a", "b"])
    connectDrivers(1, world)
    world.follow(.trip(id("t9")), at: "a", slot: 50)
    world.run(seconds: 1)
    let node = world["a"].node
    var (claims, searches) = (0, 0)
    world.engine.trace = {
      if $0.hasPrefix("a asks claim") { claims += 1 }
      if $0.hasPrefix("a asks locate") { searches += 1 }
    }
    let before = node.node.counters.restarts
    for _ in 0..<1000 {
      node.node.context.peers[0].wantsRestart = true
      node.node.claims.checksHomes = true
      node.node.following.checksWaiting = true
      world.step()
    }
    // In 10 s: a driver that may have a second home; a trip that nobody has; and all that is followed at the other hub.
    #expect((9...11).contains(claims), "\(claims)")
    #expect((2...3).contains(searches), "\(searches)")
    #expect((9...11).contains(node.node.counters.restarts - before))
  }

  @Test("A hub beyond the limit of peers is refused and named; a frame that is too long is refused")
  func peersAndFrames() {
    let world = ClusterWorld(["a"])
    let node = world["a"].node
    for number in 0..<ClusterLimits.maximumPeers { #expect(node.node.context.peer("p\(number)") != nil) }
    #expect(node.node.context.peer("one-more") == nil && node.node.context.peer("p0") != nil)
    #expect(node.node.takeNotices().contains(.tooManyPeers("one-more")))
    let head = FrameHead(
      lane: .control, from: "one-more", fromIncarnation: 5, to: "a", toIncarnation: node.node.context.incarnation,
      number: 1, clock: 0)
    node.node.take(bus: .frame(.control, Frame.make(head, [], testKeys)))
    #expect(node.node.takeNotices().contains(.frameRefused(.peers, from: "one-more", .control)))
    #expect(node.node.counters.framesRefused == 1)
    node.node.take(bus: .frame(.control, [UInt8](repeating: 1, count: ClusterLimits().largestFrame + 1)))
    #expect(node.node.counters.framesRefused == 2)
    _ = node.node.takeNotices()
    for _ in 0..<50 { node.node.take(bus: .frame(.control, [1])) }
    #expect(node.node.counters.framesRefused == 52 && node.node.takeNotices().isEmpty)
    world.run(seconds: 1)
    node.node.take(bus: .frame(.control, [1]))
    #expect(node.node.takeNotices().count == 1)
  }

  @Test("What is gone while the ledger is away is released later, up to a limit")
  func releases() {
    let world = world { $0.releases = 2 }
    connectDrivers(4, world)
    world.engine.isolated = ["a"]
    world.run(seconds: 0.1)
    for number in 0..<4 { world["a"].node.node.claims.disown(.driver(id("d\(number)"))) }
    world.run(seconds: 0.5)
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect((0..<4).map { world.engine.owner(of: "d:d\($0)") } == [nil, nil, "a", "a"])
  }

  @Test("A hub that has forgotten what a peer follows keeps counting the questions that it has not answered")
  func openAsks() {
    let world = world { $0.asksPerPeer = 2 }
    let context = world["a"].node.node.context
    let open = (0..<3).map { context.session(for: 0, $0, Subscribe(channel: .driver(id("d1")))) }
    #expect(open.map { $0 != nil } == [true, true, false] && context.peers[0].asks == 2)
    world["a"].node.node.interest.releaseAll(of: 0)
    #expect(context.session(for: 0, 9, Subscribe(channel: .driver(id("d1")))) == nil)
    for session in open { if let session { _ = context.asker(session) } }
    #expect(context.peers[0].asks == 0)
    _ = context.session(for: 0, 10, Subscribe(channel: .driver(id("d1"))))
    context.peers[0].begin(context.peers[0].incarnation + 1)
    #expect(context.peers[0].asks == 0)
  }

  private final class DownBus: Bus {
    var isUp: Bool { false }
    private(set) var sent = 0
    func send(_ frame: [UInt8], to target: String, lane: Lane) -> Bool {
      sent += 1
      return false
    }
    func takeEvents(into events: inout [BusEvent]) {}
  }

  @Test("While the bus is away no frame is made, and what waits keeps to its limit")
  func downBus() {
    let world = world { $0.waitingControlBytes = 1000 }
    let (node, bus) = (world["a"].node, DownBus())
    for _ in 0..<100 {
      node.node.context.peers[0].append(.released) { $0.append(.driver(id("d1")), at: world.now.timestamp) }
      node.node.flush(bus, world["a"].ledger)
      #expect(node.node.counters.waitingBytes <= 1100)
    }
    #expect(bus.sent == 0 && node.node.counters.overflows > 0)
  }

  @Test("Of ended rights the newest are sent again, up to their limit and for their time")
  func endedRights() {
    let world = world { ($0.endedRights, $0.endedRightsTime) = (2, 1_000_000_000) }
    let node = world["a"].node
    for number in 0..<3 { node.node.context.notifyEnded(0, .replaced) { $0.append(varint: UInt64(number)) } }
    #expect(node.node.context.endedRights.map(\.body) == [[1], [2]])
    world.run(seconds: 2)
    node.node.context.repeatEnded(to: 0)
    #expect(node.node.context.endedRights.isEmpty)
  }
}
