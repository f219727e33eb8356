// Subscriptions to channels that have an event in each group of the journal.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct BusyChannelTests {
  @Test("Who subscribes to all trips while events never stop is answered with the next group, and has each event once")
  func trips() throws {
    let bench = try DurableBench()
    let begun = Turn(loops: [bench.turn([bench.subscribe(.trips)]) + bench.store()])
    let first = try #require(begun.subscribed.first)
    bench.turn([.released(outlet: 0, first.handle)])
    let start = first.answer.sequence
    var outputs: [HubOutput] = []
    for round in 0..<30 {
      var inputs = [bench.move(.ops, "o", "T\(round)", .requested)]
      if round == 10 { inputs.append(bench.subscribe(.trips, since: start + 3)) }
      if round == 20 {
        inputs.append(.unsubscribe(SessionRef(outlet: 0, slot: 80, generation: 1), message("u"), .trips))
      }
      outputs += bench.turn(inputs)
      // The disk is always one group behind.
      if bench.submitted.count - bench.stored > 1 { outputs += bench.store(1) }
    }
    let turn = Turn(loops: [outputs])
    let answer = try #require(turn.subscribed.first)
    #expect(answer.answer.recovered && answer.answer.sequence == start + 11)
    #expect(answer.missed.compactMap(\.move).map(\.sequence) == (4...11).map { start + $0 })
    let answered = try #require(outputs.firstIndex { if case .subscribed = $0 { true } else { false } })
    let left = try #require(outputs.firstIndex { if case .unsubscribed = $0 { true } else { false } })
    #expect(Turn(loops: [Array(outputs[..<answered])]).moves.isEmpty)
    let live = Turn(loops: [Array(outputs[answered..<left])]).moves
    #expect(live.map(\.sequence) == (12...21).map { start + $0 })
  }
}
