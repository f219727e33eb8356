// A request to a hub over HTTP: which addresses are tried. What is read is in EndToEndTests/HealthVerbTests.
import HubTransport
import Testing

@testable import HubClientLoop

@Suite struct HTTPExchangeTests {
  @Test("a request goes to the next address where one does not answer")
  func silentAddress() throws {
    let silent = try EventLoop()
    // Its queue of connections is never looked at, so nobody begins TLS.
    let first = try silent.listen(try #require(SocketAddress(host: "127.0.0.1", port: 0)))
    let nobody = try #require(SocketAddress(host: "127.0.0.1", port: 1))
    let error = #expect(throws: HTTPExchangeError.self) {
      // The first has a part of the time, 2 s; all the others have the rest, however slow the machine is.
      try HTTPExchange.run([], to: try HubURL("wss://hub.example"), trusting: .system, seconds: 60, bodyBytes: 0) { _ in
        .success([first] + Array(repeating: nobody, count: 29))
      }
    }
    #expect(error?.description.contains("Connection refused") == true)
    withExtendedLifetime(silent) {}
  }
}
