// What the ledger calls a hub's own: that it is looked at again in order, and forgotten where it is not so.
import HubBackplane
import HubBackplaneSupport
import HubCore
import HubMessages
import Testing

@testable import HubCluster

@Suite struct ClaimingTests {
  @Test("A hub that has started anew without what the ledger calls its own has that forgotten when others ask for it")
  func staleOwner() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.ask("t1", .requested, at: "a", slot: 9)
    world.run(seconds: 1)
    world.restart("a")
    world.run(seconds: 3)
    #expect(world.engine.owner(of: "d:d1") == "a" && world.engine.owner(of: "t:t1") == "a")
    let riders = [Channel.driver(id("d1")), .raw(id("d1")), .trip(id("t1"))].map {
      world.follow($0, at: "b", slot: world.nextSlot())
    }
    world.run(seconds: 4)
    #expect(world.engine.owner(of: "d:d1") == nil && world.engine.owner(of: "t:t1") == nil)
    #expect(riders[0].answers.count == 1 && riders[1].answers.count == 1 && riders[0].refusals.isEmpty)
    world.connect("d1", at: "c", slot: 2)
    world.run(seconds: 1)
    riders[0].positions.removeAll()
    world.drive(riders[0], at: "c", slot: 2)
  }

  @Test(
    "Who waits at a hub that has started anew without what the ledger calls its own sees it where it comes next",
    arguments: [Channel.driver(id("d1")), .raw(id("d1")), .trip(id("t1"))])
  func waitsAtStaleOwner(channel: Channel) {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(0, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 1)
    world.restart("a")
    world.run(seconds: 3)
    let rider = world.follow(channel, at: "a", slot: 50)
    world.run(seconds: 1)
    world.follow(channel, at: "b", slot: 51)
    world.run(seconds: 4)
    world.connect("d1", at: "c", slot: 2)
    world.run(seconds: 1)
    for step in 1..<6 {
      world.fix(step, trip: "t1", at: "c", slot: 2)
      world.run(seconds: 1)
    }
    #expect(rider.positions.count + rider.rawFixes.count >= 4 && rider.faults == [] && rider.gaps == 0)
  }

  @Test("What an engine has lost under its connections is written back with the next renewal, and nothing else is")
  func emptied() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.ask("t1", .requested, at: "b", slot: 9)
    world.run(seconds: 3)
    var claims = 0
    world.engine.trace = { if $0.contains("asks claim") { claims += 1 } }
    world.run(seconds: 10)
    #expect(claims == 0)
    world.engine.forget()
    let rider = world.follow(.driver(id("d1")), at: "c", slot: 50)
    world.run(seconds: 2.5)
    #expect(world.engine.owner(of: "d:d1") == "a" && world.engine.owner(of: "t:t1") == "b" && claims == 2)
    world.drive(rider, at: "a", slot: 1)
    #expect(claims == 2)
  }

  @Test("Where the answer to a further claim is lost, which named who waits, all hubs are notified with the next one")
  func lostAnswer() throws {
    let now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_700_000_000_000))
    let identity = ClusterIdentity(name: "a", address: "127.0.0.1:1", version: "test", keys: testKeys)
    let context = ClusterContext(identity, limits: ClusterLimits(), outlet: 1, now: now, openSessions: { _ in [:] })
    (context.phase, context.isLedgerUp, context.incarnation) = (.member, true, 7)
    let index = try #require(context.peer("b"))  // makes it
    let peer = context.peers[index]
    peer.begin(8)
    peer.isMember = true
    var claims = Claims(context)
    for (channel, isSeized) in [(Channel.driver(id("d1")), true), (.trip(id("t1")), false)] {
      func claim(_ answer: LedgerAnswer) -> Int {
        let before = peer.controlBytes
        context.questions.removeAll()
        claims.queueAll()
        claims.claim()
        #expect(context.questions.map(\.purpose) == [.claim(channel)])
        claims.handle(claim: answer, of: channel)
        return peer.controlBytes - before
      }
      claims.own(channel, seizes: isSeized)
      #expect(claim(.claimed(generation: 5, before: nil, waiting: [])) == 0)
      #expect(claim(.unknown) == 0)
      #expect(claim(.claimed(generation: 5, before: "a", waiting: [])) > 0)
      #expect(claim(.claimed(generation: 5, before: "a", waiting: [])) == 0, "once")
      claims.disown(channel)
      claims.claim()
      claims.handle(release: .done, of: channel)
    }
  }

  @Test("A claim that was never sent is put again, and no hub is notified as if its answer had been lost")
  func unsent() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 1)
    var asked: [String] = []
    world.engine.trace = { asked.append($0) }
    world.engine.busy = ["a"]
    world["a"].node.node.claims.queueAll()
    world.connect("d2", at: "a", slot: 2)
    world.run(seconds: 0.5)
    #expect(!asked.contains { $0.hasPrefix("a ") } && world["a"].node.node.counters.unclaimed == 1)
    world.engine.busy = []
    world.run(seconds: 3)
    #expect(asked.count { $0.hasPrefix("a asks claim") } == 2 && world.engine.owner(of: "d:d2") == "a")
    #expect(!asked.contains { $0.contains("concede") }, "what a hub asks that is notified of a driver")
  }

  @Test("So many claims are at the ledger at once, the others wait; all are made")
  func claimsAtLedger() {
    var limits = ClusterLimits()
    limits.claimsAtLedger = 3
    let world = ClusterWorld(["a", "b"], limits: limits)
    for number in 0..<20 { world.connect("d\(number)", at: "a", slot: UInt32(number + 1)) }
    var asked: [Int] = []
    world.engine.trace = { if $0.hasPrefix("a asks claim") { asked[asked.count - 1] += 1 } }
    for _ in 0..<20 {
      asked.append(0)
      world.step()
    }
    #expect(asked.max() == 3 && asked.reduce(0, +) == 20)
    #expect((0..<20).allSatisfy { world.engine.owner(of: "d:d\($0)") == "a" })
  }

  @Test("Drivers that may have a second home are looked for before all that is claimed again for its age")
  func pacedByAge() {
    var limits = ClusterLimits()
    (limits.checksAtOnce, limits.checkTime, limits.ownerTime) = (4, 500_000_000, 12_000_000_000)
    let world = ClusterWorld(["a", "b"], limits: limits)
    for number in 0..<2 { world.connect("d\(number)", at: "a", slot: UInt32(number + 1)) }
    for number in 0..<100 { world.ask("t\(number)", .requested, at: "a", slot: UInt32(number + 10)) }
    world.run(seconds: 2)
    var claimed: [String] = []
    world.engine.trace = { line in
      guard line.hasPrefix("a asks claim"), let key = line.split(separator: "\"").dropFirst().first else { return }
      claimed.append("\(key)")
    }
    for _ in 0..<2000 where claimed.isEmpty { world.step() }
    #expect(!claimed.isEmpty)
    world.engine.cuts = ["b>a control"]
    world.run(seconds: 1)
    world.engine.cuts = []
    let before = claimed.count
    world.run(seconds: 2)
    #expect(Set(claimed[before...]).isSuperset(of: ["d:d0", "d:d1"]), "\(claimed[before...])")
    world.run(seconds: 16)
    #expect((0..<100).allSatisfy { claimed.contains("t:t\($0)") }, "the others are claimed behind them")
  }
}
