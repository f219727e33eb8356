// The journal is asked whether it has a driver's old fixes.
import HubBytes
import HubGeo
import HubJournalSupport
import HubMessages
import HubSystem
import Testing

@testable import HubCore
@testable import HubJournal
@testable import HubRuntime

@Suite struct LookupTests {
  private let driver = Identifier("d1")!
  private let limits = JournalLimits()

  private func moment(_ second: Int64) -> Moment {
    Moment(uptime: second * 1_000_000_000, timestamp: Timestamp(milliseconds: 1_700_000_000_000 + second * 1000))
  }

  /// A journal with so many fixes of a driver, a second and a record each.
  private func journal(_ fixes: Int64) throws -> JournalHistory { try journal(fixes, limits).0 }

  private func journal(_ fixes: Int64, _ limits: JournalLimits) throws -> (JournalHistory, SimulatedDisk) {
    let disk = SimulatedDisk()
    var hub = Hub(
      limits: HubLimits(), timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("e")!, seed: 1,
      outlets: 1, now: moment(0))
    let recovered = try disk.recover(limits, damage: .refuse, into: &hub)
    hub.finishLoading(at: moment(0))
    hub.attachJournal(limit: limits.groupBytes / 2, startsEpoch: true, epoch: InlineText("e")!)
    var writer = recovered.takeWriter()
    let session = SessionRef(outlet: 0, slot: 0, generation: 1)
    hub.handle([.driverConnecting(session, driver)], now: moment(0))
    for second in 0..<fixes {
      let now = moment(second)
      let place = Coordinate(latitude: 48 + Double(second) * 1e-4, longitude: 11)!
      let fix = Fix(coordinate: place, timestamp: now.timestamp, accuracy: 5)
      let update = LocationUpdate(tripID: nil, fix: fix)
      hub.handle(
        [
          .fix(
            FixInput(
              session: session, messageID: MessageID(number: UInt64(second)), sent: now.timestamp, received: now,
              update: update, tripIsGranted: false))
        ], now: now)
      hub.endTurn()
      var group: [UInt8] = []
      hub.takeRecords { records, _ in
        group += Array(records)
        return true
      }
      _ = try group.withUnsafeBytes { (bytes) throws(JournalError) in
        try writer.append(bytes, created: now.timestamp.milliseconds)
      }
    }
    let history = JournalHistory(files: disk, limits: limits, keepsIndexes: false) { DurableKeys.forEach(in: $0, $1) }
    return (history, disk)
  }

  private func known(_ seconds: [Int64], in journal: JournalHistory, atMost records: Int) -> [Int64] {
    let times = seconds.map { moment($0).timestamp.milliseconds }
    let access = HistoryAccess(.silent, recordsPerLookup: records, isStopping: { false }, opening: { journal })
    let found = access.known(HistoryLookup(ticket: 1, driverID: driver, times: times))
    return found.map { ($0 - 1_700_000_000_000) / 1000 }
  }

  @Test("What the hub asks for a driver's batch is answered before the tracks that others wait for")
  func first() throws {
    let reader = HistoryReader(questions: 4, answerBytes: 1)
    let consultation = Consultation.history(reader, waking: try Waker())
    var hub = Hub(
      limits: HubLimits(), timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("e")!, seed: 1,
      outlets: 1, now: moment(0))
    hub.attachJournal(limit: limits.groupBytes / 2, startsEpoch: true, epoch: InlineText("e")!, looksUp: true)
    let session = SessionRef(outlet: 0, slot: 0, generation: 1)
    hub.handle([.driverConnecting(session, driver)], now: moment(0))
    func fix(_ second: Int64) -> Fix {
      Fix(coordinate: Coordinate(latitude: 48, longitude: 11)!, timestamp: moment(second).timestamp, accuracy: 5)
    }
    let (live, batch) = (LocationUpdate(tripID: nil, fix: fix(100)), LocationBatch(fixes: [.success(fix(50))]))
    hub.handle(
      [
        .fix(
          FixInput(
            session: session, messageID: MessageID(number: 1), sent: moment(100).timestamp, received: moment(100),
            update: live, tripIsGranted: false)),
        .batch(
          BatchInput(
            session: session, driverID: nil, messageID: MessageID(number: 2), sent: moment(100).timestamp,
            received: moment(100), batch: batch, tripIsGranted: false)),
      ], now: moment(100))
    hub.endTurn()
    var last: UInt64 = 0
    hub.takeRecords { _, ticket in
      last = ticket
      return true
    }
    hub.stored(through: last, condition: .good)
    #expect(reader.ask(for: .rider) { _ in reader.close() })
    consultation.ask(&hub)
    #expect(reader.counters.asked == 2)
    reader.run(JournalConfiguration(directory: "/nowhere"), .silent)
    _ = hub.drain(0)
    #expect(hub.shownCounters().fixesWaiting == 1)
    consultation.answer(&hub, now: moment(101))
    hub.endTurn()
    #expect(hub.shownCounters().fixesWaiting == 0)
  }

  @Test("A track ends a day behind its trip, and is refused where it takes more records than it may")
  func track() throws {
    let journal = try journal(40)
    func points(ended: Int64?, atMost records: Int) throws(HistoryError) -> Int {
      let created = moment(ended ?? 0).timestamp
      var trip = TripReport(
        tripID: Identifier("t1")!, status: .completed, timestamp: created, created: created, updated: created)
      (trip.driverID, trip.ended) = (driver, ended.map { moment($0).timestamp })
      let access = HistoryAccess(.silent, recordsPerTrack: records, isStopping: { false }, opening: { journal })
      defer { #expect((11...40).contains(access.recordsRead), "what was read is counted") }
      return try access.track(of: trip, .raw, limit: 1000, rules: HubLimits().tracking).points.count
    }
    #expect(try points(ended: nil, atMost: 40) == 0, "no fix names it")
    #expect(throws: HistoryError.tooManyFixes(limit: 1000)) { try points(ended: nil, atMost: 39) }
    #expect(try points(ended: 10 - 25 * 3600, atMost: 11) == 0, "it ended long before most of them")
  }

  @Test("Of the records from long after its trip a track skips so many, since the hub's clock may have been ahead")
  func behindTrack() throws {
    let journal = try journal(11 + Int64(RuntimeLimits.recordsBehindTrack) + 5)
    let ended = moment(10 - 25 * 3600).timestamp
    var trip = TripReport(
      tripID: Identifier("t1")!, status: .completed, timestamp: ended, created: ended, updated: ended)
    (trip.driverID, trip.ended) = (driver, ended)
    let access = HistoryAccess(.silent, isStopping: { false }, opening: { journal })
    #expect(try access.track(of: trip, .raw, limit: 1000, rules: HubLimits().tracking).points == [])
    #expect(access.recordsRead == 11 + RuntimeLimits.recordsBehindTrack)
  }

  @Test("What is in the journal is found; past so many records of the driver a fix counts as new")
  func bounded() throws {
    let journal = try journal(40)
    #expect(known([3, 20, 39, 50], in: journal, atMost: 1000) == [3, 20, 39])
    #expect(known([3, 20, 39, 50], in: journal, atMost: 30) == [3, 20])
  }

  @Test("What is damaged in an old segment is missing in an answer, which comes all the same")
  func damaged() throws {
    var small = limits
    small.segmentBytes = 200
    let (journal, disk) = try journal(40, small)
    let second = try #require(disk.files.keys.filter { $0.hasSuffix(".segment") }.sorted().dropFirst().first)
    disk.files[second]!.bytes[FileHeader.size + GroupHeader.size + 3] ^= 1
    let found = known(Array(0..<40), in: journal, atMost: 1000)
    #expect(found.count < 40 && found.contains(0) && found.contains(39), "\(found)")
    let access = HistoryAccess(.silent, isStopping: { false }, opening: { journal })
    let created = moment(0).timestamp
    var trip = TripReport(
      tripID: Identifier("t1")!, status: .completed, timestamp: created, created: created, updated: created)
    trip.driverID = driver
    #expect(try access.track(of: trip, .raw, limit: 1000, rules: HubLimits().tracking).points == [])
    #expect(try access.trip(Identifier("t1")!) == nil, "none is there, and none can be")
  }
}
