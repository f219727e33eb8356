// The client verbs as processes: what they do where the hub is wrong, or stores no more, and what many clients cost.
import Foundation
import HubSimulation
import HubWebSocket
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct ClientVerbs {}
}

extension EndToEnd.ClientVerbs {
  // MARK: watch

  /// Grants the upgrade that a client asks for.
  private func grant(_ connection: RawConnection) throws {
    var request = ""
    while !request.contains("\r\n\r\n") { request += String(decoding: try connection.receive(), as: UTF8.self) }
    let name = /(?i)sec-websocket-key: *([^\r]+)/
    let text = try #require(request.firstMatch(of: name)?.1)
    let key = try #require(HandshakeKey(Array(text.utf8)[...]))
    let accept = withUnsafeBytes(of: key.accept) { String(decoding: $0, as: UTF8.self) }
    try connection.send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: \(accept)\r\nSec-WebSocket-Protocol: locationhub.v1.json\r\n\r\n")
  }

  /// A message of the hub in an unmasked frame (RFC 6455 §5.2).
  private func frame(_ type: String, _ payload: String) -> [UInt8] {
    let text = #"{"type":"\#(type)","payload":\#(payload),"timestamp":1763680000000,"messageId":"r1"}"#.utf8
    return [0x81, 126, UInt8(text.count >> 8), UInt8(text.count & 0xFF)] + text
  }

  /// Grants the upgrade, and greets.
  private func greet(_ connection: RawConnection, as role: String) throws {
    try grant(connection)
    try connection.send(
      frame(
        "connected",
        #"{"sessionId":"s1","role":"\#(role)","id":"x1","heartbeatInterval":30,"serverTime":1763680000000,"#
          + #""limits":{"maxMessageBytes":262144,"maxBatch":500,"rate":10}}"#))
  }

  @Test("watch shows a hub's words, and gives the terminal none of its commands")
  func terminalCommands() throws {
    let listener = try Listener()
    let watch = try HubProcess(
      ["watch", "trip:T1", "--count", "1", "--url", "ws://127.0.0.1:\(listener.port)/v1/ws"])
    let connection = try listener.accept()
    try greet(connection, as: "rider")
    try connection.send(frame("error", #"{"code":"internal","message":"no\u001b[2J, not now, and not later either"}"#))
    try connection.send(
      frame(
        "notification",
        #"{"channel":"trip:T1","kind":"message","title":"Hi\u001b]0;x\u0007","body":"all\u009b2J\nwell","sequence":1}"#)
    )
    let outcome = try watch.outcome()
    #expect(outcome.status == 0 && outcome.errors.contains("no\u{FFFD}[2J"), "\(outcome.errors)")
    #expect(outcome.output.contains("Hi\u{FFFD}]0;x\u{FFFD}: all\u{FFFD}2J\u{FFFD}well\n"), "\(outcome.output)")
  }

  @Test("watch prints an arrival time and an offer whose numbers fit no integer")
  func hugeNumbers() throws {
    let listener = try Listener()
    let watch = try HubProcess(
      ["watch", "trip:T1", "driver:D1", "--count", "3", "--url", "ws://127.0.0.1:\(listener.port)/v1/ws"])
    let connection = try listener.accept()
    try greet(connection, as: "ops")
    for eta in ["1e300", "125.9"] {
      try connection.send(
        frame(
          "eta_update",
          #"{"channel":"trip:T1","tripId":"T1","target":"pickup","eta":\#(eta),"distance":1e300,"#
            + #""arrivalTime":1763680000000,"basis":"route","after":0}"#))
    }
    try connection.send(
      frame(
        "offer",
        #"{"channel":"driver:D1","tripId":"T1","sequence":1,"pickup":{"latitude":48,"longitude":11},"#
          + #""distance":1e300,"eta":1e300,"expiresAt":1763680000000}"#))
    let outcome = try watch.outcome()
    #expect(outcome.status == 0, "\(outcome.errors)")
    for text in ["pickup in 1e+300 s, ", "pickup in 2:05 min, ", "offer of trip T1: 1e+300 m, 1e+300 s"] {
      #expect(outcome.output.contains(text), "\(outcome.output)")
    }
  }

  // MARK: replay

  /// A drive northwards at 11 m/s, a fix a second; after the `leap`th all are an hour later.
  private func trace(_ fixes: Int, leap: Int = .max) throws -> TemporaryFile {
    let rows = (0..<fixes).map { second in
      let time = 1_763_680_000_000 + (second > leap ? 3_600_000 : 0) + second * 1000
      return "\(time),\(48 + Double(second) * 1e-4),11,11,0"
    }
    return try TemporaryFile(([TraceFile.rowHeader] + rows).joined(separator: "\n") + "\n")
  }

  private func replay(_ trace: TemporaryFile, to hub: HubProcess) throws -> ProcessOutcome {
    try HubProcess.run(["replay", trace.path, "--speed", "0", "--url", "ws://127.0.0.1:\(hub.port)/v1/ws"])
  }

  @Test("replay fails where the hub stores no more, and says so; a last fix that is held back does not count")
  func unstored() throws {
    let directory = try JournalDirectory()
    let full = try HubProcess.serve(["--data", directory.path, "--session-rate", "0"], fileBytes: 8192)
    let outcome = try replay(try trace(1000), to: full)
    #expect(outcome.status == 1 && outcome.output.contains("not all stored: the hub has not confirmed "))

    let hub = try HubProcess.serve(["--session-rate", "0"])
    let whole = try replay(try trace(50), to: hub)
    #expect(whole.status == 0 && whole.output.contains(", all stored"), "\(whole.output)")
    let next = try HubProcess.serve(["--session-rate", "0"])
    let held = try replay(try trace(50, leap: 48), to: next)
    #expect(held.status == 0 && held.output.contains(", the last one held back by the hub"), "\(held.output)")
  }

  @Test("replay goes on while one of its drivers is connected, whatever becomes of the others")
  func othersAreConnected() throws {
    let listener = try Listener()
    let trace = try trace(50)
    let replay = try HubProcess(
      ["replay", trace.path, trace.path, "--connect-timeout", "5", "--url", "ws://127.0.0.1:\(listener.port)/v1/ws"])
    let first = try listener.accept()
    try greet(first, as: "driver")
    _ = try first.receive()  // a fix: it is connected
    for _ in 0..<4 {
      let second = try listener.accept()
      _ = try second.receive()
      // The next attempts are one, two and four seconds later.
      try second.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    }
    replay.send(signal: SIGTERM)
    first.close()
    let errors = try replay.outcome().errors
    #expect(errors.contains("trying again") && !errors.contains("no connection"), "\(errors)")
  }

  // MARK: demo

  @Test("demo reports once a second that its riders cannot connect, not for each")
  func demoWithoutHub() throws {
    let nobody = try Listener(isDeaf: true)
    defer { withExtendedLifetime(nobody) {} }
    let url = "ws://127.0.0.1:\(nobody.port)/v1/ws"
    let outcome = try HubProcess.run(["demo", "--url", url, "--drivers", "50", "--connect-timeout", "0.5"])
    #expect(outcome.status == 1 && outcome.errors.contains("Is the hub running?"), "\(outcome.errors)")
    #expect(outcome.errors.split(separator: "\n").count { $0.contains("trying again") } < 10, "\(outcome.errors)")
  }

  @Test("demo takes no token, since it has many drivers")
  func demoToken() throws {
    #expect(try HubProcess.run(["demo", "--token", "x", "--duration", "0"]).status == 2)
  }

  // MARK: token

  @Test("token takes fleet as a channel, and its help and its error name it")
  func fleetToken() throws {
    let key = try TemporaryFile("0123456789abcdef0123456789abcdef\n")
    func make(_ channel: String) throws -> ProcessOutcome {
      try HubProcess.run(["token", "--key", key.path, "--role", "rider", "--sub", "r1", "--channel", channel])
    }
    #expect(try make("fleet").status == 0)
    let wrong = try make("fleets")
    #expect(wrong.status == 2 && wrong.errors.contains("--channel must be fleet"), "\(wrong.errors)")
    #expect(try HubProcess.run(["token", "--help"]).output.contains("or fleet"))
  }

  // MARK: --token-file

  @Test("a file of tokens is not read again for each client")
  func tokensReadOnce() throws {
    let clients = 60
    let token = String(repeating: "x", count: 10_000)
    let tokens = try TemporaryFile(String(repeating: token + "\n", count: clients))
    let trace = try trace(3)
    let nobody = try Listener(isDeaf: true)
    defer { withExtendedLifetime(nobody) {} }
    let replay = try HubProcess(
      ["replay"] + Array(repeating: trace.path, count: clients)
        + ["--connect-timeout", "600", "--token-file", tokens.path, "--url", "ws://127.0.0.1:\(nobody.port)/v1/ws"])
    try replay.waitForError("trying again")
    let counts = try String(contentsOfFile: "/proc/\(replay.identifier)/io", encoding: .utf8)
    let read = try #require(counts.firstMatch(of: /rchar: ([0-9]+)/).flatMap { Int($0.1) })
    #expect(read < 10 * clients * token.count, "\(read) bytes")
  }
}
