// The hub over TLS: clients on wss, HTTPS by another implementation's hand, certificates that are refused, replaced and
// broken, and those who come to the wrong port.
import Foundation
import HubClientLoop
import HubGateway
import HubGeo
import HubMessages
import HubTestCertificates
import HubTransport
import HubWebSocket
import Testing

private let authority = TestAuthority()

extension EndToEnd {
  @Suite struct TLS {}
}

extension EndToEnd.TLS {
  private func server(
    for hosts: [String] = ["localhost", "127.0.0.1"], seconds: ClosedRange<Int> = -3600...86_400
  ) throws -> TLSServer {
    let (certificate, key) = authority.issue(for: hosts, seconds: seconds)
    return try TLSServer([TLSCertificate(certificate: certificate, key: key)])
  }

  private func configuration(
    _ port: UInt16, _ role: String, _ id: String, host: String = "localhost"
  ) throws -> ClientConfiguration {
    var configuration = ClientConfiguration(url: try HubURL("wss://\(host):\(port)/v1/ws?role=\(role)&id=\(id)"))
    configuration.limits.firstDelay = 0.05
    configuration.limits.spreadSeconds = 0.05
    return configuration
  }

  private func bench(trusting pem: [UInt8]? = nil) throws -> ClientBench {
    let bench = try ClientBench()
    bench.clients.trust = try TLSClient(trusting: pem ?? authority.pem)
    return bench
  }

  @Test("a driver's fixes reach a rider over wss, each once and in order", arguments: loopCounts)
  func path(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.tls = try server() }
    let bench = try bench()
    let rider = bench.clients.add(try configuration(hub.port, "rider", "r1"))
    bench.clients.subscribe(rider, to: .trip(Identifier("T1")!))
    #expect(bench.run { bench.subscribed == 1 })
    let driver = bench.clients.add(try configuration(hub.port, "driver", "d1", host: "127.0.0.1"))
    #expect(bench.run { bench.openings[driver.index] == 1 })
    for step in 0..<100 {
      let place = try #require(Coordinate(latitude: 37 + Double(step) * 1e-4, longitude: -122))
      let fix = Fix(coordinate: place, timestamp: Timestamp(milliseconds: 1_700_000_000_000 + Int64(step) * 1000))
      bench.clients.send(fix, trip: Identifier("T1"), from: driver)
    }
    #expect(bench.run { bench.positions[rider.index]?.count == 100 })
    let times = (bench.positions[rider.index] ?? []).map(\.timestamp.milliseconds)
    #expect(times == (0..<100).map { 1_700_000_000_000 + Int64($0) * 1000 })
    bench.clients.closeAll()
    #expect(bench.run { bench.clients.connections == 0 })
  }

  @Test("HTTPS on the same port, in TLS 1.3, and a goodbye at the end")
  func https() throws {
    let hub = try TestHub { $0.tls = try server() }
    let connection = try SecureConnection(port: hub.port)
    #expect(connection.version == "TLSv1.3" && connection.isCertified(for: "localhost"))
    #expect(try connection.get("/healthz").hasSuffix("ok\n"))
    let metrics = try SecureConnection.metrics(port: hub.port)
    #expect(metrics["tls_handshakes_total{outcome=\"full\"}"] == 2)
    #expect(metrics["tls_handshakes_total{outcome=\"failed\"}"] == 0)
  }

  @Test("another authority's certificate, a wrong host and one whose time is over are refused, and the client says why")
  func refused() throws {
    let hub = try TestHub { $0.tls = try server(for: ["localhost"], seconds: -3600...Int(bound(4))) }
    let other = TestAuthority(name: "somebody else")
    func refusal(_ configuration: ClientConfiguration, trusting pem: [UInt8]? = nil) throws -> String {
      let bench = try bench(trusting: pem)
      bench.clients.add(configuration)
      #expect(bench.run { !bench.closures.isEmpty || !bench.openings.isEmpty })
      bench.clients.closeAll()
      guard case .tlsFailed(let text, isCertificate: true) = bench.closures.first?.cause else {
        return "\(String(describing: bench.closures.first))"
      }
      guard case .retry = bench.closures.first?.next else { return "no other attempt" }
      return text
    }
    #expect(try refusal(configuration(hub.port, "ops", "a"), trusting: other.pem).contains("issuer"))
    #expect(try refusal(configuration(hub.port, "ops", "a", host: "127.0.0.1")).contains("mismatch"))
    var reason = ""
    let deadline = Deadline(seconds: bound(4) + Deadline.patience)
    while !reason.contains("expired"), !deadline.isOver { reason = try refusal(configuration(hub.port, "ops", "a")) }
    #expect(reason.contains("expired"))
  }

  @Test("a client that comes again resumes its session")
  func resumed() throws {
    let hub = try TestHub { $0.tls = try server() }
    let bench = try bench()
    let client = bench.clients.add(try configuration(hub.port, "ops", "o1"))
    for round in 1...3 {
      #expect(bench.run { bench.openings[client.index] == round })
      bench.clients.close(client)
      #expect(bench.run { bench.closures.count == round })
      bench.clients.restart(client)
    }
    #expect(bench.run { bench.openings[client.index] == 4 })
    let metrics = try SecureConnection.metrics(port: hub.port)
    #expect(metrics["tls_handshakes_total{outcome=\"resumed\"}"] == 3)
    #expect(metrics["tls_handshakes_total{outcome=\"full\"}"] == 2)
    bench.clients.closeAll()
    #expect(bench.run { bench.clients.connections == 0 })
  }

  @Test("plain HTTP at the TLS port and TLS at the plain port end clearly, and are counted")
  func wrongPort() throws {
    let secure = try TestHub { $0.tls = try server() }
    let plain = try secure.connect()
    try plain.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try plain.waitForEnd()
    #expect(try SecureConnection.metrics(port: secure.port)["tls_handshakes_total{outcome=\"failed\"}"] == 1)

    let hub = try TestHub()
    let bench = try bench()
    bench.clients.add(try configuration(hub.port, "ops", "o1"))
    #expect(bench.run { !bench.closures.isEmpty })
    bench.clients.closeAll()
    #expect("\(try #require(bench.closures.first).cause)".contains("wrong version number"))
    try hub.metrics { $0["bad_requests_total"] == 1 && $0["http_responses_total{status=\"400\"}"] == 1 }
  }

  @Test("a handshake that is never finished ends with the time for a request")
  func slowHandshake() throws {
    let hub = try TestHub {
      $0.tls = try server()
      $0.limits.handshakeSeconds = 5
    }
    let silent = try hub.connect()
    let slow = try hub.connect()
    try slow.send([22, 3, 1, 1, 0, 1, 0])  // the beginning of a ClientHello
    try silent.waitForEnd()
    try slow.waitForEnd()
    let metrics = try SecureConnection.metrics(port: hub.port)
    #expect(metrics["request_timeouts_total"] == 2)
    #expect(metrics["tls_handshakes_total{outcome=\"failed\"}"] == 1, "the silent one began none")
  }

  @Test("more handshakes than a turn may have wait for the next, which is counted")
  func manyHandshakes() throws {
    let hub = try TestHub {
      $0.tls = try server()
      $0.limits.loop.tlsHandshakesPerTurn = 1
    }
    let bench = try bench()
    for number in 0..<50 { bench.clients.add(try configuration(hub.port, "ops", "o\(number)")) }
    #expect(bench.run { bench.openings.count == 50 })
    #expect(try SecureConnection.metrics(port: hub.port)["tls_handshakes_deferred_total"] > 0)
    bench.clients.closeAll()
    #expect(bench.run { bench.clients.connections == 0 })
  }

  @Test("a hub that drains says goodbye over TLS")
  func drain() throws {
    let bench = try bench()
    let hub = try TestHub { $0.tls = try server() }
    bench.clients.add(try configuration(hub.port, "ops", "o1"))
    #expect(bench.run { bench.openings.count == 1 })
    hub.server.drain()
    #expect(bench.run { !bench.closures.isEmpty })
    #expect(bench.closures.first?.cause == .closed(.goingAway))
    bench.clients.closeAll()
  }
}

// MARK: The program

/// A certificate and its key in files that go with the test.
private final class CertificateFiles {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hub-tls-\(UUID().uuidString)")

  init(_ issued: (certificate: [UInt8], key: [UInt8])) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try replace(issued)
    try Data(authority.pem).write(to: URL(fileURLWithPath: ca))
  }

  deinit {
    do { try FileManager.default.removeItem(at: folder) } catch { print("\(folder.path) stays: \(error)") }
  }

  var certificate: String { folder.appendingPathComponent("cert.pem").path }
  var key: String { folder.appendingPathComponent("key.pem").path }
  var ca: String { folder.appendingPathComponent("ca.pem").path }
  var options: [String] { ["--tls-cert", certificate, "--tls-key", key] }

  func replace(_ issued: (certificate: [UInt8], key: [UInt8])) throws {
    try Data(issued.certificate).write(to: URL(fileURLWithPath: certificate))
    try Data(issued.key).write(to: URL(fileURLWithPath: key))
  }
}

extension EndToEnd.TLS {
  @Test(
    "on SIGHUP newcomers get the new certificate, sessions go on, and a broken file changes nothing",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func reload() throws {
    let files = try CertificateFiles(authority.issue(for: ["one.example", "localhost"]))
    let hub = try HubProcess.serve(files.options + ["--log-level", "info"])
    let stays = try SecureConnection(port: hub.port)
    #expect(stays.isCertified(for: "one.example"))

    try files.replace(([], Array("no key".utf8)))
    hub.send(signal: SIGHUP)
    try hub.waitForError("event=reload_failed what=tls")
    #expect(try SecureConnection(port: hub.port).isCertified(for: "one.example"))

    try files.replace(authority.issue(for: ["two.example"]))
    hub.send(signal: SIGHUP)
    try hub.waitForError("event=tls_reloaded")
    let newcomer = try SecureConnection(port: hub.port)
    #expect(newcomer.isCertified(for: "two.example") && !newcomer.isCertified(for: "one.example"))
    #expect(try stays.get("/healthz").hasSuffix("ok\n"))
    hub.send(signal: SIGTERM)
    let outcome = try hub.outcome()
    #expect(outcome.status == 0)
    #expect(outcome.output.contains("listening on https://127.0.0.1:\(hub.port) (WebSocket: wss://127.0.0.1:"))
    #expect(outcome.errors.contains("there is no certificate in it") && outcome.errors.contains(files.certificate))
  }

  @Test(
    "certificates and keys that can't be used end `serve` with a message that says why",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func badFiles() throws {
    let good = authority.issue()
    let files = try CertificateFiles(good)
    func outcome(_ options: [String]) throws -> ProcessOutcome {
      try HubProcess.run(["serve", "--port", "0", "--dev-auth"] + options)
    }
    for options in [["--tls-cert", files.certificate], ["--tls-key", files.key]] {
      let outcome = try outcome(options)
      #expect(outcome.status == 2 && outcome.errors.contains("give --tls-"), "\(outcome.errors)")
    }
    let cases: [((certificate: [UInt8], key: [UInt8]), String)] = [
      ((good.certificate, authority.issue().key), "belongs to another certificate"),
      ((good.key, good.key), "no certificate in it"), ((good.certificate, good.certificate), "no private key in it"),
      (authority.issue(seconds: -7200...(-3600)), "the certificate expired on"),
    ]
    for (issued, words) in cases {
      try files.replace(issued)
      let outcome = try outcome(files.options)
      #expect(outcome.status == 2 && outcome.errors.contains(words), "\(outcome.errors)")
      #expect(outcome.errors.contains(files.certificate) || outcome.errors.contains(files.key))
    }
    let missing = try outcome(["--tls-cert", "/nonexistent/cert.pem", "--tls-key", files.key])
    #expect(missing.status == 2 && missing.errors.contains("/nonexistent/cert.pem"))
  }

  @Test(
    "the verbs take wss URLs with --ca, and refuse a hub that they can't trust",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func verbs() throws {
    let files = try CertificateFiles(authority.issue())
    let hub = try HubProcess.serve(files.options)
    let url = "wss://localhost:\(hub.port)/v1/ws"
    let drivers = try HubProcess(["simulate", "--url", url, "--ca", files.ca, "--drivers", "3"])
    let watched = try HubProcess.run(["watch", "fleet", "--url", url, "--ca", files.ca, "--count", "3"])
    #expect(watched.status == 0 && watched.output.contains("sim-"), "\(watched.errors)")
    drivers.send(signal: SIGTERM)
    #expect(try drivers.outcome().status == 0)
    let demo = try HubProcess(["demo", "--url", url, "--ca", files.ca, "--drivers", "2"])
    try demo.waitForOutput("2/2 drivers, 2/2 riders")
    demo.send(signal: SIGTERM)
    #expect(try demo.outcome().status == 0)

    let stranger = try HubProcess(["watch", "fleet", "--url", url])
    try stranger.waitForError("certificate refused")
    stranger.send(signal: SIGTERM)
    #expect(try stranger.outcome().status == 1)
    let plain = try HubProcess.run(["watch", "fleet", "--ca", files.ca])
    #expect(plain.status == 2 && plain.errors.contains("--ca is about TLS"), "\(plain.errors)")
    let broken = try HubProcess.run(["watch", "fleet", "--url", url, "--ca", files.key])
    #expect(broken.status == 1 && broken.errors.contains("no certificate in it"), "\(broken.errors)")
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }
}
