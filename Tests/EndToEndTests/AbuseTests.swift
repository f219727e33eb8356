// Hostile connections of every kind come and go while good sessions work: those lose nothing, and nothing is left of
// the others, neither in the hub's tables nor in its memory. Without a clock: what it costs in time, `hub-loadtest
// abuse` says.
import Foundation
import HubBytes
import HubDeflate
import HubGateway
import HubMessages
import HubWebSocket
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct Abuse {}
}

/// Hostile connections to one hub, which stay until they are let go.
private final class Abusers {
  private let port: UInt16
  private var connections: [RawConnection] = []
  private let bomb: [UInt8]
  let kinds: [(Abusers) throws -> Void] = [
    { try $0.connect("") }, { try $0.connect("GET /v1/ws HTTP/1.1\r\nHo") },
    { try $0.connect("\u{1}\u{2} garbage \r\n\r\n") },
    { try $0.connect("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}" + String(repeating: "\u{3}", count: 500)) },
    { try $0.connect(String(repeating: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 300)) },
    {
      try $0.connect(
        "POST /v1/locations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n"
          + String(repeating: " ", count: 100_000))
    },
    { try $0.connect("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + String(repeating: "x", count: 9000)) },
    { try $0.session("subscribe", ["channel": "trip:good-0"]) },  // and reads nothing
    { try $0.session(Peer.frame([UInt8](repeating: 0x20, count: 200_000)).dropLast()) },
    { try $0.session([0x81, 0xFF, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]) },
    { try $0.session(Array((0..<3000).map { _ in Peer.frame([1], opcode: 9) }.joined())) },
    { try $0.session(Array((0..<400).map { _ in Peer.frame(Array("no JSON".utf8)) }.joined())) },
    { try $0.session([0xF3, 0x80, 0, 0, 0, 0]) }, { try $0.session($0.bomb, compressed: true) },
  ]
  /// They come from 127.0.0.2 to 127.0.0.6.
  private var source: UInt32 { 2 + UInt32(connections.count % 5) }

  init(port: UInt16) {
    self.port = port
    var deflater = Deflater(windowBits: 15, level: 9, memoryLevel: 8, takesContextOver: false)
    var payload = ByteBuffer()
    [UInt8](repeating: 0, count: 4 << 20).withUnsafeBytes { deflater.compress($0, into: &payload) }
    bomb = Peer.frame(payload.array(), reserved: 0x40)
  }

  private func connect(_ text: String) throws {
    let connection = try RawConnection(port: port, receiveBuffer: 4096, source: source)
    connections.append(connection)
    try send(Array(text.utf8), connection)
  }

  /// What the hub refuses while it is being sent cannot be sent to its end, and nobody reads here.
  private func send(_ bytes: [UInt8], _ connection: RawConnection) throws {
    do { _ = try connection.sendWhatFits(bytes) } catch PeerError.system {}
  }

  private func session(_ bytes: [UInt8], compressed: Bool = false) throws {
    let connection = try RawConnection(port: port, receiveBuffer: 4096, source: source)
    connections.append(connection)
    var request = UpgradeRequest("/v1/ws?role=rider&id=bad-\(connections.count)")
    if compressed { request = request.with("Sec-WebSocket-Extensions", "permessage-deflate") }
    // The frames right behind the request, in one piece.
    try send(Array(request.text.utf8) + bytes, connection)
  }

  private func session(_ type: String, _ payload: [String: Any]) throws {
    try session(Peer.frame(Array(try Peer.message(type, payload, id: "m").utf8)))
  }

  func silent(from source: UInt32) throws {
    connections.append(try RawConnection(port: port, source: source))
  }

  /// Half of them vanish, half close in order.
  func release() {
    for (index, connection) in connections.enumerated() {
      if index % 2 == 0 { connection.reset() } else { connection.close() }
    }
    connections.removeAll()
  }
}

extension EndToEnd.Abuse {
  private func metrics(_ port: UInt16) throws -> Metrics {
    let connection = try RawConnection(port: port)
    try connection.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return try Metrics(try connection.readResponse().text)
  }

  private func wait(_ port: UInt16, for what: String, _ condition: (Metrics) -> Bool) throws -> Metrics {
    let deadline = Deadline()
    while true {
      let metrics = try metrics(port)
      if condition(metrics) { return metrics }
      guard !deadline.isOver else { throw PeerError.timedOut(waitingFor: "\(what): \(metrics.values)") }
    }
  }

  @Test("good sessions lose nothing while hostile ones of every kind come and go, and nothing is left of those")
  func abuse() throws {
    let hub = try HubProcess.serve(
      port: 0,
      [
        "--heartbeat", "10", "--sampling", "4", "--session-rate", "100", "--handshake-time", "20", "--keep-alive", "20",
        "--message-time", "1", "--max-per-address", "40",
        "--request-rate", "1000", "--request-burst", "10000", "--log-level", "error",
      ])
    let witnesses = try (0..<10).map { try Witness(port: hub.port, number: $0) }
    func check() throws { for witness in witnesses { try witness.check() } }
    try check()
    let before = try metrics(hub.port)
    #expect(before["connections"] == 21)

    let abusers = Abusers(port: hub.port)
    for _ in 0..<4 {
      for _ in 0..<4 {
        for (index, kind) in abusers.kinds.enumerated() {
          try kind(abusers)
          try witnesses[index % witnesses.count].check()
        }
        try check()
      }
      // An address that does nothing but to come, more often than it may.
      for number in 0..<60 {
        try abusers.silent(from: 99)
        if number % 10 == 0 { try witnesses[1].check() }
      }
      try check()
      abusers.release()
      try check()
    }

    let after = try wait(hub.port, for: "everything to be as it was") {
      $0["connections"] == 21 && $0["incomplete_bytes"] == 0 && $0["outbox_bytes"] == 0
        && $0["sessions{role=\"rider\"}"] == 10 && $0["sessions{role=\"driver\"}"] == 10
    }
    try check()
    // Each kind met its limit.
    for (name, atLeast) in [
      ("protocol_errors_total", 20.0), ("bad_requests_total", 20), ("rate_pauses_total", 5),
      ("limit_hits_total{limit=\"connections_per_address\"}", 20), ("closes_total{code=\"1009\"}", 10),
      ("closes_total{code=\"1002\"}", 5), ("closes_total{code=\"4400\"}", 5),
    ] {
      #expect(after[name] >= atLeast, "\(name)")
    }
    // A witness has had each of its fixes, so every fix made one position; and memory came back, but for tables and
    // buffers that stay as large as they once were.
    #expect(after.fixes("accepted") == after["fixes_received_total"])
    #expect(after["positions_published_total"] == after["fixes_received_total"])
    let growth = after["process_resident_memory_bytes"] - before["process_resident_memory_bytes"]
    // What is freed stays resident in the address sanitizer's quarantine, and the thread sanitizer's history grows.
    #expect(isSanitized || growth < 12 * 1024 * 1024, "\(Int(growth) >> 10) KiB more than before")
    print("abuse: \(Int(growth) >> 10) KiB more resident memory than before")
  }
}
