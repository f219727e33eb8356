// When a token's time is over its session ends: on a real loop with real sockets, and clocks that are moved by hand.
import HubClientLoop
import HubMessages
import HubSystem
import HubTokens
import HubTransport
import HubWebSocket
import Testing

@testable import HubGateway

/// A hub and its clients on one thread, turned by the test.
private final class Stage: ClientLoopDelegate {
  let clock = HandClock()
  let clients: ClientLoop
  var opened = 0
  var ends: [DisconnectCause] = []
  private let hub: HandDrivenHub
  private let key: SigningKey
  private let url: HubURL

  init() throws {
    let clock = self.clock
    let keys = try KeySet(parsing: Array("0123456789abcdef0123456789abcdef".utf8))
    key = keys.keys[0]
    hub = try HandDrivenHub(clock: clock) {
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
    }
    url = try HubURL(address: hub.address)
    clients = try ClientLoop(clock: { clock.reading })
    clients.delegate = self
  }

  func opened(_ client: ClientID, _ connected: Connected) { opened += 1 }
  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {}
  func closed(_ client: ClientID, _ disconnection: Disconnection) { ends.append(disconnection.cause) }

  /// A client whose token ends at a time from now; nil for never.
  func join(seconds: Double?) throws {
    let expires = seconds.map { Timestamp(milliseconds: clock.reading.unixMilliseconds + Int64($0 * 1000)) }
    let claims = Claims(subject: try #require(Identifier("r\(opened)")), role: .rider, expires: expires)
    let token = String(decoding: try key.token(TokenRequest(claims: claims)), as: UTF8.self)
    let before = opened
    clients.add(ClientConfiguration(url: url, token: token))
    let deadline = ClockReading.read().uptimeNanoseconds + 20_000_000_000
    while opened == before, ClockReading.read().uptimeNanoseconds < deadline { turn() }
    try #require(opened == before + 1, "not let in: \(ends)")
  }

  /// Lets everything that is on its way arrive: over the loopback that is there as soon as it is written.
  func turn() {
    for _ in 0..<4 {
      hub.loop.runTurn(timeoutMilliseconds: 0)
      clients.runTurn(timeoutMilliseconds: 0)
    }
  }

  /// Moves the clocks in steps of a second.
  func advance(seconds: Double) {
    var left = Int64(seconds * 1000)
    while left > 0 {
      let step = min(left, 1000)
      clock.advance(milliseconds: step)
      left -= step
      turn()
    }
  }
}

@Suite struct TokenExpiryTests {
  private static let expired = DisconnectCause.closed(.init(4401))

  @Test(
    "not before a token's end, and within a second of it, its session ends with 4401", arguments: [0.3, 1, 59.9, 3600])
  func ends(lifetime: Double) throws {
    let stage = try Stage()
    try stage.join(seconds: nil)
    try stage.join(seconds: lifetime)
    stage.advance(seconds: lifetime - 0.001)
    #expect(stage.ends.isEmpty)
    stage.advance(seconds: 1)
    #expect(stage.ends == [Self.expired], "and the one without an end continues")
  }

  @Test(
    "a wall clock that is set forward ends the tokens that it passes, within two seconds; set back, it gives them time")
  func wallClock() throws {
    let stage = try Stage()
    try stage.join(seconds: 1800)
    try stage.join(seconds: 7200)
    stage.clock.reading.unixMilliseconds += 3_600_000
    stage.advance(seconds: 2)
    #expect(stage.ends == [Self.expired])
    stage.clock.reading.unixMilliseconds -= 600_000
    stage.advance(seconds: 3700)
    #expect(stage.ends == [Self.expired])
    stage.advance(seconds: 600)
    #expect(stage.ends == [Self.expired, Self.expired])
  }
}
