// Refresh tokens in a cluster: each is good once, at whichever hub it is shown, and what ends a family ends it at all.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct FamilyQuestionsTests {
  @Test("A refresh token of one hub gives the next one at any hub, and within 10 s the same again at any other")
  func elsewhere() {
    let world = ClusterWorld()
    let family = world.begin(of: "r1", at: "a")
    #expect(world.ask(family, 1, at: "b").serial == 2)
    #expect(world.ask(family, 2, at: "c").serial == 3)
    #expect(world.ask(family, 2, at: "b").serial == 3 && world.ask(family, 2, at: "a").serial == 3)
    #expect(world.ask(family, 3, at: "a").serial == 4)
    // It is older than the newest but one, so somebody else has it.
    #expect(world.ask(family, 2, at: "c").refusal == .unauthorized)
    #expect(world.ask(family, 4, at: "b").refusal == .unauthorized)
    world.run(seconds: 1)
    for name in ["a", "b", "c"] {
      #expect(world[name].revoked == [.tokenID(family)], "its access tokens have ended everywhere")
    }
    // Of nobody in this cluster, and of one who has never been heard.
    #expect(world.ask(InlineText("0123")!, 1, at: "b").refusal == .unauthorized)
    #expect(world.ask(InlineText("a.0123")!, 1, at: "b").refusal == .unauthorized)
    #expect(world.ask(InlineText("d.0123")!, 1, at: "b").refusal == .rateLimited)
  }

  @Test("A hub that is not reached is a refusal that uses up nothing; a lost answer is given again")
  func unreached() {
    let world = ClusterWorld()
    let family = world.begin(of: "r1", at: "a")
    world.engine.isolated = ["a"]
    #expect(world.ask(family, 1, at: "b").refusal == .rateLimited)
    world.run(seconds: 20)
    #expect(world.ask(family, 1, at: "c").refusal == .rateLimited)
    #expect(world.ask(family, 1, at: "a").serial == 2, "the hub itself continues")
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(world.ask(family, 2, at: "b").serial == 3)
    world.engine.cuts = ["a>b"]
    #expect(world.ask(family, 3, at: "b").refusal == .rateLimited)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(world.ask(family, 3, at: "b").serial == 4)
    world.engine.cuts = ["a>b"]
    let slot = world.put(.refresh(family: family, subject: id("r1"), serial: 4), at: "b")
    world.run(seconds: 0.7)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(world.answer(slot, at: "b").serial == 5, "asked again")
    #expect(world["b"].node.node.counters.pending == 0)
  }

  @Test("A question that was so late that its asker was refused is not heard: it would count as a second use")
  func late() {
    let world = ClusterWorld()
    let family = world.begin(of: "r1", at: "a")
    world.run(seconds: 1)
    world.engine.faults.delayed = 1
    world.engine.faults.delay = 8_000_000_000
    let slot = world.put(.refresh(family: family, subject: id("r1"), serial: 1), at: "b")
    world.step()
    world.engine.faults.delayed = 0
    world.engine.cuts = ["b>a"]
    world.run(seconds: 3.5)
    #expect(world.answer(slot, at: "b").refusal == .rateLimited)
    for serial in 1...3 { #expect(world.ask(family, UInt64(serial), at: "c").serial == UInt64(serial + 1)) }
    world.run(seconds: 6)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(world.ask(family, 4, at: "b").serial == 5, "the family lives")
  }

  @Test("The families of a sub are those of all hubs, and end at all; a hub that is away ends them when it is back")
  func whole() {
    let world = ClusterWorld()
    let families = ["a", "b", "c"].map { name in
      world.run(seconds: 0.1)
      return world.begin(of: "r1", at: name)
    }
    _ = world.begin(of: "r2", at: "b")
    #expect(world.list("r1", at: "c").ids == families.reversed() && world.list("r1", at: "c").isComplete)
    world.engine.isolated = ["a"]
    world.run(seconds: 1.5)
    #expect(world.list("r1", at: "c").ids == [families[2], families[1]] && !world.list("r1", at: "c").isComplete)
    world.run(seconds: 10)  // it is no member any more
    #expect(!world.list("r1", at: "c").isComplete)
    #expect(world.ask(.end(of: id("r1")), at: "b").ended == 2, "what could be reached has ended")
    let later = world.begin(of: "r1", at: "b")
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(world.list("r1", at: "c").ids == [later], "who was away has heard of it, and what came after it stays")
    #expect(world.ask(.end(of: id("r1")), at: "b").ended == 1 && world.ask(.end(of: id("r1")), at: "b").ended == 0)
    world.run(seconds: 1)
    let all = Set((families + [later]).map { RevokedName.tokenID($0) }).union([.families(of: id("r1"))])
    for name in ["a", "b", "c"] { #expect(Set(world[name].revoked) == all) }
    #expect(world.list("r2", at: "c").ids.count == 1)
    #expect(world.ask(families[0], 1, at: "c").refusal == .unauthorized)
  }

  @Test("Questions past the limits are refused and may be put again")
  func limits() {
    var limits = ClusterLimits()
    limits.pending = 2
    limits.asksPerPeer = 1
    let world = ClusterWorld(limits: limits)
    let families = (0..<4).map { world.begin(of: "r\($0)", at: "a") }
    func put(_ number: Int, at name: String) -> UInt32 {
      world.put(.refresh(family: families[number], subject: id("r\(number)"), serial: 1), at: name)
    }
    let slots = (0..<4).map { put($0, at: "b") }
    world.run(seconds: 0.5)
    let answers = slots.map { world.answer($0, at: "b") }
    #expect(answers.map(\.serial) == [2, nil, nil, nil])
    #expect(answers.map(\.refusal) == [nil, .rateLimited, .rateLimited, .rateLimited])
    for number in 1..<4 {
      let slot = put(number, at: "b")
      world.run(seconds: 0.5)
      #expect(world.answer(slot, at: "b").serial == 2)
    }
  }

  @Test("Tokens of a key that a hub has no room for are made by another hub, where they are asked for again")
  func noRoom() {
    var limits = HubLimits()
    limits.tokenFamilies = 1
    let world = ClusterWorld(hubLimits: limits)
    _ = world.begin(of: "r1", at: "a")
    let family = world.family(of: "r2", at: "a")
    func ask(at name: String) -> CredentialAnswer? {
      world.ask(.begin(family.begun(at: name), isKeyed: true), at: name)
    }
    #expect(ask(at: "a").refusal == .storageFull)
    world.run(seconds: 0.1)
    #expect(world.engine.owner(of: "k:\(family.word)") == nil)
    let made = ask(at: "b")
    #expect(made.serial == 1 && made.isNew && world.engine.owner(of: "k:\(family.word)") == "b")
    for name in ["c", "a"] { #expect(ask(at: name).family?.id == made.family?.id) }
    // A refusal of what was made before does not let go of it.
    let other = TokenFamily(
      id: TokenFamily.id(family.word, at: "b"), subject: id("r3"), role: .rider, claims: [], created: family.created)
    #expect(world.ask(.begin(other, isKeyed: true), at: "b").refusal == .invalidTransition)
    #expect(world.ask(.end(of: id("r2")), at: "b").ended == 1)
    #expect(ask(at: "b").refusal == .forbidden)
    world.run(seconds: 0.1)
    #expect(world.engine.owner(of: "k:\(family.word)") == "b")
  }

  @Test("Families that ended elsewhere have room of their own beside revocations, up to a limit")
  func room() {
    var limits = HubLimits()
    limits.tokenFamilies = 2
    limits.revocations = 1
    let world = ClusterWorld(hubLimits: limits)
    for number in 0..<4 {
      for name in ["a", "c"] {
        guard world.ask(.begin(world.family(of: "r\(number)", at: name)), at: name).serial == 1 else { continue }
        #expect(world.ask(.end(of: id("r\(number)")), at: "b").ended == 1)
        world.run(seconds: 0.1)
      }
    }
    #expect(world["b"].hub.hub.allRevocations().count == 4, "two families of each")
    let own = Revocation(.subject(id("r9")), until: nil)
    guard case .revoked(_, isNew: true)? = world.ask(.extend([own], isOfPeers: false), at: "b") else {
      Issue.record("no room for the first revocation")
      return
    }
    world.run(seconds: 0.5)
    #expect(world["a"].hub.hub.allRevocations().count == 5)
  }

  @Test("A hub that signs with another key than the others, or with none, is named once in the log of each")
  func keys() {
    let world = ClusterWorld(["a", "b", "c"], tokenKeys: ["a": 1, "b": 1, "c": 2])
    func named(_ name: String) -> [String] {
      world[name].notices.compactMap { if case .tokenKeyDiffers(let peer) = $0 { peer } else { nil } }
    }
    #expect(named("a") == ["c"] && named("b") == ["c"] && Set(named("c")) == ["a", "b"])
    world.engine.cuts = ["c>a"]
    world.run(seconds: 2)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(named("a") == ["c"])
    let none = ClusterWorld(["a", "b"], tokenKeys: ["a": 1])
    #expect(none["b"].notices.contains(.tokenKeyDiffers("a")) && none["a"].notices.contains(.tokenKeyDiffers("b")))
  }

  @Test(
    "Over lost, late and doubled frames no token is good twice, nobody honest loses a family, and no thief keeps one")
  func histories() {
    var outcomes = (refreshed: 0, refused: 0, ended: 0)
    for seed in 1...8 {
      let history = FamilyHistory(seed: UInt64(seed))
      history.run(seconds: 40)
      history.settle()
      #expect(history.faults == [], "seed \(seed)")
      outcomes.refreshed += history.refreshed
      outcomes.refused += history.refused
      outcomes.ended += history.ended
    }
    #expect(outcomes.refreshed > 400 && outcomes.refused > 15 && outcomes.ended >= 24, "\(outcomes)")
  }
}

/// Clients that refresh their tokens at any hub, thieves that have copies of some, and a bus that loses, doubles and
/// delays frames.
private final class FamilyHistory {
  /// Somebody who has a refresh token.
  final class Holder {
    let family: InlineText
    let isThief: Bool
    var serial: UInt64
    /// The hub that was asked, and the slot.
    var asked: (hub: String, slot: UInt32)?
    /// When the token was shown first (uptime, ns), and may be shown again.
    var shownAt: Int64?
    var waitsUntil: Int64 = 0
    var hasEnded = false

    init(_ family: InlineText, serial: UInt64, isThief: Bool) {
      (self.family, self.serial, self.isThief) = (family, serial, isThief)
    }
  }

  private let world: ClusterWorld
  private var random: SplitMix64
  private var holders: [Holder] = []
  private let stolen: Set<InlineText>
  /// When the tokens of each serial were made.
  private var made: [InlineText: [UInt64: Timestamp]] = [:]
  var faults: [String] = []
  private(set) var refreshed = 0
  private(set) var refused = 0
  private(set) var ended = 0
  private let names = ["a", "b", "c"]

  init(seed: UInt64) {
    random = SplitMix64(seed: seed)
    let world = ClusterWorld(seed: seed)
    let families = ["a", "b", "c", "a", "b", "c"].map { world.begin(of: "r1", at: $0) }
    self.world = world
    stolen = Set(families.prefix(3))
    holders = families.map { Holder($0, serial: 1, isThief: false) }
    world.engine.faults.lost = 0.05
    world.engine.faults.doubled = 0.1
    world.engine.faults.delayed = 0.2
    world.engine.faults.delay = 400_000_000
  }

  func run(seconds: Int) {
    for step in 0..<(seconds * 100) {
      if step % 500 == 250 {
        world.engine.cuts = Bool.random(using: &random) ? ["\(names.randomElement(using: &random)!)>b"] : []
      }
      if step % 500 == 400 { world.engine.cuts = [] }
      if step == seconds * 30 {
        holders += holders.filter { stolen.contains($0.family) }.map {
          Holder($0.family, serial: $0.serial, isThief: true)
        }
      }
      turn()
    }
  }

  private func turn(asks: Bool = true) {
    for holder in holders where !holder.hasEnded {
      if let asked = holder.asked {
        if let answer = world.answer(asked.slot, at: asked.hub) { take(answer, holder) }
      } else if asks, world.now.uptime >= holder.waitsUntil {
        holder.shownAt = holder.shownAt ?? world.now.uptime
        let hub = names.randomElement(using: &random)!
        holder.asked = (
          hub, world.put(.refresh(family: holder.family, subject: id("r1"), serial: holder.serial), at: hub)
        )
      }
    }
    world.step()
  }

  private func take(_ answer: CredentialAnswer, _ holder: Holder) {
    let wait = Int64.random(in: 0...2_000_000_000, using: &random)
    switch answer {
    case .family(let family, _):
      refreshed += 1
      if family.serial != holder.serial + 1 { faults.append("\(holder.serial) gave \(family.serial)") }
      if let known = made[holder.family]?[family.serial], known != family.rotated {
        faults.append("two answers to \(holder.serial)")
      }
      made[holder.family, default: [:]][family.serial] = family.rotated
      (holder.serial, holder.shownAt, holder.waitsUntil) = (family.serial, nil, world.now.uptime + wait)
    case .refused(let error) where error.code == .unauthorized:
      holder.hasEnded = true
      ended += 1
      // The answer to a token that was shown for 10 s may have been lost all the time.
      let shown = world.now.uptime - (holder.shownAt ?? 0)
      if !stolen.contains(holder.family), shown < 10_000_000_000 { faults.append("\(holder.family) ended by itself") }
    case .refused(let error):
      refused += 1
      if error.code != .rateLimited { faults.append("\(error)") }
      holder.waitsUntil = world.now.uptime + 2_000_000_000
    case .families, .ended, .sessions, .revoked, .revocations, .unrevoked: faults.append("another answer")
    }
    holder.asked = nil
  }

  /// Without faults: all who have tokens of a stolen family show them, one after the other.
  func settle() {
    world.engine.faults = EngineFaults()
    world.engine.cuts = []
    for _ in 0..<500 { turn() }
    for _ in 0..<500 { turn(asks: false) }
    if holders.contains(where: { $0.asked != nil }) { faults.append("somebody has no answer") }
    world.run(seconds: 11)
    for holder in holders where stolen.contains(holder.family) {
      _ = world.ask(holder.family, holder.serial, at: names.randomElement(using: &random)!)
      world.run(seconds: 11)
    }
    for holder in holders where stolen.contains(holder.family) {
      for name in names where world.ask(holder.family, holder.serial, at: name).refusal != .unauthorized {
        faults.append("\(holder.family) lives, and somebody else has it")
      }
    }
    for name in names where !Set(stolen.map { .tokenID($0) }).isSubset(of: world[name].revoked) {
      faults.append("access tokens live at \(name)")
    }
    for holder in holders where !stolen.contains(holder.family) && !holder.hasEnded {
      if world.ask(holder.family, holder.serial, at: "b").serial == nil { faults.append("\(holder.family) has ended") }
    }
  }
}
