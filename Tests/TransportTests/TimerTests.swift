// Timers with time moved by hand.

import HubBytes
import HubSystem
import HubTestSupport
import Testing

@testable import HubTransport

@Suite struct `Timer wheel` {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `fires what an oracle fires: never early, at most a tick late, each once`(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let tick = Int64(1) << TimerWheel.tickBits
    var slab = ConnectionSlab()
    var now: Int64 = 5_000_000_000
    var wheel = TimerWheel(startingAt: now)
    var ids = (0..<300).map { slab.insert(descriptor: $0, state: .open) }
    var deadlines: [ConnectionID: Int64] = [:]
    for _ in 0..<6000 {
      let index = Int.random(in: 0..<ids.count, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0...4:
        // Often within a tick, mostly within a round, sometimes rounds away, sometimes past.
        let reach = [tick, 40 * tick, 511 * tick, 3000 * tick].randomElement(using: &random) ?? tick
        let deadline = now + Int64.random(in: -tick...reach, using: &random)
        wheel.set(ids[index].slot, at: deadline, in: slab)
        deadlines[ids[index]] = deadline
      case 5:
        wheel.set(ids[index].slot, at: nil, in: slab)
        deadlines[ids[index]] = nil
      case 6:
        wheel.forget(ids[index].slot, in: slab)
        slab.remove(ids[index].slot)
        deadlines[ids[index]] = nil
        ids[index] = slab.insert(descriptor: 1, state: .open)
      case _:
        if let earliest = deadlines.values.min(), let next = wheel.nextUptimeNanoseconds {
          #expect(next <= max(earliest, now) + tick, "the loop would sleep through a timer")
        } else {
          #expect(deadlines.isEmpty)
        }
        let far = Int.random(in: 0..<20, using: &random) == 0
        now += Int64.random(in: 0...(far ? 2000 * tick : 5 * tick), using: &random)
        var due = TurnList<ConnectionID>()
        wheel.advance(to: now, in: slab, due: &due)
        for index in 0..<due.count {
          let id = due[index]
          let deadline = deadlines.removeValue(forKey: id)
          #expect(deadline.map { $0 <= now } == true, "early, twice or unset")
          let isDue = wheel.takeDue(id.slot, in: slab)
          #expect(isDue)
        }
        #expect(deadlines.values.allSatisfy { $0 > now - 2 * tick }, "late")
      }
    }
  }

  @Test func `takes times at both ends of the scale`() {
    var slab = ConnectionSlab()
    let id = slab.insert(descriptor: 1, state: .open)
    var wheel = TimerWheel(startingAt: 10)
    #expect(wheel.nextUptimeNanoseconds == nil)
    for time in [Int64.min, -1, 0, 10, .max] { wheel.set(id.slot, at: time, in: slab) }
    var due = TurnList<ConnectionID>()
    wheel.advance(to: 1_000_000_000_000, in: slab, due: &due)
    #expect(due.count == 0)
    wheel.set(id.slot, at: .min, in: slab)
    wheel.advance(to: 1_001_000_000_000, in: slab, due: &due)
    #expect(due.count == 1)
    #expect(due[0] == id)
    wheel.advance(to: .max, in: slab, due: &due)
    wheel.set(id.slot, at: .max, in: slab)
  }
}

@Suite struct `Timers of a loop` {
  @Test func `a connection's timer fires once, unless it was moved, unset or the connection is gone`() throws {
    let clock = HandClock()
    let pair = try Pair(clock: clock)
    var ids: [ConnectionID] = []
    for _ in 0..<4 { ids.append(try pair.connect().atServer) }
    let start = clock.reading.uptimeNanoseconds
    for id in ids { pair.server.setTimer(id, at: start + 1_000_000_000) }
    pair.server.setTimer(ids[1], at: start + 2_000_000_000)
    pair.server.setTimer(ids[2], at: nil)
    pair.server.abort(ids[3])
    clock.advance(milliseconds: 999)
    pair.turn(times: 1)
    #expect(pair.atServer.timers.isEmpty)
    clock.advance(milliseconds: 70)
    pair.turn(times: 2)
    #expect(pair.atServer.timers == [ids[0]])
    clock.advance(milliseconds: 1000)
    pair.turn(times: 2)
    #expect(pair.atServer.timers == [ids[0], ids[1]])
  }

  @Test func `a timer that a callback unsets or moves in the same turn does not fire`() throws {
    let clock = HandClock()
    let pair = try Pair(clock: clock)
    var ids: [ConnectionID] = []
    for _ in 0..<4 { ids.append(try pair.connect().atServer) }
    for id in ids { pair.server.setTimer(id, at: clock.reading.uptimeNanoseconds + 1_000_000) }
    pair.atServer.onTimer = { [unowned pair] fired in
      let others = ids.filter { $0 != fired }
      pair.server.setTimer(others[0], at: nil)
      pair.server.setTimer(others[1], at: clock.reading.uptimeNanoseconds + 60_000_000_000)
      pair.server.abort(others[2])
    }
    clock.advance(milliseconds: 100)
    pair.turn(times: 3)
    #expect(pair.atServer.timers.count == 1)
  }

  @Test func `the loop's own timer fires once, at its time`() throws {
    let clock = HandClock()
    let pair = try Pair(clock: clock)
    pair.server.setLoopTimer(at: clock.reading.uptimeNanoseconds + 10_000_000)
    clock.advance(milliseconds: 9)
    pair.turn(times: 1)
    #expect(pair.atServer.loopTimers == 0)
    clock.advance(milliseconds: 1)
    pair.turn(times: 3)
    #expect(pair.atServer.loopTimers == 1)
    #expect(pair.server.now == clock.reading)
  }

  @Test func `a loop sleeps until its timer and no longer`() throws {
    // The end of a ring that another test used interrupts that test's thread.
    let thread = try startThread(name: "sleeping-loop") {
      do {
        let loop = try EventLoop()
        let recorder = Recorder(loop)
        let start = ClockReading.read().uptimeNanoseconds
        loop.setLoopTimer(at: start + 20_000_000)
        loop.runTurn()
        #expect(recorder.loopTimers == 1)
        #expect(loop.counters.turns == 1)
        #expect(loop.now.uptimeNanoseconds - start >= 20_000_000)
      } catch {
        Issue.record(error)
      }
    }
    thread.join()
  }
  @Test func `a timer for a time long past fires at once, where the loop would sleep`() throws {
    let loop = try EventLoop()
    let recorder = Recorder(loop)
    for time in [Int64.min, -1, 0] {
      loop.setLoopTimer(at: time)
      loop.runTurn()
    }
    #expect(recorder.loopTimers == 3)
  }
}
