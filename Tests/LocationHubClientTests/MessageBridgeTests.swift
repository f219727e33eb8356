// A session over a transport that takes complete messages, as URLSession's does.
import HubBytes
import HubGeo
import HubMessages
import HubWebSocket
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite struct MessageBridgeTests {
  private let now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_763_680_000_000))
  private let reader = MessageReader()

  private func session(_ codec: Subprotocol = .json, token: String = "abc") throws -> ClientSession {
    var configuration = ClientConfiguration(url: try HubURL("wss://hub.example/v1/ws"), token: token)
    configuration.seed = 1
    configuration.codec = codec
    let session = ClientSession(configuration)
    session.start(now: now)
    return session
  }

  /// What the session wants of the transport now.
  private func flush(_ session: ClientSession, _ bridge: MessageBridge) -> [BridgeAction] {
    var buffer = ByteBuffer()
    if session.flush(now, into: &buffer) == .connect {
      session.transportConnected(now)
      _ = session.flush(now, into: &buffer)
    }
    return bridge.take(buffer)
  }

  private func hear(_ session: ClientSession, _ bytes: [UInt8]) -> [ServerMessage] {
    var bytes = bytes
    var heard: [ServerMessage] = []
    bytes.withUnsafeMutableBytes { bytes in
      session.received(bytes, now: now, reader: reader) { heard.append($0.message) }
    }
    return heard
  }

  private static let greeting = """
    {"type":"connected","payload":{"sessionId":"s1","role":"rider","id":"r1","heartbeatInterval":30,\
    "serverTime":1763680000000,"limits":{"maxMessageBytes":16384,"maxBatch":500,"rate":10}},\
    "timestamp":1763680000000,"messageId":"r1"}
    """

  @Test("the upgrade, messages both ways and the close cross the bridge")
  func wholeLife() throws {
    let session = try session()
    let bridge = MessageBridge()
    #expect(
      flush(session, bridge) == [.open(subprotocols: ["locationhub.v1.json"], authorization: "Bearer abc")])
    #expect(hear(session, bridge.opened(subprotocol: "locationhub.v1.json")).isEmpty)
    #expect(session.state == .greeting)
    #expect(hear(session, bridge.received(text: MessageBridgeTests.greeting)).count == 1)
    #expect(session.state == .open)
    session.subscribe(.trip("T1"))
    let asked = flush(session, bridge)
    guard case .text(let text) = asked.first, asked.count == 1 else {
      Issue.record("\(asked)")
      return
    }
    #expect(text.contains(#""channel":"trip:T1""#))
    session.close(now)
    #expect(flush(session, bridge) == [.close(1000)])
    #expect(hear(session, bridge.closed(1000)).isEmpty)
    #expect(session.transportEnded(now).next == .ended(.closedByUs))
  }

  @Test("the hub's choice of a subprotocol counts: without one the session speaks JSON")
  func codecs() throws {
    for (chosen, form) in [
      ("locationhub.v1.binary", MessageForm.binary), ("locationhub.v1.json", .json(.unixMilliseconds)),
      (nil, .json(.unixMilliseconds)),
    ] {
      let session = try session(.binary)
      let bridge = MessageBridge()
      #expect(
        flush(session, bridge) == [
          .open(subprotocols: ["locationhub.v1.binary", "locationhub.v1.json"], authorization: "Bearer abc")
        ])
      _ = hear(session, bridge.opened(subprotocol: chosen))
      #expect(session.form == form)
    }
  }

  @Test("a refusal and a close code come to what they mean")
  func endings() throws {
    for (status, expected) in [(401, Disconnection.Next.ended(.needsToken)), (404, .ended(.refused(status: 404)))] {
      let session = try session()
      let bridge = MessageBridge()
      _ = flush(session, bridge)
      _ = hear(session, bridge.refused(status: status, retryAfter: "5"))
      #expect(session.transportEnded(now).next == expected)
    }
    let session = try session()
    let bridge = MessageBridge()
    _ = flush(session, bridge)
    _ = hear(session, bridge.opened(subprotocol: "locationhub.v1.json"))
    _ = hear(session, bridge.received(text: MessageBridgeTests.greeting))
    _ = hear(session, bridge.closed(4409))
    #expect(session.transportEnded(now).next == .ended(.replaced))
  }

  @Test("a token of any length crosses, or is refused as a hub refuses it", arguments: [9000, 60_000, 100_000])
  func longTokens(bytes: Int) throws {
    let token = String(repeating: "t", count: bytes)
    let session = try session(token: token)
    let bridge = MessageBridge()
    guard bytes > 65_535 else {
      #expect(
        flush(session, bridge) == [
          .open(subprotocols: ["locationhub.v1.json"], authorization: "Bearer \(token)")
        ])
      return
    }
    #expect(flush(session, bridge) == [.refuse])
    _ = hear(session, bridge.refused(status: 431, retryAfter: nil))
    #expect(session.transportEnded(now).next == .ended(.refused(status: 431)))
  }

  @Test("a message crosses that is longer than what the app takes of the hub")
  func longMessages() throws {
    var configuration = ClientConfiguration(url: try HubURL("wss://hub.example/v1/ws"), token: "abc")
    configuration.limits.messageBytes = 1000
    let session = ClientSession(configuration)
    session.start(now: now)
    let bridge = MessageBridge()
    _ = flush(session, bridge)
    _ = hear(session, bridge.opened(subprotocol: "locationhub.v1.json"))
    _ = hear(session, bridge.received(text: MessageBridgeTests.greeting))
    let fix = Fix(
      coordinate: Coordinate(latitude: 48, longitude: 11)!, timestamp: Timestamp(milliseconds: 1_763_680_000_000),
      accuracy: 5)
    session.send(LocationBatch(tripID: nil, fixes: (0..<100).map { _ in .success(fix) }))
    guard case .text(let text)? = flush(session, bridge).first else { return #expect(Bool(false)) }
    #expect(text.utf8.count > 5000)
  }
}
