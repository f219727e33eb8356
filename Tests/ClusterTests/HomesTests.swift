// Drivers that connect again and again, at any hub: when it is quiet none is at two. In the suite there are fewer of
// them; `make torture` has all.
import HubBackplaneSupport
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

/// Drivers' phones: each has one session that it believes in, and leaves others half open.
private final class Phones {
  struct Session {
    let driver: Int
    let hub: String
    let slot: UInt32
  }

  let world: ClusterWorld
  private var random: SplitMix64
  /// By hub and slot, those that the hub has let in and not ended, and that are not closed.
  private var open: [String: [UInt32: Session]] = ["a": [:], "b": [:], "c": [:]]
  private var newest: [Session?]
  private var seen: [String: (admitted: Int, replaced: Int)] = [:]
  private(set) var connects = 0

  init(_ count: Int, seed: UInt64, _ world: ClusterWorld) {
    self.world = world
    random = SplitMix64(seed: seed)
    newest = Array(repeating: nil, count: count)
  }

  func reconnect(_ driver: Int) {
    let name = ["a", "b", "c"].randomElement(using: &random)!
    // Two of three close the socket that they had; of the others the hub may never hear again.
    if let old = newest[driver], random.next() % 3 > 0 { close(old) }
    connects += 1
    let session = Session(driver: driver, hub: name, slot: UInt32(connects))
    world[name].inputs.append(
      .driverConnecting(world.session(session.slot), id("d\(driver)"), client: UInt32(driver + 1)))
    open[name]?[session.slot] = session
    newest[driver] = session
  }

  private func close(_ session: Session) {
    guard open[session.hub]?.removeValue(forKey: session.slot) != nil else { return }
    world[session.hub].inputs.append(.driverDisconnected(world.session(session.slot)))
  }

  /// A phone that was replaced stays away; its socket is closed.
  func step() {
    world.step()
    for member in world.members {
      let known = seen[member.name]?.replaced ?? 0
      for session in member.replaced[known...] {
        if let received = open[member.name]?[session.slot] { close(received) }
      }
      seen[member.name] = (member.admitted.count, member.replaced.count)
    }
  }

  func run(seconds: Double) { for _ in 0..<Int(seconds * 100) { step() } }

  /// Drivers with sessions at two hubs, and those whose sessions are not where the ledger says.
  func wrong() -> [String] {
    var hubs: [Int: Set<String>] = [:]
    for session in open.values.flatMap(\.values) { hubs[session.driver, default: []].insert(session.hub) }
    return hubs.filter { driver, names in names.count > 1 || names.first != world.engine.owner(of: "d:d\(driver)") }
      .map { "d\($0.key) at \($0.value.sorted())" }
  }

  /// Drivers whose newest session was closed, though it is none but the newest that may stay.
  func lost() -> Int {
    newest.count { session in session.map { open[$0.hub]?[$0.slot] == nil } ?? false }
  }
}

@Suite struct HomesTests {
  @Test("A driver of a hub that has started anew without it is followed there when it comes to another hub")
  func forgottenDriver() {
    let world = ClusterWorld()
    world.connect("d1", at: "c", slot: 1)
    world.run(seconds: 1)
    world.restart("c")
    world.run(seconds: 3)
    let riders = [Channel.driver(id("d1")), .raw(id("d1"))].map { world.follow($0, at: "c", slot: world.nextSlot()) }
    world.run(seconds: 1)
    #expect(riders.allSatisfy { $0.answers.count == 1 } && world.engine.owner(of: "d:d1") == "c")
    world.connect("d1", at: "a", slot: 2)
    world.run(seconds: 1)
    for step in 0..<3 {
      world.fix(step, trip: nil, at: "a", slot: 2)
      world.run(seconds: 1)
    }
    #expect(riders[0].positions.count == 3 && riders[1].rawFixes.count == 3 && riders.allSatisfy { $0.faults == [] })
  }

  @Test("A session that begins while the end of the one before it is on its way to the hub is the newest, and stays")
  func newestStays() {
    let world = ClusterWorld()
    world.connect("d1", at: "c", slot: 1)
    world.run(seconds: 1)
    let rider = world.follow(.driver(id("d1")), at: "c", slot: 50)
    world.run(seconds: 0.5)
    world.stalled = ["c"]
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    world.connect("d1", at: "c", slot: 3)
    world.stalled = []
    world.run(seconds: 2)
    #expect(world["b"].replaced.map(\.slot) == [2] && !world["c"].replaced.map(\.slot).contains(3))
    #expect(world.engine.owner(of: "d:d1") == "c")
    world.connect("d1", at: "a", slot: 4)
    world.run(seconds: 1)
    #expect(world["c"].replaced.map(\.slot).contains(3))
    rider.positions.removeAll()
    for step in 0..<3 {
      world.fix(step, trip: nil, at: "a", slot: 4)
      world.run(seconds: 1)
    }
    #expect(rider.positions.count == 3 && rider.faults == [])
  }

  @Test(
    "Drivers who connect again and again at any hub, over lost and late frames, have no two homes after 3 s of quiet")
  func reconnects() {
    guard let histories = clusterHistories else { return reconnect(100, rounds: 20, seed: 3) }
    for seed in 0..<UInt64(max(1, histories / 1000)) { reconnect(1000, rounds: 50, seed: seed) }
  }

  @Test("That a driver was taken, sent again when it has come back, ends no session")
  func repeatedReplaced() {
    let world = ClusterWorld()
    for (slot, name) in [(1, "a"), (2, "b"), (3, "a")] as [(UInt32, String)] {
      world.connect("d1", at: name, slot: slot)
      world.run(seconds: 1)
    }
    let context = world["b"].node.node.context
    context.repeatEnded(to: context.knownPeer("a")!)
    world.run(seconds: 1)
    #expect(world["a"].replaced.map(\.slot) == [1] && world.engine.owner(of: "d:d1") == "a")
  }

  @Test("A hub that stalls between its claim and the answer loses the driver to who has claimed it since")
  func stalledClaim() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.stalled = ["a"]
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    world.stalled = []
    world.run(seconds: 0.5)
    #expect(world["a"].replaced.map(\.slot) == [1] && world["b"].replaced.isEmpty)
    #expect(world.engine.owner(of: "d:d1") == "b")
  }

  @Test("A claim that was carried out, and whose answer was lost, does not win over one that came later")
  func lostAnswer() {
    let world = ClusterWorld(["a", "b"])
    world.engine.deaf = ["a"]
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.1)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 0.1)
    world.engine.deaf = []
    world.run(seconds: 5)
    #expect(world["a"].replaced.map(\.slot) == [1] && world["b"].replaced.isEmpty)
    #expect(world.engine.owner(of: "d:d1") == "b")
  }

  @Test(
    "A driver whose new hub dies before it notifies the old one has one home as soon as a hub has it again",
    arguments: ["b", "c"])
  func claimerDies(next: String) {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 1)
    let rider = world.follow(.driver(id("d1")), at: "a", slot: 50)
    world.run(seconds: 0.5)
    world.claimOnly(at: "c", slot: 2)
    #expect(world["a"].replaced.isEmpty)
    if next == "c" { world.join("c") }
    world.connect("d1", at: next, slot: 3)
    world.run(seconds: 3)
    #expect(world["a"].replaced.map(\.slot) == [1] && world[next].replaced.isEmpty)
    world.drive(rider, at: next, slot: 3)
  }

  @Test(
    "A driver whose new hubs die one after the other, before either notifies the old one, has one home at the next",
    arguments: ["a", "b", "c", "d"])
  func claimersDie(next: String) {
    let world = ClusterWorld(["a", "b", "c", "d"])
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 1)
    let riders = ["a", "d"].map { world.follow(.driver(id("d1")), at: $0, slot: 50) }
    world.run(seconds: 0.5)
    world.claimOnly(at: "b", slot: 2)
    world.claimOnly(at: "c", slot: 3)
    #expect(world["a"].replaced.isEmpty)
    if next == "b" || next == "c" { world.join(next) }
    world.connect("d1", at: next, slot: 4)
    world.run(seconds: 3)
    #expect(world["a"].replaced.map(\.slot) == [1] && world.engine.owner(of: "d:d1") == next)
    #expect(!world[next].replaced.map(\.slot).contains(4))
    riders[1].positions.removeAll()
    world.drive(riders[0], at: next, slot: 4)
    #expect(riders[1].positions.count == 4 && riders[1].faults == [])
  }

  @Test(
    "A driver whose new hub claims it again and dies, and never reached the old one, has one home at its next",
    arguments: ["b", "c"])
  func claimedAgain(next: String) {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 1)
    let rider = world.follow(.driver(id("d1")), at: "a", slot: 50)
    world.run(seconds: 0.5)
    world.engine.cuts = ["c>a"]
    world.connect("d1", at: "c", slot: 2)
    world.run(seconds: 0.5)
    world["c"].node.node.claims.queueAll()
    world.run(seconds: 0.5)
    #expect(world["a"].replaced.isEmpty && world.engine.owner(of: "d:d1") == "c")
    world.kill("c")
    world.engine.cuts = []
    if next == "c" { world.join("c") }
    world.connect("d1", at: next, slot: 3)
    world.run(seconds: 3)
    #expect(world["a"].replaced.map(\.slot) == [1] && world.engine.owner(of: "d:d1") == next)
    world.drive(rider, at: next, slot: 3)
  }

  @Test("A driver that two hubs claim at once has one home, though the second has never heard of the first")
  func unknownHome() {
    let world = ClusterWorld(["b", "c"])
    world.stalled = ["c"]
    world.kill("b")
    world.run(seconds: 6)
    world.join("b")
    world.run(seconds: 3)
    #expect(world["b"].node.node.context.knownPeer("c") == nil)
    world.stalled = []
    for (slot, name) in [(2, "c"), (3, "b")] as [(UInt32, String)] { world.connect("d1", at: name, slot: slot) }
    world.run(seconds: 3)
    #expect(world["c"].replaced.map(\.slot) == [2] && world["b"].replaced.isEmpty)
    #expect(world.engine.owner(of: "d:d1") == "b")
  }

  @Test("While the engine is away a driver's sessions are one claim, and what is gone is released when it is back")
  func awayEngine() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    world.engine.isolated = ["a"]
    for round in 0..<200 {
      world.connect("d2", at: "a", slot: UInt32(10 + round))
      world.step(milliseconds: 50)
    }
    #expect(world["a"].node.node.counters.unclaimed <= 2)
    world["a"].node.node.claims.disown(.driver(id("d1")))
    world.run(seconds: 1)
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(world.engine.owner(of: "d:d1") == nil && world.engine.owner(of: "d:d2") == "a")
    #expect(world["a"].node.node.counters.unclaimed == 0)
  }

  @Test("What is gone and comes again before the ledger has answered is owned")
  func ownedAgain() {
    let world = ClusterWorld(["a", "b"])
    let channel = Channel.driver(id("d1"))
    for steps in 0..<4 {
      world["a"].node.node.claims.own(channel, seizes: true)
      for _ in 0..<steps { world.step() }
      world["a"].node.node.claims.disown(channel)
      for _ in 0..<3 - steps { world.step() }
      world["a"].node.node.claims.own(channel, seizes: true)
      world.run(seconds: 0.5)
      #expect(world.engine.owner(of: "d:d1") == "a", "after \(steps) steps")
      world["a"].node.node.claims.disown(channel)
      world.run(seconds: 0.5)
      #expect(world.engine.owner(of: "d:d1") == nil)
    }
  }

  @Test("What a hub has for long is claimed again before the ledger forgets it")
  func renewed() {
    var limits = ClusterLimits()
    limits.ownerTime = 2_000_000_000
    let world = ClusterWorld(["a"], limits: limits)
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    var claims = 0
    world.engine.trace = { if $0.contains("claim(key: \"d:d1\"") { claims += 1 } }
    world.run(seconds: 10)
    #expect(claims == 5 || claims == 4)
    #expect(world["a"].replaced.isEmpty)
  }

  @Test("A hub that starts anew has no other claim its drivers again; after a gap they do, a few at a time")
  func paced() {
    var limits = ClusterLimits()
    (limits.checksAtOnce, limits.checkTime) = (4, 500_000_000)
    let world = ClusterWorld(["a", "b"], limits: limits)
    for number in 0..<20 { world.connect("d\(number)", at: "a", slot: UInt32(number + 1)) }
    world.move("t1", .accepted, by: "d1", at: "a", slot: 2)
    world.run(seconds: 1)
    var claimed: [String] = []
    world.engine.trace = { line in
      guard line.hasPrefix("a asks claim"), let key = line.split(separator: "\"").dropFirst().first else { return }
      claimed.append("\(key)")
    }
    world.restart("b", limits: limits)
    world.run(seconds: 8)
    #expect(claimed == [])
    world.engine.cuts = ["b>a control"]
    world.run(seconds: 1)
    world.engine.cuts = []
    for _ in 0..<1000 where claimed.isEmpty { world.step() }
    world.run(seconds: 0.2)
    #expect(claimed.count == 4 && world["a"].node.node.counters.unclaimed == 0)
    world.run(seconds: 2.3)
    #expect(Set(claimed) == Set((0..<20).map { "d:d\($0)" }) && claimed.count == 20)
    #expect(world["a"].replaced.isEmpty)
  }

  @Test("A claim without an answer is reported to the hubs that are members, and pushes out nothing that is repeated")
  func doubtful() {
    var limits = ClusterLimits()
    limits.endedRights = 4
    let world = ClusterWorld(limits: limits)
    let context = world["a"].node.node.context
    context.notifyEnded(0, .shareEnded) { $0.append(utf8Run: "first") }
    for number in 0..<20 { #expect(context.peer("p\(number)") != nil) }
    world.engine.deaf = ["a"]
    for number in 0..<3 { world.connect("d\(number)", at: "a", slot: UInt32(number + 1)) }
    world.run(seconds: 0.1)
    world.engine.deaf = []
    world.run(seconds: 5)
    #expect(world.engine.owner(of: "d:d1") == "a" && world["a"].node.node.counters.unclaimed == 0)
    #expect(context.endedRights.map(\.kind) == [.shareEnded])
    #expect(context.peers.allSatisfy { $0.incarnation > 0 || !$0.hasOutput })
  }

  @Test("What is claimed again or released is not among what the ledger does not have yet")
  func unclaimed() {
    let world = ClusterWorld(["a", "b"])
    for number in 0..<3 { world.connect("d\(number)", at: "a", slot: UInt32(number + 1)) }
    world.run(seconds: 0.5)
    world.engine.isolated = ["a"]
    world.run(seconds: 0.5)
    let node = world["a"].node
    node.node.claims.queueAll()
    node.node.claims.disown(.driver(id("d2")))
    world.step()
    #expect(node.node.counters.unclaimed == 0)
    world.connect("d3", at: "a", slot: 4)
    world.run(seconds: 0.5)
    #expect(node.node.counters.unclaimed == 1)
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(node.node.counters.unclaimed == 0 && world.engine.owner(of: "d:d2") == nil)
    #expect(world.engine.owner(of: "d:d3") == "a")
  }

  private func reconnect(_ drivers: Int, rounds: Int, seed: UInt64) {
    let world = ClusterWorld(seed: seed)
    let phones = Phones(drivers, seed: seed ^ 5, world)
    var random = SplitMix64(seed: seed ^ 7)
    for round in 1...rounds {
      (world.engine.faults.lost, world.engine.faults.doubled, world.engine.faults.delayed) = (0.05, 0.02, 0.2)
      world.engine.faults.unknown = round % 3 == 0 ? 0.1 : 0
      if round % 5 == 4 { world.engine.isolated = [["a", "b", "c"].randomElement(using: &random)!] }
      for (count, driver) in (0..<drivers).shuffled(using: &random).enumerated() {
        phones.reconnect(driver)
        if count % 5 == 4 { phones.step() }
      }
      guard round % 5 == 0 || round == rounds else { continue }
      world.engine.faults = .init()
      world.engine.isolated = []
      phones.run(seconds: 3)
      let wrong = phones.wrong()
      #expect(wrong == [], "seed \(seed), round \(round)")
    }
    #expect(phones.connects == drivers * rounds)
    // In order, without faults, it is the newest that stays.
    for driver in 0..<drivers {
      phones.reconnect(driver)
      if driver % 5 == 4 { phones.step() }
    }
    phones.run(seconds: 3)
    #expect(phones.wrong() == [] && phones.lost() == 0)
  }
}
