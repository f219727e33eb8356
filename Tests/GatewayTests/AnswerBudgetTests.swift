// The client library against the hub: what a rider is charged for long answers the client counts alike, so that the hub
// never has to let it wait. Clocks are moved by hand.
import HubBytes
import HubClientLoop
import HubGeo
import HubMessages
import HubTransport
import HubWebSocket
import Testing

@testable import HubGateway

/// A rider that asks again and again what it missed on a trip's channel.
private final class Stage: ClientLoopDelegate {
  static let rounds = 6
  let clock = HandClock()
  let hub: HandDrivenHub
  private let clients: ClientLoop
  private let channel = Channel("trip:T")!
  private var client: ClientID?
  private var resume: ResumePoint?
  private(set) var rounds = 0
  private(set) var errors: [String] = []

  init() throws {
    let clock = self.clock
    hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.unitsPerPoll = 1000
    }
    clients = try ClientLoop(clock: { clock.reading })
    clients.delegate = self
  }

  /// A trip whose channel keeps the first event and five routes, 90 KiB of them.
  func begin(_ compression: DeflateParameters?) throws {
    func message(_ type: String, _ payload: String, _ id: String) -> [UInt8] {
      HandDrivenPeer.frame(
        #"{"type":"\#(type)","payload":{"tripId":"T",\#(payload)},"timestamp":1763680000000,"messageId":"\#(id)"}"#)
    }
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    ops.send(message("trip_status", #""status":"requested","riderId":"r1","timestamp":1763680000000"#, "m"))
    for number in 1...5 {
      let places = (0..<1500).map {
        Coordinate(latitude: $0 % 2 == 0 ? -80 : 80, longitude: Double($0 % 170 + number))!
      }
      let route = try Route(points: places).polyline.replacing("\\", with: "\\\\")
      ops.send(message("trip_change", #""route":"\#(route)""#, "m\(number)"))
    }
    // Each route costs 31 units, and there are 10 a second.
    for _ in 0..<20 {
      ops.turn()
      clock.advance(milliseconds: 1000)
    }
    try #require(ops.messages.count { $0.contains("\"ack\"") } == 6)
    let epoch = try #require(InlineText(String(try epoch(ops))))
    resume = ResumePoint(since: 1, epoch: epoch)
    var configuration = ClientConfiguration(url: try HubURL(address: hub.address, target: "/v1/ws?role=rider&id=r1"))
    configuration.compression = compression
    client = clients.add(configuration)
  }

  private func epoch(_ ops: HandDrivenPeer) throws -> Substring {
    ops.send(
      HandDrivenPeer.frame(
        #"{"type":"subscribe","payload":{"channel":"trip:T"},"timestamp":1763680000000,"messageId":"s"}"#))
    for _ in 0..<4 { ops.turn() }
    return try #require(ops.messages.last?.firstMatch(of: /"epoch":"(\w+)"/)).1
  }

  func turn() {
    for _ in 0..<4 {
      clients.runTurn(timeoutMilliseconds: 0)
      hub.loop.runTurn(timeoutMilliseconds: 0)
    }
    clock.advance(milliseconds: 50)
  }

  func opened(_ client: ClientID, _ connected: Connected) { clients.subscribe(client, to: channel, resume: resume) }
  func closed(_ client: ClientID, _ disconnection: Disconnection) { errors.append("\(disconnection.cause)") }

  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {
    switch envelope.message {
    case .publication(let publication):
      guard case .tripUpdate(let update) = publication.body, update.sequence == 6 else { return }
      rounds += 1
      if rounds < Stage.rounds { clients.subscribe(client, to: channel, resume: resume) }
    case .reply(.error(let error)): errors.append(error.message)
    case .reply, .unknown: break
    }
  }
}

@Suite struct AnswerBudgetTests {
  @Test(
    "A client that asks for much that it missed, again and again, never has to wait for the hub",
    arguments: [nil, DeflateParameters.withoutContexts])
  func neverWaits(compression: DeflateParameters?) throws {
    let stage = try Stage()
    try stage.begin(compression)
    let pauses = stage.hub.counters.ratePauses
    var turns = 0
    while stage.rounds < Stage.rounds, stage.errors.isEmpty, turns < 2000 {
      stage.turn()
      turns += 1
    }
    #expect(stage.errors == [])
    #expect(stage.hub.counters.ratePauses == pauses)
    // Each round but the last is waited for and costs some 16 units, and 50 were there at once.
    #expect(turns >= 40, "six rounds in \(turns) twentieths of a second")
  }
}
