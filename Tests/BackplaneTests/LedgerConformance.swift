// What every ledger and every bus must do: one suite, run against the engine in memory and against a real one.
import HubBackplane
import HubBackplaneSupport
import HubTestSupport
import Testing

/// A ledger that answers questions one after the other.
protocol Answering {
  func answer(_ question: LedgerQuestion) throws -> LedgerAnswer
  /// The engine loses everything that it knows.
  func forget() throws
}

extension Answering {
  private func claim(_ key: String, _ member: String, known: UInt64 = 0, seizes: Bool) throws -> LedgerAnswer {
    try answer(.claim(key: key, by: member, known: known, seizes: seizes))
  }

  private func generation(_ answer: LedgerAnswer) throws -> UInt64 {
    guard case .claimed(let generation, _, _) = answer else { throw Unexpected(answer: answer) }
    return generation
  }

  func checkAll() throws {
    try checkIncarnations()
    try checkMembers()
    try checkOwners()
    try checkGenerations()
    try checkAttempts()
    try checkWaiting()
  }

  private func checkIncarnations() throws {
    guard case .incarnation(let first) = try answer(.incarnation),
      case .incarnation(let second) = try answer(.incarnation)
    else { throw Unexpected(answer: .unknown) }
    #expect(second > first)
    try forget()
    guard case .incarnation(let third) = try answer(.incarnation) else { throw Unexpected(answer: .unknown) }
    #expect(third >= 1_600_000_000, "the engine's clock, where it has lost its memory")
    let high = third + 1_000_000
    let member = MemberRecord(name: "high", incarnation: high, address: "127.0.0.1:1", version: "x")
    #expect(try answer(.renew(member, leaseMilliseconds: 5000)) == .renewed(wasKnown: false))
    #expect(try answer(.incarnation) == .incarnation(high + 1))
    #expect(try answer(.leave(name: "high", incarnation: high)) == .done)
  }

  private func checkMembers() throws {
    let a = MemberRecord(name: "a", incarnation: 5, address: "127.0.0.1:8080", version: "0.1 (commit 1a2b, Swift 6.2)")
    var b = MemberRecord(
      name: "b", incarnation: 6, address: "[::1]:8080", version: "0.1",
      status: MemberStatus(lag: 210, cellsWatched: 3, cellsAsked: 70_000, ledgers: 1 << 60))
    #expect(try answer(.members) == .members([]))
    #expect(try answer(.renew(b, leaseMilliseconds: 60_000)) == .renewed(wasKnown: false))
    #expect(try answer(.renew(a, leaseMilliseconds: 60_000)) == .renewed(wasKnown: false))
    #expect(try answer(.members) == .members([a, b]))
    // A later process of the same name goes before; the earlier one gets an error, and cannot end the later.
    b.incarnation = 9
    #expect(try answer(.renew(b, leaseMilliseconds: 60_000)) == .renewed(wasKnown: true))
    b.incarnation = 6
    #expect(try answer(.renew(b, leaseMilliseconds: 60_000)) == .superseded(by: 9))
    #expect(try answer(.leave(name: "b", incarnation: 6)) == .done)
    #expect(try answer(.leave(name: "a", incarnation: 5)) == .done)
    b.incarnation = 9
    #expect(try answer(.members) == .members([b]))
    // So a member notices that the engine has forgotten everything.
    try forget()
    for wasKnown in [false, true] {
      #expect(try answer(.renew(b, leaseMilliseconds: 60_000)) == .renewed(wasKnown: wasKnown))
    }
    #expect(try answer(.leave(name: "b", incarnation: 9)) == .done)
  }

  private func checkOwners() throws {
    #expect(try answer(.owner(key: "t:1")) == .owner(nil))
    #expect(try answer(.locate(key: "t:1", asker: "c")) == .owner(nil))
    #expect(try claim("t:1", "a", seizes: false) == .claimed(generation: 0, before: nil, waiting: ["c"]))
    #expect(try answer(.locate(key: "t:1", asker: "c")) == .owner("a"))
    #expect(try answer(.owner(key: "t:1")) == .owner("a"))
    #expect(try claim("t:1", "a", seizes: false) == .claimed(generation: 0, before: "a", waiting: []))
    #expect(try claim("t:1", "b", seizes: false) == .held(by: "a", generation: 0))
    #expect(try answer(.release(key: "t:1", by: "b")) == .done)
    #expect(try answer(.locate(key: "t:1", asker: "c")) == .owner("a"))
    #expect(try answer(.release(key: "t:1", by: "a")) == .done)
    #expect(try answer(.locate(key: "t:1", asker: "c")) == .owner(nil))
  }

  private func checkGenerations() throws {
    let first = try generation(try claim("d:1", "a", seizes: true))
    #expect(first >= 1_600_000_000_000, "the engine's clock in milliseconds")
    let taken = try claim("d:1", "b", seizes: true)
    let second = try generation(taken)
    #expect(second > first)
    #expect(taken == .claimed(generation: second, before: "a", waiting: []))
    // Who was replaced is named until it shows that it knows: who took it may have died before it notified it, and so
    // may who took it next. Who only waits is named until the owner has claimed it once more.
    for known in [0, second, second] {
      let again = try claim("d:1", "b", known: known, seizes: false)
      #expect(again == .claimed(generation: second, before: "b", waiting: ["a"]))
    }
    // It cannot come back with what it knew; who has it may say so again.
    #expect(try claim("d:1", "a", known: first, seizes: false) == .held(by: "b", generation: second))
    #expect(try claim("d:1", "a", known: second, seizes: false) == .held(by: "b", generation: second))
    #expect(
      try claim("d:1", "b", known: second, seizes: false) == .claimed(generation: second, before: "b", waiting: []))
    let takers: [(String, String, waiting: [String])] = [("c", "b", []), ("a", "c", ["b"]), ("b", "a", ["c"])]
    for (member, before, waiting) in takers {
      let taken = try claim("d:1", member, known: second, seizes: true)
      #expect(taken == .claimed(generation: try generation(taken), before: before, waiting: waiting))
    }
    #expect(try answer(.concede(key: "d:1", by: "c")) == .done)
    let named = try claim("d:1", "b", known: second, seizes: false)
    #expect(named == .claimed(generation: try generation(named), before: "b", waiting: ["a"]))
    #expect(try answer(.release(key: "d:1", by: "a")) == .done)
    let last = try claim("d:1", "b", known: 0, seizes: false)
    #expect(last == .claimed(generation: try generation(named), before: "b", waiting: []))
    // The engine has forgotten: whoever knows the highest generation has it in the end.
    try forget()
    #expect(try claim("d:1", "a", known: first, seizes: false) == .claimed(generation: first, before: nil, waiting: []))
    #expect(
      try claim("d:1", "b", known: second, seizes: false) == .claimed(generation: second, before: "a", waiting: []))
    #expect(try claim("d:1", "a", known: first, seizes: false) == .held(by: "b", generation: second))
    #expect(try generation(try claim("d:1", "c", known: 0, seizes: true)) > second)
    #expect(try generation(try claim("d:1", "c", known: 1 << 50, seizes: true)) > 1 << 50)
  }

  /// What was carried out and is asked for again, since its answer was lost, changes nothing.
  private func checkAttempts() throws {
    func take(_ member: String, _ attempt: UInt64) throws -> LedgerAnswer {
      try answer(.claim(key: "d:3", by: member, known: 0, seizes: true, attempt: attempt))
    }
    let first = try generation(try take("a", 7))
    #expect(try take("a", 7) == .claimed(generation: first, before: "a", waiting: []))
    let second = try generation(try take("b", 7))
    #expect(try take("a", 7) == .held(by: "b", generation: second))
    let third = try generation(try take("a", 8))
    #expect(third > second)
    #expect(try take("b", 7) == .held(by: "a", generation: third))
    #expect(try answer(.release(key: "d:3", by: "a")) == .done)
    #expect(try generation(try take("b", 7)) > 0)
  }

  private func checkWaiting() throws {
    for asker in ["c", "b", "c"] { #expect(try answer(.locate(key: "t:2", asker: asker)) == .owner(nil)) }
    #expect(try claim("t:2", "a", seizes: false) == .claimed(generation: 0, before: nil, waiting: ["b", "c"]))
    #expect(try claim("t:2", "a", seizes: false) == .claimed(generation: 0, before: "a", waiting: []))
    // An id may hold what the engine's keys and the script's texts must not trip over.
    let odd = "t:" + String(repeating: "\u{7f}\"'\\ \u{e9}", count: 6)
    #expect(try claim(odd, "a", seizes: false) == .claimed(generation: 0, before: nil, waiting: []))
    #expect(try answer(.locate(key: odd, asker: "b")) == .owner("a"))
  }
}

struct Unexpected: Error {
  let answer: LedgerAnswer
}

/// The ledger of the engine in memory.
private struct InMemory: Answering {
  let engine = MemoryEngine(seed: 1)
  let ledger: MemoryLedger

  init() { ledger = MemoryLedger(engine, member: "a") }

  func forget() { engine.forget() }

  func answer(_ question: LedgerQuestion) throws -> LedgerAnswer {
    #expect(ledger.ask(question, ticket: 7))
    engine.advance(by: 1_000_000)
    var events: [LedgerEvent] = []
    ledger.takeEvents(into: &events)
    guard case .answer(7, let answer) = events.last else { throw Unexpected(answer: .unknown) }
    return answer
  }
}

@Suite struct MemoryEngineTests {
  @Test("The ledger in memory keeps what a ledger promises")
  func ledger() throws { try InMemory().checkAll() }

  @Test("The bus in memory delivers in order, and loses, doubles, delays and cuts as the test sets")
  func bus() {
    let engine = MemoryEngine(seed: 3)
    let (a, b) = (MemoryBus(engine, member: "a"), MemoryBus(engine, member: "b"))
    func frames() -> [UInt8] {
      engine.advance(by: 100_000_000)
      var events: [BusEvent] = []
      b.takeEvents(into: &events)
      return events.compactMap { if case .frame(_, let bytes) = $0 { bytes[0] } else { nil } }
    }
    _ = frames()
    for number in 0..<5 { #expect(a.send([UInt8(number)], to: "b", lane: .control)) }
    #expect(frames() == [0, 1, 2, 3, 4])
    engine.cuts = ["a>b"]
    #expect(a.send([9], to: "b", lane: .control))
    engine.cuts = []
    engine.faults.doubled = 1
    #expect(a.send([8], to: "b", lane: .state))
    #expect(frames() == [8, 8])
    engine.isolated = ["a"]
    #expect(!a.send([7], to: "b", lane: .state))
    #expect(frames() == [])
  }
}
