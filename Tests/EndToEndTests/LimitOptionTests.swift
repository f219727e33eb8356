// The limits that operators set, as the built `locationhub` takes them: reached through their options, seen in its
// metrics.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct LimitOptions {}
}

extension EndToEnd.LimitOptions {
  private func response(_ hub: HubProcess, _ request: String) throws -> HTTPResponse {
    let connection = try RawConnection(port: hub.port)
    try connection.send(request)
    return try connection.readResponse()
  }

  /// Waits until the counters are what they should be: a close is counted a moment after it is read.
  private func metrics(_ hub: HubProcess, _ condition: (Metrics) -> Bool) throws {
    let deadline = Deadline()
    while true {
      let page = try response(hub, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").text
      let metrics = try Metrics(page)
      if condition(metrics) { return }
      guard !deadline.isOver else { throw PeerError.timedOut(waitingFor: "metrics: \(metrics.values)") }
    }
  }

  @Test("--max-head, --max-message and --max-fragments")
  func sizes() throws {
    let hub = try HubProcess.serve(["--max-head", "1000", "--max-message", "2000", "--max-fragments", "4"])
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
    let end = "\r\n\r\n"
    let fitting = head + String(repeating: "x", count: 1000 - head.utf8.count - end.utf8.count) + end
    #expect(try response(hub, fitting).status == 200)
    #expect(try response(hub, head + String(repeating: "x", count: 1000) + end).status == 431)
    let post = "POST /v1/locations?role=driver&id=d1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    #expect(try response(hub, post + "Content-Length: 2001\r\n\r\n").status == 413)

    let tooLong = try Peer(port: hub.port, query: "role=rider&id=r1")
    #expect(try tooLong.receive("connected").object("limits")?["maxMessageBytes"] as? Int == 2000)
    let ping = Array(try Peer.message("ping", [:], id: "p").utf8)
    let spaces = [UInt8](repeating: 0x20, count: 2000 - ping.count)
    try tooLong.send(bytes: Peer.frame(ping + spaces))
    #expect(try tooLong.receive("pong").replyTo == "p", "exactly the limit is read")
    try tooLong.send(bytes: Peer.frame(ping + spaces + [0x20]))
    #expect(try tooLong.receiveClose().code == 1009)

    let tooMany = try Peer(port: hub.port, query: "role=rider&id=r2")
    _ = try tooMany.receive("connected")
    func fragments(_ count: Int) -> [UInt8] {
      var bytes = Peer.frame(ping, isFinal: false)
      for _ in 0..<(count - 2) { bytes += Peer.frame([], opcode: 0, isFinal: false) }
      return bytes + Peer.frame([], opcode: 0)
    }
    try tooMany.send(bytes: fragments(4))
    #expect(try tooMany.receive("pong").replyTo == "p")
    try tooMany.send(bytes: fragments(5))
    #expect(try tooMany.receiveClose().code == 1009)
    try metrics(hub) {
      $0.closes(1009) == 2 && $0.hits("message_bytes") == 1 && $0.hits("fragments") == 1
        && $0["http_responses_total{status=\"431\"}"] == 1
        && $0["http_responses_total{status=\"413\"}"] == 1 && $0["bad_requests_total"] >= 1
    }
  }

  @Test("pings of the WebSocket protocol are work, too: over --session-rate nobody reads on")
  func pings() throws {
    let hub = try HubProcess.serve(["--session-rate", "5", "--session-burst", "5"])
    let greedy = try Peer(port: hub.port, query: "role=rider&id=r1")
    _ = try greedy.receive("connected")
    try greedy.send(bytes: Array((0..<50).map { _ in Peer.frame([1], opcode: 9) }.joined()))
    try metrics(hub) { $0["rate_pauses_total"] >= 1 }
  }

  @Test("--max-subscriptions")
  func subscriptions() throws {
    let hub = try HubProcess.serve(["--max-subscriptions", "1"])
    let rider = try Peer(port: hub.port, query: "role=rider&id=r1")
    _ = try rider.receive("connected")
    try rider.send("subscribe", ["channel": "trip:T1"])
    _ = try rider.receive("subscribed")
    try rider.send("subscribe", ["channel": "trip:T2"])
    #expect(try rider.receive("error").code == "rate_limited")
    try metrics(hub) { $0.errors("rate_limited") == 1 }
  }

  @Test("the limits by identity: --max-sessions-per-rider, --max-areas-per-rider, --max-trips-per-rider and the others")
  func identities() throws {
    let hub = try HubProcess.serve([
      "--max-sessions-per-rider", "1", "--max-sessions-per-ops", "2", "--max-sessions-per-driver", "3",
      "--max-areas-per-rider", "2", "--max-areas-per-ops", "20", "--max-trips-per-rider", "1",
      "--max-queries-per-rider", "1", "--max-queries-per-ops", "2", "--max-queries-per-driver", "1",
    ])
    let rider = try Peer(port: hub.port, query: "role=rider&id=r1")
    _ = try rider.receive("connected")
    let refusal = try response(hub, UpgradeRequest("/v1/ws?role=rider&id=r1").text)
    #expect(refusal.status == 429 && refusal.text.contains("max-sessions-per-rider"))
    let ops = try (0..<2).map { _ in try Peer(port: hub.port, query: "role=ops&id=o1") }
    for peer in ops { _ = try peer.receive("connected") }
    #expect(try response(hub, UpgradeRequest("/v1/ws?role=ops&id=o1").text).status == 429)
    for (cell, answer) in [("u33d0", "subscribed"), ("u33d1", "subscribed"), ("u33d2", "rate_limited")] {
      #expect(try rider.answer(toSubscribing: "area:\(cell)") == answer)
    }
    for answer in ["ack", "error"] {
      try rider.send("trip_status", ["tripId": "T-\(answer)", "status": "requested", "timestamp": 1_763_680_000_001])
      _ = try rider.receive(answer)
    }
    let payload: [String: Any] = ["kind": "nearby", "latitude": 37, "longitude": -122, "limit": 5]
    try rider.send(
      bytes: Peer.frame(Array(try Peer.message("query", payload, id: "q1").utf8))
        + Peer.frame(Array(try Peer.message("query", payload, id: "q2").utf8)))
    #expect(try rider.receive("error").string("message")?.contains("max-queries-per-rider") == true)
    try metrics(hub) {
      $0.hits("sessions_per_identity") == 2 && $0.hits("areas_per_identity") == 1 && $0.hits("trips_per_rider") == 1
        && $0.hits("queries_per_identity") == 1
    }
  }

  @Test(
    "values that do not go together: exit code 2, and the message names both",
    arguments: [
      (["--max-message", "600000"], ["--max-message (600000)", "--max-outbox (524288)"]),
      (["--max-outbox", "10000"], ["--max-message (262144)", "--max-outbox (10000)"]),
      (["--max-outboxes", "10000"], ["--max-outbox (524288)", "--max-outboxes (10000)"]),
      (["--max-incomplete", "10000"], ["--max-message (262144)", "--max-incomplete (10000)"]),
      (["--max-head", "65537"], ["--max-head", "65536"]), (["--max-fragments", "0"], ["--max-fragments"]),
      (["--max-sessions-per-rider", "0"], ["--max-sessions-per-rider"]),
    ])
  func relations(options: [String], named: [String]) throws {
    let outcome = try HubProcess.run(["serve", "--port", "0"] + options)
    #expect(outcome.status == 2 && outcome.output.isEmpty)
    for name in named { #expect(outcome.errors.contains(name), "\(outcome.errors)") }
  }

  @Test("what goes together is taken: larger messages with larger outboxes")
  func together() throws {
    let hub = try HubProcess.serve(["--max-message", "1048576", "--max-outbox", "1048576"])
    let rider = try Peer(port: hub.port, query: "role=rider&id=r1")
    #expect(try rider.receive("connected").object("limits")?["maxMessageBytes"] as? Int == 1_048_576)
  }
}
