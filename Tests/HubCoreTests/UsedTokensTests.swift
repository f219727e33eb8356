// Refresh tokens that were used, and questions for tokens that are asked again: none gives more than it gave, however
// long ago that was, over restarts too.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct UsedTokensTests {
  @Test("a token that was used is used after a restart, too, however idle the hub was", arguments: [false, true])
  func idle(fromSnapshot: Bool) throws {
    let bench = try DurableBench()
    bench.begin("f1")
    bench.begin("f2")
    for family in ["f1", "f2"] { #expect(bench.refresh(family, 1).serial == 2) }
    bench.advance(seconds: 12)
    bench.turn([])
    bench.store()
    let next = try bench.restarted(after: 3600, fromSnapshot: fromSnapshot)
    #expect(next.refresh("f1", 1).refusal == .unauthorized && next.refresh("f1", 2).refusal == .unauthorized)
    #expect(next.refresh("f2", 2).serial == 3, "who has the newest continues")
  }

  @Test("an answer that left late may have been lost with the hub: it is given again")
  func late() throws {
    let bench = try DurableBench()
    bench.begin("f1")
    #expect(bench.refresh("f1", 1, stores: false) == nil)
    bench.advance(seconds: 12)
    bench.turn([])
    bench.store()
    var next = try bench.restarted(after: 1)
    #expect(next.refresh("f1", 1).serial == 2)
    next.advance(seconds: 12)
    next.turn([])
    next = try DurableBench(reading: bench.submitted + next.submitted, seed: 77, uptime: next.now.uptime + 1)
    #expect(next.refresh("f1", 1).refusal == .unauthorized, "that time is over once")
  }

  @Test(
    "of a million tokens that are forged or were used, 11 s and longer ago, none gives a token, over restarts",
    .timeLimit(.minutes(5)))
  func million() throws {
    var (bench, records) = (try DurableBench(), [[UInt8]]())
    var random = SplitMix64(seed: 20_261_125)
    var (questions, reused): (Int, UInt64) = (0, 0)
    for round in 0..<40 {
      var serials = (0..<100).map { _ in UInt64(1) }
      for number in serials.indices { bench.begin("f\(round)-\(number)", of: "R\(number)") }
      for _ in 0..<4 {
        for number in serials.indices where random.next() & 1 == 0 {
          #expect(
            bench.refresh("f\(round)-\(number)", serials[number], of: "R\(number)").serial == serials[number] + 1)
          serials[number] += 1
        }
        bench.advance(seconds: Double(1 + random.next() % 20))
      }
      bench.advance(seconds: 11)
      bench.turn([])
      bench.store()
      // Nobody has asked anything since, when the hub is killed.
      if round % 4 != 0 {
        records = round % 4 == 1 ? try bench.snapshot() : records + bench.submitted
        reused += bench.hub.counters.tokensReused
        bench = try DurableBench(reading: records, seed: 77, uptime: bench.now.uptime + 1_000_000_000)
      }
      let inputs = (0..<25_000).map { _ in
        let number = Int(random.next() % 100)
        let isKnown = random.next() & 3 == 0
        let subject = id(random.next() & 7 == 0 ? "stranger" : "R\(number)")
        let serial = serials[number] > 1 ? 1 + random.next() % (serials[number] - 1) : 7
        return HubInput.credentials(
          DurableBench.asker,
          .refresh(
            family: InlineText(isKnown ? "f\(round)-\(number)" : "g\(random.next())")!, subject: subject,
            serial: serial), bench.source(.refreshTokens, nil))
      }
      questions += inputs.count
      let answers = (bench.turn(inputs) + bench.store()).compactMap { output -> CredentialAnswer? in
        if case .credentials(_, let answer) = output { answer } else { nil }
      }
      #expect(answers.count == inputs.count && answers.allSatisfy { Optional($0).refusal == .unauthorized })
    }
    reused += bench.hub.counters.tokensReused
    #expect(questions == 1_000_000 && reused == 4000, "each family was alive when a token of it was shown")
  }

  @Test("who asks once more for the tokens of a key has the same, until they are refreshed", arguments: [false, true])
  func repeated(restarts: Bool) throws {
    var bench = try DurableBench()
    bench.begin("k1")
    bench.advance(seconds: 60)
    if restarts { bench = try bench.restarted(after: 60) }
    var again = bench.family("k1")
    guard case .family(let family, isNew: false)? = bench.ask(.begin(again)).answer else {
      return #expect(Bool(false))
    }
    #expect(family.serial == 1 && family.created < again.created, "the pair holds as long as it did")
    #expect(bench.ask(.begin(bench.family("k1", of: "R2"))).answer.refusal == .invalidTransition)
    again = TokenFamily(
      id: again.id, subject: again.subject, role: .driver, claims: again.claims, created: again.created)
    #expect(bench.ask(.begin(again)).answer.refusal == .invalidTransition)
    #expect(bench.refresh("k1", 1).serial == 2)
    #expect(bench.ask(.begin(bench.family("k1"))).answer.refusal == .invalidTransition, "somebody has them")
    guard case .families(let all, _)? = bench.ask(.families(of: id("R1")), .listTokens).answer else {
      return #expect(Bool(false))
    }
    #expect(all.count == 1)
  }

  @Test("what a full disk leaves out of the audit trail is counted, and the next line says how much it was")
  func auditOnFullDisk() throws {
    let bench = try DurableBench()
    bench.begin("f1")
    bench.store(0, condition: .unavailable)
    #expect(bench.ask(.begin(bench.family("f2")), stores: false).answer.refusal == .storageFull)
    #expect(bench.refresh("f1", 1, stores: false).refusal == .storageFull)
    bench.turn([.audit(AuditEntry(bench.source(.revoke, nil), about: nil, status: 401))])
    #expect(bench.hub.counters.auditLeftOut == 3)
    bench.store()
    bench.advance(seconds: 1)
    #expect(bench.refresh("f1", 1).serial == 2)
    var text = ByteBuffer()
    for group in bench.submitted { try group.withUnsafeBytes { try RecordJSON.write($0, group: 1, into: &text) } }
    let lines = String(decoding: text.array(), as: UTF8.self).split(separator: "\n").filter { $0.contains("\"audit\"") }
    #expect(lines.count == 2 && lines.last?.hasSuffix(#""status":200,"leftOut":3}"#) == true)
    #expect(bench.hub.counters.tokens == [1, 1, 2])
  }
}
