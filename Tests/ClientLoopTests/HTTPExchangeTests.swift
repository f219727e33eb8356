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
      try HTTPExchange.run([], to: try HubURL("wss://hub.example"), trusting: .system, seconds: 4, bodyBytes: 0) { _ in
        .success([first, nobody])
      }
    }
    #expect(error?.description.contains("Connection refused") == true)
    withExtendedLifetime(silent) {}
  }
}
