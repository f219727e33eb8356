// Who may, beside the credential: web pages by their origin, operators by where they come from, clients behind proxies.
import Foundation
import HubGateway
import HubMessages
import HubRuntime
import HubTokens
import HubTransport
import Testing

extension EndToEnd {
  @Suite struct Access {}
}

extension EndToEnd.Access {
  private func get(_ hub: TestHub, _ target: String, port: UInt16? = nil, _ fields: String...) throws -> HTTPResponse {
    let connection = try RawConnection(port: port ?? hub.port)
    let lines = fields.map { $0 + "\r\n" }.joined()
    try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(lines)\r\n")
    return try connection.readResponse()
  }

  // MARK: Origins

  @Test("a page of a strange origin is refused with 403, on the socket and over HTTP", arguments: loopCounts)
  func strangeOrigin(loops: Int) throws {
    let hub = try TestHub(loops: loops) { _ = $0.origins.allow("https://app.example") }
    let upgrade = UpgradeRequest("/v1/ws?role=rider&id=r1")
    for origin in ["https://evil.example", "null", "http://app.example", "https://app.example, https://evil.example"] {
      let refusal = try hub.request(upgrade.with("Origin", origin).text)
      #expect(refusal.status == 403)
      #expect(refusal.errorCode == "forbidden")
      #expect(refusal.text.contains("--allow-origin"))
      #expect(refusal.fields["access-control-allow-origin"] == nil)
      #expect(try get(hub, "/healthz", "Origin: \(origin)").status == 403)
    }
    for origin in ["https://app.example", nil, "http://127.0.0.1"] {
      #expect(try hub.request(upgrade.with("Origin", origin).text).status == 101, "\(origin ?? "none")")
    }
    try hub.metrics { $0["origins_refused_total"] == 8 && $0["sessions_opened_total"] == 3 }
  }

  @Test("a page that anyone's name points here is not of the hub's own origin")
  func rebinding() throws {
    let hub = try TestHub()
    let upgrade = UpgradeRequest("/v1/ws?role=rider&id=r1")
    let rebound = upgrade.with("Host", "evil.example:8080").with("Origin", "http://evil.example:8080")
    #expect(try hub.request(rebound.text).status == 403)
    let own = upgrade.with("Host", "localhost:8080").with("Origin", "http://localhost:8080")
    #expect(try hub.request(own.text).status == 101)
  }

  @Test("a browser gets what its page may send and read")
  func cors() throws {
    let hub = try TestHub { _ = $0.origins.allow("https://app.example") }
    let preflight = try hub.request(
      "OPTIONS /v1/locations HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\n"
        + "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n\r\n")
    #expect(preflight.status == 204)
    #expect(preflight.body.isEmpty && preflight.fields["content-length"] == nil, "RFC 9110 §8.6")
    #expect(preflight.fields["access-control-allow-origin"] == "https://app.example")
    #expect(preflight.fields["access-control-allow-methods"] == "POST")
    #expect(
      preflight.fields["access-control-allow-headers"]
        == "Authorization, Content-Type, Idempotency-Key, Last-Event-ID")
    #expect(preflight.fields["access-control-max-age"] == "3600")
    #expect(preflight.fields["vary"] == "Origin")
    let answer = try get(hub, "/v1/drivers/d1?role=ops&id=o1", "Origin: https://app.example")
    #expect(answer.status == 404, "an error may be read, too")
    #expect(answer.fields["access-control-allow-origin"] == "https://app.example")
    #expect(
      answer.fields["access-control-expose-headers"]
        == "Location, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset")
    let bare = try get(hub, "/healthz")
    #expect(bare.status == 200 && bare.fields["vary"] == "Origin" && bare.fields["access-control-allow-origin"] == nil)
    let strange = try hub.request(
      "OPTIONS /v1/locations HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n"
        + "Access-Control-Request-Method: POST\r\n\r\n")
    #expect(strange.status == 403)
    #expect(
      try hub.request("OPTIONS /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 405,
      "no preflight: nobody's page asks")
    #expect(try TestHub().get("/healthz").fields["vary"] == nil)
  }

  @Test("what one request on a connection may, the next one may not")
  func originOfEachRequest() throws {
    let hub = try TestHub { _ = $0.origins.allow("https://app.example") }
    let connection = try hub.connect()
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    try connection.send(
      "\(head)Origin: https://app.example\r\n\r\n\(head)\r\n\(head)Origin: https://evil.example\r\n\r\n")
    #expect(try connection.readResponse().fields["access-control-allow-origin"] == "https://app.example")
    #expect(try connection.readResponse().fields["access-control-allow-origin"] == nil)
    #expect(try connection.readResponse().status == 403)
  }

  // MARK: Operators

  @Test("metrics are for this machine, and not for whom a proxy on it speaks", arguments: loopCounts)
  func metricsOfThisMachine(loops: Int) throws {
    let tokens = try TokenHub(loops: loops)
    let hub = tokens.hub
    let (ops, driver) = (try tokens.token(.ops, "o1"), try tokens.token(.driver, "d1"))
    #expect(try get(hub, "/metrics").status == 200)
    for mark in ["X-Forwarded-For: 127.0.0.1", "X-Real-IP: 192.0.2.1", "Via: 1.1 proxy", "X-Forwarded-Port: 80"] {
      let refusal = try get(hub, "/metrics", mark)
      #expect(refusal.status == 401)
      #expect(refusal.fields["www-authenticate"] == "Bearer")
      #expect(try get(hub, "/metrics?access_token=\(ops)", mark).status == 200)
      #expect(try get(hub, "/metrics?access_token=\(driver)", mark).status == 403)
      #expect(try get(hub, "/healthz", mark).status == 200)
    }
  }

  @Test("behind a trusted proxy, its word decides who is on this machine")
  func metricsBehindProxy() throws {
    let hub = try TestHub { $0.trustedProxies = [AddressBlock("127.0.0.0/8")!] }
    #expect(try get(hub, "/metrics", "X-Forwarded-For: 192.0.2.1").status == 401)
    #expect(try get(hub, "/metrics", "X-Forwarded-For: 127.0.0.1, 192.0.2.1").status == 401)
    #expect(try get(hub, "/metrics", "X-Forwarded-For: nonsense").status == 401)
    #expect(try get(hub, "/metrics").status == 401, "a proxy that does not say for whom")
    #expect(try get(hub, "/metrics", "X-Forwarded-For: 127.0.0.1").status == 200)
  }

  @Test("the admin port has metrics and health without a credential, and nothing else", arguments: loopCounts)
  func adminPort(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.adminPort = 0 }
    let port = try #require(hub.server.adminAddress?.port)
    #expect(port != hub.port && hub.server.adminAddress?.isLoopback == true)
    for target in ["/healthz", "/readyz", "/metrics"] { #expect(try get(hub, target, port: port).status == 200) }
    #expect(try get(hub, "/metrics", port: port, "X-Forwarded-For: 192.0.2.1").status == 200)
    for target in ["/v1/drivers/d1?role=ops&id=o1", "/v1/ws?role=rider&id=r1", "/v1/nothing"] {
      #expect(try get(hub, target, port: port).status == 404)
    }
    let upgrade = try RawConnection(port: port)
    try upgrade.send(UpgradeRequest("/v1/ws?role=rider&id=r1").text)
    #expect(try upgrade.readResponse().status == 404)
    // With it, coming from this machine is no reason any more.
    #expect(try get(hub, "/metrics").status == 401)
    #expect(try get(hub, "/metrics?role=ops&id=o1").status == 200)
    #expect(try get(hub, "/healthz").status == 200)
  }

  @Test("an admin port that is taken, and one at an address that is none, say so")
  func badAdminPort() throws {
    let listener = try Listener()
    for (port, host) in [(listener.port, "127.0.0.1"), (0, "nowhere.example")] {
      var configuration = ServerConfiguration()
      configuration.port = 0
      configuration.logLevel = .error
      configuration.adminPort = port
      configuration.adminHost = host
      do throws(ServerError) {
        _ = try Server.start(configuration)
        Issue.record("started with an admin port at \(host):\(port)")
      } catch {
        #expect(error.description.contains(port == 0 ? host : "\(port)"))
      }
    }
  }

  // MARK: Tokens

  @Test("the token of a POST is checked once", arguments: loopCounts)
  func checkedOnce(loops: Int) throws {
    let keys = try KeySet(parsing: Array("0123456789abcdef0123456789abcdef\n".utf8))
    let hub = try TestHub(loops: loops) {
      $0.allowsDevelopmentCredentials = false
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
    }
    let expires = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000) + 60_000)
    let claims = Claims(subject: Identifier("d1")!, role: .driver, expires: expires, grants: Grants())
    let token = String(decoding: try keys.keys[0].token(TokenRequest(claims: claims)), as: UTF8.self)
    let body = #"{"latitude":1,"longitude":1,"accuracy":5,"timestamp":1700000000000}"#
    for number in 1...3 {
      let answer = try hub.post("/v1/locations?access_token=\(token)", body)
      #expect(answer.status == 200)
      try hub.metrics { $0["credential_checks_total"] == Double(number) }
    }
    #expect(try hub.post("/v1/locations?access_token=\(token)x", body).status == 401)
    #expect(try hub.post("/v1/locations", body).status == 401)
    // Two on one connection are two.
    let connection = try hub.connect()
    let request =
      "POST /v1/locations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    let stranger = request.replacing(token, with: "x")
    try connection.send(request + stranger + request)
    #expect(try (0..<3).map { _ in try connection.readResponse().status } == [200, 401, 200])
    try hub.metrics { $0["credential_checks_total"] == 8 }
  }
}
