// How long a start takes to read a journal of many trip records: once from segments alone, once from a snapshot.
//
//   hub-microbench recovery [RECORDS]      1,000,000 without; needs some 600 MB in TMPDIR or /tmp, and the like of memory
import Bytes
import Geo
import Glibc
import HubCore
import Journal
import Messages
import Transport

struct RecoveryBench {
  /// Each a record of the trip and one of the event.
  private static let moves: [TripStatus] = [.requested, .accepted, .driverEnRoute, .arrivedPickup]
  private static let turn = 500

  private let path: String
  private let trips: Int
  private let limits = JournalLimits()
  private let epoch = InlineText("bench")!

  init(records: Int) throws {
    trips = max(1, records / Self.moves.count)
    var template = Array("\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/recovery-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw SystemError(call: "mkdtemp", errno: errno) }
    path = String(cString: made)
  }

  private func makeHub() -> Hub {
    var limits = HubLimits(
      drivers: 1 << 20, trips: 1 << 20, channels: 1 << 21, eventsPerChannel: 256, events: 1 << 20, queryHits: 100,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 100, profiles: 100)
    limits.tripsPerDriver = 1000
    return Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: 1, loops: 1,
      now: Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_763_680_000_000)))
  }

  func run() throws {
    defer { removeAll() }
    let last = try write()
    let first = try read()
    print("\(trips * Self.moves.count) trip records in segments: \(first.bytes) bytes, read in \(first.time)")
    try writeSnapshot(through: last)
    print("\(trips) trips in a snapshot: read in \(try read().time)")
  }

  /// A journal of so many moves, made by a hub; its last group.
  private func write() throws -> UInt64 {
    var writer = try Recovery(files: try DiskFiles(path: path), limits: limits).run(damage: .refuse) { _ in
    } group: { _, _ in
    }.takeWriter()
    var hub = makeHub()
    hub.attachJournal(limit: limits.groupBytes, startsEpoch: false, epoch: epoch)
    var outputs = HubOutputs()
    for first in stride(from: 0, to: trips, by: Self.turn) {
      for status in Self.moves {
        let inputs = (first..<min(trips, first + Self.turn)).map { move($0, status) }
        hub.process(inputs, now: Moment(uptime: 1, timestamp: Timestamp(milliseconds: 1_763_680_000_000)))
        var newest: UInt64 = 0
        var failure: JournalError?
        hub.takeRecords { records, ticket in
          newest = ticket
          do throws(JournalError) { _ = try writer.append(records, created: 0) } catch { failure = error }
          return true
        }
        if let failure { throw failure }
        hub.stored(through: newest, condition: .good)
        hub.drain(loop: 0, into: &outputs)
        outputs.removeAll()
      }
    }
    return writer.next - 1
  }

  private func move(_ trip: Int, _ status: TripStatus) -> HubInput {
    let session = SessionRef(loop: 0, slot: 0, generation: 1)
    let driver = Identifier("driver-\(trip / 100)")!
    return .tripStatus(
      TripStatusInput(
        session: session, actor: Actor(role: .ops, id: driver), messageID: MessageID("m\(trip)-\(status.rawValue)")!,
        report: TripStatusReport(
          tripID: Identifier("trip-\(trip)")!, status: status,
          timestamp: Timestamp(milliseconds: 1_763_680_000_000),
          pickup: Coordinate(latitude: 52.5, longitude: 13.4), dropoff: Coordinate(latitude: 52.6, longitude: 13.5),
          driverID: driver, riderID: Identifier("rider-\(trip)")!),
        tripIsGranted: true))
  }

  /// What a start does before it lets anyone in: its time, and bytes behind the snapshot.
  private func read() throws -> (time: String, bytes: Int) {
    let began = ClockReading.read().uptimeNanoseconds
    let processor = ProcessFacts.threadCPUTimeNanoseconds()
    var hub = makeHub()
    let recovered = try Recovery(files: try DiskFiles(path: path), limits: limits).run(damage: .refuse) {
      (part) throws(Senseless) in
      try load(part, &hub)
    } group: { (_, records) throws(Senseless) in
      try load(records, &hub)
    }
    hub.finishLoading()
    precondition(hub.counters.trips == trips, "all trips are read")
    let seconds = rounded(ClockReading.read().uptimeNanoseconds - began)
    let busy = rounded(ProcessFacts.threadCPUTimeNanoseconds() - processor)
    return ("\(seconds) s (\(busy) s of a processor)", recovered.report.bytes)
  }

  private func load(_ records: UnsafeRawBufferPointer, _ hub: inout Hub) throws(Senseless) {
    do throws(RecordError) { try hub.load(records) } catch { throw Senseless("\(error)") }
  }

  private func writeSnapshot(through last: UInt64) throws {
    let files = try DiskFiles(beside: path)
    var hub = makeHub()
    _ = try Recovery(files: files, limits: limits).read(through: last) { _ in
    } group: { (_, records) throws(Senseless) in
      try load(records, &hub)
    }
    var snapshot = try SnapshotWriter(files: files, limits: limits, through: last, created: 0)
    try hub.writeSnapshot { (part) throws(JournalError) in try snapshot.write(part) }
    try snapshot.finish()
  }

  private func rounded(_ nanoseconds: Int64) -> Double { (Double(nanoseconds) / 1e7).rounded() / 100 }

  private func removeAll() {
    do {
      let files = try DiskFiles(beside: path)
      for name in try files.names() { try files.remove(name) }
      rmdir(path)
    } catch {
      print("left behind: \(path): \(error)")
    }
  }
}
