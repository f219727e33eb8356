// A small world with a hub in it: drivers, riders and ops at the far end of connections that break, and a disk that
// fails. One seed makes one history. What may happen is chosen step by step; what must hold is checked by the clients
// as they hear (Client.swift) and over all of them (Ledger.swift). The idea is FoundationDB's and TigerBeetle's
// simulator.
//
// Nothing in here runs on a thread or reads a clock: a turn of a loop, a write of the journal and the arrival of some
// bytes are calls, made in an order that the seed decides.
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
import HubWebSocket

struct World: ~Copyable {
  /// What this history is about, besides what all are.
  enum Theme: Equatable {
    case plain
    /// Few events are kept.
    case tight
    /// Days pass: trips and drivers are forgotten.
    case days
    /// The disk spoils what lies on it.
    case damage
  }

  static let trips = 4
  static let drivers = 2
  static let riders = 2
  static let fences = 2
  /// Trips' channels, then drivers', then fences'.
  static let topics = trips + drivers + fences
  static let clientCount = drivers + riders + 1
  static let ops = clientCount - 1
  /// Degrees of latitude between one driver and the next: 22 km.
  static let degreesApart = 0.2
  /// Of clients, then of everybody else.
  static let addresses = (1...clientCount + 1).map { SocketAddress(host: "127.0.0.\($0)", port: 1)! }

  let theme: Theme
  let settings: HubSettings
  let disk = SimulatedDisk()
  let reader = MessageReader()
  /// What compresses for the clients that want it; nil where none does.
  let compression: MessageCompression?
  var random: SplitMix64
  var incarnation: HubIncarnation?
  var clients: [Client] = []
  /// Connections that their client let go of, and whose hub has not noticed.
  var abandoned: [Link] = []
  var visitors: [Visitor] = []
  var ledger = Ledger(topics: World.topics)
  var fixes: [Fix] = []
  /// By driver: times of the fixes that were read back at a start.
  var storedFixes = [Set<Int64>](repeating: [], count: World.drivers)
  /// By driver: its published fixes in the journal, with their groups, in order.
  var storedPlaces = [[(group: UInt64, fix: StoredFix)]](repeating: [], count: World.drivers)
  /// Fixes were published while nothing could be stored: a driver may be known farther on than its newest stored fix.
  var hasUnstoredFixes = false
  /// By client: the move that was acked last.
  var lastAcked = [Int?](repeating: nil, count: World.clientCount)
  var lastAckedBatch = [Int?](repeating: nil, count: World.clientCount)
  var subjects: [Subject] = []
  /// Milliseconds since the beginning.
  var time: Int64 = 0
  /// When the machine was switched on last, and when loops had their last turns.
  var boot: Int64 = 0
  var lastTurn: Int64 = 0
  var starts: UInt64 = 0
  var outage = Outage.none
  var reach = HistoryReach()
  var diary: Diary

  /// What a message with a number was about.
  enum Subject {
    case kept(Client.Kept.Subject)
    case subscribe(Int)
    case other
  }

  /// How the incarnation that is under way will end, or has.
  enum Outage {
    case none
    /// The process dies during a call to the disk.
    case kill
    /// The machine does.
    case power
  }

  init(seed: UInt64, diary: Diary) {
    random = SplitMix64(seed: seed)
    self.diary = diary
    theme = seed % 8 == 0 ? .tight : seed % 8 == 1 ? .days : seed % 8 < 4 ? .damage : .plain
    let isTight = theme == .tight
    var journal = JournalLimits()
    journal.segmentBytes = [300, 1500, 20_000][Int(seed / 8 % 3)]
    journal.groupBytes = 16_384
    journal.pendingBytes = seed / 24 % 2 == 0 ? 16_384 : 100_000
    let limits = HubLimits(
      drivers: 8, trips: 8, channels: 24, eventsPerChannel: isTight ? 3 : 64, events: isTight ? 10 : 400, queryHits: 4,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 8, profiles: 4)
    compression = seed / 96 % 4 == 1 ? .shared() : nil
    settings = HubSettings(
      server: World.configuration(limits, journal, loops: 1 + Int(seed / 48 % 2)), journal: journal)
    for number in 0..<World.clientCount {
      let (role, name): (HubMessages.Role, Int) =
        number < World.drivers
        ? (.driver, number) : number == World.ops ? (.ops, 0) : (.rider, number - World.drivers)
      var client = Client(
        number: number, actor: HubCore.Actor(role: role, id: Names.id("\(role.name)-\(name)")), topics: World.topics,
        trips: World.trips)
      client.clockOffset = Int64.random(in: -500...500, using: &random) * 100
      clients.append(client)
    }
    for trip in 0..<World.trips { clients[World.ops].views[trip].isWanted = true }
    for fence in 0..<World.fences { clients[World.ops].views[World.trips + World.drivers + fence].isWanted = true }
    for driver in 0..<World.drivers { clients[driver].views[World.trips + driver].isWanted = true }
  }

  /// A server that is quick to lose patience, and holds little.
  private static func configuration(_ hub: HubLimits, _ journal: JournalLimits, loops: Int) -> ServerConfiguration {
    var configuration = ServerConfiguration()
    configuration.loops = loops
    configuration.allowsDevelopmentCredentials = true
    configuration.heartbeatInterval = 10
    configuration.limits.hub = hub
    configuration.limits.messageBytes = 1500
    configuration.limits.outboxBytesPerSession = 1500
    configuration.limits.rateWarningSeconds = 3
    configuration.limits.rateCloseSeconds = 8
    configuration.journal = JournalConfiguration(directory: "")
    configuration.journal?.limits = journal
    return configuration
  }

  // MARK: Chance and time

  /// True once in `count` times.
  mutating func oneIn(_ count: Int) -> Bool { pick(count) == 0 }
  mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  var now: Moment {
    Moment(uptime: (time - boot) * 1_000_000, timestamp: Timestamp(milliseconds: Names.origin + time))
  }

  var terms: Client.Terms { Client.Terms(forgets: theme == .tight || theme == .days) }

  // MARK: Steps

  /// One thing happens.
  mutating func step() throws(Violation) {
    time += Int64(1 + pick(40)) * 10
    // A loop that is late says that it stalled: that is for `passTime`.
    if time - lastTurn > 1500 { try turn() }
    switch pick(100) {
    case 0..<36: act(pick(World.clientCount))
    case 36..<46: if let link = anyLink() { arrive(link, pick(link.upward + 2)) }
    case 46..<49: visit()
    case 49..<58: if let incarnation { try turn(pick(incarnation.networks.count)) }
    case 58..<66: write()
    case 66..<76: if let link = anyLink() { try hear(link, pick(link.downward + 2)) }
    case 76..<86: try flow()
    case 86, 87: slowDown()
    case 88..<92: try cut()
    case 92: notice()
    case 93: lookUp()
    case 94: if oneIn(2) { try passTime() } else { keep() }
    default: try fail()
    }
    if incarnation == nil, oneIn(4) { try start() }
  }

  /// Everything moves on by one, as it does in a hub that is not busy.
  mutating func flow() throws(Violation) {
    for link in links() { arrive(link, .max) }
    try turn()
    write()
    try turn()
    if incarnation?.hasLookups == true {
      lookUp()
      try turn()
    }
    for link in links() where !link.isSlow { try hear(link, .max) }
    try hearVisitors()
  }

  /// Connections of clients, in their order.
  func links() -> [Link] { clients.compactMap(\.link) }

  private mutating func anyLink() -> Link? { links().randomElement(using: &random) }

  /// Time passes: in a running world, or with a suspended machine.
  private mutating func passTime() throws(Violation) {
    let seconds: Int
    switch theme {
    case .days where oneIn(3): seconds = 86_000 + pick(1500)
    case .plain, .tight, .days, .damage: seconds = pick(90)
    }
    guard seconds < 90, oneIn(2) else {
      reach[.suspensions] += 1
      time += Int64(seconds) * 1000
      return
    }
    for _ in 0..<seconds {
      time += 1000
      try flow()
    }
  }

  // MARK: The hub

  mutating func note(_ fix: StoredFix, of driver: Identifier) {
    guard let number = clients.firstIndex(where: { $0.actor.id == driver }) else { return }
    storedFixes[number].insert(fix.measured.timestamp.milliseconds)
  }

  /// All fixes behind the group `snapshot` were read: what was known of these groups before gives way.
  mutating func note(_ read: [ReadFix], behind snapshot: UInt64) {
    for driver in storedPlaces.indices { storedPlaces[driver].removeAll { $0.group > snapshot } }
    for found in read {
      note(found.fix, of: found.driver)
      guard found.fix.position != nil, let number = clients.firstIndex(where: { $0.actor.id == found.driver }) else {
        continue
      }
      storedPlaces[number].append((found.group, found.fix))
    }
  }

  typealias ReadFix = (group: UInt64, driver: Identifier, fix: StoredFix)

  /// Maintenance makes a snapshot, or the hub ends in the attempt.
  mutating func keep() {
    guard let incarnation else { return }
    var rule = RetentionRule()
    if oneIn(2) { rule.milliseconds = 0 }
    var read: [ReadFix] = []
    do throws(JournalError) {
      if let snapshot = try incarnation.keep(disk, rule, now: now, { read.append(($0, $1, $2)) }) {
        note(read, behind: snapshot)
      }
      reach[.snapshots] += 1
      diary.note("keep")
    } catch {
      // What it has read was stored, whether or not the snapshot is complete, and it may be deleted by now.
      if let first = read.first { note(read, behind: first.group - 1) }
      diary.note("keep: \(error)")
      if disk.isDead { end() }
    }
  }

  /// The reader's thread answers what the hub asks its journal.
  mutating func lookUp() {
    guard let incarnation, incarnation.hasLookups else { return }
    for (name, file) in disk.files where name.hasSuffix(".segment") {
      StoredSegment.forEachGroup(in: file.bytes) { group in
        StoredSegment.forEachFix(in: group) { driver, fix in note(fix, of: driver) }
      }
    }
    incarnation.answerLookups { driver, time in isStored(time, of: driver) }
    reach[.lookups] += 1
  }

  private func isStored(_ time: Int64, of driver: Identifier) -> Bool {
    clients.firstIndex { $0.actor.id == driver }.map { storedFixes[$0].contains(time) } ?? false
  }

  /// A turn of each loop.
  mutating func turn() throws(Violation) {
    lastTurn = time
    for loop in 0..<settings.server.loops { try turn(loop) }
  }

  /// A turn of one loop.
  mutating func turn(_ loop: Int) throws(Violation) {
    guard let incarnation else { return }
    let refused = incarnation.counters.refusedForStorage
    let stores = incarnation.stores
    incarnation.turn(loop, now)
    let counters = incarnation.counters
    if counters.fixesNotStored > 0 { hasUnstoredFixes = true }
    // Only the first loop has the hub in each of its turns.
    guard !stores, loop == 0 else { return }
    // Who waits for the disk must not wait for somebody to make room on it.
    guard counters.answersHeld == 0 else {
      throw Violation(text: "\(counters.answersHeld) answers wait for a disk that takes nothing")
    }
    if counters.refusedForStorage > refused { reach[.refusedWhenFull] += 1 }
  }

  /// One group is written, or the hub ends in the attempt.
  mutating func write() {
    guard let incarnation else { return }
    let progress = incarnation.write(now)
    switch progress {
    case .idle: break
    case .stored: reach[.groups] += 1
    case .full(.gone): reach[.gone] += 1
    case .full: reach[.full] += 1
    case nil: if !disk.isDead { reach[.stopped] += 1 }
    }
    diary.note("write \(String(describing: progress))")
    if disk.isDead { end() }
  }

  /// So many bytes reach the hub's machine, and the end behind the last.
  func arrive(_ link: Link, _ count: Int) { link.far.peer?.arrive(count) }
}
