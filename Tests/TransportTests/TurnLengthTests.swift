// How much one turn reads, and in which order the rest follows.
import HubBytes
import HubSystem
import Testing

@testable import HubTransport

@Suite struct TurnLengthTests {
  /// So many connections, of which each has sent so many bytes; with a server that reads a thousand bytes a turn.
  private func pair(_ count: Int, bytes: Int) throws -> (Pair, [(atClient: ConnectionID, atServer: ConnectionID)]) {
    var limits = EventLoopLimits()
    limits.readBytesPerTurn = 1000
    let pair = try Pair(server: limits)
    let connections = try (0..<count).map { _ in try pair.connect() }
    for connection in connections {
      let start = pair.client.arena.count
      pair.client.arena.append([UInt8](repeating: 7, count: bytes))
      pair.client.send(start..<pair.client.arena.count, to: connection.atClient)
    }
    // Over the loopback they are there when they are written.
    pair.client.runTurn(timeoutMilliseconds: 0)
    return (pair, connections)
  }

  @Test("a turn that has read enough leaves the others that are ready to the next ones, where they come first")
  func cut() throws {
    let (pair, connections) = try pair(10, bytes: 600)
    let bytesOf = { pair.atServer.received[connections[$0].atServer]?.count ?? 0 }
    for turn in 1...5 {
      pair.server.runTurn(timeoutMilliseconds: 0)
      #expect((0..<10).filter { bytesOf($0) == 600 }.count == 2 * turn, "1,200 bytes a turn")
      // What the first ones say meanwhile waits until all have been heard.
      let start = pair.client.arena.count
      pair.client.arena.append([UInt8](repeating: 8, count: 600))
      pair.client.send(start..<pair.client.arena.count, to: connections[0].atClient)
      pair.client.runTurn(timeoutMilliseconds: 0)
    }
    #expect(pair.server.counters.turnsCut == 4)
    pair.server.runTurn(timeoutMilliseconds: 0)
    #expect(bytesOf(0) == 600 + 5 * 600)
  }

  @Test("what an owner spends counts as read, and for one turn only")
  func spend() throws {
    let (pair, connections) = try pair(4, bytes: 10)
    pair.atServer.onReceived = { [unowned pair] id, _ in
      if id == connections[1].atServer { pair.server.spend(bytes: 5000) }
    }
    pair.server.runTurn(timeoutMilliseconds: 0)
    #expect(Set(pair.atServer.received.keys) == [connections[0].atServer, connections[1].atServer])
    pair.server.runTurn(timeoutMilliseconds: 0)
    #expect(pair.atServer.received.count == 4 && pair.server.counters.turnsCut == 1)
  }

  @Test("a connection that is ended while its report waits is left alone, also where its slot has another one")
  func stale() throws {
    let (pair, connections) = try pair(3, bytes: 1000)
    pair.server.runTurn(timeoutMilliseconds: 0)
    #expect(pair.atServer.received.count == 1)
    pair.server.abort(connections[1].atServer)
    pair.server.runTurn(timeoutMilliseconds: 0)
    pair.server.runTurn(timeoutMilliseconds: 0)
    let another = try pair.connect()
    #expect(another.atServer.slot == connections[1].atServer.slot)
    pair.turn(times: 4)
    #expect(Set(pair.atServer.received.keys) == [connections[0].atServer, connections[2].atServer])
    #expect(pair.atServer.closed[connections[1].atServer] == .closedByUs)
  }

  @Test("timers that are due together fire some in each turn, and the loop does not sleep in between")
  func timers() throws {
    var limits = EventLoopLimits()
    limits.timersPerTurn = 5
    let clock = HandClock()
    let pair = try Pair(server: limits, clock: clock)
    let ids = try (0..<14).map { _ in try pair.connect().atServer }
    let due = clock.reading.uptimeNanoseconds + 1_000_000
    for id in ids { pair.server.setTimer(id, at: due) }
    clock.advance(milliseconds: 100)
    pair.server.runTurn()
    #expect(pair.atServer.timers.count == 5)
    // Of those that wait, one is moved, one unset and one ended: they are left out, and not counted either.
    let waiting = ids.filter { !pair.atServer.timers.contains($0) }
    pair.server.setTimer(waiting[0], at: due + 1_000_000_000)
    pair.server.setTimer(waiting[1], at: nil)
    pair.server.abort(waiting[2])
    pair.server.runTurn()
    #expect(pair.atServer.timers.count == 10)
    pair.server.runTurn()
    #expect(pair.atServer.timers.count == 11 && Set(pair.atServer.timers).isDisjoint(with: waiting[..<3]))
    clock.advance(milliseconds: 1100)
    pair.server.runTurn()
    #expect(pair.atServer.timers.count == 12 && pair.atServer.timers.last == waiting[0])
  }
}
