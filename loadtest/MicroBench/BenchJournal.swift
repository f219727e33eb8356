// A journal in a directory of its own, written by a hub that a benchmark drives and read as a start of `serve` reads
// it.
import Glibc
import HubBytes
import HubCore
import HubJournal
import HubMessages
import HubSystem

struct BenchJournal {
  /// What a start took.
  struct Start {
    var seconds: Double
    var processorSeconds: Double
    /// Bytes behind the snapshot.
    var bytes: Int
    /// What the process grew by while the hub was read.
    var residentMegabytes: Int

    var time: String { "\(seconds) s (\(processorSeconds) s of a processor)" }
  }

  let path: String
  private let limits = JournalLimits()
  private let hubLimits: HubLimits
  private let epoch = InlineText("bench")!
  private static let beginning: Int64 = 1_763_680_000_000

  init(drivers: Int, trips: Int) throws {
    hubLimits = HubLimits(
      drivers: drivers, trips: trips, channels: 2 << 20, eventsPerChannel: 256, events: 1 << 20, queryHits: 100,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 100, profiles: 100)
    var template = Array("\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/recovery-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw SystemError(call: "mkdtemp", errno: errno) }
    path = String(cString: made)
  }

  /// The time of a turn, in seconds after the journal began.
  static func moment(_ seconds: Int) -> Moment {
    Moment(
      uptime: Int64(seconds) * 1_000_000_000 + 1,
      timestamp: Timestamp(milliseconds: beginning + Int64(seconds) * 1000))
  }

  private func makeHub(_ now: Moment) -> Hub {
    Hub(
      limits: hubLimits, timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: 1, outlets: 1, now: now)
  }

  /// Writes what a hub makes of the turns that `next` gives until it gives nil; the journal's last group.
  func write(_ next: () -> (inputs: [HubInput], now: Moment)?) throws -> UInt64 {
    var writer = try Recovery(files: try DiskFiles(path: path), limits: limits).run(damage: .refuse) { _ in
    } group: { _, _ in
    }.takeWriter()
    var hub = makeHub(BenchJournal.moment(0))
    hub.attachJournal(limit: limits.groupBytes, startsEpoch: false, epoch: epoch)
    var outputs = HubOutputs()
    while let turn = next() {
      hub.process(turn.inputs, now: turn.now)
      var newest: UInt64 = 0
      var failure: JournalError?
      hub.takeRecords { records, ticket in
        newest = ticket
        do throws(JournalError) { _ = try writer.append(records, created: 0) } catch { failure = error }
        return true
      }
      if let failure { throw failure }
      hub.stored(through: newest, condition: .good)
      hub.drain(0, into: &outputs)
      outputs.removeAll()
    }
    return writer.next - 1
  }

  /// What a start does before it lets anyone in. `check` gets the hub.
  func read(at now: Moment, _ check: (borrowing Hub) -> Void) throws -> Start {
    ProcessFacts.trimMemory()  // of the hub that wrote
    let resident = ProcessFacts.residentBytes() ?? 0
    let began = ClockReading.read().uptimeNanoseconds
    let processor = ProcessFacts.threadCPUTimeNanoseconds()
    var hub = makeHub(now)
    let recovered = try Recovery(files: try DiskFiles(path: path), limits: limits).run(damage: .refuse) {
      (part) throws(InvalidPayload) in
      try load(part, &hub)
    } group: { (_, records) throws(InvalidPayload) in
      try load(records, &hub)
    }
    hub.finishLoading(at: now)
    let seconds = rounded(ClockReading.read().uptimeNanoseconds - began)
    let busy = rounded(ProcessFacts.threadCPUTimeNanoseconds() - processor)
    check(hub)
    let grown = (ProcessFacts.residentBytes() ?? 0) - resident
    return Start(
      seconds: seconds, processorSeconds: busy, bytes: recovered.report.bytes, residentMegabytes: grown / 1_000_000)
  }

  private func load(_ records: UnsafeRawBufferPointer, _ hub: inout Hub) throws(InvalidPayload) {
    do throws(RecordError) { try hub.load(records) } catch { throw InvalidPayload("\(error)") }
  }

  /// What maintenance does; the snapshot's bytes.
  @discardableResult
  func writeSnapshot(through last: UInt64) throws -> Int {
    let files = try DiskFiles(beside: path)
    var hub = makeHub(BenchJournal.moment(0))
    _ = try Recovery(files: files, limits: limits).read(through: last) { (part) throws(InvalidPayload) in
      try load(part, &hub)
    } group: { (_, records) throws(InvalidPayload) in
      try load(records, &hub)
    }
    var snapshot = try SnapshotWriter(files: files, limits: limits, through: last, created: 0)
    try hub.writeSnapshot { (part) throws(JournalError) in try snapshot.write(part) }
    let bytes = snapshot.bytes
    try snapshot.finish()
    return bytes
  }

  private func rounded(_ nanoseconds: Int64) -> Double { (Double(nanoseconds) / 1e7).rounded() / 100 }

  func removeAll() {
    do {
      let files = try DiskFiles(beside: path)
      for name in try files.names() { try files.remove(name) }
      rmdir(path)
    } catch {
      print("left behind: \(path): \(error)")
    }
  }
}
