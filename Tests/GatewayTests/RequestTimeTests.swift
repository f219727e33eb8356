// How long a request over HTTP may take, on a loop whose clock a test moves.
import HubRuntime
import HubTransport
import Testing

@testable import HubGateway

@Suite struct RequestTimeTests {
  @Test("what came at the end of its connection's time waits for the hub as long as any other, and then gets 503")
  func late() throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.journal = JournalConfiguration(directory: "nobody opens it")
    }
    let body = #"{"tripId":"T","driverId":"D"}"#
    let request = try HandDrivenRequest(
      hub, "/v1/trips?role=ops&id=o", method: "POST", body: "{", announcing: body.utf8.count)
    func pass(_ seconds: Int) {
      for _ in 0..<2 * seconds {
        hub.clock.advance(milliseconds: 500)
        for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
        request.ownTurn()
      }
    }
    pass(9)
    request.send(String(body.dropFirst()))
    pass(29)
    #expect(request.bytes.isEmpty && !request.isClosed)
    pass(2)
    #expect(request.status == "503" && request.text.contains("not stored in time"))
  }
}
