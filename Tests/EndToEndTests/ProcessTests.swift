// The executable as a process: exit codes, messages, signals.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct Processes {}
}

extension EndToEnd.Processes {
  @Test("a port that is taken: a clear message and exit code 1")
  func portTaken() throws {
    let listener = try Listener()
    let outcome = try HubProcess.run(["serve", "--dev-auth", "--port", "\(listener.port)"])
    #expect(outcome.status == 1)
    #expect(outcome.errors.hasPrefix("locationhub: "))
    #expect(outcome.errors.contains("127.0.0.1:\(listener.port)"))
    #expect(outcome.output.isEmpty)
    let hub = try HubProcess.serve()
    let second = try HubProcess.run(["serve", "--dev-auth", "--port", "\(hub.port)"])
    #expect(second.status == 1)
    #expect(second.errors.contains("another location hub serves 127.0.0.1:\(hub.port)"))
  }

  @Test(
    "what is asked for wrongly: exit code 2, and the message names it",
    arguments: [
      (["serve", "--prot", "1"], "--prot"), (["serve", "--port"], "--port"), (["serve", "--port", "70000"], "70000"),
      (["serve", "--port", "1", "--port", "2"], "twice"), (["serve", "extra"], "extra"), (["sevre"], "sevre"),
      ([], "usage"), (["serve", "--log-level", "loud"], "loud"), (["serve", "--dev-auth=yes"], "--dev-auth"),
    ])
  func usage(arguments: [String], named: String) throws {
    let outcome = try HubProcess.run(arguments)
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains(named))
    #expect(outcome.output.isEmpty)
  }

  @Test("help is written to standard output with exit code 0", arguments: [["--help"], ["serve", "--help"], ["help"]])
  func help(arguments: [String]) throws {
    let outcome = try HubProcess.run(arguments)
    #expect(outcome.status == 0)
    #expect(outcome.output.contains("usage: locationhub"))
    #expect(outcome.errors.isEmpty)
    if arguments.first == "serve" { #expect(outcome.output.contains("--port")) }
  }

  @Test(
    "output that is lost to a full disk: exit code 1, and the message says so",
    arguments: [
      ("locationhub", ["--version"]), ("locationhub", ["serve", "--help"]),
      ("locationhub", ["device", "add", "d1"]), ("hub-loadtest", ["--help"]),
    ])
  func lostOutput(program: String, arguments: [String]) throws {
    let outcome = try HubProcess(arguments, of: program, hasFullOutput: true).outcome()
    #expect(outcome.status == 1)
    #expect(outcome.errors.contains("write to standard output"), "\(outcome.errors)")
    #expect(outcome.errors.contains("No space left on device"), "\(outcome.errors)")
  }

  @Test("development credentials on an open address: exit code 2, and the message says what to do")
  func openAddress() throws {
    let outcome = try HubProcess.run(["serve", "--host", "0.0.0.0", "--port", "0", "--dev-auth"])
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains("127.0.0.1"))
  }

  @Test(
    "errors of a configuration file name the file and the line",
    arguments: [
      ("port = 0\nprot = 1\n", ":2: there is no setting prot"), ("# only\n\nport\n", ":3: expected name = value"),
      ("port = 0\nloops = 1 # one\nport = 1\n", ":3: port is set twice"),
      ("dev-auth = maybe\n", ":1: dev-auth must be true or false"),
    ])
  func configurationErrors(text: String, message: String) throws {
    let file = try TemporaryFile(text)
    let outcome = try HubProcess.run(["serve", "--config", file.path])
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains(file.path + message), "\(outcome.errors)")
  }

  @Test("a configuration file that is not there: exit code 2")
  func missingConfiguration() throws {
    let outcome = try HubProcess.run(["serve", "--config", "/nonexistent/hub.conf"])
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains("/nonexistent/hub.conf"))
  }

  @Test("a configuration file sets what the command line does not")
  func configuration() throws {
    let file = try TemporaryFile("# a hub for tests\nport = 1\nheartbeat = 7\nsession-rate = 3\ndev-auth = true\n")
    let hub = try HubProcess.serve(port: 0, ["--config", file.path])
    let rider = try Peer(port: hub.port, query: "role=rider&id=r1")
    let connected = try rider.receive("connected")
    #expect(connected.number("heartbeatInterval") == 7)
    #expect(connected.object("limits")?["rate"] as? Double == 3)
  }

  @Test("settings that may be given several times are lists, in the file and on the command line")
  func lists() throws {
    let file = try TemporaryFile(
      "allow-origin = https://a.example\nallow-origin = https://b.example\ntrusted-proxy = 10.0.0.0/8\ntrusted-proxy = ::1\n"
    )
    func status(_ hub: HubProcess, _ origin: String) throws -> Int {
      let connection = try RawConnection(port: hub.port)
      try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: \(origin)\r\n\r\n")
      return try connection.readResponse().status
    }
    let byFile = try HubProcess.serve(port: 0, ["--config", file.path])
    #expect(try status(byFile, "https://a.example") == 200 && status(byFile, "https://b.example") == 200)
    #expect(try status(byFile, "https://c.example") == 403)
    let more = ["--allow-origin", "https://c.example", "--allow-origin=https://d.example"]
    let byBoth = try HubProcess.serve(port: 0, ["--config", file.path] + more)
    #expect(try status(byBoth, "https://c.example") == 200 && status(byBoth, "https://d.example") == 200)
    #expect(try status(byBoth, "https://a.example") == 403, "the command line wins")
  }

  @Test("--version says which release it is, the one that the changelog is about")
  func version() throws {
    let outcome = try HubProcess.run(["--version"])
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    let release = try #require(try Document("CHANGELOG.md").text.firstMatch(of: /To become (\d+\.\d+\.\d+)/)?.1)
    #expect(outcome.output.hasPrefix("locationhub \(release)-dev (commit "))
  }

  @Test("watch and simulate that never had a connection end with 1 and say so; after one they end with 0")
  func neverConnected() throws {
    let nobody = try Listener(isDeaf: true)
    defer { withExtendedLifetime(nobody) {} }
    for (verb, word) in [
      (["watch", "fleet"], "subscribed to fleet"), (["simulate", "--drivers", "2"], "2 of 2 drivers connected"),
    ] {
      let url = ["--url", "ws://127.0.0.1:\(nobody.port)/v1/ws", "--duration", "0.3"]
      let outcome = try HubProcess.run(verb + url)
      #expect(outcome.status == 1 && outcome.errors.contains("never was a connection"), "\(outcome.errors)")
      let hub = try HubProcess.serve()
      let there = try HubProcess(verb + ["--url", "ws://127.0.0.1:\(hub.port)/v1/ws"])
      try there.waitForOutput(word)
      there.send(signal: SIGTERM)
      let end = try there.outcome()
      #expect(end.status == 0, "\(end.errors)")
      withExtendedLifetime(hub) {}
    }
  }

  @Test("serve that could let nobody in: exit code 2, and the message says what to give")
  func nobodyMayComeIn() throws {
    for more in [[], ["--allow-host", "hub.example"]] {
      let outcome = try HubProcess.run(["serve", "--port", "0"] + more)
      #expect(outcome.status == 2 && outcome.output.isEmpty)
      #expect(outcome.errors.contains("--token-keys") && outcome.errors.contains("--dev-auth"))
    }
  }

  @Test("without TLS on an address that others reach, serve warns; on loopback it does not")
  func noTLS() throws {
    let key = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID().uuidString)")
    try "0123456789abcdef0123456789abcdef\n".write(to: key, atomically: true, encoding: .utf8)
    defer { unlink(key.path) }
    for (host, warns) in [("0.0.0.0", true), ("127.0.0.1", false)] {
      let hub = try HubProcess(["serve", "--host", host, "--port", "0", "--loops", "1", "--token-keys", key.path])
      #expect(try hub.readLine().contains("listening on http://\(host):"))
      hub.send(signal: SIGTERM)
      let outcome = try hub.outcome()
      #expect(outcome.status == 0 && outcome.errors.contains("level=warning event=no_tls") == warns)
    }
  }

  @Test(
    "an origin, a proxy and an admin port that are none: exit code 2, and the message names it",
    arguments: [
      (["--allow-origin", "https://a.example/path"], "https://a.example/path"), (["--allow-origin", "null"], "null"),
      (["--allow-host", "hub.example:8080"], "hub.example:8080"), (["--allow-host", "http://hub"], "http://hub"),
      (["--trusted-proxy", "10.0.0.1/8"], "10.0.0.1/8"), (["--trusted-proxy", "proxy.example"], "proxy.example"),
      (["--admin-host", "127.0.0.1"], "--admin-port"), (["--admin-port", "70000"], "from 0 to 65535, not 70000"),
      (["--max-per-address", "-1"], "-1"), (["--max-sessions", "0"], "--max-sessions"),
      (["--dev-auth", "--host", "hub.example"], "hub.example"),
    ])
  func badAccess(arguments: [String], named: String) throws {
    let outcome = try HubProcess.run(["serve", "--port", "0"] + arguments)
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains(named))
  }

  @Test("out of file descriptors the hub reports it, accepts nobody, serves those inside, and accepts again later")
  func outOfDescriptors() throws {
    let hub = try HubProcess.serve(
      port: 0, ["--max-connections", "1000", "--admin-port", "0"], openFiles: 60)
    let driver = try Peer(port: hub.port, query: "role=driver&id=d1")
    _ = try driver.receive("connected")
    let asking = try RawConnection(port: hub.port)
    func metrics() throws -> Metrics {
      try asking.send("GET /metrics?role=ops&id=o1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
      return try Metrics(try asking.readResponse().text)
    }
    let before = try metrics()
    #expect(before["accept_pauses_total"] == 0)
    let crowd = try (0..<100).map { _ in try RawConnection(port: hub.port) }
    let deadline = Deadline()
    var full = try metrics()
    while full["accept_pauses_total"] < 3, !deadline.isOver {
      try driver.send("ping", ["n": 1])
      _ = try driver.receive("pong")
      full = try metrics()
    }
    #expect(full["accept_pauses_total"] >= 3)
    // Five times a second at most, which is not spinning; nothing else makes turns but what is asked here.
    let start = uptime()
    let first = try metrics()
    for _ in 0..<3 {
      try driver.send("ping", ["n": 2])
      _ = try driver.receive("pong")
    }
    var last = try metrics()
    while last["accept_pauses_total"] < first["accept_pauses_total"] + 3, !deadline.isOver { last = try metrics() }
    let pauses = last["accept_pauses_total"] - first["accept_pauses_total"]
    #expect(pauses <= (uptime() - start) * 5 + 1)
    for connection in crowd { connection.close() }
    let newcomer = try Peer(port: hub.port, query: "role=rider&id=r1")
    #expect(try newcomer.receive("connected").string("id") == "r1")
    hub.send(signal: SIGTERM)
    #expect(try driver.receiveClose().code == 1001)
    #expect(try hub.outcome().errors.contains("event=accept_paused"))
  }

  @Test("SIGTERM and SIGINT drain: sessions get 1001, exit code 0 within 5 s", arguments: [SIGTERM, SIGINT])
  func signals(signal: Int32) throws {
    let isPunctual = try isWithin(5) {
      let hub = try HubProcess.serve()
      let rider = try Peer(port: hub.port, query: "role=rider&id=r1")
      let stubborn = try Peer(port: hub.port, query: "role=rider&id=r2")
      _ = try rider.receive("connected")
      let start = uptime()
      hub.send(signal: signal)
      #expect(try rider.receiveClose().code == 1001)
      let outcome = try hub.outcome()
      #expect(outcome.status == 0)
      #expect(outcome.errors.contains("event=draining") && outcome.errors.contains("event=stopped"))
      withExtendedLifetime(stubborn) {}
      return uptime() - start
    }
    #expect(isPunctual, "though one client neither reads nor closes")
  }

  @Test("after kill -9 the hub starts on the same port at once")
  func killed() throws {
    let first = try HubProcess.serve()
    let driver = try Peer(port: first.port, query: "role=driver&id=d1")
    _ = try driver.receive("connected")
    first.send(signal: SIGKILL)
    #expect(try first.outcome().status == -SIGKILL)
    #expect(try driver.receiveClose().code == nil, "no close frame, only the end")
    let second = try HubProcess.serve(port: first.port)
    #expect(second.port == first.port)
    let again = try Peer(port: second.port, query: "role=driver&id=d1")
    _ = try again.receive("connected")
    try again.sendFix(0)
    #expect(try again.settle().isEmpty)
  }
}
