// The channel `stats`: what a second's figures say, who gets them, and what of them is kept.
import Foundation
import HubBytes
import HubCore
import HubMessages
import HubTransport
import Testing

@testable import HubGateway

@Suite struct FiguresTests {
  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  private func reading(_ change: (inout LoopCounters) -> Void) -> MetricsReading {
    var counters = LoopCounters()
    change(&counters)
    let bounds = TableBounds(
      limits: Limits(), loops: 1, sessions: 1, connectionsPerLoop: 1, addresses: 0, identities: 0)
    return MetricsReading(loops: [counters], hub: HubCounters(), tables: bounds, residentBytes: 4096)
  }

  @Test("figures are of their second: what was counted before is not in them")
  func differences() throws {
    var meter = FiguresMeter()
    var counters = LoopCounters()
    func next() throws -> [String: Any] {
      let figures = meter.figures(reading { $0 = counters }, uptime: 0, at: Timestamp(milliseconds: 7))
      #expect(figures.timestamp == Timestamp(milliseconds: 7))
      return try object("{\(figures.members)}")
    }
    let nothing = try next()
    #expect(nothing["deliveries"] as? Int == 0 && nothing["p50"] is NSNull && nothing["journalLag"] == nil)
    #expect(
      (nothing["drops"] as? [String: Any])?.isEmpty == true && (nothing["errors"] as? [String: Any])?.isEmpty == true)
    #expect(nothing["residentBytes"] as? Int == 4096)
    counters.fanOut.publicationsOut = 90
    counters.transport.conflated = 3
    counters.sessions[Int(Role.ops.rawValue)] = 2
    counters.errors[Int(ErrorCode.badMessage.rawValue)] = 5
    for _ in 0..<98 { counters.fanOut.latency.record(microseconds: 100) }
    for _ in 0..<2 { counters.fanOut.latency.record(microseconds: 50_000) }
    let second = try next()
    #expect(second["deliveries"] as? Int == 90 && second["p50"] as? Double == 0.0001)
    #expect(try #require(second["p99"] as? Double) > 0.049)
    #expect(second["drops"] as? [String: Int] == ["conflated_slow": 3])
    #expect(second["errors"] as? [String: Int] == ["bad_message": 5])
    #expect(second["sessions"] as? [String: Int] == ["driver": 0, "rider": 0, "ops": 2])
    counters.fanOut.publicationsOut = 91
    for _ in 0..<10 { counters.fanOut.latency.record(microseconds: 7) }
    let third = try next()
    #expect(third["deliveries"] as? Int == 1 && third["p99"] as? Double == 0.000007)
    #expect((third["errors"] as? [String: Any])?.isEmpty == true)
  }

  /// Advances the hub's clock by a second.
  private func second(_ hub: HandDrivenHub) {
    hub.clock.advance(milliseconds: 1000)
    for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
  }

  private func subscribe(_ hub: HandDrivenHub, _ peer: HandDrivenPeer) {
    peer.send(
      HandDrivenPeer.frame(
        #"{"type":"subscribe","payload":{"channel":"stats"},"timestamp":1763680000000,"messageId":"s"}"#))
    for _ in 0..<3 { peer.turn() }
  }

  @Test("ops get the seconds that are kept, and then each as it ends; riders get none")
  func subscribing() throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.hub.figures = 3
    }
    for _ in 0..<5 { second(hub) }
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    subscribe(hub, ops)
    let answer = try object(try #require(ops.messages.first))
    let payload = try #require(answer["payload"] as? [String: Any])
    let history = try #require(payload["history"] as? [[String: Any]])
    #expect(history.count == 3 && history.allSatisfy { $0["channel"] as? String == "stats" })
    let times = history.compactMap { $0["timestamp"] as? Int }
    #expect(times == times.sorted() && Set(times).count == 3)
    second(hub)
    ops.turn()
    let next = try object(try #require(ops.messages.last))
    #expect(next["type"] as? String == "stats")
    let figures = try #require(next["payload"] as? [String: Any])
    #expect(try #require(figures["timestamp"] as? Int) > times[2])
    #expect((figures["sessions"] as? [String: Int])?["ops"] == 1)
    let rider = try HandDrivenPeer(hub, role: "rider", id: "r1")
    subscribe(hub, rider)
    #expect(rider.messages.first?.contains(#""code":"forbidden""#) == true)
  }
}
