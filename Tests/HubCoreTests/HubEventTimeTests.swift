// Fixes late, twice, in the wrong order and by wrong clocks: the live marker never jumps back, nobody is silenced.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubEventTimeTests {
  private func north(_ seconds: Double) -> Coordinate { at(52 + seconds * 10 / 111_195, 13) }

  @Test(
    "a batch in any order is handled in the order of its times, and answered by its indices",
    arguments: 1...8 as ClosedRange<UInt64>)
  func shuffledBatch(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let base: Int64 = 1_763_685_000_000
    var inOrder: [Result<Fix, ErrorCode>] = (0..<40).map {
      .success(
        Fix(coordinate: north(Double($0)), timestamp: time(base + Int64($0) * 1000), accuracy: 5, heading: 0, speed: 10)
      )
    }
    inOrder.insert(inOrder[7], at: 8)  // twice
    let expected = publish(inOrder).positions
    #expect(expected.count == 40)
    var shuffled = inOrder
    shuffled.shuffle(using: &random)
    shuffled.insert(.failure(.invalidLocation), at: 13)
    shuffled.append(.success(Fix(coordinate: at(0, 0), timestamp: time(base + 5500), accuracy: 5)))
    let turn = publish(shuffled)
    #expect(turn.positions.map(\.coordinate) == expected.map(\.coordinate), "as if it had come in order")
    #expect(turn.positions.map(\.timestamp) == expected.map(\.timestamp))
    let summary = turn.acks.first?.batch
    #expect(summary?.accepted == 40 && summary?.duplicates == 1)
    #expect(
      summary?.rejected == [.init(index: 13, code: .invalidLocation), .init(index: 42, code: .implausibleLocation)])
  }

  private func publish(_ fixes: [Result<Fix, ErrorCode>]) -> Turn {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    return bench.turn(bench.batch(session, fixes))
  }

  @Test(
    "what was published never goes back in time, however late and mixed the fixes come",
    arguments: 1...8 as ClosedRange<UInt64>)
  func neverBack(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    var newest = Int64.min
    var accepted = 0
    for step in 0..<600 {
      bench.pass(seconds: 1)
      var inputs: [HubInput] = []
      func fix(_ late: Int64) -> Fix {
        let milliseconds = bench.clock - late * 1000
        return Fix(
          coordinate: north(Double(step) - Double(late)), timestamp: time(milliseconds), accuracy: 5, heading: 0,
          speed: 10)
      }
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        inputs.append(
          bench.batch(session, (0..<10).map { _ in .success(fix(Int64.random(in: 0...30, using: &random))) }))
      case 1: inputs.append(bench.fix(session, at: fix(9).coordinate, milliseconds: fix(9).timestamp.milliseconds))
      default: inputs.append(bench.fix(session, at: fix(0).coordinate, milliseconds: bench.clock))
      }
      let turn = bench.turn(inputs)
      #expect(turn.errors.isEmpty)
      for position in turn.positions {
        #expect(position.timestamp.milliseconds > newest)
        #expect(position.age >= 0)
        newest = position.timestamp.milliseconds
      }
      accepted += turn.positions.count
    }
    #expect(accepted == Int(bench.hub.counters.fixesAccepted) && accepted > 250)
  }

  @Test(
    "a clock that is wrong by any amount changes neither positions nor their ages",
    arguments: [0, -3_600_000, 7_200_000, -1_700_000_000_000, 300_000] as [Int64])
  func wrongClock(offset: Int64) {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    var ages: [Double] = []
    for step in 0..<20 {
      bench.pass(seconds: 1)
      // Measured half a second before it is sent; 0 to 400 ms on the way.
      let sent = bench.clock + offset - Int64(step % 5) * 100
      let turn = bench.turn(
        bench.fix(session, at: north(Double(step)), speed: 10, heading: 0, milliseconds: sent - 500, sent: sent))
      ages += turn.positions.map(\.age)
    }
    #expect(ages.count == 20)
    // A first fix far ahead of the hub's clock waits for the second.
    for (step, age) in ages.enumerated().dropFirst() { #expect(age == 0.5 + Double(step % 5) / 10) }
  }

  @Test(
    "a clock that leaps into the future for one fix does not silence the driver",
    arguments: [700_000, 86_400_000, 200_000_000_000] as [Int64])
  func oneWrongFix(leap: Int64) {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    var published = 0
    for step in 0..<20 {
      bench.pass(seconds: 1)
      let milliseconds = bench.clock + (step == 10 ? leap : 0)
      published += bench.turn(bench.fix(session, at: north(Double(step)), milliseconds: milliseconds)).positions.count
    }
    #expect(published == 19)
    #expect(bench.hub.counters.fixesHeld == 1 && bench.hub.counters.fixesReleased == 0)
  }

  @Test("a driver whose clock was ahead and is set right is silent until time has caught up, and operators see it")
  func clockSetRight() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    var published: [Int64] = []
    var start: Int64 = 0
    for step in 0..<1000 {
      bench.pass(seconds: 1)
      if step == 0 { start = bench.clock }
      // 15 minutes ahead for the first five fixes, of which the first waits for the second.
      let milliseconds = bench.clock + (step < 5 ? 900_000 : 0)
      let turn = bench.turn(bench.fix(session, at: north(0), milliseconds: milliseconds))
      #expect(turn.errors.isEmpty)
      published += turn.positions.map { ($0.timestamp.milliseconds - start) / 1000 }
    }
    #expect(published == Array(900...999))
    // From the sixth on, as long as the newest was over 10 minutes ahead.
    #expect(bench.hub.counters.fixesHistory == 899 && bench.hub.counters.fixesBehindClock == 299)
  }

  @Test("a fix that comes twice, live and in a batch, is published once, on whatever way it comes first")
  func twice() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    let base = bench.clock
    bench.turn(bench.batch(session, [bench.measured(base)]))
    #expect(bench.turn(bench.fix(session, milliseconds: base)).positions.isEmpty)
    #expect(bench.turn(bench.fix(session, milliseconds: base + 1000)).positions.count == 1)
    let batch = bench.turn(bench.batch(session, [bench.measured(base + 1000), bench.measured(base)]))
    #expect(batch.positions.isEmpty && batch.acks.first?.batch?.duplicates == 2)
  }
}
