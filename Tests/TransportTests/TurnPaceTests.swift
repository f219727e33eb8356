// When a loop pauses before it looks at its sockets, and what ends a pause.
import Glibc
import HubBytes
import HubSystem
import Synchronization
import Testing

@testable import HubTransport

@Suite struct TurnPaceTests {
  private static let second: Int64 = 1_000_000_000

  /// A pace of 300 µs at uptime 0.
  private func makePace(microseconds: Int = 300) -> TurnPace {
    var limits = EventLoopLimits()
    limits.turnPaceMicroseconds = microseconds
    return TurnPace(limits, now: 0)
  }

  /// So many sockets are ready each millisecond; gives after how many milliseconds of at most 100 `isDone` holds.
  private func milliseconds(
    of pace: inout TurnPace, ready: Int, from start: Int64, until isDone: (TurnPace) -> Bool
  ) -> Int? {
    for millisecond in 1...100 {
      pace.count(ready, at: start + Int64(millisecond) * 1_000_000)
      if isDone(pace) { return millisecond }
    }
    return nil
  }

  @Test("A loop with little to do is never paused, also not by a burst after silence")
  func idle() {
    var pace = makePace()
    #expect(milliseconds(of: &pace, ready: 3, from: 0) { $0.pause(before: Self.second, after: 0) > 0 } == nil)
    pace.count(200, at: 10 * Self.second)
    #expect(pace.pause(before: Self.second, after: 0) == 0)
  }

  @Test("A loop under load pauses, and stops that, within 50 ms of the change")
  func adapts() throws {
    var pace = makePace()
    let begun = try #require(
      milliseconds(of: &pace, ready: 5, from: 0) { $0.pause(before: Self.second, after: 0) == 300_000 })
    // Between the two thresholds it stays as it is.
    let later = Int64(begun) * 1_000_000
    #expect(milliseconds(of: &pace, ready: 3, from: later) { $0.pause(before: Self.second, after: 0) == 0 } == nil)
    let ended = try #require(
      milliseconds(of: &pace, ready: 1, from: later + Self.second / 10) { $0.pause(before: Self.second, after: 0) == 0 }
    )
    #expect(begun <= 50 && ended <= 50)
  }

  @Test("A pause ends with the sleep that it begins, and there is none with a pace of 0")
  func bounds() {
    var (pace, none) = (makePace(), makePace(microseconds: 0))
    _ = milliseconds(of: &pace, ready: 5, from: 0) { _ in false }
    _ = milliseconds(of: &none, ready: 5, from: 0) { _ in false }
    #expect(pace.pause(before: 100_000, after: 0) == 100_000 && pace.pause(before: -1, after: 0) == 0)
    #expect(pace.pause(before: .max, after: 0) == 300_000 && none.pause(before: Self.second, after: 0) == 0)
  }

  @Test("There is no pause after a turn that took longer than two: what is left of a backlog does not wait")
  func backlog() {
    var pace = makePace()
    _ = milliseconds(of: &pace, ready: 5, from: 0) { _ in false }
    #expect(pace.pause(before: Self.second, after: 600_000) == 300_000)
    #expect(pace.pause(before: Self.second, after: 600_001) == 0)
  }

  /// A loop under load, which would pause for an hour.
  private func makeBusyPair() throws -> (pair: Pair, clock: HandClock) {
    var limits = EventLoopLimits()
    limits.turnPaceMicroseconds = 3_600_000_000
    let clock = HandClock()
    let pair = try Pair(server: limits, clock: clock)
    let connections = try (0..<8).map { _ in try pair.connect() }
    for _ in 0..<20 {
      clock.advance(milliseconds: 1)
      for connection in connections {
        let start = pair.client.arena.count
        pair.client.arena.append([7])
        pair.client.send(start..<pair.client.arena.count, to: connection.atClient)
      }
      pair.client.runTurn(timeoutMilliseconds: 0)
      pair.server.runTurn(timeoutMilliseconds: 0)
    }
    #expect(pair.server.counters.pauses == 0, "a turn that may not sleep does not pause")
    return (pair, clock)
  }

  @Test("A call from another thread ends a pause", .timeLimit(.minutes(5)))
  func calls() throws {
    let (pair, _) = try makeBusyPair()
    let (waker, isDone) = (pair.server.waker, Locked(false))
    let thread = try startThread(name: "caller") {
      while !isDone.withLock({ $0 }) {
        waker.wake()
        sched_yield()
      }
    }
    while pair.server.counters.pauses < 3 { pair.server.runTurn() }
    isDone.withLock { $0 = true }
    thread.join()
    #expect(pair.atServer.wakeUps >= 3)
  }

  @Test("While messages gather a call does not end the sleep, and is seen at its end", .timeLimit(.minutes(5)))
  func gathering() throws {
    // The end of a ring that another test used interrupts that test's thread.
    let thread = try startThread(name: "gathering") {
      do {
        let clock = HandClock()
        let pair = try Pair(clock: clock)
        let start = ClockReading.uptime()
        pair.server.gather(until: clock.reading.uptimeNanoseconds + 20_000_000)
        pair.server.waker.wake()
        pair.server.runTurn()
        #expect(ClockReading.uptime() - start >= 20_000_000 && pair.atServer.wakeUps == 1)
        // It was for one sleep: this one would never end.
        pair.server.waker.wake()
        pair.server.runTurn()
        #expect(pair.atServer.wakeUps == 2)
        pair.server.gather(until: clock.reading.uptimeNanoseconds)
        pair.server.waker.wake()
        pair.server.runTurn()
        #expect(pair.atServer.wakeUps == 3)
      } catch {
        Issue.record(error)
      }
    }
    thread.join()
  }

  @Test("A ready socket and a timer end the sleep in which messages gather", .timeLimit(.minutes(5)))
  func gatheringEnds() throws {
    let clock = HandClock()
    let pair = try Pair(clock: clock)
    let connection = try pair.connect()
    let hour: Int64 = 3_600_000_000_000
    let start = pair.client.arena.count
    pair.client.arena.append([7])
    pair.client.send(start..<pair.client.arena.count, to: connection.atClient)
    pair.client.runTurn(timeoutMilliseconds: 0)
    let turns = pair.server.turn
    pair.server.gather(until: clock.reading.uptimeNanoseconds + hour)
    pair.server.runTurn()
    #expect(pair.server.turn == turns + 1)
    pair.server.setLoopTimer(at: clock.reading.uptimeNanoseconds + 2_000_000)
    pair.server.gather(until: clock.reading.uptimeNanoseconds + hour)
    pair.server.runTurn()
    clock.advance(milliseconds: 2)
    pair.server.runTurn(timeoutMilliseconds: 0)
    #expect(pair.atServer.loopTimers == 1)
  }

  @Test("A timer that is due ends a pause", .timeLimit(.minutes(5)))
  func timers() throws {
    let (pair, clock) = try makeBusyPair()
    pair.server.setLoopTimer(at: clock.reading.uptimeNanoseconds + 2_000_000)
    pair.server.runTurn()
    #expect(pair.server.counters.pauses == 1)
    clock.advance(milliseconds: 2)
    pair.server.runTurn(timeoutMilliseconds: 0)
    #expect(pair.atServer.loopTimers == 1)
  }
}
