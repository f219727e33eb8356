// What credentials cost the loop besides their check, by turns that the test gives by hand: signatures count as work of
// the turn that makes them, revocations look at some sessions in a step, and what an address's rate refuses is written
// down.
import HubBytes
import HubMessages
import HubRuntime
import HubTokens
import HubTransport
import Testing

@testable import HubCore
@testable import HubGateway

@Suite struct CredentialWorkTests {
  private static let publicKey = """
    {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}
    """

  private let clock = HandClock()
  private let secret: SigningKey

  init() throws { secret = try KeySet(parsing: Array("0123456789abcdef0123456789abcdef".utf8)).keys[0] }

  private func hub(_ change: (inout ServerConfiguration) -> Void = { _ in }) throws -> HandDrivenHub {
    let signer = try KeySet(parsing: Array(Self.publicKey.utf8)).keys[0]
    return try HandDrivenHub(clock: clock) {
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: KeySet(keys: [secret])))
      $0.tokenSigner = signer
      $0.limits.unitsPerPoll = 5
      change(&$0)
    }
  }

  private func token(_ id: String, role: Role = .ops, jti: String? = nil) throws -> String {
    let grants = jti.map { Grants(tokenID: InlineText($0)) }
    let claims = Claims(subject: try #require(Identifier(id)), role: role, grants: grants)
    return String(decoding: try secret.token(TokenRequest(claims: claims)), as: UTF8.self)
  }

  @Test("Tokens that are asked for together are signed one or two answers in a turn")
  func signatures() throws {
    let hub = try hub()
    let token = try token("backend")
    let requests = try (0..<12).map { number in
      try HandDrivenRequest(
        hub, "/v1/tokens?access_token=\(token)", method: "POST", body: #"{"sub":"r\#(number)","role":"rider"}"#)
    }
    var (signed, most, turns) = (UInt64(0), UInt64(0), 0)
    while signed < 12, turns < 1000 {
      hub.loop.runTurn(timeoutMilliseconds: 0)
      let all = hub.counters.responses[201] ?? 0
      (most, signed, turns) = (max(most, all - signed), all, turns + 1)
    }
    #expect(signed == 12 && most <= 2, "an answer has two signatures of two units, and a turn five units")
    for request in requests {
      try hub.turn {
        request.ownTurn()
        return request.body != nil
      }
      #expect(request.status == "201")
    }
  }

  @Test("A sweep looks at some sessions in a step, and once more at all where something was revoked meanwhile")
  func sweep() throws {
    let hub = try hub()
    let peers = try (0..<6).map { try HandDrivenPeer(hub, token: token("r\($0)", role: .rider, jti: "t\($0)")) }
    #expect(peers.count == 6 && hub.openSlots.count == 6)
    let access = try #require(hub.sessions.sessions.pointee.access.value)
    var now = Moment(clock.reading)
    var sweep = RevocationSweep(slotsPerStep: 4)
    #expect(sweep.nextStep == .max)
    func step(at moment: Moment) -> [Int] {
      sweep.step(hub.sessions.sessions.pointee.sessions, by: access, now: moment)
    }
    func revoke(_ number: UInt64, _ id: String) {
      var change = RevocationChange(number: number)
      change.added = [Revocation(.tokenID(InlineText(id)!), until: nil)]
      access.stored.apply(change)
      sweep.begin(now: now.uptime)
    }
    let slots = hub.openSlots
    let table = hub.sessions.sessions.pointee.sessions.endIndex
    let perStep = max(4, table / Limits.sweepSteps)
    revoke(1, "t5")
    #expect(sweep.nextStep == now.uptime)
    var found = step(at: now)
    #expect(sweep.nextStep == now.uptime + Limits.sweepPause)
    revoke(2, "t0")  // its slot was passed
    var steps = 1
    while sweep.nextStep < .max, steps < 1000 {
      now.uptime = sweep.nextStep
      found += step(at: now)
      steps += 1
    }
    #expect(found.contains(slots[5]) && found.contains(slots[0]) && Set(found).isSubset(of: [slots[0], slots[5]]))
    #expect(steps == 2 * ((table + perStep - 1) / perStep), "two rounds, of equal steps")
  }

  @Test("Sessions of a revoked sub end, and those of others go on")
  func revoked() throws {
    let hub = try hub()
    let (victim, other) = (
      try HandDrivenPeer(hub, token: token("r1", role: .rider)),
      try HandDrivenPeer(hub, token: token("r2", role: .rider))
    )
    let request = try HandDrivenRequest(
      hub, "/v1/revocations?access_token=\(token("backend"))", method: "POST", body: #"{"sub":"r1"}"#)
    try hub.turn {
      request.ownTurn()
      victim.ownTurn()
      return request.body != nil && hub.openSlots.count == 1
    }
    #expect(request.status == "201")
    other.ownTurn()
    #expect(hub.counters.closesSent[4401] == 1)
  }

  @Test("A token that is revoked until its own end is refused in the leeway behind that, too")
  func leeway() throws {
    let (id, end) = (try #require(InlineText("t1")), Timestamp(milliseconds: 1_763_680_000_000))
    let claims = Claims(
      subject: try #require(Identifier("r1")), role: .rider, expires: end, grants: Grants(tokenID: id))
    let token = try secret.token(TokenRequest(claims: claims))
    let access = TokenAccess(verifier: TokenVerifier(keys: KeySet(keys: [secret])))
    let moments = ([-1, 0, 29_999] as [Int64]).map { end + $0 }
    var signatures = 0
    for now in moments { #expect(try access.check(token, now: now, counting: &signatures) == claims) }
    var change = RevocationChange(number: 1)
    change.added = [Revocation(.tokenID(id), until: end)]
    access.stored.apply(change)
    for now in moments {
      #expect(throws: TokenError.revoked) { try access.check(token, now: now, counting: &signatures) }
    }
    #expect(signatures == 0, "a secret's cost nothing")
  }

  @Test("What an address's rate refuses is in the audit trail, too")
  func auditedRate() throws {
    let hub = try hub {
      $0.limits.requestRate = 0.1
      $0.limits.requestBurst = 2
      $0.limits.countsLoopbackRequests = true
    }
    func audited() -> UInt64 { hub.sessions.sessions.pointee.hub.counters?.auditLeftOut ?? 0 }
    for (number, status) in ["401", "429", "429"].enumerated() {
      let request = try HandDrivenRequest(
        hub, "/v1/tokens/refresh", method: "POST", body: #"{"refreshToken":"a.b.c"}"#)
      try hub.turn {
        request.ownTurn()
        return request.body != nil
      }
      #expect(request.status == status)
      // Nothing is stored here, so each entry is counted as left out.
      #expect(audited() == UInt64(number + 1))
    }
  }

  @Test("Beyond an address's rate no signature is checked, also where a body is announced and never comes")
  func unfinishedStrangers() throws {
    let hub = try hub {
      $0.limits.requestRate = 1e-6
      $0.limits.requestBurst = 2
      $0.limits.countsLoopbackRequests = true
    }
    for (number, status) in ["", "", "429", "429"].enumerated() {
      let request = try HandDrivenRequest(
        hub, "/v1/messages?access_token=\(token("stranger"))x", method: "POST", announcing: 10)
      try hub.turn {
        request.ownTurn()
        return request.status == status && hub.counters.credentialChecks >= min(2, UInt64(number + 1))
      }
      for _ in 0..<5 { request.ownTurn() }
      #expect(request.status == status && hub.counters.credentialChecks == min(2, UInt64(number + 1)))
    }
  }

  @Test("A token without kid that no key has signed costs its address as much as all public keys that are tried")
  func triedKeys() throws {
    let key = try KeySet(parsing: Array(Self.publicKey.utf8)).keys[0]
    let claims = Claims(subject: try #require(Identifier("o1")), role: .ops)
    var token = try key.token(TokenRequest(claims: claims))
    token[token.count - 40] = token[token.count - 40] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
    for (keys, refused) in [(1, 4), (3, 2)] {
      let hub = try hub {
        $0.tokens = TokenAccess(verifier: TokenVerifier(keys: KeySet(keys: Array(repeating: key, count: keys))))
        $0.limits.requestRate = 1e-6
        $0.limits.requestBurst = 20
        $0.limits.countsLoopbackRequests = true
      }
      var statuses: [String] = []
      while statuses.last != "429", statuses.count < 20 {
        let request = try HandDrivenRequest(
          hub, "/v1/drivers/d1?access_token=\(String(decoding: token, as: UTF8.self))")
        try hub.turn {
          request.ownTurn()
          return request.body != nil
        }
        statuses.append(request.status)
      }
      #expect(statuses == Array(repeating: "401", count: refused) + ["429"], "\(keys) keys")
    }
  }

  @Test("A proxy's connection goes on behind a refused request with a small body, not behind one with a large body")
  func refusedByProxy() throws {
    let hub = try hub {
      $0.limits.requestRate = 1e-6
      $0.limits.requestBurst = 1
      $0.trustedProxies = [AddressBlock("127.0.0.0/8")!]
    }
    for (number, size) in [0, 10, Limits().unwantedBodyBytes + 1].enumerated() {
      let request = try HandDrivenRequest(
        hub, "/v1/messages", method: "POST", body: String(repeating: " ", count: max(1, size)),
        fields: "X-Forwarded-For: 192.0.2.7\r\n")
      try hub.turn {
        request.ownTurn()
        return request.isComplete
      }
      #expect(request.status == (number == 0 ? "401" : "429"))
      #expect(request.text.contains("Connection: close\r\n") == (number == 2), "\(size)")
    }
  }

  @Test("A request whose body is too large or cannot be read is in the audit trail, too, and ends its connection")
  func auditedBodies() throws {
    let hub = try hub()
    func audited() -> UInt64 { hub.sessions.sessions.pointee.hub.counters?.auditLeftOut ?? 0 }
    func expect(_ status: String, _ number: UInt64, to request: HandDrivenRequest) throws {
      try hub.turn {
        request.ownTurn()
        return request.isComplete
      }
      #expect(request.status == status && request.text.contains("Connection: close\r\n"))
      #expect(audited() == number)
    }
    let large = String(repeating: " ", count: Limits().unwantedBodyBytes + 1)
    try expect("413", 1, to: HandDrivenRequest(hub, "/v1/tokens/refresh", method: "POST", body: large))
    let chunked = "Transfer-Encoding: chunked\r\n"
    try expect("400", 2, to: HandDrivenRequest(hub, "/v1/tokens?sub=r1", body: "no size\r\n", fields: chunked))
    try expect("413", 2, to: HandDrivenRequest(hub, "/v1/trips", method: "POST", body: large))
  }

  @Test("A revocation that is taken back in the same turn is gone, and one that is made anew holds")
  func takenBack() throws {
    let hub = try hub()
    let access = try #require(hub.sessions.sessions.pointee.access.value)
    let (back, anew) = (try #require(InlineText("t1")), try #require(InlineText("t2")))
    let asker = SessionRef(outlet: 0, slot: 1 << 20, generation: 1)
    for question in [
      .revoke(Revocation(.tokenID(back), until: nil)), .unrevoke(.tokenID(back)),
      .revoke(Revocation(.tokenID(anew), until: nil)), .unrevoke(.tokenID(anew)),
      .revoke(Revocation(.tokenID(anew), until: nil)),
    ] as [CredentialQuestion] {
      hub.sessions.sessions.pointee.inputs.append(.credentials(asker, question, nil))
    }
    for _ in 0..<4 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    let (subject, now) = (try #require(Identifier("r1")), Moment(clock.reading).timestamp)
    #expect(!access.stored.contains(subject: subject, tokenID: back, now: now))
    #expect(access.stored.contains(subject: subject, tokenID: anew, now: now))
  }
}
