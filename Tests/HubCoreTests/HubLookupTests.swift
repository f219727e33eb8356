// Fixes that are older than what memory knows of: the journal is asked, and nobody else waits for it.
import HubBytes
import HubGeo
import HubMessages
import Testing

@testable import HubCore

extension DurableBench {
  /// Like a hub whose journal is read for it.
  convenience init(lookingUp records: [[UInt8]], limits: HubLimits = .roomy, seed: UInt64 = 1) throws {
    try self.init(reading: records, seed: seed, limits: limits, looksUp: true)
  }

  func lookups() -> [HistoryLookup] {
    var taken: [HistoryLookup] = []
    hub.takeLookups(into: &taken)
    return taken
  }

  /// Reads what is stored for a lookup, as a reader's thread does.
  func answer(_ lookup: HistoryLookup, reading earlier: [[UInt8]] = []) throws -> HubInput {
    var found: [Int64] = []
    for group in earlier + submitted.prefix(stored) {
      group.withUnsafeBytes { bytes in
        DurableKeys.forEach(in: bytes) { key, offset in
          guard key == lookup.key, let (_, next) = DurableKeys.record(in: bytes, at: offset) else { return }
          let record = UnsafeRawBufferPointer(rebasing: bytes[offset..<next])
          #expect(FixesRecord.times(ofDriver: lookup.driverID, in: record, within: lookup.times, into: &found))
        }
      }
    }
    return .knownFixes(ticket: lookup.ticket, found)
  }
}

@Suite struct HubLookupTests {
  @Test("After a restart a batch's new fixes go on at once; its older ones wait for the journal, which knows them")
  func duplicatesOverRestart() throws {
    let first = try DurableBench(lookingUp: [])
    first.connect()
    let base = first.clock
    for second in 0..<10 as Range<Int64> { first.turn([first.fix(base + second * 1000)]) }
    first.store()
    let second = try DurableBench(lookingUp: first.submitted, seed: 4)
    second.turn([second.subscribe("T")])
    second.connect()
    second.store()
    let times = (5..<15).map { base + Int64($0) * 1000 } + [base + 2500]
    let turn = Turn(loops: [second.turn([second.batch(times)])])
    #expect(turn.positions.count == 5 && turn.acks.isEmpty)
    #expect(second.lookups().isEmpty, "not before all that came is stored")
    #expect(second.hub.shownCounters().fixesWaiting == 11)
    #expect(Turn(loops: [second.store()]).acks.isEmpty)
    let asked = second.lookups()
    // The newest, at 9 s, needs no journal.
    #expect(asked.map(\.times) == [[2500, 5000, 6000, 7000, 8000].map { base + $0 }])
    // Live traffic of the same driver continues meanwhile.
    #expect(Turn(loops: [second.turn([second.fix(base + 16_000)])]).positions.count == 1)
    #expect(Turn(loops: [second.turn([try second.answer(asked[0], reading: first.submitted)])]).acks.isEmpty)
    let acks = Turn(loops: [second.store()]).acks
    #expect(acks.map(\.batch?.accepted) == [6] && acks.map(\.batch?.duplicates) == [5])
    #expect(second.hub.shownCounters().fixesWaiting == 0 && second.hub.counters.fixesHistory == 1)
    #expect(second.hub.counters.fixesReceived == 12)
    let third = try DurableBench(reading: first.submitted + second.submitted, seed: 6)
    #expect(try third.state() == second.state())
  }

  @Test("A second batch with the same fixes is looked up when the first is stored, and finds them")
  func inOrder() throws {
    let bench = try DurableBench(lookingUp: [])
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base)])
    bench.turn([bench.batch([base - 3000, base - 2000]), bench.batch([base - 2000, base - 1000])])
    bench.store()
    let asked = bench.lookups()
    #expect(asked.count == 1)
    bench.turn([try bench.answer(asked[0])])
    #expect(bench.lookups().isEmpty)
    #expect(Turn(loops: [bench.store()]).acks.map(\.batch?.accepted) == [2])
    let next = bench.lookups()
    #expect(next.count == 1)
    bench.turn([try bench.answer(next[0])])
    let acks = Turn(loops: [bench.store()]).acks
    #expect(acks.map(\.batch?.accepted) == [1] && acks.map(\.batch?.duplicates) == [1])
    #expect(Set(try bench.fixes().map(\.measured.timestamp)).count == (try bench.fixes().count))
    // An answer that nobody waits for is nothing.
    #expect(bench.turn([.knownFixes(ticket: next[0].ticket, [])]).isEmpty)
  }

  @Test("A pong covers no fix that waits for the journal's answer, and those before it")
  func pong() throws {
    let bench = try DurableBench(lookingUp: [])
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base)])
    bench.store()
    bench.turn([bench.batch([base - 3000, base - 2000])])
    bench.store()
    #expect(bench.storedThrough() == base - 3001)
    bench.turn([try bench.answer(try #require(bench.lookups().first))])
    bench.store()
    #expect(bench.storedThrough() == base)
  }

  @Test("What memory knows is not looked up: the newest times of a driver, but for those that it had to forget")
  func memory() throws {
    let bench = try DurableBench(lookingUp: [])
    bench.connect()
    let base = bench.clock
    bench.turn([bench.batch((0..<40).map { base + $0 * 1000 })])
    bench.store()
    let again = Turn(loops: [bench.turn([bench.batch((0..<40).map { base + $0 * 1000 })])])
    #expect(again.acks.map(\.batch?.duplicates) == [40], "nothing is to be stored")
    bench.turn([bench.batch([base + 500, base + 39_500])])
    #expect(Turn(loops: [bench.store()]).acks.map(\.batch?.accepted) == [2])
    #expect(bench.hub.counters.lookups == 0)
    // 64 times are remembered in this test: the first ones are forgotten now.
    bench.turn([bench.batch((40..<80).map { base + $0 * 1000 })])
    bench.turn([bench.batch([base, base + 79_000])])
    bench.store()
    #expect(bench.lookups().map(\.times) == [[base]])
  }

  @Test("A fix that the journal knows is not missed, though it came again while nothing could be stored")
  func knownAndMissed() throws {
    let first = try DurableBench(lookingUp: [])
    first.connect()
    let base = first.clock
    for second in 0..<3 as Range<Int64> { first.turn([first.fix(base + second * 1000)]) }
    first.store()
    let bench = try DurableBench(lookingUp: first.submitted, seed: 4)
    bench.connect()
    bench.store(condition: .unavailable)
    bench.turn([bench.fix(base)])
    #expect(bench.storedThrough() == base - 1)
    bench.store(condition: .good)
    bench.turn([bench.batch([base])])
    bench.turn([try bench.answer(bench.lookups()[0], reading: first.submitted)])
    #expect(Turn(loops: [bench.store()]).acks.isEmpty)
    #expect(bench.storedThrough() == base + 2000)
  }

  @Test("Without room for the answer the sender is asked to send again, and the driver's next batch is accepted")
  func full() throws {
    let bench = try DurableBench(lookingUp: [])
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base)])
    bench.turn([bench.batch([base - 1000]), bench.batch([base - 2000])])
    bench.store()
    let asked = bench.lookups()
    bench.store(condition: .unavailable)
    #expect(Turn(loops: [bench.turn([try bench.answer(asked[0])])]).codes == [.storageFull])
    bench.store(condition: .good)
    let next = bench.lookups()
    #expect(next.map(\.times) == [[base - 2000]])
    bench.turn([try bench.answer(next[0])])
    #expect(Turn(loops: [bench.store()]).acks.count == 1)
    let counters = bench.hub.counters
    #expect(counters.fixesReceived == counters.fixesAccepted + counters.fixesHistory + counters.fixesPutOff)
  }

  @Test("Past the limit of fixes that wait a batch is refused for now, and the next continues when some were answered")
  func limit() throws {
    var limits = HubLimits.roomy
    limits.waitingFixes = 5
    let bench = try DurableBench(lookingUp: [], limits: limits)
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base)])
    let turn = Turn(loops: [
      bench.turn([bench.batch([base - 1, base - 2, base - 3]), bench.batch([base - 4, base - 5, base - 6])])
    ])
    #expect(turn.codes == [.rateLimited] && turn.errors.first?.retryAfter != nil)
    bench.store()
    bench.turn([try bench.answer(try #require(bench.lookups().first))])
    #expect(Turn(loops: [bench.turn([bench.batch([base - 4, base - 5, base - 6])])]).codes.isEmpty)
    #expect(bench.hub.counters.fixesPutOff == 3 && bench.hub.counters.hits(.waitingFixes) == 1)
  }

  @Test("One driver's batches of old fixes do not take the room of all others'")
  func perDriver() throws {
    var limits = HubLimits.roomy
    limits.waitingPerDriver = 2
    let bench = try DurableBench(lookingUp: [], limits: limits)
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base)])
    let turn = Turn(loops: [bench.turn((1...3).map { bench.batch([base - 1000 * $0]) })])
    #expect(turn.codes == [.rateLimited] && bench.hub.counters.hits(.waitingFixes) == 1)
    #expect(Turn(loops: [bench.turn([bench.batch([base - 1000], trip: nil, http: "E")])]).codes.isEmpty)
    bench.store()
    bench.turn([try bench.answer(try #require(bench.lookups().first))])
    #expect(Turn(loops: [bench.turn([bench.batch([base - 3000])])]).codes.isEmpty)
  }
}
