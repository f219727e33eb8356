// Tokens in a cluster, as one hub of it sees them: what others are asked, and what their answers become.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct SharedCredentialsTests {
  private let asker = SessionRef(outlet: 0, slot: 90, generation: 1)
  private let peer = SessionRef(outlet: 1, slot: 0, generation: 1)
  private let question = CredentialQuestion.refresh(family: InlineText("b.w1")!, subject: id("R1"), serial: 1)

  private func answers(_ outputs: [HubOutput]) -> [CredentialAnswer] {
    outputs.compactMap { if case .credentials(_, let answer) = $0 { answer } else { nil } }
  }

  @Test("what another hub answered is written down where it was asked; its new tokens do not wait for the disk there")
  func answeredElsewhere() throws {
    let bench = try DurableBench(loops: 2)
    bench.hub.joinCluster(outlet: 1)
    let source = AuditSource(.refreshTokens, by: nil, from: InlineText("192.0.2.1")!)
    let request = CredentialRequest(asker, question, source)
    let asked = bench.turn([.credentials(asker, question, source)])
    #expect(answers(asked).isEmpty && asked.contains { if case .cluster(.credentials) = $0 { true } else { false } })
    let family = TokenFamily(
      id: InlineText("b.w1")!, subject: id("R1"), role: .rider, claims: [], created: bench.now.timestamp)
    #expect(answers(bench.turn([.cluster(.credentials(request, .family(family, isNew: false)))])).count == 1)
    #expect(answers(bench.turn([.cluster(.credentials(request, .ended(2)))])).isEmpty)
    #expect(answers(bench.store()).count == 1)
    // Nobody else can have it, and what another hub asks is for this one.
    let alone = bench.turn([.cluster(.credentials(request, nil)), .credentials(peer, question, nil)]) + bench.store()
    #expect(answers(alone).map(\.status) == [401, 401])
    var text = ByteBuffer()
    for group in bench.submitted {
      try group.withUnsafeBytes { try RecordJSON.write($0, group: 1, into: &text) }
    }
    let lines = String(decoding: text.array(), as: UTF8.self).split(separator: "\n").filter { $0.contains("\"audit\"") }
    #expect(lines.count == 3 && lines.allSatisfy { $0.contains(#""action":"refresh_tokens""#) })
    for (line, status) in zip(lines, [200, 200, 401]) { #expect(line.hasSuffix("\"status\":\(status)}")) }
  }

  @Test("what a peer sends again changes nothing, and what ends here after that is sent to all")
  func toldAgain() throws {
    let bench = try DurableBench(loops: 2)
    bench.hub.joinCluster(outlet: 1)
    let known = Revocation(.subject(id("R2")), until: nil)
    func changes(_ input: HubInput) -> [RevocationChange] {
      (bench.turn([input]) + bench.store()).compactMap { if case .revoked(let change) = $0 { change } else { nil } }
    }
    let first = changes(.credentials(peer, .extend([known], isOfPeers: true), nil))
    #expect(first.count == 2 && first.allSatisfy { $0.isOfPeers })
    #expect(changes(.credentials(peer, .extend([known], isOfPeers: true), nil)).isEmpty)
    let family = TokenFamily(
      id: InlineText("a.w1")!, subject: id("R1"), role: .rider, claims: [], created: bench.now.timestamp)
    #expect(changes(.credentials(asker, .begin(family), nil)).isEmpty)
    let ended = changes(.credentials(peer, .end(of: id("R1")), nil))
    #expect(ended.count == 2 && ended.allSatisfy { !$0.isOfPeers && $0.added.map(\.cause) == [.endedFamily] })
  }

  @Test("the end of a sub's families ends those of a hub whose clock is ahead, and none that begins behind it")
  func clockAhead() throws {
    let bench = try DurableBench(loops: 2)
    bench.hub.joinCluster(outlet: 1)
    func ask(_ input: HubInput) -> [Int] { answers(bench.turn([input]) + bench.store()).map(\.status) }
    func begin(_ name: String, ahead: Int64 = 0) {
      let family = TokenFamily(
        id: InlineText(name)!, subject: id("R1"), role: .rider, claims: [], created: bench.now.timestamp + ahead)
      #expect(ask(.credentials(peer, .begin(family), nil)) == [201])
    }
    func refresh(_ name: String) -> [Int] {
      ask(.credentials(peer, .refresh(family: InlineText(name)!, subject: id("R1"), serial: 1), nil))
    }
    let margin = HubLimits.revocationMarginMilliseconds
    begin("a.w1", ahead: 5000)
    begin("a.w2", ahead: margin)
    begin("a.w3", ahead: margin + 1)
    let end = Revocation(endOfFamiliesOf: id("R1"), at: bench.now.timestamp)
    _ = ask(.credentials(peer, .extend([end], isOfPeers: true), nil))
    #expect(["a.w1", "a.w2", "a.w3"].map(refresh) == [[401], [401], [200]])
    // At the hub that is asked to end them, and to which others send that again.
    bench.advance(seconds: 1)
    let request = CredentialRequest(asker, .end(of: id("R1")), nil)
    #expect(ask(.cluster(.credentials(request, .ended(1, isComplete: false)))) == [200])
    begin("a.w4")
    _ = ask(.credentials(peer, .extend(bench.hub.allRevocations(), isOfPeers: true), nil))
    #expect(refresh("a.w4") == [200])
  }

  @Test("a revocation holds before it is stored, here and at peers, also where the disk is full and others wait for it")
  func fullDisk() throws {
    let bench = try DurableBench(loops: 2)
    bench.hub.joinCluster(outlet: 1)
    bench.store()
    func changes(_ outputs: [HubOutput]) -> [RevocationChange] {
      outputs.compactMap { if case .revoked(let change) = $0 { change } else { nil } }
    }
    let own = changes(bench.turn([.credentials(asker, .revoke(Revocation(.subject(id("R1")), until: nil)), nil)]))
    #expect(own.map(\.added.first?.name) == [.subject(id("R1")), .subject(id("R1"))])
    let full = bench.store(0, condition: .unavailable)
    #expect(answers(full).map(\.status) == [503] && changes(full).isEmpty)
    let others = Revocation(.subject(id("R2")), until: nil)
    let told = changes(bench.turn([.credentials(peer, .extend([others], isOfPeers: true), nil)]))
    #expect(told.map(\.added.first?.name) == [.subject(id("R2")), .subject(id("R2"))])
    #expect(told.allSatisfy { $0.isOfPeers && $0.number > own[0].number })
    #expect(changes(bench.store()).isEmpty, "all hear of each once, in order")
  }

  @Test("a back end ends the revocation of a stolen family no earlier, and may make it longer")
  func shortened() throws {
    let bench = try DurableBench()
    let name = RevokedName.tokenID(InlineText("f1")!)
    func revoke(until: Timestamp?) -> (Timestamp?, isNew: Bool)? {
      let answer = bench.ask(.revoke(Revocation(name, until: until)), .revoke).answer
      guard case .revoked(let revocation, let isNew)? = answer else { return nil }
      return (revocation.until, isNew)
    }
    bench.begin("f1")
    #expect(bench.refresh("f1", 1).serial == 2)
    bench.advance(seconds: 10)
    #expect(bench.refresh("f1", 1).refusal == .unauthorized)
    let theft = try #require(bench.hub.allRevocations().first)
    let soon = bench.now.timestamp + 60_000
    #expect(theft.cause == .endedFamily)
    #expect(try #require(revoke(until: soon)) == (theft.until, false))
    #expect(bench.hub.allRevocations() == [theft])
    #expect(try #require(revoke(until: nil)) == (nil, true))
    #expect(try #require(revoke(until: soon)) == (soon, true), "what a back end has given it may change")
  }

  @Test("why tokens are revoked stands in the journal, so that those of ended families keep their own room")
  func causes() throws {
    var limits = HubLimits.roomy
    (limits.revocations, limits.tokenFamilies) = (1, 1)
    let bench = try DurableBench(loops: 2, limits: limits)
    bench.hub.joinCluster(outlet: 1)
    let until = bench.now.timestamp + 900_000
    let ended = (0..<3).map { Revocation(.tokenID(InlineText("b.w\($0)")!), until: until, cause: .endedElsewhere) }
    bench.turn([.credentials(peer, .extend(ended, isOfPeers: true), nil)])
    #expect(bench.hub.allRevocations().count == 2, "twice as many as it may have families")
    bench.store()
    let next = try DurableBench(reading: bench.submitted, loops: 2, limits: limits)
    #expect(next.hub.allRevocations().map(\.cause) == [.endedElsewhere, .endedElsewhere])
    let own = Revocation(.subject(id("R1")), until: nil)
    let answer = next.turn([.credentials(asker, .revoke(own), nil)]) + next.store()
    #expect(answers(answer).map(\.status) == [201])
  }
}
