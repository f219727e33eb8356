// Several ledgers as one.
import HubBackplaneSupport
import Testing

@testable import HubBackplane

/// Three engines in memory.
private struct Several: Answering {
  let engines = (1...3).map { MemoryEngine(seed: $0) }
  let ledger: LedgerSet

  init() {
    ledger = LedgerSet(engines.enumerated().map { ("redis://10.0.0.\($0):6379", MemoryLedger($1, member: "a")) })
  }

  func events() -> [LedgerEvent] {
    var events: [LedgerEvent] = []
    for engine in engines { engine.advance(by: 1_000_000) }
    ledger.takeEvents(into: &events)
    return events
  }

  func forget() { for engine in engines { engine.forget() } }

  func answer(_ question: LedgerQuestion) throws -> LedgerAnswer {
    #expect(ledger.ask(question, ticket: 7))
    for case .answer(7, let answer) in events() { return answer }
    throw Unexpected(answer: .unknown)
  }
}

/// A ledger of which the test says how full it is.
private final class Filling: Ledger {
  var isUp: Bool { true }
  var memory: LedgerMemory?

  func ask(_ question: LedgerQuestion, ticket: UInt64) -> Bool { true }

  func takeEvents(into events: inout [LedgerEvent]) {
    if let memory { events.append(.memory(memory)) }
    memory = nil
  }
}

@Suite struct LedgerSetTests {
  @Test("Several ledgers keep what one promises")
  func conformance() throws { try Several().checkAll() }

  @Test("Each has a part of the keys, the same one in whatever order a hub names them, and one has the members")
  func parts() throws {
    let several = Several()
    for number in 0..<300 {
      let key = "d:\(number)"
      _ = try several.answer(.claim(key: key, by: "a", known: 0, seizes: true))
      #expect(several.engines.count { $0.owner(of: key) == "a" } == 1)
      #expect(try several.answer(.owner(key: key)) == .owner("a"))
    }
    for engine in several.engines {
      #expect((60...140).contains((0..<300).count { engine.owner(of: "d:\($0)") != nil }))
    }
    let names = several.engines.indices.map { "redis://10.0.0.\($0):6379" }
    let engines = zip(names, several.engines).reversed()
    let other = LedgerSet(engines.map { ($0, MemoryLedger($1, member: "b")) })
    for number in 0..<300 {
      let home = other.home(of: .locate(key: "d:\(number)", asker: "b"))
      #expect(Array(engines)[home].1.owner(of: "d:\(number)") == "a")
    }
    let questions: [LedgerQuestion] = [.incarnation, .members, .leave(name: "a", incarnation: 1)]
    #expect(Set(questions.map { other.home(of: $0) }).count == 1)
    #expect(Rendezvous.digest(names) == Rendezvous.digest(names.reversed()) && Rendezvous.digest(names) != 0)
    #expect(Rendezvous.digest([names[0]]) == 0)
    #expect(Rendezvous.digest(Array(names.dropLast())) != Rendezvous.digest(names))
  }

  @Test("They are up while all of them are")
  func allOrNone() throws {
    let several = Several()
    several.engines[1].isolated = ["a"]
    #expect(!several.ledger.isUp && several.events() == [], "two have come up")
    #expect(!several.ledger.ask(.members, ticket: 1))
    several.engines[1].isolated = []
    #expect(several.events() == Array(repeating: .up(node: "memory", warnings: []), count: 3))
    #expect(try several.answer(.members) == .members([]))
    several.engines[2].isolated = ["a"]
    #expect(several.events() == [.down(node: "memory", "isolated")])
    for number in 0..<10 { #expect(!several.ledger.ask(.owner(key: "d:\(number)"), ticket: 1)) }
    several.engines[2].isolated = []
    #expect(several.events() == [.up(node: "memory", warnings: [])])
  }

  @Test("The fullest says how full they are")
  func memory() {
    let parts = (0..<3).map { _ in Filling() }
    let ledger = LedgerSet(parts.enumerated().map { ("\($0)", $1) })
    func events() -> [LedgerEvent] {
      var events: [LedgerEvent] = []
      ledger.takeEvents(into: &events)
      return events
    }
    parts[2].memory = LedgerMemory(used: 800, limit: 0)
    #expect(events() == [.memory(LedgerMemory(used: 800, limit: 0))])
    parts[0].memory = LedgerMemory(used: 700, limit: 0)
    #expect(events() == [.memory(LedgerMemory(used: 800, limit: 0))])
    parts[1].memory = LedgerMemory(used: 50, limit: 100)
    #expect(events() == [.memory(LedgerMemory(used: 50, limit: 100))])
    parts[2].memory = LedgerMemory(used: 100, limit: 400)
    #expect(events() == [.memory(LedgerMemory(used: 50, limit: 100))])
  }
}
