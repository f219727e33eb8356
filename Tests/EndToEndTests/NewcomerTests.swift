// Limits that newcomers meet: so many connections, sessions, requests. Whoever is inside notices nothing of them.
//
//     sessions, connectionsPerAddress, refusalsPerAddress, requestRate, requestBurst,
//     countsLoopbackConnections, countsLoopbackRequests, retryAfterSeconds, acceptsPerSecond,
//     answerBytesPerTurn, requestsPerPoll, tripsPerDriver                      here
//     incompleteBytes, incompleteFreeBytes                                         IncompleteInputTests
//     messageSeconds                                                               SlowMessageTests of GatewayTests
//     readBytesPerTurn, timersPerTurn                                              TurnLengthTests of TransportTests
//     idleAddresses                                                                AddressTableTests
import Foundation
import HubCore
import HubGateway
import HubMessages
import HubTransport
import Testing

extension EndToEnd {
  @Suite struct Newcomers {}
}

extension EndToEnd.Newcomers {
  // MARK: Sessions in total

  @Test("at the limit of sessions a newcomer gets 503 and those inside keep full service", arguments: loopCounts)
  func sessions(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.sessions = 4 }
    let driver = try hub.driver("d1")
    let riders = try (0..<3).map { try hub.rider("r\($0)") }
    for role in ["rider", "driver", "ops"] {
      let refusal = try hub.request(UpgradeRequest("/v1/ws?role=\(role)&id=new").text)
      #expect(refusal.status == 503)
      #expect(refusal.errorCode == "rate_limited")
      #expect(refusal.fields["retry-after"] == "10")
    }
    // HTTP is no session, and sessions stay open.
    #expect(
      try hub.post("/v1/locations?role=driver&id=d2", #"{"latitude":1,"longitude":1,"timestamp":1763680000001}"#).status
        == 200)
    for rider in riders { try rider.subscribe("trip:T1") }
    try driver.sendFix(0, trip: "T1")
    for rider in riders {
      _ = try rider.receive("trip_update")
      _ = try rider.receive("driver_location")
    }
    try hub.metrics { $0.hits("sessions") == 3 && $0["handshakes_refused_total"] == 3 }
    // A session that ends makes room for one, however it ends.
    riders[0].connection.reset()
    try hub.metrics { $0["sessions{role=\"rider\"}"] == 2 }
    let next = try hub.rider("next")
    #expect(try hub.request(UpgradeRequest("/v1/ws?role=rider&id=new").text).status == 503)
    #expect(try next.settle().isEmpty)
  }

  @Test("a driver that is refused or gives up gives its room back", arguments: loopCounts)
  func refusedDriver(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.sessions = 2
      $0.limits.hub.drivers = 1
    }
    let driver = try hub.driver("d1")
    for _ in 0..<5 {
      #expect(try hub.request(UpgradeRequest("/v1/ws?role=driver&id=d2").text).errorCode == "rate_limited")
      let gone = try RawConnection(port: hub.port)
      try gone.send(UpgradeRequest("/v1/ws?role=driver&id=d2").text)
      gone.reset()
    }
    try hub.metrics { $0["connections"] == 2 }  // the driver, and the one that asks
    let rider = try hub.rider("r1")
    #expect(try rider.settle().isEmpty && driver.settle().isEmpty)
    #expect(try hub.request(UpgradeRequest("/v1/ws?role=rider&id=r2").text).status == 503)
  }

  // MARK: By address

  @Test("an address with too many connections gets 429, others come in", arguments: loopCounts)
  func perAddress(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.adminPort = 0
      $0.limits.countsLoopbackConnections = true
      $0.limits.connectionsPerAddress = 3
      $0.limits.refusalsPerAddress = 2
    }
    func connect() throws -> RawConnection { try RawConnection(port: hub.port, source: 2) }
    let inside = try (0..<3).map { try Peer(port: hub.port, query: "role=rider&id=r\($0)", source: 2) }
    for peer in inside { _ = try peer.receive("connected") }
    let fourth = try connect()
    try fourth.send(UpgradeRequest("/v1/ws?role=rider&id=r4").text)
    let refusal = try fourth.readResponse()
    #expect(refusal.status == 429 && refusal.errorCode == "rate_limited")
    #expect(refusal.fields["retry-after"] == "10" && refusal.fields["connection"] == "close")
    try fourth.waitForEnd()
    fourth.close()
    try hub.metrics { $0["connections"] == 4 }  // three, and who asks
    // Those that only wait for their refusal are bounded themselves.
    let waiting = try (0..<2).map { _ in try connect() }
    try hub.metrics { $0.hits("connections_per_address") >= 3 }
    let cut = try connect()
    try cut.waitForEnd()
    try waiting[0].send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(try waiting[0].readResponse().status == 429)
    // Another address, and the three inside.
    let other = try Peer(port: hub.port, query: "role=rider&id=other", source: 3)
    _ = try other.receive("connected")
    for peer in inside + [other] { #expect(try peer.settle().isEmpty) }
    // One goes, one comes.
    inside[0].connection.close()
    for connection in waiting { connection.close() }
    try hub.metrics { $0["sessions{role=\"rider\"}"] == 3 && $0["connections"] == 4 }  // three, and who asks
    let next = try Peer(port: hub.port, query: "role=rider&id=next", source: 2)
    #expect(try next.receive("connected").string("id") == "next")
    withExtendedLifetime((inside, other)) {}  // the optimiser would close them with their last use
  }

  @Test("behind a trusted proxy each client's own address is counted", arguments: loopCounts)
  func perAddressBehindProxy(loops: Int) throws {
    let tokens = try TokenHub(loops: loops) {
      $0.adminPort = 0
      $0.trustedProxies = [AddressBlock("127.0.0.0/8")!]
      $0.limits.connectionsPerAddress = 2
    }
    let hub = tokens.hub
    func join(_ id: String, _ forwarded: String) throws -> Peer {
      let query = "access_token=\(try tokens.token(.rider, id))"
      let peer = try Peer(port: hub.port, query: query, fields: [("X-Forwarded-For", forwarded)])
      _ = try peer.receive("connected")
      return peer
    }
    func status(_ forwarded: String) throws -> Int {
      let target = "/v1/ws?access_token=\(try tokens.token(.rider, "x"))"
      let request = UpgradeRequest(target).with("X-Forwarded-For", forwarded)
      return try hub.request(request.text).status
    }
    let two = try (0..<2).map { try join("a\($0)", "192.0.2.1") }
    #expect(try status("192.0.2.1") == 429)
    #expect(
      try status("198.51.100.9, 192.0.2.1, 127.0.0.1") == 429, "what the client puts before its address is nothing")
    let other = try join("b", "192.0.2.2")
    let subnet = try (0..<2).map { try join("c\($0)", "2001:db8::\($0 + 1)") }
    #expect(try status("2001:db8::ffff") == 429, "a /64 is one address")
    for peer in two + subnet + [other] { #expect(try peer.settle().isEmpty) }
    two[0].connection.close()
    try hub.metrics { $0["sessions{role=\"rider\"}"] == 4 }
    _ = try join("d", "192.0.2.1")
    withExtendedLifetime((two, subnet, other)) {}
  }

  @Test("by default nothing is counted by address on loopback")
  func loopback() throws {
    let hub = try TestHub {
      $0.limits.connectionsPerAddress = 1
      $0.limits.requestRate = 1
      $0.limits.requestBurst = 1
    }
    let riders = try (0..<10).map { try hub.rider("r\($0)") }
    for rider in riders { #expect(try rider.settle().isEmpty) }
    #expect(try hub.metrics()["client_addresses"] == 0)
  }

  @Test("requests over the rate of their address get 429, and say when to come again", arguments: loopCounts)
  func requestRate(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.countsLoopbackRequests = true
      $0.limits.requestRate = 0.01
      $0.limits.requestBurst = 10
      $0.adminPort = 0
    }
    let rider = try Peer(port: hub.port, query: "role=rider&id=r1", source: 9)
    _ = try rider.receive("connected")
    let flood = try RawConnection(port: hub.port, source: 2)
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try flood.send(String(repeating: request, count: 30))
    for left in (0..<10).reversed() {
      let response = try flood.readResponse()
      #expect(response.status == 200 && response.fields["ratelimit-limit"] == "10")
      #expect((left...left + 1).contains(Int(response.fields["ratelimit-remaining"] ?? "") ?? -1))
      #expect((1...1000).contains(Int(response.fields["ratelimit-reset"] ?? "") ?? 0))
    }
    let refusal = try flood.readResponse()
    #expect(refusal.fields["ratelimit-remaining"] == "0")
    #expect(refusal.status == 429 && refusal.errorCode == "rate_limited")
    #expect((1...101).contains(Int(refusal.fields["retry-after"] ?? "") ?? 0))
    #expect(refusal.fields["connection"] == "close")
    try flood.waitForEnd()
    // On another connection as well, for an upgrade as well; not for another address, a session, or the admin port.
    let again = try RawConnection(port: hub.port, source: 2)
    try again.send(UpgradeRequest("/v1/ws?role=rider&id=r2").text)
    #expect(try again.readResponse().status == 429)
    let other = try RawConnection(port: hub.port, source: 3)
    try other.send(request)
    #expect(try other.readResponse().status == 200)
    for _ in 0..<30 { #expect(try rider.settle().isEmpty) }
    try hub.metrics { $0.hits("request_rate") == 2 }  // by the admin port
  }

  @Test("a request is charged for the work that its body brings", arguments: loopCounts)
  func requestWork(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.countsLoopbackRequests = true
      $0.limits.requestRate = 0.01
      $0.limits.requestBurst = 20
    }
    let fixes = (0..<500).map { #"{"latitude":1,"longitude":2,"timestamp":\#(1_763_680_000_000 + $0 * 1000)}"# }
    let body = #"{"locations":[\#(fixes.joined(separator: ","))]}"#
    let phone = try RawConnection(port: hub.port, source: 2)
    try phone.send(
      "POST /v1/locations?role=driver&id=d1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    )
    #expect(try phone.readResponse().status == 200)
    // 11 of 20: nine are left.
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try phone.send(String(repeating: request, count: 10))
    for _ in 0..<9 { #expect(try phone.readResponse().status == 200) }
    #expect(try phone.readResponse().status == 429)
  }

  // MARK: Answers

  @Test("long answers that are asked for at once come one by one and whole", arguments: loopCounts)
  func longAnswers(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let count = 1000
    for number in 0..<count {
      let body =
        #"{"latitude":\#(37 + Double(number) / 10000),"longitude":-122,"heading":12.3456789,"timestamp":1763680000001}"#
      let id = String(repeating: "d", count: 50) + "\(number)"
      #expect(try hub.post("/v1/locations?role=driver&id=\(id)", body).status == 200)
    }
    let witness = try Witness(hub)
    let slow = try hub.connect(receiveBuffer: 4096)
    let target = "/v1/drivers/nearby?role=ops&id=o1&latitude=37&longitude=-122&limit=\(count)"
    try slow.send(String(repeating: "GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 16))
    try hub.metrics { $0["outbox_bytes"] > 0 }
    try witness.check()
    #expect(try hub.metrics()["outbox_bytes"] < 400_000, "one answer, not sixteen")
    for _ in 0..<16 {
      let answer = try slow.readResponse()
      #expect(answer.status == 200 && answer.body.count > 200_000)
      #expect((answer.json["drivers"] as? [Any])?.count == count)
    }
    try hub.metrics { $0["outbox_bytes"] == 0 && $0["dropped_total{reason=\"overflow\"}"] == 0 }
  }

  @Test("of many that flood with requests each has its turn, and so has who asks once")
  func manyFloods() throws {
    let hub = try TestHub {
      $0.limits.requestsPerTurn = 2
      $0.limits.requestsPerPoll = 4
    }
    let witness = try Witness(hub)
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    let floods = try (0..<20).map { _ in try hub.connect() }
    for flood in floods { try flood.send(String(repeating: request, count: 200)) }
    for _ in 0..<5 {
      #expect(try hub.get("/healthz").status == 200)
      try witness.check()
    }
    for _ in 0..<200 {
      for flood in floods { #expect(try flood.readResponse().status == 200) }
    }
    try hub.metrics { $0["http_responses_total{status=\"200\"}"] >= 4005 }
  }

  // MARK: Trips

  @Test("a driver begins so many trips and no more, on every way", arguments: loopCounts)
  func tripsPerDriver(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.hub.tripsPerDriver = 3 }
    let driver = try hub.driver("d1")
    for step in 0..<3 { try driver.sendFix(step, trip: "T\(step)") }
    #expect(try driver.settle().isEmpty)
    try driver.sendFix(3, trip: "T3")
    let error = try driver.receive("error")
    #expect(error.code == "rate_limited" && error.number("retryAfter") == 60)
    try driver.send("trip_status", ["tripId": "T4", "status": "requested", "timestamp": 1_763_680_000_001])
    #expect(try driver.receive("error").code == "rate_limited")
    let body = #"{"tripId":"T5","latitude":1,"longitude":1,"timestamp":1763680000001}"#
    #expect(try hub.post("/v1/locations?role=driver&id=d1", body).status == 429)
    // Its three trips continue, as do other drivers and trips that others requested for it.
    try driver.sendFix(5, trip: "T1")
    let other = try hub.driver("d2")
    try other.sendFix(0, trip: "T3")
    let ops = try hub.ops()
    try ops.send(
      "trip_status", ["tripId": "T6", "status": "requested", "driverId": "d1", "timestamp": 1_763_680_000_001])
    _ = try ops.receive("ack")
    try driver.sendFix(6, trip: "T6")
    #expect(try driver.settle().isEmpty && other.settle().isEmpty)
    try hub.metrics { $0.hits("trips_per_driver") == 3 && $0["table_entries{table=\"trips\"}"] == 5 }
  }

  // MARK: Accepting

  @Test("over the accept rate newcomers wait, and all come in; the admin port does not wait", arguments: loopCounts)
  func acceptRate(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.loop.acceptsPerSecond = 20 / loops
      $0.adminPort = 0
    }
    let start = uptime()
    let connections = try (0..<60).map { _ in try hub.connect() }
    let admin = try RawConnection(port: try #require(hub.server.adminAddress?.port))
    try admin.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(try admin.readResponse().status == 200)
    let accepted = try hub.metrics()["connections"]
    #expect(accepted < 60 || uptime() - start > 60.0 / 20 - 1.2, "the others still wait")
    for connection in connections { try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    for connection in connections { #expect(try connection.readResponse().status == 200) }
    #expect(uptime() - start > 60.0 / 20 - 1.2)
    try admin.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(try Metrics(try admin.readResponse().text)["accept_waits_total"] >= 1)
  }
}
