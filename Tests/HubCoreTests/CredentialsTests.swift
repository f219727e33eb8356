// Tokens that the hub makes and ends: each refresh token gives one answer, over restarts too, and what is revoked stays
// so until its time is over.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct CredentialsTests {
  private func name(_ id: String) -> RevokedName { .tokenID(InlineText(id)!) }

  @Test("a refresh token gives the next one; for 10 s a repeated question gets the same, later all of the family end")
  func rotation() throws {
    let bench = try DurableBench()
    bench.begin("f1")
    bench.advance(seconds: 60)
    #expect(bench.refresh("f1", 1).serial == 2)
    bench.advance(seconds: 9.9)
    #expect(bench.refresh("f1", 1).serial == 2, "its answer was lost")
    #expect(bench.refresh("f1", 2).serial == 3)
    #expect(bench.refresh("f1", 1).refusal == .unauthorized, "that one is older")
    #expect(bench.refresh("f1", 3).refusal == .unauthorized, "the family has ended")
    #expect(bench.revocations() == [name("f1")], "and so have its access tokens")

    bench.begin("f2")
    #expect(bench.refresh("f2", 1).serial == 2)
    bench.advance(seconds: 10)
    #expect(bench.refresh("f2", 1).refusal == .unauthorized && bench.refresh("f2", 2).refusal == .unauthorized)
    #expect(bench.hub.counters.tokensReused == 2)
  }

  @Test("a token of another, or that the hub never gave, changes nothing for whoever has the right one")
  func forged() throws {
    let bench = try DurableBench()
    bench.begin("f1")
    #expect(bench.refresh("f1", 1, of: "R2").refusal == .unauthorized)
    #expect(bench.refresh("f9", 1).refusal == .unauthorized)
    #expect(bench.refresh("f1", 1).serial == 2)
  }

  @Test("no answer leaves before it is stored, and a full disk costs nobody the family")
  func fullDisk() throws {
    let bench = try DurableBench()
    bench.begin("f1")
    #expect(bench.refresh("f1", 1, stores: false) == nil)
    bench.store(0, condition: .unavailable)
    for _ in 0..<30 {
      bench.advance(seconds: 5)
      #expect(bench.refresh("f1", 1, stores: false).refusal == .storageFull)
    }
    bench.store()
    #expect(bench.refresh("f1", 1).serial == 2)
  }

  @Test("a full disk hides from nobody what is revoked")
  func listsOnFullDisk() throws {
    let bench = try DurableBench()
    _ = bench.ask(.revoke(Revocation(name("t1"), until: nil)), .revoke)
    #expect(bench.ask(.revoke(Revocation(name("t2"), until: nil)), .revoke, stores: false).answer == nil)
    bench.store(0, condition: .unavailable)
    let answer = bench.ask(.revocations(from: 0, limit: 9), .revoke, stores: false).answer
    guard case .revocations(let found, next: nil)? = answer else { return #expect(answer == nil) }
    #expect(Set(found.map(\.name)) == [name("t1"), name("t2")])
  }

  @Test("what has expired is in no later snapshot, whether it did before or after a restart", arguments: [false, true])
  func expired(restarts: Bool) throws {
    var bench = try DurableBench()
    bench.begin("f1")
    bench.begin("f2", of: "R2")
    _ = bench.ask(.end(of: id("R2")), .endTokens)
    _ = bench.ask(.revoke(Revocation(name("t1"), until: bench.now.timestamp + 60_000)), .revoke)
    let days = Double(31 * 86_400)
    if restarts { bench = try bench.restarted(after: days, fromSnapshot: true) } else { bench.advance(seconds: days) }
    for _ in 0..<26 {
      bench.turn([])
      bench.store()
      bench.advance(seconds: 3601)
    }
    #expect(bench.revocations().isEmpty)
    let left = try DurableBench(reading: bench.snapshot(), uptime: bench.now.uptime).state()
    #expect(
      !left.contains {
        switch $0 {
        case .tokenFamily, .revocation: true
        default: false
        }
      })
  }

  @Test("what expires while nothing can be stored is forgotten later")
  func expiresOnFullDisk() throws {
    let bench = try DurableBench()
    bench.begin("f1")
    _ = bench.ask(.revoke(Revocation(name("t1"), until: bench.now.timestamp + 60_000)), .revoke)
    bench.store(0, condition: .unavailable)
    for _ in 0..<3 {
      bench.advance(seconds: 31 * 86_400)
      bench.turn([])
    }
    #expect(bench.revocations() == [name("t1")])
    bench.store()
    for _ in 0..<2 {
      bench.advance(seconds: 3601)
      bench.turn([])
    }
    #expect(bench.revocations().isEmpty && bench.hub.shownCounters().entries(.tokenFamilies) == 0)
    #expect(try DurableBench(reading: bench.snapshot(), uptime: bench.now.uptime).revocations().isEmpty)
  }

  @Test("the key of a family that ran out makes new tokens, which a restart keeps")
  func keyAgain() throws {
    var bench = try DurableBench()
    bench.begin("f1")
    bench.advance(seconds: 31 * 86_400)
    bench.begin("f1")
    #expect(bench.refresh("f1", 1).serial == 2)
    bench = try bench.restarted(after: 1, fromSnapshot: true)
    #expect(bench.refresh("f1", 2).serial == 3)
  }

  @Test("access tokens made before the clock was set back stay revoked till their end", arguments: [nil, false, true])
  func clockSetBack(fromSnapshot: Bool?) throws {
    var bench = try DurableBench()
    bench.begin("f1")
    bench.wallIsAhead = 7_200_000
    #expect(bench.refresh("f1", 1).serial == 2)
    let ends = bench.now.timestamp + HubLimits.accessTokenMilliseconds
    bench.wallIsAhead = 0
    bench.advance(seconds: 20)
    #expect(bench.refresh("f1", 2).serial == 3)
    if let fromSnapshot { bench = try bench.restarted(after: 1, fromSnapshot: fromSnapshot) }
    let changes = bench.ask(.end(of: id("R1")), .endTokens).changes
    #expect(changes.flatMap(\.added).compactMap(\.until) == [ends + HubLimits.revocationMarginMilliseconds])
  }

  @Test("families and what is revoked are there again after a restart, and from a snapshot", arguments: [false, true])
  func restart(fromSnapshot: Bool) throws {
    var bench = try DurableBench()
    bench.begin("f1")
    bench.begin("f2")
    bench.begin("f3", of: "R2")
    #expect(bench.refresh("f1", 1).serial == 2)
    _ = bench.ask(.end(of: id("R2")), .endTokens)
    _ = bench.ask(.revoke(Revocation(.subject(id("D9")), until: nil)), .revoke)
    _ = bench.ask(.revoke(Revocation(name("t1"), until: nil)), .revoke)
    _ = bench.ask(.unrevoke(name("t1")), .unrevoke)
    bench = try bench.restarted(after: 30, fromSnapshot: fromSnapshot)
    #expect(Set(bench.revocations()) == [name("f3"), .subject(id("D9"))])
    #expect(bench.refresh("f1", 1).serial == 2, "the answer may have been lost with the hub")
    #expect(bench.refresh("f2", 1).serial == 2 && bench.refresh("f3", 1, of: "R2").refusal == .unauthorized)
    bench.advance(seconds: 11)
    #expect(bench.refresh("f1", 1).refusal == .unauthorized)
    // What has ended by itself is gone.
    bench.advance(seconds: 31 * 86_400)
    bench.turn([])
    #expect(bench.revocations() == [.subject(id("D9"))])
    #expect(bench.refresh("f2", 2).refusal == .unauthorized)
  }

  @Test(
    "however long a hub was down, the answer that was lost with it is given again for 10 s", arguments: [1.0, 3600])
  func outage(seconds: Double) throws {
    var bench = try DurableBench()
    bench.begin("f1")
    bench.begin("f2")
    #expect(bench.refresh("f2", 1).serial == 2)
    bench.advance(seconds: 11)
    #expect(bench.refresh("f1", 1).serial == 2)
    bench = try bench.restarted(after: seconds)
    #expect(bench.refresh("f2", 1).refusal == .unauthorized, "others were answered behind that")
    bench.advance(seconds: 9)
    #expect(bench.refresh("f1", 1).serial == 2)
    bench.advance(seconds: 2)
    #expect(bench.refresh("f1", 1).refusal == .unauthorized)
  }

  @Test("families whose time was over while the hub was down take no room from newer ones")
  func expiredFamilies() throws {
    var limits = HubLimits()
    limits.tokenFamilies = 2
    let bench = try DurableBench(limits: limits)
    for number in 1...2 { bench.begin("old\(number)") }
    bench.advance(seconds: 31 * 86_400)
    for _ in 0..<3 { bench.turn([]) }
    for number in 1...2 { bench.begin("new\(number)") }
    let next = try DurableBench(reading: bench.submitted, uptime: bench.now.uptime + 1_000_000_000, limits: limits)
    for number in 1...2 { #expect(next.refresh("new\(number)", 1).serial == 2) }
  }

  @Test("what is revoked again and again, until another time, costs one entry and one deadline")
  func repeated() throws {
    let bench = try DurableBench()
    for number in 0..<1000 {
      let until = bench.now.timestamp + Int64(100_000 + number)
      _ = bench.ask(.revoke(Revocation(name("t1"), until: until)), .revoke, stores: false)
    }
    #expect(bench.revocations() == [name("t1")] && bench.hub.deadlines.count <= 1)
    bench.store()
    bench.advance(seconds: 162)
    bench.turn([])
    #expect(bench.revocations() == [])
  }

  @Test("ending a family ends its access tokens, whatever end they had been revoked until before")
  func shorter() throws {
    let bench = try DurableBench()
    bench.begin("f1")
    let soon = bench.now.timestamp + 2_000
    _ = bench.ask(.revoke(Revocation(name("f1"), until: soon)), .revoke)
    _ = bench.ask(.end(of: id("R1")), .endTokens)
    bench.advance(seconds: 120)
    bench.turn([])
    #expect(bench.revocations() == [name("f1")])
  }

  @Test("a revocation that ends with its token is kept for a minute more, in which that may still be accepted")
  func margin() throws {
    let bench = try DurableBench()
    let end = bench.now.timestamp + 10_000
    _ = bench.ask(.revoke(Revocation(.subject(id("R1")), until: end)), .revoke)
    bench.advance(seconds: 69)
    bench.turn([])
    #expect(bench.revocations() == [.subject(id("R1"))])
    #expect(bench.ask(.begin(bench.family("f1"))).answer.refusal == .forbidden)
    bench.advance(seconds: 2)
    bench.turn([])
    #expect(bench.revocations() == [])
  }

  @Test("all outlets hear of what is revoked, before the one who asked is answered")
  func received() throws {
    let bench = try DurableBench(loops: 2)
    bench.begin("f1")
    let ended = bench.turn([
      .credentials(DurableBench.asker, .end(of: id("R1")), bench.source(.endTokens))
    ])
    var received: [RevocationChange] = []
    for output in ended + bench.store() {
      switch output {
      case .revoked(let change): received.append(change)
      case .credentials(_, .ended(1, _)): #expect(received.count == 2)
      case _: Issue.record("\(output)")
      }
    }
    #expect(received.count == 2 && received.allSatisfy { $0.number == 1 && $0.added.map(\.name) == [name("f1")] })
  }

  @Test("one sub has 16 families: a further one ends the one that was refreshed least recently")
  func perSubject() throws {
    let bench = try DurableBench()
    for number in 1...HubLimits.tokenFamiliesPerSubject {
      bench.advance(seconds: 1)
      bench.begin("f\(number)")
    }
    bench.advance(seconds: 1)
    #expect(bench.refresh("f1", 1).serial == 2)
    #expect(bench.begin("f17").flatMap(\.added).map(\.name) == [name("f2")])
    guard case .families(let left, _)? = bench.ask(.families(of: id("R1")), .listTokens).answer else {
      return #expect(Bool(false))
    }
    #expect(left.count == HubLimits.tokenFamiliesPerSubject && left.first?.id == InlineText("f17"))
    #expect(bench.hub.counters.hits(.tokenFamiliesPerSubject) == 1)
  }

  @Test("the tables have limits; what families leave behind when they end counts towards theirs")
  func full() throws {
    var limits = HubLimits()
    (limits.tokenFamilies, limits.revocations) = (3, 2)
    let bench = try DurableBench(limits: limits)
    for number in 1...3 { bench.begin("f\(number)", of: "R\(number)") }
    #expect(bench.ask(.begin(bench.family("f4"))).answer.refusal == .storageFull)
    _ = bench.ask(.end(of: id("R1")), .endTokens)
    #expect(bench.ask(.begin(bench.family("f4"))).answer.refusal == .storageFull, "f1's access token may still live")
    for number in 1...2 { _ = bench.ask(.revoke(Revocation(name("t\(number)"), until: nil)), .revoke) }
    #expect(bench.ask(.revoke(Revocation(name("t3"), until: nil)), .revoke).answer.refusal == .storageFull)
    guard case .revoked(_, isNew: false)? = bench.ask(.revoke(Revocation(name("t1"), until: nil)), .revoke).answer
    else { return #expect(Bool(false)) }
    #expect(Set(bench.revocations()) == [name("f1"), name("t1"), name("t2")])
    bench.advance(seconds: 961)
    bench.turn([])
    bench.begin("f4")
    let counters = bench.hub.shownCounters()
    #expect(counters.hits(.tokenFamilies) == 2 && counters.hits(.revocations) == 1)
    #expect(counters.entries(.tokenFamilies) == 3)
  }

  @Test("revocations are listed in pages, and a new end replaces the old one")
  func pages() throws {
    let bench = try DurableBench()
    for number in 0..<5 { _ = bench.ask(.revoke(Revocation(name("t\(number)"), until: nil)), .revoke) }
    let until = bench.now.timestamp + 60_000
    _ = bench.ask(.revoke(Revocation(name("t2"), until: until)), .revoke)
    var (found, next): ([Revocation], Int?) = ([], 0)
    while let start = next {
      guard
        case .revocations(let page, let further)? = bench.ask(
          .revocations(from: start, limit: 2), .listRevocations
        ).answer
      else { return #expect(Bool(false)) }
      #expect(page.count <= 2)
      found += page
      next = further
    }
    #expect(Set(found.map(\.name)).count == 5 && found.count == 5)
    #expect(found.first { $0.name == name("t2") }?.until == until)
    bench.advance(seconds: 121)
    bench.turn([])
    #expect(!bench.revocations().contains(name("t2")))
    #expect(bench.ask(.unrevoke(name("t2")), .unrevoke).answer.refusal == .notFound)
  }

  @Test("a clock that is set neither wakes what has ended nor ends the rest early")
  func clock() throws {
    let bench = try DurableBench()
    _ = bench.ask(.revoke(Revocation(name("t1"), until: bench.now.timestamp + 60_000)), .revoke)
    bench.wallIsAhead -= 3_600_000
    bench.advance(seconds: 121)
    bench.turn([])
    #expect(bench.revocations() == [name("t1")], "by the clock its time is not over")
    bench.advance(seconds: 3_600)
    bench.turn([])
    #expect(bench.revocations() == [])
  }

  @Test("a clock that runs ahead and is set right again brings no token back", arguments: [false, true])
  func clockAhead(restarts: Bool) throws {
    var bench = try DurableBench()
    bench.begin("f1")
    bench.begin("f2", of: "R2")
    _ = bench.ask(.revoke(Revocation(name("t1"), until: bench.now.timestamp + 7_200_000)), .revoke)
    _ = bench.ask(.end(of: id("R1")), .endTokens)
    bench.wallIsAhead += 86_400_000
    if restarts { bench = try bench.restarted(after: 1, wallIsAhead: 86_400_000) }
    bench.advance(seconds: 1)
    bench.turn([])
    _ = bench.ask(.end(of: id("R2")), .endTokens)
    bench.advance(seconds: 800)
    bench.turn([])
    bench.wallIsAhead -= 86_400_000
    bench.advance(seconds: 1)
    bench.turn([])
    #expect(Set(bench.revocations()) == [name("f1"), name("f2"), name("t1")], "their tokens live")
    bench.advance(seconds: 86_400)
    bench.turn([])
    bench.advance(seconds: 3_600)
    bench.turn([])
    #expect(bench.revocations() == [])
  }

  @Test("strangers with any number of addresses do not fill the journal")
  func strangers() throws {
    let bench = try DurableBench()
    func stranger(_ number: Int) -> AuditEntry {
      let address = InlineText("2001:db8::\(String(number, radix: 16))")!
      return AuditEntry(AuditSource(.refreshTokens, by: nil, from: address), about: nil, status: 401)
    }
    bench.turn((0..<5000).map { .audit(stranger($0)) })
    #expect(bench.hub.counters.auditLeftOut == 4900)
    bench.begin("f1")
    #expect(bench.hub.counters.auditLeftOut == 4900, "who has a credential is written down beside them")
  }

  @Test("who did what is in the journal, also what was refused; more than 10 a second of one are counted")
  func audit() throws {
    let bench = try DurableBench()
    bench.begin("f1")
    let refused = AuditEntry(bench.source(.revoke, nil), about: nil, status: 401)
    bench.turn((0..<25).map { _ in .audit(refused) })
    bench.advance(seconds: 1)
    bench.turn([.audit(AuditEntry(bench.source(.revoke, nil), about: InlineText("D1"), status: 403))])
    bench.store()
    var text = ByteBuffer()
    for group in bench.submitted {
      try group.withUnsafeBytes { try RecordJSON.write($0, group: 1, into: &text) }
    }
    let lines = String(decoding: text.array(), as: UTF8.self).split(separator: "\n").filter { $0.contains("\"audit\"") }
    #expect(lines.count == 12 && bench.hub.counters.auditLeftOut == 15)
    #expect(
      lines.first?.hasSuffix(
        #""action":"issue_tokens","role":"ops","sub":"backend","address":"192.0.2.1","target":"R1","status":201}"#)
        == true)
    #expect(lines.last?.hasSuffix(#""address":"192.0.2.1","target":"D1","status":403,"leftOut":15}"#) == true)
  }
}
