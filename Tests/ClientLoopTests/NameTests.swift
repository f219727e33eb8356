// A hub is found by its name: all of its addresses are tried, and unknown names are reported.
import Dispatch
import HubBytes
import HubHTTP
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket
import Testing

@testable import HubClientLoop

@Suite struct NameTests {
  private final class Listener: ClientLoopDelegate {
    var closures: [Disconnection] = []
    var openings = 0
    func opened(_ client: ClientID, _ connected: Connected) { openings += 1 }
    func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {}
    func closed(_ client: ClientID, _ disconnection: Disconnection) { closures.append(disconnection) }
  }

  /// A client whose attempts have longer than a machine stands still, or a name server is asked in vain.
  private func configuration(_ url: String) throws -> ClientConfiguration {
    var configuration = ClientConfiguration(url: try HubURL(url))
    configuration.limits.handshakeSeconds = 600
    return configuration
  }

  /// Runs the loop until its one client has been closed so often, for at most two minutes.
  private func close(_ loop: ClientLoop, _ listener: Listener, times: Int) -> [Disconnection] {
    withExtendedLifetime(listener) {
      loop.delegate = listener
      let end = loop.now.uptime + 120_000_000_000
      while listener.closures.count < times, loop.now.uptime < end { loop.runTurn(timeoutMilliseconds: 50) }
      return listener.closures
    }
  }

  /// Begins an attempt with these addresses, as if they had been looked up.
  private func begin(_ loop: ClientLoop, _ addresses: [SocketAddress]) throws -> ClientID {
    let client = loop.add(try configuration("ws://hub.example:1"), after: nil)
    loop.clients[client.index].addresses = addresses
    loop.session(client).start(now: loop.now)
    var unused = ByteBuffer()
    #expect(loop.session(client).flush(loop.now, into: &unused) == .connect)
    loop.clients[client.index].untried = addresses.count
    loop.connectNext(client.index)
    return client
  }

  /// Runs the loop and a hub until the client is let in once more; false where that does not come.
  private func open(_ loop: ClientLoop, _ listener: Listener, _ hub: Greeter) -> Bool {
    withExtendedLifetime(listener) {
      loop.delegate = listener
      let before = listener.openings
      let end = ContinuousClock.now + .seconds(120)
      while listener.openings == before, ContinuousClock.now < end {
        loop.runTurn(timeoutMilliseconds: 1)
        hub.loop.runTurn(timeoutMilliseconds: 1)
      }
      return listener.openings > before
    }
  }

  @Test("a name that nobody has (RFC 6761: .invalid) is reported as having no address, and is looked up again")
  func unknown() throws {
    let loop = try ClientLoop()
    var configuration = try configuration("ws://no-such-hub.invalid:1")
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
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    let client = try begin(loop, hosts.map { SocketAddress(host: $0, port: 1)! })
    let listener = Listener()
    let closures = close(loop, listener, times: 1)
    #expect(closures.map(\.cause) == [.connectFailed(errno: 111)] && loop.loop.counters.connects == 3)
    // The next attempt begins with the first again.
    #expect(loop.clients[client.index].addresses.first == SocketAddress(host: "127.0.0.1", port: 1))
  }

  @Test("after a connection the next attempt begins with the address that the hub was at")
  func lastAddress() throws {
    let hub = try Greeter()
    let loop = try ClientLoop()
    let nobody = try #require(SocketAddress(host: "127.0.0.2", port: 1))
    let client = try begin(loop, [nobody, hub.address])
    #expect(open(loop, Listener(), hub))
    #expect(loop.clients[client.index].addresses == [hub.address, nobody])
  }

  @Test("what is looked up for longer than an attempt lasts serves the next attempt")
  func lateAnswer() throws {
    let hub = try Greeter()
    let address = hub.address
    let answered = DispatchSemaphore(value: 0)
    var time = ClockReading.read()
    let loop = try ClientLoop { time }
    loop.names = NameResolver(capacity: 4, waking: loop.loop.waker) { _ in
      answered.wait()
      return .success([address])
    }
    let listener = Listener()
    loop.delegate = listener
    loop.add(ClientConfiguration(url: try HubURL("ws://hub.example:1")))
    for _ in 0..<15 where loop.lookupsUnderWay < 2 {
      loop.runTurn(timeoutMilliseconds: 0)
      time.uptimeNanoseconds += 1_000_000_000
    }
    #expect(loop.lookupsUnderWay == 2 && listener.closures.map(\.cause) == [.timedOut])
    answered.signal()
    #expect(open(loop, listener, hub))
    answered.signal()
  }

  @Test("where a name is not found any more, the addresses of before are tried")
  func failedLookUp() throws {
    let hub = try Greeter()
    let address = hub.address
    let isKnown = Locked(true)
    let loop = try ClientLoop()
    loop.names = NameResolver(capacity: 4, waking: loop.loop.waker) { _ in
      isKnown.withLock { $0 } ? .success([address]) : .failure(NameResolver.LookupError(text: "gone"))
    }
    var configuration = try configuration("ws://hub.example:1")
    (configuration.limits.firstDelay, configuration.limits.spreadSeconds) = (0.01, 0.01)
    loop.add(configuration)
    let listener = Listener()
    #expect(open(loop, listener, hub))
    isKnown.withLock { $0 = false }
    hub.loop.abort(hub.connections[0])
    #expect(open(loop, listener, hub) && listener.closures.count == 1)
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

/// A hub that greets whoever comes.
private final class Greeter: EventLoopDelegate {
  let loop: EventLoop
  let address: SocketAddress
  private(set) var connections: [ConnectionID] = []

  init() throws {
    loop = try EventLoop()
    address = try loop.listen(try #require(SocketAddress(host: "127.0.0.1", port: 0)))
    loop.delegate = self
  }

  func connected(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) {}
  func closed(_ id: ConnectionID, _ cause: CloseCause) {}

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard !connections.contains(id) else { return }
    connections.append(id)
    let start = loop.arena.count
    do {
      var parser = RequestParser()
      guard case .request(let head, consumed: _) = try parser.parse(UnsafeRawBufferPointer(bytes)) else { return }
      let spoken = [Subprotocol.json.name]
      let handshake = try ServerHandshake(head, subprotocols: spoken, compression: nil)
      handshake.write(into: &loop.arena, subprotocols: spoken)
    } catch {
      Issue.record("\(error)")
    }
    let greeting = Connected(
      sessionID: InlineText("s1")!, role: .driver, id: Identifier("D1")!, heartbeatInterval: 30,
      serverTime: Timestamp(milliseconds: 1_763_680_000_000),
      limits: .init(maxMessageBytes: 262_144, maxBatch: 500, rate: 10), sampling: nil)
    var payload = ByteBuffer()
    JSONWriter.write(
      .connected(greeting), timestamp: greeting.serverTime, messageID: 1, time: .unixMilliseconds, into: &payload)
    payload.withBytes { FrameWriter.write(.text, $0, into: &loop.arena) }
    loop.send(start..<loop.arena.count, to: id)
  }
}
