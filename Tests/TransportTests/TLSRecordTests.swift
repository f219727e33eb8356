// TLS records that carry next to nothing: opening one costs 2 µs whatever is in it.

import CHubOpenSSL
import HubTestSupport
import Testing

@testable import HubTransport

@Suite struct `TLS records` {
  private func connect(
    _ version: Int32 = TLS1_3_VERSION, _ limits: EventLoopLimits = EventLoopLimits(), clock: HandClock = HandClock()
  ) throws -> HeldConnection {
    let pair = try Pair(tls: makeServer(), server: limits, clock: clock)
    let client = try HeldConnection(pair, TLSPeer(makeClient(version), name: "localhost"))
    client.shakeHands()
    return client
  }

  /// So many records of so many bytes.
  private func records(_ count: Int, bytes: Int, by client: HeldConnection) -> [UInt8] {
    (0..<count).flatMap { _ in client.held.seal([UInt8](repeating: 7, count: bytes)) }
  }

  private func received(_ client: HeldConnection) -> Int { client.pair.atServer.received[client.atServer]?.count ?? 0 }

  @Test(arguments: tlsVersions)
  func `who sends nothing but records of a byte is cut off, in the middle of what was read`(version: Int32) throws {
    let client = try connect(version)
    client.send(records(500, bytes: 1, by: client))
    client.pair.turn(until: { received(client) == 500 })
    client.pair.turn(times: 3)
    #expect(client.causeAtServer == nil, "a head may come in so many")
    client.send(records(1000, bytes: 1, by: client))
    client.pair.turn(until: { client.causeAtServer != nil })
    #expect(client.causeAtServer == .tlsFailed(.tooManySmallRecords))
    #expect(received(client) < 600)
  }

  @Test func `records of a message each are welcome for ever, and short ones as often as a rate allows`() throws {
    let clock = HandClock()
    let client = try connect(clock: clock)
    // Positions that waited, all at once.
    client.send(records(5000, bytes: 150, by: client))
    client.pair.turn(until: { received(client) == 750_000 })
    var expected = 750_000
    // Pings of 20 bytes ten times a second, and pongs of 6 that answer the hub's pings.
    for (bytes, pause, count) in [(20, 100, 800), (6, 25_000, 800), (6, 500, 800)] {
      for _ in 0..<count {
        clock.advance(milliseconds: Int64(pause))
        client.send(records(1, bytes: bytes, by: client))
        expected += bytes
        client.pair.turn(until: { received(client) == expected })
      }
    }
    client.pair.turn(times: 3)
    #expect(client.causeAtServer == nil)
  }

  @Test func `many records of one read count as read, so that others come in the next turn`() throws {
    var limits = EventLoopLimits()
    limits.readBytesPerTurn = 8000
    let first = try connect(TLS1_3_VERSION, limits)
    let second = try HeldConnection(first.pair, TLSPeer(makeClient(), name: "localhost"))
    second.shakeHands()
    // 6,200 bytes as they come.
    for client in [first, second] { client.send(records(100, bytes: 40, by: client)) }
    first.pair.client.runTurn(timeoutMilliseconds: 0)
    let cut = first.pair.server.counters.turnsCut
    first.pair.server.runTurn(timeoutMilliseconds: 0)
    #expect([first, second].count { received($0) == 4000 } == 1)
    #expect(first.pair.server.counters.turnsCut == cut + 1)
    first.pair.server.runTurn(timeoutMilliseconds: 0)
    #expect([first, second].count { received($0) == 4000 } == 2)
  }
}
