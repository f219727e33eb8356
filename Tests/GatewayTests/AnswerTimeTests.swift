// How long a peer may take for an answer behind which its connection ends, on a loop whose clock a test moves.
import HubTransport
import Testing

@testable import HubGateway

@Suite struct AnswerTimeTests {
  private static let target = "/v1/drivers/nearby?role=ops&id=o1&latitude=52.5&longitude=13.4&limit=1000"

  /// A hub that writes an answer of some 800 kB at once, which is more than the kernel takes for who does not read.
  private func hub() throws -> HandDrivenHub {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.reportsPerTurn = 10_000
      $0.limits.outboxBytesPerSession = 8 << 20
      $0.limits.answerBytes = 4 << 20
      $0.limits.answerBytesPerTurn = 4 << 20
    }
    try hub.addDrivers(1000, tags: (1...8).map { "a tag that is as long as somebody may make one, number \($0)" })
    return hub
  }

  /// Time goes by, in which the peer reads nothing.
  private func pass(_ seconds: Int, _ hub: HandDrivenHub) {
    for _ in 0..<2 * seconds {
      hub.clock.advance(milliseconds: 500)
      for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    }
  }

  /// An answer that the peer has not begun to read.
  private func ask(_ hub: HandDrivenHub, _ fields: String, version: String) throws -> HandDrivenRequest {
    let request = try HandDrivenRequest(hub, Self.target, fields: fields, version: version)
    try hub.turn { hub.loop.counters.blockedConnections == 1 }
    return request
  }

  @Test(
    "who reads slowly has all of it, also where the connection ends behind it",
    arguments: [("Connection: close\r\n", "1.1"), ("", "1.0"), ("", "1.1")])
  func slow(fields: String, version: String) throws {
    let hub = try hub()
    let request = try ask(hub, fields, version: version)
    pass(28, hub)
    try hub.turn {
      request.ownTurn()
      return request.isComplete
    }
    #expect(request.status == "200" && request.rawBody.count > 500_000)
  }

  @Test("also where the hub begins to drain meanwhile")
  func draining() throws {
    let hub = try hub()
    let request = try ask(hub, "", version: "1.1")
    hub.drain()
    pass(20, hub)
    try hub.turn {
      request.ownTurn()
      return request.isComplete
    }
  }

  @Test("who reads nothing, and who has all and does not end its side, holds the connection no longer than its time")
  func never() throws {
    let hub = try hub()
    let deaf = try ask(hub, "Connection: close\r\n", version: "1.1")
    pass(32, hub)
    #expect(hub.counters.connections == 0)
    let silent = try HandDrivenRequest(hub, "/healthz", fields: "Connection: close\r\n")
    try hub.turn { hub.counters.responses[200] == 2 }
    #expect(hub.counters.connections == 1)
    pass(6, hub)
    #expect(hub.counters.connections == 0)
    withExtendedLifetime((deaf, silent)) {}
  }
}
