// A hub and a loop of clients in the test's own process: real sockets, no sleeps.
import Foundation
import HubClientLoop
import HubGateway
import HubMessages
import HubRuntime
import HubSimulation
import HubSystem
import Testing

/// Clients of one hub, run by the test itself until what it waits for has happened.
final class ClientBench: ClientLoopDelegate {
  let clients: ClientLoop
  /// Positions by client, in the order in which they came.
  var positions: [Int: [DriverLocation]] = [:]
  var acks: [MessageID] = []
  var openings: [Int: Int] = [:]
  var subscribed = 0
  var closures: [Disconnection] = []

  init() throws {
    clients = try ClientLoop()
    clients.delegate = self
  }

  func opened(_ client: ClientID, _ connected: Connected) { openings[client.index, default: 0] += 1 }
  func closed(_ client: ClientID, _ disconnection: Disconnection) { closures.append(disconnection) }

  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {
    switch envelope.message {
    case .publication(let publication):
      guard case .driverLocation(let location) = publication.body else { return }
      positions[client.index, default: []].append(location)
    case .reply(.ack(let ack)): acks.append(ack.replyTo)
    case .reply(.subscribed): subscribed += 1
    case .reply, .unknown: break
    }
  }

  /// Runs until `condition` holds; false after `seconds`.
  func run(seconds: Double = 20, until condition: () -> Bool) -> Bool {
    let end = ClientLoop.uptime + Int64(seconds * 1e9)
    while !condition() {
      guard ClientLoop.uptime < end else { return false }
      clients.runTurn(timeoutMilliseconds: 20)
    }
    return true
  }

  /// Lets the clients say goodbye, and ends the hub.
  func end(_ server: Server) {
    clients.closeAll()
    _ = run { clients.connections == 0 }
    server.drain()
    server.wait()
  }

  /// The rows of a watcher, as `watch --format csv` prints them.
  func rows(_ client: ClientID) -> [String] {
    (positions[client.index] ?? []).map {
      TraceFile.row(
        timestamp: $0.timestamp, coordinate: $0.coordinate, speed: $0.speed, heading: $0.heading)
    }
  }
}

extension ClientLoop {
  static var uptime: Int64 { ClockReading.read().uptimeNanoseconds }
}

enum Bench {
  /// A hub on this machine without a limit of rate, so that replays need not be paced.
  static func startHub(port: UInt16 = 0, rate: Double = 0, loops: Int = 1) throws -> Server {
    var configuration = ServerConfiguration()
    configuration.port = port
    configuration.loops = loops
    configuration.allowsDevelopmentCredentials = true
    configuration.logLevel = .error
    configuration.limits.sessionRate = rate
    return try Server.start(configuration)
  }

  static func configuration(port: UInt16, role: String, id: String) throws -> ClientConfiguration {
    ClientConfiguration(url: try HubURL("ws://127.0.0.1:\(port)/v1/ws?role=\(role)&id=\(id)"))
  }

  /// The recorded drives beside the repository; none where they are not there.
  static func traces() throws -> [String] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let folder = root.appendingPathComponent("../shared/data/traces").standardizedFileURL
    guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    return names.filter { $0.hasSuffix(".csv") }.sorted().map { folder.appendingPathComponent($0).path }
  }
}
