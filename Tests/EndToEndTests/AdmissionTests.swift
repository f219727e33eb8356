// Connections that send nothing, send slowly, or are too many; and mistakes of the operator.
import Foundation
import HubGateway
import HubMessages
import HubRuntime
import HubTransport
import Testing

extension EndToEnd {
  @Suite struct Admission {}
}

extension EndToEnd.Admission {
  @Test("a thousand connections that never upgrade are closed after the handshake time", arguments: loopCounts)
  func silentConnections(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.handshakeSeconds = 5 }
    let witness = try Witness(hub)
    var connections: [RawConnection] = []
    for number in 0..<1000 {
      let connection = try hub.connect()
      if number % 2 == 0 { try connection.send("GET /v1/ws HTTP/1.1\r\nHost:") }
      connections.append(connection)
      if number % 250 == 0 { try witness.check() }
    }
    try witness.check()
    for connection in connections { try connection.waitForEnd() }
    try witness.check()
    try hub.metrics { $0["request_timeouts_total"] == 1000 && $0["connections"] == 3 }
  }

  @Test("bytes that trickle in do not put off the handshake's end", arguments: loopCounts)
  func slowHandshake(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.handshakeSeconds = 5 }
    let slow = try hub.connect()
    let request = Array(UpgradeRequest("/v1/ws?role=rider&id=slow").text.utf8)
    var sent = 0
    // A byte each 100 ms: the wait for an answer that does not come is the pace.
    while true {
      do {
        try slow.send([request[sent % request.count]])
        sent += 1
        if try slow.receive(until: Deadline(seconds: 0.1)).isEmpty { break }
      } catch PeerError.timedOut {
        #expect(sent < request.count, "the whole request must not get through")
        if sent >= request.count { break }
      } catch PeerError.system { break }
    }
    try hub.metrics { $0["request_timeouts_total"] == 1 }
  }

  @Test("a kept connection that asks nothing more is closed")
  func idleKeepAlive() throws {
    let hub = try TestHub { $0.limits.keepAliveSeconds = 0.2 }
    let connection = try hub.connect()
    try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(try connection.readResponse().status == 200)
    try connection.waitForEnd()
  }

  @Test("a connection over the limit is closed at once, and there is room again when one has gone")
  func connectionLimit() throws {
    let hub = try TestHub { $0.limits.connectionsPerLoop = 4 }
    let riders = try (0..<4).map { try hub.rider("r\($0)") }
    let tooMany = try hub.connect()
    try tooMany.waitForEnd()
    #expect(try riders[0].settle().isEmpty)
    riders[3].connection.close()
    let deadline = Deadline()
    var response: HTTPResponse?
    while response == nil, !deadline.isOver {
      // The end of the other connection has to reach the hub first.
      do { response = try hub.get("/metrics") } catch is PeerError {}
    }
    #expect(try Metrics(try #require(response).text)["connections_refused_total"] >= 1)
  }

  @Test("many newcomers at once are all taken, a few in each turn", arguments: loopCounts)
  func acceptsPerTurn(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.loop.acceptsPerTurn = 2
      $0.limits.acceptBacklog = 64
    }
    let connections = try (0..<50).map { _ in try hub.connect() }
    for connection in connections { try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    for connection in connections { #expect(try connection.readResponse().status == 200) }
  }

  @Test("a flood of requests in one piece holds up nobody, and is answered all the same", arguments: loopCounts)
  func pipelinedFlood(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.keepAliveSeconds = 8 }
    let witness = try Witness(hub)
    let count = 400
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    var latest: RawConnection?
    let isFair = try isWithin(1) {
      let flood = try hub.connect()
      latest = flood
      try flood.send(String(repeating: request, count: count))
      let start = uptime()
      for _ in 0..<20 { try witness.check() }
      return uptime() - start
    }
    #expect(isFair, "other sessions come in between")
    let flood = try #require(latest)
    var answered = 0
    while answered < count {
      #expect(try flood.readResponse().status == 200)
      answered += 1
      if answered % 100 == 0 { try witness.check() }
    }
    let deaf = try hub.connect(receiveBuffer: 4096)
    try deaf.send(String(repeating: request, count: count))
    // It reads nothing: nothing more is made for it, and it is cut off when its time is over.
    try hub.metrics { $0["outbox_bytes"] > 0 }
    try hub.metrics {
      $0["request_timeouts_total"] >= 1 && $0["outbox_bytes"] == 0 && $0["dropped_total{reason=\"overflow\"}"] == 0
    }
    try witness.check()
  }

  @Test("head and body of a request have their limits")
  func requestLimits() throws {
    let hub = try TestHub {
      $0.limits.requestHeadBytes = 512
      $0.limits.requestBodyBytes = 1000
    }
    let padding = String(repeating: "x", count: 600)
    #expect(try hub.request("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: \(padding)\r\n\r\n").status == 431)
    let body = String(repeating: " ", count: 1001)
    #expect(try hub.post("/v1/locations?role=driver&id=d1", body).status == 413)
    let fits = String(repeating: " ", count: 1000)
    #expect(try hub.post("/v1/locations?role=driver&id=d1", fits).status == 400)
    let chunked = try hub.connect()
    try chunked.send(
      "POST /v1/locations?role=driver&id=d1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3E9\r\n\(body)\r\n"
    )
    #expect(try chunked.readResponse().status == 413)
  }

  @Test("of a request without a credential, or where no body is wanted, no large body is kept")
  func bodiesOfStrangers() throws {
    let hub = try TestHub()
    let body = String(repeating: " ", count: 5000)
    #expect(try hub.post("/v1/locations", body).status == 413)
    #expect(try hub.post("/healthz", body).status == 413)
    #expect(try hub.post("/v1/locations", "{}").status == 401)
    #expect(try hub.post("/v1/locations?role=driver&id=d1", body).status == 400)
  }

  // MARK: The operator

  private func error(_ change: (inout ServerConfiguration) -> Void) -> ServerError? {
    var configuration = ServerConfiguration()
    configuration.port = 0
    configuration.logLevel = .error
    change(&configuration)
    do throws(ServerError) {
      let server = try Server.start(configuration)
      server.drain()
      server.wait()
      return nil
    } catch {
      return error
    }
  }

  @Test("one port for clients and operators is refused, unless the kernel chooses both")
  func onePortForBoth() {
    for (host, adminHost) in [("127.0.0.1", "0.0.0.0"), ("0.0.0.0", "127.0.0.1"), ("::", "0.0.0.0"), ("::1", "::1")] {
      let error = error { ($0.host, $0.adminHost, $0.port, $0.adminPort) = (host, adminHost, 28001, 28001) }
      #expect(error == SocketAddress(host: adminHost, port: 28001).map { .onePortForBoth($0) }, "\(host) \(adminHost)")
    }
    #expect(error { $0.adminPort = 0 } == nil)
  }

  @Test("development credentials are refused on any address but loopback")
  func developmentCredentials() {
    for host in ["0.0.0.0", "::", "192.0.2.1"] {
      let error = error {
        $0.host = host
        $0.allowsDevelopmentCredentials = true
      }
      #expect(error == .developmentCredentialsNotOnLoopback(host))
      #expect(error?.description.contains(host) == true)
    }
    for host in ["127.0.0.1", "localhost"] {
      let error = error {
        $0.host = host
        $0.allowsDevelopmentCredentials = true
      }
      #expect(error == nil)
    }
  }

  @Test("an address that is none and a number of loops that is none are refused")
  func badConfiguration() {
    #expect(error { $0.host = "example.org" } == .badAddress("example.org"))
    #expect(error { $0.loops = 0 } == .badLoopCount(0))
    #expect(error { $0.loops = 65 } == .badLoopCount(65))
  }

  @Test("a port that another hub or another program has is refused, and the message says so", arguments: loopCounts)
  func portTaken(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    for host in ["127.0.0.1", "0.0.0.0"] {
      let error = error {
        $0.host = host
        $0.port = hub.port
        $0.loops = loops
      }
      guard case .portTaken(let text) = error else {
        Issue.record("a second hub on \(host) started: \(String(describing: error))")
        continue
      }
      #expect(text.contains("\(hub.port)"))
    }
    #expect(try hub.get("/healthz").status == 200)
    let listener = try Listener()
    guard case .portTaken = error({ $0.port = listener.port }) else {
      Issue.record("a hub started on a port that a program listens on")
      return
    }
  }

  @Test("a port is free again as soon as its hub has gone, though its connections are in TIME_WAIT")
  func portReuse() throws {
    var hub: TestHub? = try TestHub()
    let port = try #require(hub?.port)
    let rider = try #require(hub).rider("r1")
    hub?.server.drain()
    #expect(try rider.receiveClose().code == 1001)
    hub?.server.wait()
    hub = nil
    hub = try TestHub { $0.port = port }
    #expect(try hub?.get("/healthz").status == 200)
  }
}
