// How long it takes to read one driver's track out of a journal in which each of its fixes lies among those of others.
//
//   hub-microbench track [FIXES [DRIVERS]]      20,000 fixes of each of 50 drivers; a group has one of each
import Glibc
import HubBytes
import HubCore
import HubGeo
import HubJournal
import HubMessages
import HubSystem

struct TrackBench {
  let fixes: Int
  let drivers: Int
  private let path: String
  private let limits = JournalLimits()
  private let epoch = InlineText("bench")!
  private let origin: Int64 = 1_763_680_000_000

  init(fixes: Int, drivers: Int) throws {
    self.fixes = fixes
    self.drivers = drivers
    var template = Array("\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/track-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw SystemError(call: "mkdtemp", errno: errno) }
    path = String(cString: made)
  }

  func run() throws {
    defer { removeAll() }
    try write()
    let keys: RecordKeys = { DurableKeys.forEach(in: $0, $1) }
    let history = try JournalHistory(directory: path, limits: limits, keys: keys)
    print("\(fixes) fixes among those of \(drivers) drivers")
    print("  indexes made, and read: \(try milliseconds { try read(history) }) ms")
    print("  read: \(try milliseconds { try read(history) }) ms")
  }

  private func milliseconds(_ body: () throws -> Void) rethrows -> Double {
    let began = ClockReading.read().uptimeNanoseconds
    try body()
    return Double((ClockReading.read().uptimeNanoseconds - began) / 10_000) / 100
  }

  private func read(_ history: JournalHistory) throws {
    let driver = driver(0)
    var count = 0
    try history.forEachRecord(key: DurableKeys.fixes(ofDriver: driver)) { bytes in
      do throws(RecordError) { count += try FixesRecord(bytes).count } catch { return false }
      return true
    }
    precondition(count == fixes, "\(count) were found")
  }

  private func driver(_ number: Int) -> Identifier { Identifier("driver-\(number)")! }

  /// A group for each second, made by a hub; nothing waits for the disk.
  private func write() throws {
    var writer = try Recovery(files: HastyFiles(try DiskFiles(path: path)), limits: limits).run(damage: .refuse) { _ in
    } group: { _, _ in
    }.takeWriter()
    var hub = Hub(
      limits: HubLimits(
        drivers: drivers, trips: 10, channels: 10, eventsPerChannel: 10, events: 10, queryHits: 10,
        queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 10, profiles: 10),
      timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: 1, outlets: 1, now: moment(0))
    hub.attachJournal(limit: limits.groupBytes, startsEpoch: true, epoch: epoch)
    var outputs = HubOutputs()
    for second in 0..<fixes {
      var inputs = (0..<drivers).map { input($0, second) }
      if second == 0 { inputs = (0..<drivers).map { .driverConnecting(session($0), driver($0)) } + inputs }
      hub.process(inputs, now: moment(second))
      var failure: JournalError?
      hub.takeRecords { records, _ in
        do throws(JournalError) { _ = try writer.append(records, created: origin) } catch { failure = error }
        return true
      }
      if let failure { throw failure }
      hub.drain(0, into: &outputs)
      outputs.removeAll()
    }
  }

  private func session(_ driver: Int) -> SessionRef { SessionRef(outlet: 0, slot: UInt32(driver), generation: 1) }

  private func moment(_ second: Int) -> Moment {
    Moment(
      uptime: Int64(second) * 1_000_000_000, timestamp: Timestamp(milliseconds: origin + Int64(second) * 1000))
  }

  private func input(_ driver: Int, _ second: Int) -> HubInput {
    let now = moment(second)
    let place = Coordinate(latitude: Double(second) * 1e-4 + 10, longitude: Double(driver) * 0.1)!
    return .fix(
      FixInput(
        session: session(driver), messageID: MessageID("m")!, sent: now.timestamp, received: now,
        update: LocationUpdate(fix: Fix(coordinate: place, timestamp: now.timestamp, accuracy: 5, speed: 11)),
        tripIsGranted: true))
  }

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

/// A directory in which nothing is made stable: for journals that are there to be read.
private final class HastyFiles: JournalFiles {
  private let files: DiskFiles

  init(_ files: DiskFiles) { self.files = files }

  var path: String { files.path }
  var isAtPath: Bool { files.isAtPath }
  func freeBytes() -> UInt64? { files.freeBytes() }
  func names() throws(SystemError) -> [String] { try files.names() }
  func about(_ name: String) throws(SystemError) -> JournalFileFacts? { try files.about(name) }
  func read(_ name: String) throws(SystemError) -> [UInt8] { try files.read(name) }
  func openForReading(_ name: String) throws(SystemError) -> (any ReadableJournalFile)? {
    try files.openForReading(name)
  }
  func open(_ name: String) throws(SystemError) -> any JournalFile { HastyFile(try files.open(name)) }
  func rename(_ name: String, to newName: String) throws(SystemError) { try files.rename(name, to: newName) }
  func remove(_ name: String) throws(SystemError) { try files.remove(name) }
  func synchronize() {}
}

private final class HastyFile: JournalFile {
  private let file: any JournalFile

  init(_ file: any JournalFile) { self.file = file }

  var size: Int { file.size }
  var isLinked: Bool { file.isLinked }
  func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) { try file.append(bytes) }
  func truncate(to size: Int) throws(SystemError) { try file.truncate(to: size) }
  func synchronize() {}
}
