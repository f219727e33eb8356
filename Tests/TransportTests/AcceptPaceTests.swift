// Accepting at a pace: who is over it waits in the backlog, the loop sleeps, and nobody is lost. Time by hand.

import Testing

@testable import HubTransport

@Suite struct `The pace of accepts` {
  private func pair(_ clock: HandClock, perSecond: Int) throws -> Pair {
    var limits = EventLoopLimits()
    limits.acceptsPerSecond = perSecond
    return try Pair(server: limits, clock: clock)
  }

  @Test func `lets in a second's worth at once, then as many as time allows`() throws {
    let clock = HandClock()
    let pair = try pair(clock, perSecond: 10)
    for _ in 0..<25 { _ = try pair.client.connect(pair.address) }
    pair.turn(until: { pair.atClient.connected.count == 25 })
    pair.turn(times: 20)
    #expect(pair.atServer.accepted.count == 10)
    let waits = pair.server.counters.acceptWaits
    #expect(waits >= 1 && waits <= 2, "asked once, not once a turn")
    clock.advance(milliseconds: 99)
    pair.turn(times: 5)
    #expect(pair.atServer.accepted.count == 10)
    clock.advance(milliseconds: 1)
    pair.turn(times: 5)
    #expect(pair.atServer.accepted.count == 11)
    for _ in 0..<20 {
      clock.advance(milliseconds: 100)
      pair.turn(times: 3)
    }
    #expect(pair.atServer.accepted.count == 25, "nobody is lost")
    #expect(pair.server.counters.refused == 0 && pair.server.counters.acceptErrors == 0)
  }

  @Test func `does not hold up a listener that is not paced, and distinguishes the two`() throws {
    let clock = HandClock()
    let pair = try pair(clock, perSecond: 1)
    var listeners: [Int] = []
    pair.atServer.onAccepted = { [unowned pair] _ in listeners.append(pair.server.acceptedOn) }
    let free = try pair.server.listen(.loopback(port: 0), isPaced: false)
    for _ in 0..<3 { _ = try pair.client.connect(pair.address) }
    pair.turn(until: { pair.atClient.connected.count == 3 })
    pair.turn(times: 5)
    #expect(listeners == [0])
    for _ in 0..<5 { _ = try pair.client.connect(free) }
    pair.turn(until: { pair.atServer.accepted.count == 6 })
    #expect(listeners == [0, 1, 1, 1, 1, 1])
    clock.advance(milliseconds: 10_000)
    pair.turn(times: 5)
    #expect(listeners.count { $0 == 0 } == 2, "a quiet time saves up no more than a second's worth")
  }

  @Test func `is no pace at 0`() throws {
    let pair = try pair(HandClock(), perSecond: 0)
    for _ in 0..<200 { _ = try pair.client.connect(pair.address) }
    pair.turn(until: { pair.atServer.accepted.count == 200 })
    #expect(pair.server.counters.acceptWaits == 0)
  }
}
