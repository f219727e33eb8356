// The original design's client comes back by itself: after a drain, however long the hub is away, as after a kill -9.
import HubSystem
import HubTransport
import Testing

@testable import HubGateway

@Suite struct OriginalClientTests {
  /// How the hub goes away.
  enum End: CaseIterable { case drain, kill }

  private func makeHub(_ clock: HandClock) throws -> HandDrivenHub {
    try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.sessionRate = 0
    }
  }

  /// A fix whose acceptance the answer to a ping shows.
  private func fix(_ clock: HandClock) -> String {
    let time = clock.reading.unixMilliseconds
    return
      #"{"type":"location_update","payload":{"latitude":52.5,"longitude":13.4,"accuracy":5,"timestamp":\#(time)},"#
      + #""timestamp":\#(time),"messageId":"f"}"#
  }

  @Test(
    "two minutes after the hub is back the client has one connection, and its fixes are taken",
    arguments: End.allCases, [0, 400, 3000, 12_000])
  func comesBack(end: End, milliseconds: Int) throws {
    for resetsTries in [false, true] {
      let clock = HandClock()
      var hub = try makeHub(clock)
      let client = try OriginalClient(hub, resetsTries: resetsTries)
      func pass(_ milliseconds: Int, _ hub: HandDrivenHub?) {
        for _ in 0..<milliseconds / 100 {
          clock.advance(milliseconds: 100)
          for _ in 0..<3 {
            client.turn()
            hub?.loop.runTurn(timeoutMilliseconds: 0)
          }
        }
      }
      pass(5000, hub)
      #expect(client.openSockets == 1 && hub.openSlots.count == 1)

      let next = milliseconds == 0 ? try makeHub(clock) : nil
      client.address = next?.address
      switch end {
      case .drain: hub.drain()
      case .kill: hub.kill()
      }
      pass(milliseconds, hub)
      hub = try next ?? makeHub(clock)
      client.address = hub.address
      pass(120_000, hub)
      let comment: Comment = "\(end), away for \(milliseconds) ms: \(client.codes), \(client.opened) opened"
      #expect(client.openSockets == 1 && hub.openSlots.count == 1, comment)
      #expect(!client.codes.contains(409) && client.opened <= 10, comment)
      client.send(fix(clock))
      pass(100, hub)
      let time = clock.reading.unixMilliseconds
      client.send(#"{"type":"ping","payload":{},"timestamp":\#(time),"messageId":"p"}"#)
      pass(100, hub)
      #expect(client.messages.contains { $0.contains(#""storedThrough":\#(time - 100)"#) }, comment)
    }
  }
}
