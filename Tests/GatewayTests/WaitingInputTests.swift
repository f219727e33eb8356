// Input that waits for later turns: who waits, and in which order.
import HubMessages
import HubTokens
import HubTransport
import Testing

@testable import HubGateway

@Suite struct WaitingInputTests {
  @Test("who waits is in the list once, however often it is told to, and comes behind the others when it waits again")
  func once() throws {
    var budget = TurnBudget(try EventLoop(), Limits(), Admissions(Limits(), sessionLimit: 1))
    let ids = (0..<3).map { ConnectionID(slot: $0, generation: 7) }
    for id in ids + ids { budget.resumeNextTurn(id) }
    #expect(budget.waitingCount == 3 && budget.takeWaiting() == ids[0])
    budget.resumeNextTurn(ids[1])
    budget.resumeNextTurn(ids[0])
    budget.resumeNextTurn(ids[0])
    #expect((0..<4).map { _ in budget.takeWaiting() } == [ids[1], ids[2], ids[0], nil])
    #expect(!budget.isAnyoneWaiting)
  }

  @Test("a head whose body is awaited counts among what is kept, until the request is there")
  func heads() throws {
    let hub = try HandDrivenHub(clock: HandClock()) { $0.allowsDevelopmentCredentials = true }
    let request = try HandDrivenRequest(
      hub, "/v1/trips?role=ops&id=o1", method: "POST", fields: "X: \(String(repeating: "x", count: 6000))\r\n",
      announcing: 2)
    hub.loop.runTurn(timeoutMilliseconds: 0)
    hub.loop.runTurn(timeoutMilliseconds: 0)
    let kept = hub.sessions.sessions.pointee.shared.admissions.incomplete
    #expect((6000 - Limits().incompleteFreeBytes...6300).contains(kept), "\(kept)")
    request.send("{}")
    try hub.turn {
      request.ownTurn()
      return request.isComplete
    }
    #expect(hub.sessions.sessions.pointee.shared.admissions.incomplete == 0, "\(request.text)")
  }

  @Test("behind a trusted proxy each client has its part of what is kept, by the address that the request states")
  func proxied() throws {
    let secret = try KeySet(parsing: Array("0123456789abcdef0123456789abcdef".utf8)).keys[0]
    let claims = Claims(subject: Identifier("backend")!, role: .ops)
    let token = String(decoding: try secret.token(TokenRequest(claims: claims)), as: UTF8.self)
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: KeySet(keys: [secret])))
      $0.trustedProxies = [AddressBlock("127.0.0.0/8")!]
      $0.limits.messageBytes = 16 * 1024
      $0.limits.incompleteBytesPerAddress = 16 * 1024
    }
    let admissions = hub.sessions.sessions.pointee.shared.admissions
    func post(from address: String) throws -> HandDrivenRequest {
      let fields = "X-Forwarded-For: \(address)\r\nAuthorization: Bearer \(token)\r\n"
      let request = try HandDrivenRequest(hub, "/v1/trips", method: "POST", fields: fields, announcing: 12_000)
      request.send(String(repeating: " ", count: 11_000))
      for _ in 0..<8 {
        hub.loop.runTurn(timeoutMilliseconds: 0)
        request.ownTurn()
      }
      return request
    }
    let first = try post(from: "192.0.2.1")
    let other = try post(from: "192.0.2.2")
    #expect(first.status == "" && other.status == "")
    let second = try post(from: "192.0.2.1")
    #expect(second.status == "503", "\(second.text)")
    first.send(String(repeating: " ", count: 1000))
    other.abort()
    try hub.turn {
      first.ownTurn()
      return first.isComplete && admissions.incomplete == 0
    }
    #expect(try post(from: "192.0.2.1").status == "", "there is room again")
  }

  @Test(
    "behind as many unanswered subscriptions as a session may have its input waits, also where each message comes alone"
  )
  func unanswered() throws {
    let hub = try HandDrivenHub(clock: HandClock()) { $0.allowsDevelopmentCredentials = true }
    let peer = try HandDrivenPeer(hub, role: "rider", id: "r1")
    let slot = try #require(hub.openSlots.first)
    func ask() { hub.sessions.sessions.pointee.sessions[slot].open.subscriptions.ask() }
    func answer() {
      let loop = hub.sessions.sessions
      loop.pointee.budget.answered(&loop.pointee.sessions[slot])
    }
    func pongs(_ text: String) -> Int {
      peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping(text)))
      peer.turn()
      return peer.messages.count { $0.contains("\"pong\"") }
    }
    let limit = Limits().unansweredSubscriptions
    for _ in 1..<limit { ask() }
    #expect(pongs("before") == 1)
    ask()
    #expect(pongs("first") == 1 && pongs("second") == 1)
    for _ in 1..<limit { answer() }
    #expect(pongs("third") == 1, "all of them are to be answered")
    answer()
    peer.turn()
    let texts = peer.messages.compactMap { $0.firstMatch(of: /"text":"(\w+)"/)?.1 }
    #expect(texts == ["before", "first", "second", "third"])
  }

  @Test("a session that is not read, since its subscriptions are not answered, does not count as silent")
  func unansweredForLong() throws {
    let hub = try HandDrivenHub(clock: HandClock()) { $0.allowsDevelopmentCredentials = true }
    let peer = try HandDrivenPeer(hub, role: "rider", id: "r1")
    let slot = try #require(hub.openSlots.first)
    let loop = hub.sessions.sessions
    for _ in 0..<Limits().unansweredSubscriptions { loop.pointee.sessions[slot].open.subscriptions.ask() }
    peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping("waits")))
    peer.turn()
    for _ in 0..<200 {
      hub.clock.advance(milliseconds: 1000)
      peer.turn()
    }
    #expect(peer.isOpen && peer.closeCode == nil && peer.messages.isEmpty)
    for _ in 0..<Limits().unansweredSubscriptions { loop.pointee.budget.answered(&loop.pointee.sessions[slot]) }
    peer.turn()
    #expect(peer.messages.count { $0.contains("\"pong\"") } == 1)
  }

  @Test("behind a request whose answer is due no more is kept than a limit, however much is sent, and all is answered")
  func pipelined() throws {
    let hub = try HandDrivenHub(clock: HandClock(), idleLoops: 1) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.metricsSeconds = 3
    }
    // It waits for the loop that is idle.
    let connection = try HandDrivenRequest(hub, "/metrics?role=ops&id=o1")
    func turn() {
      for _ in 0..<20 {
        hub.loop.runTurn(timeoutMilliseconds: 0)
        connection.ownTurn()
      }
    }
    turn()
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 7000))\r\n\r\n"
    connection.send(String(repeating: request, count: 200))
    turn()
    let limits = Limits()
    let kept = hub.sessions.sessions.pointee.shared.admissions.incomplete
    #expect(connection.bytes.isEmpty && !connection.isClosed)
    #expect(kept <= limits.pipelinedBytes + limits.loop.readBufferBytes, "\(kept)")
    for _ in 0..<32 {
      hub.clock.advance(milliseconds: 100)
      hub.loop.runTurn(timeoutMilliseconds: 0)
    }
    try hub.turn {
      connection.ownTurn()
      return connection.text.ranges(of: "\r\n\r\nok\n").count == 200
    }
    #expect(hub.sessions.sessions.pointee.shared.admissions.incomplete == 0)
  }

  @Test("a session that begins behind other requests is not read while its input waits for its rate")
  func upgraded() throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.sessionRate = 1
      $0.limits.sessionBurst = 5
    }
    let connection = try HandDrivenRequest(hub, "/healthz")
    let other = String(repeating: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 20)
    let upgrade =
      "GET /v1/ws?role=rider&id=r1 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    let pings = (0..<100).flatMap { _ in HandDrivenPeer.frame(HandDrivenPeer.ping("")) }
    connection.send(Array((other + upgrade).utf8) + pings)
    try hub.turn {
      connection.ownTurn()
      return hub.counters.ratePauses == 1
    }
    let slot = try #require(hub.openSlots.first)
    var kept: Int { hub.sessions.sessions.pointee.sessions[slot].keptBytes }
    let before = kept
    connection.send(pings)
    for _ in 0..<8 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    #expect(before > 0 && kept == before)
  }
}
