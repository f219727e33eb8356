// What a hub says of its engine, and whether it counts as reaching the others.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubCluster

/// A ledger that refuses all that it is asked, as one does that has no memory left.
private final class FullLedger: Ledger {
  let isUp = true
  private var events: [LedgerEvent] = [.up(node: "full", warnings: [])]

  func ask(_ question: LedgerQuestion, ticket: UInt64) -> Bool {
    events.append(.answer(ticket: ticket, .refused("OOM command not allowed")))
    return true
  }

  func takeEvents(into events: inout [LedgerEvent]) {
    events += self.events
    self.events.removeAll()
  }
}

@Suite struct EngineTests {
  @Test("A wrong password is looked for in the line of those who refused it: nodes or sentinels")
  func origins() throws {
    let address = try #require(EngineAddress("redis://10.0.0.9:26379"))
    var engine = EngineConfiguration(bus: [address], ledgers: [.sentinels([address], name: "hubs")])
    engine.origins["\(address)"] = "f:3: bus"
    engine.ledgerOrigins["sentinel://10.0.0.9:26379/hubs"] = "f:4: ledger"
    // The node is the master that the sentinels name.
    let master = "redis://10.0.0.1:6379"
    func ledger(_ reason: String) -> String? { engine.origin(of: master, isLedger: true, reason: reason) }
    func bus(_ reason: String) -> String? { engine.origin(of: "\(address)", isLedger: false, reason: reason) }
    #expect(ledger("WRONGPASS") == "f:4: ledger")
    engine.credentialOrigin = "f:5: password-file"
    let sentinels = "\(LedgerAddress.noSentinel): refused: WRONGPASS invalid username-password pair"
    #expect(ledger(sentinels) == "f:4: ledger")
    engine.sentinelCredentialOrigin = "f:6: sentinel-password-file"
    #expect(ledger(sentinels) == "f:6: sentinel-password-file")
    #expect(ledger("NOAUTH") == "f:5: password-file")
    #expect(bus("NOPERM") == "f:5: password-file")
    #expect(bus("closed") == "f:3: bus")
    let untrusted = "certificate refused: self-signed certificate"
    #expect(bus(untrusted) == "f:3: bus", "the system's are trusted")
    engine.trustOrigin = "f:7: ca"
    #expect(bus(untrusted) == "f:7: ca")
    #expect(ledger("\(LedgerAddress.noSentinel): \(untrusted)") == "f:7: ca")
    // With several ledgers, the line of the one that is meant.
    (engine.credentialOrigin, engine.ledgerOrigins[master]) = (nil, "f:8: ledger")
    #expect(ledger("closed") == "f:8: ledger")
  }

  @Test("A member in the ledger whose name or incarnation no hub may have is left out")
  func foreignMembers() {
    let world = ClusterWorld(["a", "b"])
    let ledger = MemoryLedger(world.engine, member: "x")
    let members: [(String, UInt64)] = [("", 9), ("a b", 9), (String(repeating: "n", count: 300), 9), ("x", 0)]
    for (name, incarnation) in members {
      let record = MemberRecord(name: name, incarnation: incarnation, address: "127.0.0.1:1", version: "x")
      #expect(ledger.ask(.renew(record, leaseMilliseconds: 60_000), ticket: 1))
    }
    world.run(seconds: 5)
    #expect(world["a"].node.node.context.peers.map(\.name) == ["b"] && world["a"].node.node.counters.peers == 1)
  }

  @Test("A hub whose file names other ledgers is reported, once for each of its processes")
  func otherLedgers() {
    let world = ClusterWorld(["a"])
    let ledger = MemoryLedger(world.engine, member: "x")
    let hubs: [(String, UInt64, UInt64)] = [("b", 7, 5), ("c", 7, 0), ("b", 7, 5), ("b", 8, 6), ("b", 9, 0)]
    for (name, incarnation, ledgers) in hubs {
      let record = MemberRecord(
        name: name, incarnation: incarnation, address: "127.0.0.1:1", version: "x",
        status: MemberStatus(lag: 0, cellsWatched: 0, cellsAsked: 0, ledgers: ledgers))
      #expect(ledger.ask(.renew(record, leaseMilliseconds: 60_000), ticket: 1))
      world.run(seconds: 2.5)
    }
    let notices = world["a"].notices
    #expect(notices.count { $0 == .ledgersDiffer("b") } == 2 && !notices.contains(.ledgersDiffer("c")))
  }

  @Test("A hub reports nodes of the bus that it does not hear to the others, at once and for as long as that is so")
  func unheard() {
    let world = ClusterWorld()
    world["b"].bus.unheard = 0b10
    world.run(seconds: 0.05)
    #expect(world["a"].bus.noted == ["b": 0b10] && world["c"].bus.noted == ["b": 0b10])
    world.engine.cuts = ["b>a", "b>c"]
    world["b"].bus.unheard = 0b110
    world.run(seconds: 0.05)
    world.engine.cuts = []
    world.run(seconds: 0.3)
    #expect(world["a"].bus.noted["b"] == 0b110)
    world["b"].bus.unheard = 0
    world.run(seconds: 0.5)
    world["a"].bus.noted = [:]
    world.run(seconds: 1)
    #expect(world["a"].bus.noted == [:], "it hears all of them again")
  }

  @Test("Why the ledger cannot be used is reported from the start: once, and again for another reason")
  func reasons() {
    var now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_700_000_000_000))
    let identity = ClusterIdentity(name: "a", address: "127.0.0.1:1", version: "test", keys: testKeys)
    var node = ClusterNode(identity, outlet: 1, now: now)
    func down(_ reason: String) -> ClusterNotice { .ledgerDown("n", reason: reason) }
    for reason in ["WRONGPASS", "WRONGPASS", "closed", "closed", "WRONGPASS"] {
      node.take(ledger: .down(node: "n", reason))
    }
    #expect(node.takeNotices() == [down("WRONGPASS"), down("closed")])
    now.uptime += 1_000_000_000
    node.begin(now: now)
    for reason in ["closed", "it is a replica"] { node.take(ledger: .down(node: "n", reason)) }
    #expect(node.takeNotices() == [down("it is a replica")])
    node.take(ledger: .up(node: "n", warnings: []))
    node.take(ledger: .down(node: "n", "it is a replica"))
    #expect(node.takeNotices() == [.ledgerUp("n", warnings: []), down("it is a replica")])
  }

  @Test("What a full ledger refuses is counted, and reported once a second at most")
  func refusals() {
    var now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_700_000_000_000))
    let identity = ClusterIdentity(name: "a", address: "127.0.0.1:1", version: "test", keys: testKeys)
    var node = ClusterNode(identity, outlet: 1, now: now)
    let (ledger, bus) = (FullLedger(), MemoryBus(MemoryEngine(seed: 1), member: "a"))
    var reported = 0
    for _ in 0..<30 {
      var events: [LedgerEvent] = []
      ledger.takeEvents(into: &events)
      node.begin(now: now)
      for event in events { node.take(ledger: event) }
      for _ in 0..<10 { node.context.questions.append((.owner(key: "t:1"), .nothing)) }
      node.turn()
      node.flush(bus, ledger)
      reported += node.takeNotices().count { if case .ledgerRefused = $0 { true } else { false } }
      now.uptime += 100_000_000
    }
    #expect(node.counters.ledgerRefused >= 290)
    #expect(reported == 3)
  }

  @Test("A hub whose name a later process has does not count as reaching the others, and says so")
  func superseded() {
    let world = ClusterWorld(["a", "b"])
    world.run(seconds: 1)
    #expect(world["a"].node.node.counters.isolation == nil)
    let other = MemoryLedger(world.engine, member: "other")
    let record = MemberRecord(name: "a", incarnation: 1 << 50, address: "127.0.0.1:2", version: "test")
    #expect(other.ask(.renew(record, leaseMilliseconds: 60_000), ticket: 1))
    world.run(seconds: 3)
    let counters = world["a"].node.node.counters
    #expect(counters.isBusUp && counters.isLedgerUp && counters.isolation != nil)
    #expect(world["a"].notices.contains(.superseded(by: 1 << 50)))
    // Nothing begins at it that the others would not know of, also while it does not reach the ledger.
    for (slot, isIsolated) in [(UInt32(20), false), (21, true)] {
      world.engine.isolated = isIsolated ? ["a"] : []
      world.run(seconds: 1)
      world.ask("t1", .requested, at: "a", slot: slot)
      world.run(seconds: 0.5)
      #expect(world.answers(at: "a", slot: slot).errors == [.rateLimited] && world.trips == 0)
      let family = CredentialQuestion.begin(world.family(of: "r1", at: "a"), isKeyed: true)
      #expect(world.ask(family, at: "a").refusal == .rateLimited)
    }
    #expect(world["b"].node.node.counters.isolation == nil)
  }
}
