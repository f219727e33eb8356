// A phone, its car, its network and its hub, for as long as a test wants. Nothing runs on a thread or reads a clock.
// One seed makes one day.
import Glibc
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

/// One driver, one hub.
final class PhoneDay {
  private static let driver: DriverID = "d1"
  private static let origin: Int64 = 1_763_680_000_000

  private var random: SplitMix64
  private var milliseconds: Int64 = 0
  private let settings: HubSettings
  private let journal = HubJournalSupport.SimulatedDisk()
  private var hub: HubIncarnation?
  private var hubIsDownUntil: Int64 = 0
  private var starts: UInt64 = 0

  private let files = PhoneFiles()
  private var engine: HubEngine?
  private var far: SimulatedSocket?
  private var hasAnswered = false
  private let reader = MessageReader()
  private var output = ByteBuffer()
  private var isStalledUntil: Int64 = 0
  /// What the phone's clock is off by, in ms. Where it is lost, it says 1970; then its fixes have the satellites' time.
  private var clockOffset: Int64 = 0
  private var isClockLost = false

  private(set) var ride = PhoneRide()
  /// What the hub has written down.
  let history: PhoneHistory

  private(set) var measured: Set<Int64> = []
  /// Fixes that gave way, or that the hub refused.
  private(set) var lost = 0
  /// Fixes that a full disk had not taken when the app was killed: they may be lost.
  private(set) var inMemoryAtKill: Set<Int64> = []
  /// Fixes that gave way at a limit.
  var dropped: UInt64 { engine?.driver?.queue.dropped ?? 0 }
  /// Entries that were on their way, without an answer, when others of them gave way: by what had arrived until then.
  private var unanswered: [UInt64: Int] = [:]
  var onTheirWay: Int { unanswered.values.reduce(0, +) }
  /// The last entry that was ever on its way.
  private var sentThrough: UInt64 = 0

  private(set) var moves: [PhoneMove] = []
  private var ids: [Int64: MessageID] = [:]
  /// Moves whose id was another one in the next process of the app.
  private(set) var idsChanged = 0
  private(set) var movesRefused: [HubError] = []
  /// Moves that a full disk had not taken when the app was killed, by their times.
  private(set) var movesInMemoryAtKill: Set<Int64> = []
  /// Moves that were on their way when the connection ended.
  private(set) var movesCutOff = 0
  private var cutsAt: Int?
  private(set) var cuts = 0
  private(set) var kills = 0
  private(set) var restarts = 0
  private(set) var fullSpells = 0
  private(set) var stalls = 0
  private(set) var clockChanges = 0
  /// Seconds that the phone's clock showed 1970.
  private(set) var lostSeconds = 0
  private var seconds = 0

  init(seed: UInt64) throws {
    random = SplitMix64(seed: seed)
    var configuration = ServerConfiguration()
    configuration.loops = 1
    configuration.allowsDevelopmentCredentials = true
    configuration.sampling = .fixed(seconds: 1)
    configuration.journal = JournalConfiguration(directory: "")
    settings = HubSettings(server: configuration, journal: .init())
    history = PhoneHistory(journal)
    try startHub()
    try startApp()
  }

  private func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

  private var hubNow: Moment { moment(offset: 0) }
  private var phoneNow: Moment { moment(offset: isClockLost ? -PhoneDay.origin : clockOffset) }
  private func moment(offset: Int64) -> Moment {
    Moment(
      uptime: milliseconds * 1_000_000, timestamp: Timestamp(milliseconds: PhoneDay.origin + milliseconds + offset))
  }

  // MARK: The hub and the app

  private func startHub() throws {
    starts += 1
    hub = try HubIncarnation(
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
    let sampling = SamplingController(.standard)
    let part = DriverPart(try FixQueue(files), backlog: LatestSource(Backlog()), sampling: sampling)
    // Its battery goes up and down: so batches have all sizes.
    sampling.report(DeviceState(batteryLevel: Double.random(in: 0...1, using: &random), isCharging: oneIn(3)))
    let engine = HubEngine(
      session, tokens: TokenBroker(tokens), connection: LatestSource(.idle), driver: part, post: { _ in })
    engine.start(phoneNow)
    self.engine = engine
    for (report, id) in queuedMoves where ids[report.timestamp.milliseconds] != id { idsChanged += 1 }
  }

  /// The app's death: what is on the disk stays, what it has refused is counted.
  private func killApp() throws {
    kills += 1
    drop(losing: oneIn(2))
    if let part = engine?.driver {
      lost += Int(part.backlog.current.refused)
      for entry in part.queue.unsaved {
        switch entry.record {
        case .fix(let fix, _): inMemoryAtKill.insert(fix.timestamp.milliseconds)
        case .move(let report, _): movesInMemoryAtKill.insert(report.timestamp.milliseconds)
        }
      }
      // Nobody knows whether its moves have happened: the driver begins another one.
      if moves.last.map({ movesInMemoryAtKill.contains($0.time) }) == true { ride.giveUp() }
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
    if oneIn(300) {
      stalls += 1
      isStalledUntil = milliseconds + Int64.random(in: 1000...60_000, using: &random)
    }
    if oneIn(4000) { try killApp() }
    if let second = cutsAt, seconds >= second {
      cutsAt = nil
      if oneIn(2) { try killApp() } else { drop(losing: oneIn(2)) }
    }
    if oneIn(9000) { try endHub(for: Int.random(in: 0...1800, using: &random)) }
    if oneIn(7000) {
      fullSpells += 1
      files.room = Int.random(in: 0..<200, using: &random)
    } else if files.room != nil, oneIn(200) {
      files.room = nil
    }
    if oneIn(3000) {
      clockChanges += 1
      clockOffset = Int64.random(in: -30_000...30_000, using: &random)
    }
    if oneIn(isClockLost ? 600 : 7000) { isClockLost.toggle() }
    if isClockLost { lostSeconds += 1 }
    if hub == nil, milliseconds >= hubIsDownUntil { try startHub() }
    if let move = ride.second(&random) { self.move(move.trip, to: move.status) }
    measure()
    for _ in 0..<2 { try pass(500) }
  }

  /// The hub dies, and comes again after so many seconds.
  func endHub(for seconds: Int) throws {
    guard hub != nil else { return }
    restarts += 1
    hub = nil
    drop(losing: true)
    hubIsDownUntil = milliseconds + Int64(seconds) * 1000
  }

  private func measure() {
    let time = isClockLost ? hubNow.timestamp : phoneNow.timestamp
    guard let part = engine?.driver, measured.insert(time.milliseconds).inserted else { return }
    let (before, arrived) = (part.queue.dropped, part.queue.confirmedThrough)
    part.keep(ride.fix(at: time), trip: ride.trip, phoneNow)
    if part.queue.dropped > before { unanswered[arrived] = Int(max(sentThrough, arrived) - arrived) }
  }

  /// As `DriverHub.move` does.
  private func move(_ trip: Identifier, to status: TripStatus) {
    guard let engine else { return }
    var time = engine.timestamp(phoneNow).milliseconds
    while ids[time] != nil { time += 1 }
    let report = TripStatusReport(tripID: trip, status: status, timestamp: Timestamp(milliseconds: time))
    engine.move(report, phoneNow) { [unowned self] outcome in
      if case .failure(let error) = outcome, error.code != .stopped { movesRefused.append(error) }
    }
    moves.append(PhoneMove(trip: trip, status: status, time: time))
    ids[time] = queuedMoves.last?.id
    // Just behind some of them the connection ends, or the app, before the hub's answer is there.
    guard oneIn(6) else { return }
    isStalledUntil = milliseconds + 5000
    cutsAt = seconds + 2
  }

  /// The moves that the phone's disk has, or the app while the disk takes nothing.
  private var queuedMoves: [(report: TripStatusReport, id: MessageID)] {
    guard let queue = engine?.driver?.queue else { return [] }
    var records = queue.unsaved.map { ($0.number, $0.record) }
    for segment in queue.segments.reversed() where segment.last >= (queue.moves.first?.number ?? .max) {
      records = FixQueue.records(in: files.read(segment.name, from: 0, count: segment.bytes)).entries + records
    }
    return records.compactMap { number, record in
      if number > queue.confirmedThrough, case .move(let report, let id) = record { (report, id) } else { nil }
    }
  }

  private func pass(_ duration: Int64) throws {
    milliseconds += duration
    try turnPhone()
    guard let hub else { return }
    far?.peer?.arrive()
    hub.turn(0, hubNow)
    if hub.hasLookups {
      history.catchUp()
      hub.answerLookups { _, time in history.fixes[time] != nil }
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
      engine.reconcile(now)
      if let next = engine.driver?.queue.cursor.number, next > 0 { sentThrough = max(sentThrough, next - 1) }
      output.removeAll()
      let step = session.flush(now, into: &output)
      send()
      switch step {
      case .none: return
      case .connect:
        guard let socket = hub?.networks[0].connectToListener() else {
          engine.closed(session.transportEnded(now, failure: .connectFailed(errno: ECONNREFUSED)))
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
    guard let engine, let queue = engine.driver?.queue else { return }
    movesCutOff += queue.moves.count { $0.number < queue.cursor.number }
    engine.closed(engine.session.transportEnded(phoneNow))
  }

  // MARK: The end

  /// Everything works, until all has arrived.
  func finish() throws {
    files.room = nil
    isStalledUntil = 0
    if hub == nil { try startHub() }
    for _ in 0..<3600 where engine?.driver?.queue.isEmpty == false {
      for _ in 0..<2 { try pass(500) }
    }
    let part = try #require(engine?.driver)
    #expect(part.queue.isEmpty && part.queue.fixes == 0 && part.queue.damage == nil)
    lost += Int(part.queue.dropped + part.backlog.current.refused)
  }

  /// How often each fix is in the journal, by its time, as a hub reads it that starts now.
  func storedFixes() throws -> [Int64: Int] {
    var stored: [Int64: Int] = [:]
    try HubIncarnation.read(journal, settings, now: hubNow) { _, _, fix in
      if fix.disposition != .confirmed { stored[fix.measured.timestamp.milliseconds, default: 0] += 1 }
    }
    history.catchUp()
    #expect(history.fixes == stored)
    return stored
  }
}

extension PhoneDay: CustomStringConvertible {
  /// What has happened.
  var description: String {
    """
    \(measured.count) fixes, \(dropped) dropped, \(lost) counted as lost; \(moves.count) moves, \(movesCutOff) cut off; \
    \(cuts) cuts, \(stalls) delays, \(kills) app kills, \(restarts) hub restarts, \(fullSpells) full disks, \
    \(clockChanges) wrong clocks, \(lostSeconds) s of a lost clock
    """
  }
}
