// Tokens that are asked for with a key, at whichever hubs, and how many sessions an id has open at all of them.
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubCluster

@Suite struct KeyedTokensTests {
  @Test("Tokens that are asked for with one key are one family at whichever hubs, one after the other or at once")
  func keyed() {
    let world = ClusterWorld()
    let family = world.family(of: "r1", at: "b")
    guard case .family(let first, isNew: true)? = world.ask(.begin(family, isKeyed: true), at: "b") else {
      Issue.record("no family began")
      return
    }
    for name in ["a", "c", "b"] {
      let again = world.ask(.begin(family.begun(at: name), isKeyed: true), at: name)
      #expect(again.family?.id == first.id && again.serial == 1 && !again.isNew, "at \(name)")
    }
    let other = TokenFamily(
      id: family.id, subject: id("r2"), role: .rider, claims: family.claims, created: world.now.timestamp)
    #expect(world.ask(.begin(other.begun(at: "c"), isKeyed: true), at: "c").refusal == .invalidTransition)
    #expect(world.ask(first.id, 1, at: "a").serial == 2)
    #expect(world.ask(.begin(family.begun(at: "c"), isKeyed: true), at: "c").refusal == .invalidTransition)
    #expect(world.ask(.end(of: id("r1")), at: "c").ended == 1)
    for name in ["a", "b", "c"] {
      #expect(world.ask(.begin(family.begun(at: name), isKeyed: true), at: name).refusal == .forbidden, "at \(name)")
    }
    for number in 0..<20 {
      let family = world.family(of: "s\(number)", at: "a")
      let slots = ["a", "b", "c"].map { ($0, world.put(.begin(family.begun(at: $0), isKeyed: true), at: $0)) }
      world.run(seconds: 0.5)
      let answers = slots.map { world.answer($0.1, at: $0.0) }
      #expect(Set(answers.compactMap(\.family?.id)).count == 1 && answers.count(where: \.isNew) == 1)
    }
    #expect(world["a"].node.node.counters.pending == 0)
  }

  @Test("The hub that makes the tokens of a key is waited for; without the engine each hub makes its own")
  func keyedUnreached() {
    let world = ClusterWorld()
    let family = world.family(of: "r1", at: "a")
    world.engine.cuts = ["a>b"]
    #expect(world.ask(.begin(family, isKeyed: true), at: "a").serial == 1)
    #expect(world.ask(.begin(family.begun(at: "b"), isKeyed: true), at: "b").refusal == .rateLimited)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(world.ask(.begin(family.begun(at: "b"), isKeyed: true), at: "b").family?.id == family.id)
    world.kill("a")
    #expect(world.ask(.begin(family.begun(at: "b"), isKeyed: true), at: "b").refusal == .rateLimited)
    world.engine.isolated = ["b", "c"]
    world.run(seconds: 2)
    let alone = world.ask(.begin(family.begun(at: "b"), isKeyed: true), at: "b").family
    #expect(alone?.id == family.begun(at: "b").id)
  }

  @Test("The open sessions of an id are those at all hubs; a hub that does not answer is reported as missing")
  func sessions() {
    let world = ClusterWorld(openSessions: { hub, name in
      guard name == id("d1") else { return [:] }
      return ["a": [.driver: 1], "b": [.driver: 2, .ops: 1]][hub] ?? [:]
    })
    #expect(world.sessions("d1", at: "c") == ([.driver: 3, .ops: 1], true))
    #expect(world.sessions("d1", at: "a") == ([.driver: 3, .ops: 1], true))
    #expect(world.sessions("d2", at: "b") == ([:], true))
    world.engine.cuts = ["a>c"]
    #expect(world.sessions("d1", at: "c") == ([.driver: 2, .ops: 1], false))
    world.engine.cuts = []
    world.run(seconds: 2)
    world.kill("a")
    world.run(seconds: 2)
    #expect(world.sessions("d1", at: "c") == ([.driver: 2, .ops: 1], false), "it may be there still")
    world.run(seconds: 8)
    #expect(world.sessions("d1", at: "c") == ([.driver: 2, .ops: 1], true), "its lease is over")
    world.engine.isolated = ["b"]
    world.run(seconds: 2)
    #expect(world.sessions("d1", at: "b") == ([.driver: 2, .ops: 1], false), "it hears nobody")
  }
}
