// Tokens that the hub makes, refreshes and ends, and revocations, over HTTP and sockets.
import Foundation
import HubBytes
import HubGateway
import HubMessages
import HubTokens
import Testing

extension EndToEnd {
  @Suite struct Credentials {}
}

extension EndToEnd.Credentials {
  private func hub(
    loops: Int = 1, _ configure: (inout ServerConfiguration) -> Void = { _ in }
  ) throws -> TokenHub {
    let key = try KeySet(parsing: Array("a secret of the hub's own, long enough\n".utf8)).keys[0]
    return try TokenHub(loops: loops) {
      let keys = KeySet(keys: ($0.tokens?.verifier.keys.keys ?? []) + [key])
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
      $0.tokenSigner = key
      configure(&$0)
    }
  }

  /// `token`: nil for none.
  private func send(
    _ hub: TokenHub, _ method: String, _ target: String, _ token: String? = nil, _ body: String = ""
  ) throws -> HTTPResponse {
    let credential = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
    return try hub.hub.request(
      "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(credential)"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
  }

  private func begin(_ hub: TokenHub, _ body: String) throws -> (access: String, refresh: String) {
    let made = try send(hub, "POST", "/v1/tokens", try hub.token(.ops, "backend"), body)
    #expect(made.status == 201 && made.fields["cache-control"] == "no-store", "\(made.text)")
    return (try #require(made.json["accessToken"] as? String), try #require(made.json["refreshToken"] as? String))
  }

  private func refresh(_ hub: TokenHub, _ token: String) throws -> HTTPResponse {
    try send(hub, "POST", "/v1/tokens/refresh", nil, #"{"refreshToken":"\#(token)"}"#)
  }

  @Test("a back end has tokens made for a rider, who follows its trip and refreshes them", arguments: loopCounts)
  func wholeLife(loops: Int) throws {
    let hub = try hub(loops: loops)
    let (access, token) = try begin(hub, #"{"sub":"r1","role":"rider","trips":["T1"]}"#)
    let rider = try hub.join(access)
    try rider.subscribe("trip:T1")
    let second = try refresh(hub, token)
    #expect(second.status == 200 && second.json["sub"] as? String == "r1" && second.json["role"] as? String == "rider")
    let again = try refresh(hub, token)
    #expect(again.status == 200)
    for member in ["refreshToken", "accessToken", "accessExpires"] {
      #expect("\(again.json[member] ?? "")" == "\(second.json[member] ?? "-")", "the answer may have been lost")
    }
    let new = try #require(second.json["accessToken"] as? String)
    try rider.send("refresh", ["token": new])
    _ = try rider.receive("ack")
    try hub.join(new).subscribe("trip:T1")
    // It opens nothing itself, and an access token refreshes nothing.
    let refreshToken = try #require(second.json["refreshToken"] as? String)
    #expect(try send(hub, "GET", "/v1/trips/T1", refreshToken).status == 401)
    #expect(try refresh(hub, access).status == 401)

    let ops = try hub.token(.ops, "backend")
    let list = try send(hub, "GET", "/v1/tokens?sub=r1", ops)
    #expect((list.json["tokens"] as? [[String: Any]])?.count == 1 && !list.text.contains(refreshToken.suffix(20)))
    #expect(try send(hub, "DELETE", "/v1/tokens?sub=r1", ops).json["ended"] as? Int == 1)
    #expect(try rider.receiveClose().code == 4401)
    #expect(try send(hub, "GET", "/v1/trips/T1", new).status == 401)
    #expect(try refresh(hub, refreshToken).status == 401)
  }

  @Test("a refresh token that is used again, and is older than its family's newest but one, ends all of them")
  func reuse() throws {
    let hub = try hub()
    let (access, first) = try begin(hub, #"{"sub":"r1","role":"rider"}"#)
    let rider = try hub.join(access)
    let second = try #require(try refresh(hub, first).json["refreshToken"] as? String)
    let third = try #require(try refresh(hub, second).json["refreshToken"] as? String)
    let reused = try refresh(hub, first)
    #expect(reused.status == 401 && reused.text.contains("used before"))
    #expect(reused.fields["www-authenticate"]?.contains("invalid_token") == true)
    #expect(try rider.receiveClose().code == 4401)
    #expect(try refresh(hub, third).status == 401)
  }

  @Test("revoking a sub or a jti ends sessions and admits no new ones, until it is taken back", arguments: loopCounts)
  func revocations(loops: Int) throws {
    let hub = try hub(loops: loops)
    let ops = try hub.token(.ops, "backend")
    let (victim, other) = (try hub.join(hub.token(.driver, "D1")), try hub.join(hub.token(.rider, "r2")))
    #expect(try send(hub, "POST", "/v1/revocations", ops, #"{"sub":"D1"}"#).status == 201)
    #expect(try send(hub, "POST", "/v1/revocations", ops, #"{"sub":"D1"}"#).status == 200)
    #expect(try victim.receiveClose().code == 4401)
    #expect(try other.settle().isEmpty)
    let token = try hub.token(.driver, "D1")
    #expect(try send(hub, "GET", "/v1/drivers/D1", token).status == 401)
    let soon = Int(Date().timeIntervalSince1970 * 1000) + 3_600_000
    #expect(
      try send(hub, "POST", "/v1/revocations", ops, #"{"jti":"t-9","until":\#(soon)}"#).json["until"] as? Int == soon)
    let list = try #require(try send(hub, "GET", "/v1/revocations?limit=1", ops).json["next"] as? String)
    let rest = try send(hub, "GET", "/v1/revocations?cursor=\(list)", ops)
    #expect((rest.json["revocations"] as? [[String: Any]])?.first?["jti"] as? String == "t-9")
    #expect(try send(hub, "DELETE", "/v1/revocations?sub=D1", ops).status == 204)
    #expect(try send(hub, "DELETE", "/v1/revocations?sub=D1", ops).status == 404)
    _ = try hub.join(token)
  }

  @Test("who is revoked while the body of a request comes is not let in by its head")
  func slowBody() throws {
    let hub = try hub()
    let claims = Claims(
      subject: Identifier("backend")!, role: .ops, grants: Grants(tokenID: InlineText("stolen")))
    let stolen = String(decoding: try hub.keys.keys[0].token(TokenRequest(claims: claims)), as: UTF8.self)
    let body = #"{"sub":"evil","role":"rider"}"#
    let connection = try hub.hub.connect()
    try connection.send(
      "POST /v1/tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(stolen)\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body.prefix(3))")
    try hub.hub.metrics { $0["credential_checks_total"] == 1 }
    #expect(try send(hub, "POST", "/v1/revocations", try hub.token(.ops, "o"), #"{"jti":"stolen"}"#).status == 201)
    try connection.send(String(body.dropFirst(3)))
    #expect(try connection.readResponse().status == 401)
  }

  @Test("a client that waits for leave to send its refresh token gets 100 Continue")
  func expect() throws {
    let hub = try hub()
    let (_, token) = try begin(hub, #"{"sub":"r1","role":"rider"}"#)
    let body = #"{"refreshToken":"\#(token)"}"#
    let connection = try hub.hub.connect()
    try connection.send(
      "POST /v1/tokens/refresh HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n")
    #expect(try connection.readResponse().status == 100)
    try connection.send(body)
    #expect(try connection.readResponse().status == 200)
  }

  @Test("a phone's key ends with its driver's revocation")
  func deviceKey() throws {
    let secret = "device-key-of-thirty-two-characters"
    let line = DeviceKeys.line(of: Identifier("D1")!, secret: secret)
    let devices = try DeviceKeys(parsing: Array(line.utf8))
    let hub = try hub { $0.tokens?.devices = devices }
    let target = "/v1/osmand?lat=48&lon=11&key=\(secret)"
    #expect(try send(hub, "GET", target).status == 200)
    #expect(try send(hub, "POST", "/v1/revocations", try hub.token(.ops, "o"), #"{"sub":"D1"}"#).status == 201)
    #expect(try send(hub, "GET", target).status == 401)
  }

  @Test("what is asked wrongly, or by whom it is not for, is refused in words")
  func refusals() throws {
    let hub = try hub()
    let (ops, rider) = (try hub.token(.ops, "backend"), try hub.token(.rider, "r1"))
    let rows: [(String, String, String?, String, Int)] = [
      ("POST", "/v1/tokens", nil, #"{"sub":"r1","role":"rider"}"#, 401),
      ("POST", "/v1/tokens", rider, #"{"sub":"r1","role":"rider"}"#, 403),
      ("POST", "/v1/tokens", ops, #"{"sub":"o2","role":"ops"}"#, 403),
      ("POST", "/v1/tokens", ops, #"{"sub":"r1"}"#, 400),
      ("POST", "/v1/tokens", ops, #"{"role":"rider"}"#, 400),
      ("POST", "/v1/tokens", ops, #"{"sub":"r1","sub":"r2","role":"rider"}"#, 400),
      ("POST", "/v1/tokens", ops, #"{"sub":"r1","role":"rider","exp":9999999999}"#, 400),
      ("POST", "/v1/tokens", ops, #"{"sub":"share-1","role":"rider"}"#, 400),
      ("POST", "/v1/tokens", ops, "[]", 400), ("POST", "/v1/tokens", ops, "", 400),
      ("POST", "/v1/tokens", ops, String(repeating: " ", count: 2049), 413),
      ("GET", "/v1/tokens", ops, "", 400), ("GET", "/v1/tokens?sub=", ops, "", 400),
      ("DELETE", "/v1/tokens?sub=r1&sub=r2", ops, "", 400), ("PUT", "/v1/tokens", ops, "", 405),
      ("POST", "/v1/tokens/refresh", nil, "{}", 400), ("POST", "/v1/tokens/refresh", nil, #"{"refreshToken":7}"#, 400),
      ("POST", "/v1/tokens/refresh", nil, #"{"refreshToken":"a.b.c"}"#, 401),
      ("POST", "/v1/tokens/refresh?tme=apple", nil, #"{"refreshToken":"a.b.c"}"#, 400),
      ("POST", "/v1/tokens/refresh?time=apple&time=apple", nil, #"{"refreshToken":"a.b.c"}"#, 400),
      ("POST", "/v1/tokens/refresh?time=apple%", nil, #"{"refreshToken":"a.b.c"}"#, 400),
      ("POST", "/v1/revocations", rider, #"{"sub":"r1"}"#, 403), ("POST", "/v1/revocations", ops, "{}", 400),
      ("POST", "/v1/revocations", ops, #"{"sub":"r1","jti":"x"}"#, 400),
      ("POST", "/v1/revocations", ops, #"{"sub":"r1","until":1000}"#, 400),
      ("POST", "/v1/revocations", ops, #"{"sub":"r1","until":"soon"}"#, 400),
      ("GET", "/v1/revocations?cursor=x", ops, "", 400), ("DELETE", "/v1/revocations", ops, "", 400),
    ]
    for (method, target, token, body, status) in rows {
      let response = try send(hub, method, target, token, body)
      #expect(response.status == status, "\(method) \(target) \(body.prefix(60)): \(response.text)")
    }
    let plain = try TokenHub()
    #expect(try send(plain, "POST", "/v1/tokens", try plain.token(.ops, "o"), "{}").status == 404)
    #expect(try send(plain, "POST", "/v1/tokens/refresh", nil, "{}").status == 404)
  }

  @Test("what --revoked has, and whose tier is no more, gets no new tokens, and loses none by asking")
  func refusedBySettings() throws {
    let slow = [InlineText("slow")!: SessionLimits(rate: 10, burst: 30)]
    let hub = try hub { $0.tokens?.tiers = slow }
    let own = try KeySet(parsing: Array("a secret of the hub's own, long enough\n".utf8)).keys
    func set(_ revoked: String, _ tiers: [InlineText: SessionLimits]) throws {
      var access = TokenAccess(
        verifier: TokenVerifier(keys: KeySet(keys: hub.keys.keys + own)),
        revoked: try RevocationList(parsing: Array(revoked.utf8)))
      access.tiers = tiers
      hub.hub.server.replaceTokens(access)
    }
    let ops = try hub.token(.ops, "backend")
    let made = try send(hub, "POST", "/v1/tokens", ops, #"{"sub":"r1","role":"rider","tier":"slow"}"#)
    let token = try #require(made.json["refreshToken"] as? String)
    for (revoked, tiers) in [("r1\n", slow), ("\(made.json["jti"] ?? "")\n", slow), ("", [:])] {
      try set(revoked, tiers)
      let refused = try refresh(hub, token)
      #expect(refused.status == 401 && refused.json["accessToken"] == nil, "\(revoked): \(refused.text)")
    }
    try set("r2\n", slow)
    #expect(try send(hub, "POST", "/v1/tokens", ops, #"{"sub":"r2","role":"rider"}"#).status == 403)
    #expect(try refresh(hub, token).status == 200)
  }

  @Test("a back end that asks once more with the same Idempotency-Key has the same tokens, and nobody else")
  func repeated() throws {
    let hub = try hub()
    func ask(_ asker: String, _ key: String, _ sub: String = "r1") throws -> HTTPResponse {
      let body = #"{"sub":"\#(sub)","role":"rider"}"#
      return try hub.hub.request(
        "POST /v1/tokens HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIdempotency-Key: \(key)\r\n"
          + "Authorization: Bearer \(try hub.token(.ops, asker))\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
    func jti(_ response: HTTPResponse) -> String { "\(response.json["jti"] ?? "-")" }
    let first = try ask("backend", "k1")
    let again = try ask("backend", "k1")
    #expect(first.status == 201 && again.status == 200 && jti(first) == jti(again))
    #expect("\(again.json["refreshToken"] ?? "")" == "\(first.json["refreshToken"] ?? "-")")
    let others = [try ask("backend", "k2"), try ask("desk", "k1")]
    #expect(others.map(\.status) == [201, 201] && Set((others + [first]).map(jti)).count == 3)
    #expect(try ask("backend", "k1", "r2").status == 409)
    #expect(try refresh(hub, try #require(first.json["refreshToken"] as? String)).status == 200)
    #expect(try ask("backend", "k1").status == 409, "a phone has them")
    #expect(try send(hub, "DELETE", "/v1/tokens?sub=r1", try hub.token(.ops, "o")).json["ended"] as? Int == 3)
    #expect(try ask("backend", "k1").status == 403, "they have ended")
    try hub.hub.metrics {
      $0["token_requests_total{outcome=\"issued\"}"] == 4 && $0["token_requests_total{outcome=\"refreshed\"}"] == 1
        && $0["token_requests_total{outcome=\"refused\"}"] == 3
        && $0["http_request_seconds_count{route=\"tokens\"}"] == 9
    }
  }

  @Test("a token's tier sets its session's limits; one that the hub has not is refused")
  func tiers() throws {
    let hub = try hub {
      $0.tokens?.tiers = [InlineText("slow")!: SessionLimits(rate: 0.001, burst: 3)]
    }
    let (access, _) = try begin(hub, #"{"sub":"D1","role":"driver","tier":"slow"}"#)
    let driver = try hub.join(access)
    for second in 0..<5 { try driver.sendFix(second) }
    let error = try driver.skip(to: "error")
    #expect(error.code == "rate_limited")
    let gold = #"{"sub":"D2","role":"driver","tier":"gold"}"#
    #expect(try send(hub, "POST", "/v1/tokens", try hub.token(.ops, "backend"), gold).status == 400)
    let claims = Claims(subject: Identifier("D2")!, role: .driver, grants: Grants(tier: InlineText("gold")))
    let unknown = String(decoding: try hub.keys.keys[0].token(TokenRequest(claims: claims)), as: UTF8.self)
    let refused = try send(hub, "GET", "/v1/drivers/D2", unknown)
    #expect(refused.status == 401 && refused.text.contains("tier"))
  }
}
