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
    pass(9, hub, request)
    request.send(String(body.dropFirst()))
    pass(29, hub, request)
    #expect(request.bytes.isEmpty && !request.isClosed)
    pass(2, hub, request)
    #expect(request.status == "503" && request.text.contains("not stored in time"))
  }

  /// A connection on which a request was answered so many seconds before, with the beginning of another one behind it.
  private func kept(_ seconds: Int, behind: String = "") throws -> (HandDrivenHub, HandDrivenRequest) {
    let hub = try HandDrivenHub(clock: HandClock()) { $0.allowsDevelopmentCredentials = true }
    let connection = try HandDrivenRequest(hub, "/healthz", fields: behind.isEmpty ? "" : "\r\n\(behind)")
    try hub.turn {
      connection.ownTurn()
      return connection.text.hasSuffix("ok\n")
    }
    pass(seconds, hub, connection)
    return (hub, connection)
  }

  private func pass(_ seconds: Int, _ hub: HandDrivenHub, _ connection: HandDrivenRequest) {
    for _ in 0..<2 * seconds {
      hub.clock.advance(milliseconds: 500)
      for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
      connection.ownTurn()
    }
  }

  @Test("the next request on a connection has its time from its first byte on, however late that comes")
  func next() throws {
    let (hub, connection) = try kept(28)
    connection.send("GET /healthz HTTP/1.1\r\nHost: local")
    pass(9, hub, connection)
    #expect(!connection.isClosed)
    connection.send("host\r\n\r\n")
    pass(1, hub, connection)
    #expect(connection.text.split(separator: "ok\n").count == 2 && !connection.isClosed)
    pass(28, hub, connection)
    #expect(!connection.isClosed, "and is kept for as long as before")
    pass(3, hub, connection)
    #expect(connection.isClosed)
  }

  @Test("and no longer, whether that byte comes behind the answer or came before", arguments: [false, true])
  func trickled(isPipelined: Bool) throws {
    let beginning = "GET /healthz HTTP/1.1\r\nHost: "
    let (hub, connection) = try kept(0, behind: isPipelined ? beginning : "")
    if !isPipelined { connection.send(beginning) }
    for _ in 0..<9 {
      connection.send("x")
      pass(1, hub, connection)
    }
    #expect(!connection.isClosed)
    pass(2, hub, connection)
    #expect(connection.isClosed)
  }
}
