// Fixes and the hub's own death: what is recorded, what waits for it, and what a second hub knows of it.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

extension DurableBench {
  static let session = SessionRef(outlet: 0, slot: 3, generation: 9)

  func connect(_ driver: String = "D") { turn([.driverConnecting(Self.session, id(driver))]) }

  func fix(_ milliseconds: Int64, trip: String? = "T", at place: Coordinate = at(52.5, 13.4)) -> HubInput {
    .fix(
      FixInput(
        session: Self.session, messageID: freshMessage(), sent: now.timestamp, received: now,
        update: LocationUpdate(
          tripID: trip.map(id), fix: Fix(coordinate: place, timestamp: time(milliseconds), accuracy: 5, speed: 10)),
        tripIsGranted: true))
  }

  func batch(_ times: [Int64], trip: String? = "T", http: String? = nil) -> HubInput {
    let fixes = times.map {
      Result<Fix, ErrorCode>.success(Fix(coordinate: at(52.5, 13.4), timestamp: time($0), accuracy: 5))
    }
    return .batch(
      BatchInput(
        session: http == nil ? Self.session : SessionRef(outlet: 0, slot: 50, generation: 1), driverID: http.map(id),
        messageID: freshMessage(), sent: now.timestamp, received: now,
        batch: LocationBatch(tripID: trip.map(id), fixes: fixes), tripIsGranted: true))
  }

  func status(_ status: DriverStatus, tags: [String] = []) -> HubInput {
    .driverStatus(
      Self.session, freshMessage(),
      DriverStatusReport(status: status, vehicleType: InlineText("van"), tags: tags.compactMap { InlineText($0) }))
  }

  /// What a pong says.
  func storedThrough() -> Int64? {
    let turn = Turn(loops: [turn([.ping(Self.session, freshMessage(), Ping())])])
    for case .pong(let pong) in turn.replies { return pong.storedThrough?.milliseconds }
    return nil
  }

  var clock: Int64 { now.timestamp.milliseconds }

  /// The fixes of all submissions, in order.
  func fixes() throws -> [StoredFix] {
    var all: [StoredFix] = []
    for group in submitted {
      try group.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
        var offsets: [Int] = []
        DurableKeys.forEach(in: bytes) { key, offset in
          if key == DurableKeys.fixes(ofDriver: id("D")) { offsets.append(offset) }
        }
        for offset in offsets {
          guard let (_, next) = DurableKeys.record(in: bytes, at: offset) else { continue }
          let record = try FixesRecord(UnsafeRawBufferPointer(rebasing: bytes[offset..<next]))
          for fix in 0..<record.count { all.append(record[fix]) }
        }
      }
    }
    return all
  }
}

@Suite struct HubFixDurabilityTests {
  @Test("A driver whom a trip has and who never came is offline after a restart, once")
  func neverCame() throws {
    let bench = try DurableBench()
    bench.turn([bench.move(.rider, "R", "T", .requested), bench.move(.ops, "o", "T", .accepted)])
    bench.store()
    #expect(bench.hub.shownCounters().driversOnline == 0)
    let next = try DurableBench(reading: bench.submitted)
    #expect(next.hub.drivers.find(id("D")) != nil && next.hub.shownCounters().driversOnline == 0)
  }

  @Test("A batch is acked when all of it is stored, over a socket and over HTTP; nobody waits for live fixes")
  func acks() throws {
    let bench = try DurableBench()
    bench.connect()
    bench.store()
    let base = bench.clock
    #expect(Turn(loops: [bench.turn([bench.fix(base, trip: nil)])]).all.isEmpty)
    #expect(bench.hub.awaitedTicket < UInt64(bench.submitted.count), "a live fix is in no hurry")
    #expect(Turn(loops: [bench.turn([bench.batch([base + 1, base + 2], trip: nil)])]).acks.isEmpty)
    #expect(bench.hub.awaitedTicket == UInt64(bench.submitted.count))
    #expect(Turn(loops: [bench.turn([bench.batch([base + 3], trip: nil, http: "D")])]).acks.isEmpty)
    let first = Turn(loops: [bench.store(bench.submitted.count - bench.stored - 1)])
    #expect(first.acks.map(\.batch?.accepted) == [2])
    #expect(Turn(loops: [bench.store()]).acks.map(\.batch?.accepted) == [1])
    #expect(try bench.fixes().map(\.measured.timestamp.milliseconds) == [base, base + 1, base + 2, base + 3])
  }

  @Test("A fix that is known already makes no trip its driver's last one: there is no record of it")
  func knownFixNamesNoTrip() throws {
    let bench = try DurableBench()
    bench.connect()
    let base = bench.clock
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.fix(base, trip: nil)])
    bench.turn([bench.fix(base), bench.batch([base])])
    bench.store()
    #expect(try DurableBench(reading: bench.submitted, seed: 77).state() == bench.state())
    bench.turn([bench.batch([base - 1])])
    bench.store()
    #expect(try DurableBench(reading: bench.submitted, seed: 77).state() == bench.state())
  }

  @Test("What is recorded is what was measured, what was published, and the outcome")
  func contents() throws {
    let bench = try DurableBench()
    bench.connect()
    bench.turn([bench.subscribe("T")])
    let base = bench.clock
    bench.store()
    var published: [DriverLocation] = []
    for fix in [
      bench.fix(base), bench.fix(base - 1000), bench.fix(base), bench.fix(base + 7_200_000),
      bench.fix(base + 7_201_000),
    ] {
      bench.advance(seconds: 1)
      published += Turn(loops: [bench.turn([fix])]).positions
    }
    let fixes = try bench.fixes()
    #expect(fixes.map(\.disposition) == [.live, .history, .held, .confirmed, .live])
    let positions = fixes.compactMap(\.position)
    #expect(positions.map(\.coordinate) == published.map(\.coordinate))
    #expect(positions.map(\.accuracy) == published.map(\.accuracy))
    #expect(positions.map(\.speed) == published.map(\.speed))
    #expect(fixes[3].measured.timestamp == fixes[2].measured.timestamp && fixes[0].measured.speed == 10)
  }

  @Test("The ack of a driver_status waits, and status, type and tags are there after a restart")
  func driverStatus() throws {
    let first = try DurableBench()
    first.connect()
    #expect(Turn(loops: [first.turn([first.status(.background, tags: ["a", "b"])])]).acks.isEmpty)
    #expect(Turn(loops: [first.store()]).acks.count == 1)
    let second = try DurableBench(reading: first.submitted, seed: 9)
    #expect(try second.state() == first.state())
    let foundDriver = second.hub.drivers.find(id("D"))
    let driver = try #require(foundDriver)
    #expect(second.hub.drivers[driver].reported == .background && !second.hub.drivers[driver].isStale)
    #expect(
      second.hub.drivers.profiles.profile(second.hub.drivers[driver].profile).tags
        == ["a", "b"].map { InlineText($0)! })
  }

  @Test("A pong says through which fix everything is stored: never what is on its way, nor past an older fix that is")
  func pongs() throws {
    let bench = try DurableBench()
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base)])
    #expect(bench.storedThrough() == nil)
    bench.store()
    #expect(bench.storedThrough() == base)
    for second in 1...4 as ClosedRange<Int64> { bench.turn([bench.fix(base + second * 1000)]) }
    #expect(bench.storedThrough() == base)
    bench.store(2)
    #expect(bench.storedThrough() == base + 1000, "at most one commit behind")
    bench.store()
    #expect(bench.storedThrough() == base + 4000)
    bench.turn([bench.fix(base + 2500)])
    #expect(bench.storedThrough() == base + 2499)
    bench.store()
    #expect(bench.storedThrough() == base + 4000)
  }

  @Test("Without room a batch is refused whole, live fixes are published and counted; what was lost is asked for again")
  func full() throws {
    let bench = try DurableBench()
    bench.connect()
    bench.turn([bench.subscribe("T")])
    let base = bench.clock
    bench.turn([bench.fix(base)])
    bench.store(condition: .unavailable)
    let turn = Turn(loops: [
      bench.turn([
        bench.batch([base + 1, base + 2]), bench.fix(base + 1000), bench.fix(base + 2000), bench.status(.background),
      ])
    ])
    #expect(turn.codes == [.storageFull, .storageFull] && turn.errors.allSatisfy { $0.retryAfter != nil })
    #expect(turn.positions.count == 2, "positions go on")
    #expect(bench.hub.counters.fixesNotStored == 2 && bench.hub.counters.fixesPutOff == 2)
    #expect(bench.storedThrough() == base)
    bench.store(condition: .good)
    bench.turn([bench.fix(base + 3000)])
    bench.store()
    #expect(bench.storedThrough() == base + 999, "the two are still missing")
    // The client sends again what is newer than that: all of it is stored now, also what was published before.
    let again = Turn(loops: [bench.turn([bench.batch([base + 1000, base + 2000, base + 3000])])])
    #expect(again.all.isEmpty)
    let acks = Turn(loops: [bench.store()]).acks
    #expect(acks.map(\.batch?.accepted) == [2] && acks.map(\.batch?.duplicates) == [1], "the third has its record")
    #expect(bench.storedThrough() == base + 3000)
    #expect(Set(try bench.fixes().map { $0.measured.timestamp.milliseconds - base }) == [0, 1000, 2000, 3000])
  }

  @Test("A batch that comes again says nothing of the fixes that came live between its own, and were not stored")
  func interleaved() throws {
    let bench = try DurableBench()
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base)])
    bench.store(condition: .unavailable)
    bench.turn([bench.fix(base + 2000), bench.batch([base + 1000, base + 3000]), bench.fix(base + 4000)])
    bench.store(condition: .good)
    bench.turn([bench.batch([base + 1000, base + 3000])])
    #expect(Turn(loops: [bench.store()]).acks.map(\.batch?.accepted) == [2])
    #expect(bench.storedThrough() == base)
    bench.turn([bench.fix(base + 5000)])
    bench.store()
    #expect(bench.storedThrough() == base + 1999)
    bench.turn([bench.batch([base + 2000])])
    #expect(bench.storedThrough() == base + 1999, "it is on its way")
    bench.store()
    #expect(bench.storedThrough() == base + 3999)
    // A live one that comes again counts as well.
    bench.turn([bench.fix(base + 4000)])
    bench.store()
    #expect(bench.storedThrough() == base + 5000)
    #expect(
      try bench.fixes().map { $0.measured.timestamp.milliseconds - base } == [0, 1000, 3000, 5000, 2000, 4000])
  }

  @Test("Where there is no room for the times of what was not stored, nothing from there on counts as stored")
  func missedLimits() throws {
    var limits = HubLimits.roomy
    limits.missedFixesPerDriver = 3
    limits.missedFixes = 4
    let bench = try DurableBench(limits: limits)
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base)])
    bench.store(condition: .unavailable)
    for second in 1...5 as ClosedRange<Int64> { bench.turn([bench.fix(base + second * 1000)]) }
    #expect(
      bench.hub.drivers.marks.unrecorded.count == 3
        && bench.hub.counters.hits(.missedFixes) + bench.hub.counters.hits(.missedFixesPerDriver) == 2)
    bench.store(condition: .good)
    bench.turn([bench.batch((1...6).map { base + $0 * 1000 })])
    bench.store()
    #expect(bench.storedThrough() == base + 3999)
    #expect(bench.hub.drivers.marks.unrecorded.count == 0)
    #expect(Set(try bench.fixes().map { $0.measured.timestamp.milliseconds - base }).count == 7, "all are there")
    // The limit of all drivers together, which those that are forgotten give back.
    bench.store(condition: .unavailable)
    for second in 7...9 as ClosedRange<Int64> { bench.turn([bench.fix(base + second * 1000)]) }
    #expect(bench.hub.drivers.marks.unrecorded.count == 3)
    bench.store(condition: .good)
    bench.turn([.driverDisconnected(DurableBench.session)])
    for _ in 0..<(24 * 60 + 2) {
      bench.advance(seconds: 60)
      bench.turn([])
    }
    let isGone = bench.hub.drivers.find(id("D")) == nil
    #expect(isGone && bench.hub.drivers.marks.unrecorded.count == 0)
  }

  @Test("A restart loses nothing of a trip's way, and what is older than the newest stored fix is never published")
  func restart() throws {
    let first = try DurableBench()
    first.connect()
    var place = at(52.5, 13.4)
    let base = first.clock
    for second in 0..<60 as Range<Int64> {
      first.advance(seconds: 1)
      place = Globe.place(from: place, bearing: 40, meters: 10).place
      first.turn([first.fix(base + second * 1000, at: place)])
    }
    first.store()
    let foundTrip = first.hub.trips.find(id("T"))
    let trip = try #require(foundTrip)
    let progress = first.hub.trips[trip].progress
    #expect(progress.odometer.meters > 400 && progress.fixes == 60)

    let second = try DurableBench(reading: first.submitted, seed: 3, uptime: 60_000_000_000)
    #expect(try second.state() == first.state())
    #expect(try DurableBench(reading: first.snapshot(), seed: 4).state() == first.state())
    second.turn([second.subscribe("T")])
    second.store()
    second.connect()
    #expect(second.storedThrough() == base + 59_000)
    let later = Turn(loops: [second.turn([second.fix(base + 30_500), second.fix(base + 59_000)])])
    #expect(later.positions.isEmpty)
    #expect(second.hub.counters.fixesHistory == 1 && second.hub.counters.fixesDuplicate == 1)
    place = Globe.place(from: place, bearing: 40, meters: 200).place
    #expect(Turn(loops: [second.turn([second.fix(base + 79_000, at: place)])]).positions.count == 1)
    second.store()
    let foundAgain = second.hub.trips.find(id("T"))
    let again = try #require(foundAgain)
    let way = second.hub.trips[again].progress.odometer.meters
    #expect(way > progress.odometer.meters + 190, "the absence of the hub counts")
    let third = try DurableBench(reading: first.submitted + second.submitted, seed: 5)
    #expect(try third.state() == second.state())
  }

  @Test("A driver is forgotten a day after its last fix, however often the hub was started meanwhile")
  func forgotten() throws {
    let first = try DurableBench()
    first.connect()
    first.turn([first.fix(first.clock, trip: nil)])
    first.store()
    var records = first.submitted
    var bench = first
    for life in 0..<4 {
      for _ in 0..<(6 * 60 + 2) {
        bench.advance(seconds: 60)
        bench.turn([])
      }
      bench.store()
      if life > 0 { records += bench.submitted }
      let isGone = bench.hub.drivers.find(id("D")) == nil
      #expect(isGone == (life == 3))
      let uptime = bench.now.uptime
      bench = try DurableBench(reading: records, seed: UInt64(life) + 20, uptime: uptime)
    }
    let isGone = bench.hub.drivers.find(id("D")) == nil
    #expect(isGone)
  }

  @Test("Whatever is done at random: reading the records gives the same state, and so does a snapshot")
  func replay() throws {
    var random = SplitMix64(seed: 2026)
    let bench = try DurableBench()
    bench.connect()
    for round in 0..<400 {
      bench.advance(seconds: Double.random(in: 0.1...30, using: &random))
      let clock = bench.clock
      let trip = Bool.random(using: &random) ? "T\(Int.random(in: 0..<4, using: &random))" : nil
      let input: HubInput =
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5:
          bench.fix(
            clock + (round % 40 == 0 ? 3_000_000 : -Int64.random(in: 0...5000, using: &random)), trip: trip,
            at: at(52.5 + Double(round) * 1e-5, 13.4))
        case 5, 6: bench.batch((0..<20).map { clock - 20_000 + $0 * 1000 }, trip: trip)
        case 7: bench.batch([clock - 5000, clock - 4000], trip: trip, http: "E\(round % 7)")
        case 8: bench.status(Bool.random(using: &random) ? .available : .unavailable, tags: ["t\(round % 3)"])
        default: bench.move(.ops, "o", "T\(Int.random(in: 0..<4, using: &random))", .requested)
        }
      bench.turn([input])
      if round % 5 == 0 { bench.store() }
      if round % 50 == 0 {
        #expect(try DurableBench(reading: bench.submitted, seed: UInt64(round)).state() == bench.state())
        #expect(try DurableBench(reading: bench.snapshot(), seed: UInt64(round)).state() == bench.state())
      }
    }
    #expect(bench.hub.counters.fixesAccepted > 200)
    bench.turn([.driverDisconnected(DurableBench.session)])
    for _ in 0..<(40 * 24) {
      bench.advance(seconds: 3600)
      bench.turn([])
    }
    bench.store()
    let counters = bench.hub.shownCounters()
    #expect([HubTable.drivers, .trips, .channels, .events, .profiles].allSatisfy { counters.entries($0) == 0 })
    let left = try DurableBench(reading: bench.snapshot(), uptime: bench.now.uptime)
    #expect(try left.state() == bench.state(), "what is forgotten is in no later snapshot")
  }
}
