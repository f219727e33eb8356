// One thread's share of the load: thousands of WebSocket connections on one event loop, each fix sent at the moment it
// is due (see Schedule.swift).
//
// Files: Generator+Connecting (sessions, their ends), +Sending (what is due), +Receiving (what comes), +Joining
// (storms, and who leaves and comes again), +City (simulated drives and bookings), +Areas (who watches a part of the
// map), +Fleet (what only has to be there).
import HubBytes
import HubMessages
import HubSimulation
package import HubSystem
package import HubTransport
import HubWebSocket

/// Which part of a scenario's sessions a thread has: those with number ≡ index (mod count). A driver's riders are with
/// it.
package struct Share: Sendable {
  let index: Int
  let count: Int

  package init(index: Int = 0, of count: Int = 1) {
    self.index = index
    self.count = count
  }

  /// How many of `total` are in it.
  func size(of total: Int) -> Int { max(0, (total - index + count - 1) / count) }
  func number(_ local: Int) -> Int { local * count + index }
  func local(_ number: Int) -> Int { number / count }
}

/// Belongs to the thread that runs it.
package final class Generator: EventLoopDelegate {
  typealias PeerPointer = UnsafeMutablePointer<Peer>

  package let loop: EventLoop
  package let scenario: Scenario
  let share: Share
  let address: SocketAddress
  let tls: ServerTrust?
  package var counts = Counts()
  /// By the connection's slot.
  var table: [PeerPointer?] = []
  var peers: [PeerPointer] = []
  /// By their number in this share.
  var drivers: [PeerPointer] = []
  /// Of each driver in this share, its riders; used in the city only.
  var riders: [[PeerPointer]] = []
  var slow: [PeerPointer] = []
  var storm: [PeerPointer] = []
  var churners: [PeerPointer] = []
  var watchers: [PeerPointer] = []
  /// To be cut off, the last first.
  var leaving: [PeerPointer] = []
  /// To be connected, the last first.
  var waiting: [PeerPointer] = []
  var connecting = 0
  /// Nothing listens where the hub should.
  var isRefused = false
  var ready = 0
  var schedule: Schedule?
  package var isSending = false
  /// The next that is due: a driver of this share, and the number of its fix.
  var cursor = 0
  var round = 0
  var nextChurn = 0
  var hasStormed = false
  var city: City?
  var cars: [SimulatedDriver] = []
  let watched: WatchedCell
  /// The newest that any of the watchers has seen.
  var newestTick = -1
  let frameLimits = FrameLimits()
  var inflater = Inflater(takesContextOver: false)
  /// For sessions that speak binary: what reads the JSON that the load is made of, and where it is written.
  let messages = MessageReader()
  var jsonText = ByteBuffer()
  /// When a position or an ack came last (uptime, ns).
  var lastCame: Int64 = 0
  /// The highest latency since `takeWorst`, µs.
  var worst: UInt64 = 0
  /// CPU of this thread at the window's ends (ns).
  private var cpuAtBegin: Int64?
  private var cpuAtEnd: Int64?

  /// What is done in one turn of each thing that a storm brings thousands of: sockets read, connections begun and cut
  /// off. Between turns fixes are sent when they are due; else the load would be late by itself, and those who stayed
  /// with it.
  static let stepsPerTurn = 64

  package init(_ scenario: Scenario, address: SocketAddress, tls: ServerTrust?, share: Share = Share())
    throws(SystemError)
  {
    var limits = EventLoopLimits()
    limits.maximumConnections = 1 << 20
    limits.eventsPerTurn = Generator.stepsPerTurn
    loop = try EventLoop(limits: limits)
    self.scenario = scenario
    self.share = share
    self.address = address
    self.tls = tls
    watched = WatchedCell(characters: scenario.cellCharacters)
    loop.delegate = self
    enlist()
    if scenario.bookings { buildCity() }
  }

  deinit {
    for peer in peers {
      peer.deinitialize(count: 1)
      peer.deallocate()
    }
  }

  /// Everybody of this share. Those who are there from the beginning wait to be connected.
  private func enlist() {
    for local in 0..<share.size(of: scenario.drivers) {
      let number = share.number(local)
      drivers.append(add(.driver, number))
      riders.append((0..<scenario.ridersPerTrip).map { add(.rider, number, index: $0) })
    }
    for local in 0..<share.size(of: scenario.idle) { _ = add(.idle, share.number(local)) }
    slow = (0..<share.size(of: scenario.slow)).map { add(.slow, share.number($0)) }
    for peer in slow { peer.pointee.lastNumbers = Array(repeating: -1, count: scenario.drivers) }
    churners = (0..<share.size(of: scenario.churners)).map { add(.churner, share.number($0)) }
    watchers = (0..<share.size(of: scenario.watchers)).map { add(.watcher, share.number($0)) }
    if scenario.fleet > 0 {
      for local in 0..<Generator.fleetConnections {
        add(.fleet, share.number(local)).pointee.registered = share.number(local)
      }
    }
    storm = (0..<share.size(of: scenario.storm)).map { add(.storm, share.number($0)) }
    let later = scenario.cut ? 0 : storm.count
    waiting = peers.dropLast(later).reversed()
  }

  private func add(_ kind: PeerKind, _ number: Int, index: Int = 0) -> PeerPointer {
    let peer = PeerPointer.allocate(capacity: 1)
    peer.initialize(to: Peer(kind, number, index: index, place: share.number(peers.count)))
    peers.append(peer)
    return peer
  }

  // MARK: Turns

  /// One turn: waits until something comes or is due, at most 5 ms, and handles it.
  package func turn() {
    let now = ClockReading.read().uptimeNanoseconds
    loop.sleepPrecisely(until: min(nextDue ?? .max, now + 5_000_000))
    loop.runTurn(timeoutMilliseconds: 0)
  }

  package func turn(seconds: Double) {
    let end = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
    while ClockReading.read().uptimeNanoseconds < end { turn() }
  }

  package func begin(_ schedule: Schedule) {
    self.schedule = schedule
    counts.parts = Array(repeating: LatencyHistogram(), count: schedule.partCount)
    // It may break as the load ends, and not be seen here.
    counts.joinsDue = storm.count
    isSending = true
  }

  // MARK: Phases of a load that goes on

  /// Measures anew: the latency of what is due from now (uptime, ns) on.
  package func beginPhase(at now: Int64) {
    counts.parts = [LatencyHistogram()]
    counts.lateness.reset()
    schedule = schedule?.measuring(now..<Int64.max)
  }

  /// What is due from now on is not measured; what was due before still is when it comes.
  package func endPhase(at now: Int64) {
    guard let begin = schedule?.window.lowerBound else { return }
    schedule = schedule?.measuring(begin..<max(begin, now))
  }

  /// Positions that were due in the phase and have not come.
  package var missingOfPhase: UInt64 {
    let (expected, come) = (counts.lateness.count * UInt64(scenario.ridersPerTrip), counts.latency.count)
    return expected > come ? expected - come : 0
  }

  /// The times at which this share has something to do.
  private var nextDue: Int64? {
    if !leaving.isEmpty || !waiting.isEmpty && connecting < maximumConnecting { return 0 }
    guard isSending, let schedule else { return nil }
    if scenario.lockstep > 0 { return counts.delivered >= counts.expected ? 0 : nil }
    var next = Int64.max
    if !drivers.isEmpty { next = schedule.due(share.number(cursor), round) }
    if !hasStormed, !storm.isEmpty { next = min(next, schedule.storm) }
    if !churners.isEmpty, let due = schedule.churnDue(share.number(nextChurn)) { next = min(next, due) }
    return next
  }

  package func turnEnding() {
    if let schedule {
      let now = ClockReading.read().uptimeNanoseconds
      meter(schedule, now)
      resumeSlow(now)
      if isSending {
        sendDue(schedule, now)
        join(schedule, now)
      }
    }
    cutOffLeaving()
    connectWaiting()
  }

  /// This thread's own CPU at both ends of the window.
  private func meter(_ schedule: Schedule, _ now: Int64) {
    if cpuAtBegin == nil, now >= schedule.window.lowerBound {
      cpuAtBegin = ProcessFacts.threadCPUTimeNanoseconds()
    }
    if cpuAtEnd == nil, now >= schedule.window.upperBound, let cpuAtBegin {
      let end = ProcessFacts.threadCPUTimeNanoseconds()
      cpuAtEnd = end
      let length = schedule.window.upperBound - schedule.window.lowerBound
      counts.cpuShare = Double(end - cpuAtBegin) / Double(length)
    }
  }

  /// Whether all is sent, long before its time, and has come.
  var isDone: Bool { scenario.lockstep > 0 && counts.sent >= scenario.lockstep && counts.delivered >= counts.expected }

  /// Whether everything has come that must.
  var hasAll: Bool {
    counts.delivered >= counts.expected && slow.isEmpty && counts.acknowledged >= counts.requests
      && leaving.isEmpty && waiting.isEmpty && connecting == 0
      && watchers.allSatisfy { $0.pointee.tick >= newestTick }
  }

  package func takeProgress() -> Progress {
    var progress = Progress()
    progress.ready = ready
    progress.wanted = ready + connecting + waiting.count
    progress.missing =
      max(0, counts.expected - counts.delivered) + max(0, counts.requests - counts.acknowledged) + leaving.count
      + waiting.count + connecting
    progress.sent = counts.sent
    progress.delivered = counts.delivered
    progress.joined = counts.joined
    progress.errors = counts.errors
    progress.worst = worst
    worst = 0
    return progress
  }

  // MARK: The rest of the delegate

  package func overflowed(_ id: ConnectionID) { counts.fail("a session's unsent bytes passed their limit here") }
}
