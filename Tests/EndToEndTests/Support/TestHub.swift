// A hub in this process on a port of its own, which ends with the test that made it; and its metrics.
import HubCore
import HubGateway
import HubMessages
import HubRuntime
import HubTransport
import Testing

/// All tests of this target, one after the other: they measure time and load, and the machine is small.
@Suite(.serialized)
struct EndToEnd {}

/// How many loops a test runs with: with one the hub is on the loop's thread, with two it has its own.
let loopCounts = [1, 2]

final class TestHub {
  let server: Server
  private var connections: [RawConnection] = []

  /// A hub for tests: no rate limit and short waits at the end, unless `change` says otherwise.
  init(loops: Int = 1, _ change: (inout ServerConfiguration) throws -> Void = { _ in }) throws {
    var configuration = ServerConfiguration()
    configuration.port = 0
    configuration.loops = loops
    configuration.allowsDevelopmentCredentials = true
    configuration.logLevel = .error
    configuration.drainSeconds = 1
    configuration.limits.sessionRate = 0
    configuration.sampling = .fixed(seconds: 4)  // so that no advice comes between what a test waits for
    configuration.limits.closingSeconds = 0.3
    configuration.limits.handshakeSeconds = 60  // however long the test stands still before it sends
    configuration.limits.metricsSeconds = Deadline.patience  // however busy the machine is, each page is new
    try change(&configuration)
    server = try Server.start(configuration)
  }

  deinit {
    for connection in connections { connection.close() }
    server.drain()
    server.wait()
  }

  var port: UInt16 { server.address.port }

  // MARK: Peers

  func connect(receiveBuffer: Int32? = nil) throws -> RawConnection {
    let connection = try RawConnection(port: port, receiveBuffer: receiveBuffer)
    connections.append(connection)
    return connection
  }

  /// An open session whose `connected` was read.
  func join(
    _ role: Role, _ id: String, time: String? = nil, receiveBuffer: Int32? = nil, isBinary: Bool = false
  ) throws -> Peer {
    let query = "role=\(role.name)&id=\(id)"
    let peer = try Peer(port: port, query: query, time: time, receiveBuffer: receiveBuffer, isBinary: isBinary)
    connections.append(peer.connection)
    _ = try peer.receive("connected")
    return peer
  }

  func driver(_ id: String) throws -> Peer { try join(.driver, id) }
  func rider(_ id: String) throws -> Peer { try join(.rider, id) }
  func ops(_ id: String = "o1") throws -> Peer { try join(.ops, id) }

  // MARK: HTTP

  func request(_ text: String) throws -> HTTPResponse {
    let connection = try RawConnection(port: port)
    try connection.send(text)
    return try connection.readResponse()
  }

  func get(_ target: String) throws -> HTTPResponse {
    try request("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
  }

  func post(_ target: String, _ body: String) throws -> HTTPResponse {
    try request(
      "POST \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    )
  }

  // MARK: Metrics

  /// By the admin port where there is one.
  func metrics() throws -> Metrics {
    let connection = try RawConnection(port: server.adminAddress?.port ?? port)
    try connection.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return try Metrics(try connection.readResponse().text)
  }

  /// Reads the metrics until they are as `condition` wants: what a test waits for may not have happened yet.
  func metrics(
    sourceLocation: SourceLocation = #_sourceLocation, until condition: (Metrics) -> Bool
  ) throws {
    let deadline = Deadline()
    var metrics = try metrics()
    while !condition(metrics) {
      if deadline.isOver {
        Issue.record("the metrics did not come to what was expected: \(metrics.values)", sourceLocation: sourceLocation)
        return
      }
      metrics = try self.metrics()
    }
  }
}

extension Peer {
  /// Subscribes and gives the answer.
  @discardableResult
  func subscribe(_ channel: String, since: Int? = nil, epoch: String? = nil) throws -> HubMessage {
    var payload: [String: Any] = ["channel": channel]
    payload["since"] = since
    payload["epoch"] = epoch
    let id = try send("subscribe", payload)
    let answer = try receive("subscribed")
    guard answer.replyTo == id, answer.string("channel") == channel else {
      throw PeerError.unexpected("not the answer to \(id): \(answer.text)")
    }
    return answer
  }

  /// A fix on the way north at 10 m/s, `step` seconds after the first: each is as the one before lets expect.
  @discardableResult
  func sendFix(_ step: Int, trip: String? = nil, more: [String: Any] = [:]) throws -> String {
    var payload = Peer.fix(step)
    payload["tripId"] = trip
    payload.merge(more) { $1 }
    return try send("location_update", payload)
  }

  static let firstFix = 1_700_000_000_000

  static func fix(_ step: Int) -> [String: Any] {
    [
      "latitude": 37.0 + Double(step) * 10 / 111_195, "longitude": -122.0, "accuracy": 5, "speed": 10, "heading": 0,
      "timestamp": firstFix + step * 1000,
    ]
  }
}

/// The samples of a metrics page, by name and labels as written.
struct Metrics {
  private(set) var values: [String: Double] = [:]
  private(set) var types: [String: String] = [:]

  /// Throws on a line that is not Prometheus' text format.
  init(_ text: String) throws {
    guard text.hasSuffix("\n") else { throw PeerError.unexpected("the last line of the metrics has no end") }
    for line in text.split(separator: "\n") {
      if line.hasPrefix("#") { try readComment(line) } else { try readSample(line) }
    }
  }

  private mutating func readComment(_ line: Substring) throws {
    let words = line.split(separator: " ", maxSplits: 3)
    guard words.count == 4, words[1] == "HELP" || words[1] == "TYPE" else {
      throw PeerError.unexpected("not a comment of the format: \(line)")
    }
    guard words[1] == "TYPE" else { return }
    guard types.updateValue(String(words[3]), forKey: String(words[2])) == nil else {
      throw PeerError.unexpected("a family comes twice: \(line)")
    }
  }

  private mutating func readSample(_ line: Substring) throws {
    let sample = /([a-z_]+)(\{[a-z]+="[^"\\]*"(?:,[a-z]+="[^"\\]*")*\})? ([0-9.e+-]+)/
    guard let match = try sample.wholeMatch(in: line), let value = Double(match.3) else {
      throw PeerError.unexpected("not a sample: \(line)")
    }
    let name = String(match.1)
    let family = ["_bucket", "_sum", "_count"].first { name.hasSuffix($0) }.map { String(name.dropLast($0.count)) }
    guard types[name] != nil || family.map({ types[$0] == "histogram" }) == true else {
      throw PeerError.unexpected("no TYPE for \(line)")
    }
    guard values.updateValue(value, forKey: name + (match.2 ?? "")) == nil else {
      throw PeerError.unexpected("a sample comes twice: \(line)")
    }
  }

  subscript(_ name: String) -> Double { values[(name.hasPrefix("process_") ? "" : "locationhub_") + name] ?? 0 }

  func errors(_ code: String) -> Double { self["errors_total{code=\"\(code)\"}"] }
  func closes(_ code: UInt16) -> Double { self["closes_total{code=\"\(code)\"}"] }
  func hits(_ limit: String) -> Double { self["limit_hits_total{limit=\"\(limit)\"}"] }
  func fixes(_ outcome: String) -> Double { self["fixes_total{outcome=\"\(outcome)\"}"] }
}
