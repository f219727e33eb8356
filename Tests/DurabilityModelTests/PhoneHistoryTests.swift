// A driver's phone through simulated days: the client's engine and its queue on one side, a whole hub with its journal
// on the other, and between them whatever happens to phones. At the end each fix is in the hub's history once, or
// counted.
//
// Nothing runs on a thread or reads a clock. One seed makes one day.
import Foundation
import HubBytes
import HubCore
import HubGateway
import HubGeo
import HubJournal
import HubJournalSupport
import HubMessages
import HubRuntime
import HubTestSupport
import HubTransport
import HubTransportSupport
import Testing

@testable import HubClientCore
@testable import HubDurabilityModel
@testable import LocationHubClient

@Suite struct PhoneHistoryTests {
  private static var hours: Int { ProcessInfo.processInfo.environment["HUB_TESTS"] == "brief" ? 2 : 24 }
  /// One, which takes as long as the other histories together; `PHONE_DAYS=` for more.
  private static var days: UInt64 { ProcessInfo.processInfo.environment["PHONE_DAYS"].flatMap { UInt64($0) } ?? 1 }

  @Test(
    "over a day of cuts, delays, app kills, full disks, hub restarts and a wrong clock each fix comes once, or counts",
    arguments: 1...PhoneHistoryTests.days)
  func day(seed: UInt64) throws {
    let day = try PhoneDay(seed: seed)
    for _ in 0..<Self.hours * 3600 { try day.second() }
    try day.finish()
    let stored = try day.storedFixes()
    let missing = day.measured.subtracting(stored.keys).subtracting(day.inMemoryAtKill)
    #expect(stored.values.allSatisfy { $0 == 1 }, "none is there twice")
    #expect(Set(stored.keys).isSubset(of: day.measured))
    #expect(
      missing.count == day.counted, "\(missing.count) of \(day.measured.count) are missing, \(day.counted) are counted")
    // A whole day has all that it is for.
    if Self.hours == 24 { #expect(day.cuts > 50 && day.kills > 5 && day.restarts > 2 && day.fullSpells > 2) }
    #expect(stored.count > day.measured.count * 9 / 10)
  }
}

/// One driver, one hub.
private final class PhoneDay {
  private static let driver: DriverID = "d1"
  private static let origin: Int64 = 1_763_680_000_000

  private var random: SplitMix64
  private var milliseconds: Int64 = 0
  private let settings: HubSettings
  private let journal = HubJournalSupport.SimulatedDisk()
  private var hub: HubLife?
  private var hubIsDownUntil: Int64 = 0
  private var starts: UInt64 = 0

  private let files = DayFiles()
  private var engine: HubEngine?
  private var far: SimulatedSocket?
  private var hasAnswered = false
  private let reader = MessageReader()
  private var output = ByteBuffer()
  private var isStalledUntil: Int64 = 0
  /// What the phone's clock is off by, in ms.
  private var clockOffset: Int64 = 0

  private(set) var measured: Set<Int64> = []
  /// Fixes that gave way, or that the hub refused.
  private(set) var counted = 0
  /// Fixes that a full disk had not taken when the app was killed: they may be lost.
  private(set) var inMemoryAtKill: Set<Int64> = []
  private(set) var cuts = 0
  private(set) var kills = 0
  private(set) var restarts = 0
  private(set) var fullSpells = 0
  private var seconds = 0

  init(seed: UInt64) throws {
    random = SplitMix64(seed: seed)
    var configuration = ServerConfiguration()
    configuration.loops = 1
    configuration.allowsDevelopmentCredentials = true
    configuration.sampling = .fixed(seconds: 1)
    configuration.journal = JournalConfiguration(directory: "")
    settings = HubSettings(server: configuration, journal: .init())
    try startHub()
    try startApp()
  }

  private func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

  private var hubNow: Moment { moment(offset: 0) }
  private var phoneNow: Moment { moment(offset: clockOffset) }
  private func moment(offset: Int64) -> Moment {
    Moment(
      uptime: milliseconds * 1_000_000, timestamp: Timestamp(milliseconds: PhoneDay.origin + milliseconds + offset))
  }

  // MARK: The hub and the app

  private func startHub() throws {
    starts += 1
    hub = try HubLife(
      settings, disk: journal, damage: .refuse, epoch: InlineText("e\(starts)")!, seed: starts, now: hubNow,
      drivers: [], { _, _, _ in })
  }

  private func startApp() throws {
    var options = HubOptions()
    options.seed = random.next()
    options.codec = oneIn(2) ? .binary : .json
    let tokens = TokenSource.development(.driver, PhoneDay.driver)
    let configuration = try options.configuration("ws://127.0.0.1:1", tokens)
    let session = ClientSession(configuration)
    let sampling = SamplingDesk(.standard)
    let part = DriverPart(try FixQueue(files), backlog: LatestSource(Backlog()), sampling: sampling)
    // Its battery goes up and down: so batches have all sizes.
    sampling.report(DeviceState(batteryLevel: Double.random(in: 0...1, using: &random), isCharging: oneIn(3)))
    let engine = HubEngine(
      session, tokens: TokenDesk(tokens), connection: LatestSource(.idle), driver: part, post: { _ in })
    engine.start(phoneNow)
    self.engine = engine
  }

  /// The app's death: what is on the disk stays, what it has refused is counted.
  private func killApp() throws {
    kills += 1
    drop(losing: oneIn(2))
    if let part = engine?.driver {
      counted += Int(part.backlog.current.refused)
      for case .fix(let fix, _) in part.queue.unsaved.map(\.record) {
        inMemoryAtKill.insert(fix.timestamp.milliseconds)
      }
    }
    engine = nil
    try startApp()
  }

  // MARK: A second

  func second() throws {
    seconds += 1
    if oneIn(400) {
      cuts += 1
      drop(losing: oneIn(2))
    }
    if oneIn(300) { isStalledUntil = milliseconds + Int64.random(in: 1000...60_000, using: &random) }
    if oneIn(4000) { try killApp() }
    if oneIn(9000) {
      restarts += 1
      hub = nil
      drop(losing: true)
      hubIsDownUntil = milliseconds + Int64.random(in: 0...1_800_000, using: &random)
    }
    if oneIn(7000) {
      fullSpells += 1
      files.room = Int.random(in: 0..<200, using: &random)
    } else if files.room != nil, oneIn(200) {
      files.room = nil
    }
    if oneIn(3000) { clockOffset = Int64.random(in: -30_000...30_000, using: &random) }
    if hub == nil, milliseconds >= hubIsDownUntil { try startHub() }
    measure()
    for _ in 0..<4 { try pass(250) }
  }

  /// The phone stands at a rank, so that all it measures can be true.
  private func measure() {
    let time = phoneNow.timestamp
    guard measured.insert(time.milliseconds).inserted else { return }
    let fix = Fix(coordinate: Coordinate(latitude: 48, longitude: 11)!, timestamp: time, accuracy: 5, speed: 0)
    engine?.driver?.keep(fix, trip: nil, phoneNow)
  }

  private func pass(_ duration: Int64) throws {
    milliseconds += duration
    try turnPhone()
    guard let hub else { return }
    far?.peer?.arrive()
    hub.turn(0, hubNow)
    if hub.hasLookups {
      let known = try storedFixes()
      hub.answerLookups { _, time in known[time] != nil }
    }
    _ = hub.write(hubNow)
    hub.turn(0, hubNow)
    try turnPhone()
  }

  // MARK: The phone's side

  private func turnPhone() throws {
    guard let engine else { return }
    let (session, now) = (engine.session, phoneNow)
    if let due = session.deadline, due <= now.uptime { session.timeReached(now) }
    if let due = engine.deadline, due <= now.uptime { engine.timeReached(now) }
    hear(engine)
    for _ in 0..<3 {
      engine.settle(now)
      output.removeAll()
      let step = session.flush(now, into: &output)
      send()
      switch step {
      case .none: return
      case .connect:
        guard let socket = hub?.networks[0].connectToListener() else {
          engine.closed(session.transportEnded(now, failure: .connectFailed(errno: ECONNREFUSED)), now)
          continue
        }
        far = socket
        session.transportConnected(now)
      case .disconnect, .abort: drop(losing: false)
      }
    }
  }

  private func send() {
    guard let far, !output.isEmpty else { return }
    // The window holds all that one flush writes.
    guard case .moved(output.count) = output.withBytes({ far.send($0) }) else { return drop(losing: false) }
  }

  private func hear(_ engine: HubEngine) {
    guard let far, milliseconds >= isStalledUntil else { return }
    let now = phoneNow
    far.arrive()
    var bytes = far.receiveAll()
    bytes.withUnsafeMutableBytes { bytes in
      engine.session.received(bytes, now: now, reader: reader) { envelope in
        if case .reply(.connected(let greeting)) = envelope.message {
          engine.opened(greeting, now)
        } else {
          engine.received(envelope, now)
        }
      }
    }
    if far.end != nil { drop(losing: false) }
  }

  /// The connection ends; what was on its way to the hub may be lost with it.
  private func drop(losing isLosing: Bool) {
    guard let socket = far else { return }
    far = nil
    if isLosing { socket.peer?.lose(keeping: 0) }
    let peer = socket.peer
    socket.close(reset: true)
    peer?.arrive()
    guard let engine else { return }
    engine.closed(engine.session.transportEnded(phoneNow), phoneNow)
  }

  // MARK: The end

  /// Everything works, until all has arrived.
  func finish() throws {
    files.room = nil
    isStalledUntil = 0
    if hub == nil { try startHub() }
    for _ in 0..<3600 where engine?.driver?.queue.isEmpty == false {
      for _ in 0..<4 { try pass(250) }
    }
    let part = try #require(engine?.driver)
    #expect(part.queue.isEmpty && part.queue.fixes == 0 && part.queue.damage == nil)
    counted += Int(part.queue.dropped + part.backlog.current.refused)
  }

  /// How often each fix is in the journal, by its time.
  func storedFixes() throws -> [Int64: Int] {
    var stored: [Int64: Int] = [:]
    try HubLife.read(journal, settings, now: hubNow) { _, _, fix in
      if fix.disposition != .confirmed { stored[fix.measured.timestamp.milliseconds, default: 0] += 1 }
    }
    return stored
  }
}

/// The phone's disk, which outlives the app.
private final class DayFiles: FixFiles {
  var room: Int?
  private let memory = MemoryFiles()

  func names() -> [String] { memory.names() }
  func size(_ name: String) -> Int { memory.size(name) }
  func read(_ name: String, from offset: Int, count: Int) -> [UInt8] { memory.read(name, from: offset, count: count) }

  func append(_ bytes: [UInt8], to name: String) throws(FileFailure) {
    let count = min(room ?? .max, bytes.count)
    if let room { self.room = room - count }
    memory.append(Array(bytes.prefix(count)), to: name)
    if count < bytes.count { throw FileFailure(call: "write", errno: ENOSPC) }
  }

  func replace(_ name: String, with bytes: [UInt8]) throws(FileFailure) {
    if let room, room < bytes.count { throw FileFailure(call: "write", errno: ENOSPC) }
    memory.replace(name, with: bytes)
  }

  func truncate(_ name: String, to size: Int) {
    if let room { self.room = room + max(0, memory.size(name) - size) }
    memory.truncate(name, to: size)
  }

  func sync(_ name: String) {}
  func remove(_ name: String) {
    if let room { self.room = room + memory.size(name) }
    memory.remove(name)
  }
  func erase() { memory.erase() }
}
