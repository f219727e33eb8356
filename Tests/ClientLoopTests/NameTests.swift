// A hub is found by its name: all of its addresses are tried, and unknown names are reported.
import HubBytes
import HubMessages
import HubSystem
import HubTransport
import Testing

@testable import HubClientLoop

@Suite struct NameTests {
  private final class Listener: ClientLoopDelegate {
    var closures: [Disconnection] = []
    func opened(_ client: ClientID, _ connected: Connected) {}
    func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {}
    func closed(_ client: ClientID, _ disconnection: Disconnection) { closures.append(disconnection) }
  }

  /// Runs the loop until its one client has been closed so often.
  private func close(_ loop: ClientLoop, _ listener: Listener, times: Int) -> [Disconnection] {
    withExtendedLifetime(listener) {
      loop.delegate = listener
      let end = loop.now.uptime + 30_000_000_000
      while listener.closures.count < times, loop.now.uptime < end { loop.runTurn(timeoutMilliseconds: 50) }
      return listener.closures
    }
  }

  @Test("a name that nobody has (RFC 6761: .invalid) is reported as having no address, and is looked up again")
  func unknown() throws {
    let loop = try ClientLoop()
    var configuration = ClientConfiguration(url: try HubURL("ws://no-such-hub.invalid:1"))
    configuration.limits.firstDelay = 0.01
    loop.add(configuration)
    let listener = Listener()
    for closure in close(loop, listener, times: 2) {
      guard case .hostNotFound(let text) = closure.cause, case .retry = closure.next else {
        Issue.record("\(closure)")
        return
      }
      #expect(!text.isEmpty)
    }
  }

  @Test("an address that refuses gives way to the next at once, and the last one's refusal is what is reported")
  func allAddresses() throws {
    let loop = try ClientLoop()
    // Nobody listens at either.
    let client = loop.add(ClientConfiguration(url: try HubURL("ws://hub.example:1")), after: nil)
    loop.clients[client.index].lookup = 1
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    loop.clients[client.index].addresses = hosts.map { SocketAddress(host: $0, port: 1)! }
    loop.session(client).start(now: loop.now)
    var unused = ByteBuffer()
    #expect(loop.session(client).flush(loop.now, into: &unused) == .connect)
    loop.clients[client.index].untried = 3
    loop.connectNext(client.index)
    let listener = Listener()
    let closures = close(loop, listener, times: 1)
    #expect(closures.map(\.cause) == [.connectFailed(errno: 111)] && loop.loop.counters.connects == 3)
    // The next attempt begins with the first again.
    #expect(loop.clients[client.index].addresses.first == SocketAddress(host: "127.0.0.1", port: 1))
  }

  @Test("a client that is closed while its hub's name is looked up ends at once")
  func closed() throws {
    let loop = try ClientLoop()
    let client = loop.add(ClientConfiguration(url: try HubURL("ws://no-such-hub.invalid:1")))
    let listener = Listener()
    loop.runTurn(timeoutMilliseconds: 0)
    loop.close(client)
    #expect(close(loop, listener, times: 1).map(\.next) == [.ended(.closedByUs)])
  }
}
