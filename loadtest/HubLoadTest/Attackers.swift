// Thousands of hostile connections that come and go, on a loop and a thread of their own, from addresses that no good
// session has. Each lives until the hub has had enough of it, or for a few seconds.
import Glibc
import HubBytes
import HubSystem
import HubTransport
import HubWebSocket

/// How far the attackers are. Read by the thread that measures.
struct AttackProgress: Sendable {
  var started = 0
  var ended = 0
  var open = 0
  var peak = 0
  /// Ended by the hub, before their time.
  var cutOff = 0
  /// First answers by status.
  var statuses: [Int: Int] = [:]
  var failed = 0
}

final class Attackers: EventLoopDelegate {
  private struct Attacker {
    var attack = Attack.silent
    var id = ConnectionID.none
    var number = 0
    var step = 0
    var isUpgraded = false
    var hasAnswer = false
    /// When it gives up (uptime, ns).
    var end: Int64 = 0
  }

  /// Addresses 127.0.0.x from which they come.
  static let addresses = 100...104

  private let loop: EventLoop
  private let target: SocketAddress
  private let total: Int
  private let seconds: Double
  private let trips: Int
  private let ammunition = Ammunition()
  private var table: [Attacker] = []
  private var progress = AttackProgress()
  private let began: Int64
  private let shared: Locked<AttackProgress>

  /// `total` connections, begun evenly over `seconds`.
  init(target: SocketAddress, total: Int, seconds: Double, trips: Int, shared: Locked<AttackProgress>)
    throws(SystemError)
  {
    var limits = EventLoopLimits()
    limits.maximumConnections = 1 << 20
    loop = try EventLoop(limits: limits)
    self.target = target
    self.total = total
    self.seconds = seconds
    self.trips = max(1, trips)
    self.shared = shared
    began = ClockReading.read().uptimeNanoseconds
    loop.delegate = self
  }

  /// Runs until all have come and gone.
  func run() {
    Attackers.runsWhereNobodyElseDoes()
    loop.setLoopTimer(at: began)
    loop.run()
  }

  static func runsWhereNobodyElseDoes() {
    // Attackers belong on other machines. Here they share the cores of the hub and of those who measure, and what is to
    // be measured is the hub's work and not whom the kernel gave a core to: so they run only where nobody else wants
    // to. For the calling thread alone (sched(7)); refused, the figures are only worse.
    let idlePolicy: Int32 = 5  // SCHED_IDLE, which Glibc does not show to Swift
    var parameters = sched_param()
    parameters.sched_priority = 0
    _ = sched_setscheduler(0, idlePolicy, &parameters)
  }

  // MARK: Coming

  func turnEnding() {
    let passed = Double(loop.now.uptimeNanoseconds - began) / 1e9
    let due = min(total, Int(Double(total) * passed / seconds))
    while progress.started < due { begin() }
    shared.withLock { $0 = progress }
    if progress.ended == total { return loop.stop() }
    loop.setLoopTimer(at: loop.now.uptimeNanoseconds + 10_000_000)
  }

  private func begin() {
    let number = progress.started
    progress.started += 1
    let attack = Attack.allCases[number % Attack.allCases.count]
    let host = Attackers.addresses.lowerBound + number / Attack.allCases.count % Attackers.addresses.count
    do throws(SystemError) {
      let id = try loop.connect(target, from: SocketAddress(host: "127.0.0.\(host)", port: 0))
      while table.count <= Int(id.slot) { table.append(Attacker()) }
      // Between one and six seconds, so that they go at all times.
      let life = Int64(1_000_000_000) + Int64(number * 7919 % 5000) * 1_000_000
      table[Int(id.slot)] = Attacker(attack: attack, id: id, number: number, end: loop.now.uptimeNanoseconds + life)
      progress.open += 1
      progress.peak = max(progress.peak, progress.open)
    } catch {
      progress.failed += 1
      progress.ended += 1
    }
  }

  func connected(_ id: ConnectionID) {
    let slot = Int(id.slot)
    switch table[slot].attack {
    case .comeAndGo: return loop.abort(id, reset: true)
    case let attack where attack.upgrades:
      let handshake = ClientHandshake(
        nonce: (UInt64(table[slot].number), 0xBAD), compression: attack == .bomb ? DeflateParameters() : nil)
      let start = loop.arena.count
      handshake.writeRequest(
        host: target.description, target: "/v1/ws?role=rider&id=bad-\(table[slot].number)", into: &loop.arena)
      loop.send(start..<loop.arena.count, to: id)
    case _: act(slot)
    }
    arm(slot)
  }

  /// Does the attack's next thing.
  private func act(_ slot: Int) {
    let attacker = table[slot]
    guard !loop.isBlocked(attacker.id) else { return }
    let start = loop.arena.count
    loop.arena.append(ammunition.bytes(of: attacker.attack, step: attacker.step, trip: attacker.number % trips))
    table[slot].step += 1
    loop.send(start..<loop.arena.count, to: attacker.id)
    if attacker.attack.isDeaf { loop.pauseReading(attacker.id) }
  }

  private func arm(_ slot: Int) {
    let attacker = table[slot]
    var next = attacker.end
    if let pace = attacker.attack.pace { next = min(next, loop.now.uptimeNanoseconds + pace * 1_000_000) }
    loop.setTimer(attacker.id, at: next)
  }

  // MARK: Going

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    let slot = Int(id.slot)
    guard !table[slot].hasAnswer, bytes.count >= 12 else { return }
    table[slot].hasAnswer = true
    let status = bytes[9..<12].reduce(0) { $0 * 10 + Int($1) - 48 }
    progress.statuses[status, default: 0] += 1
    guard status == 101, table[slot].attack.upgrades else { return }
    table[slot].isUpgraded = true
    act(slot)
  }

  func timerFired(_ id: ConnectionID) {
    let slot = Int(id.slot)
    guard loop.now.uptimeNanoseconds < table[slot].end else {
      table[slot].end = 0
      // Half of them vanish without a word, and half close as they should.
      return table[slot].number % 2 == 0 ? loop.abort(id, reset: true) : loop.close(id)
    }
    if table[slot].isUpgraded || !table[slot].attack.upgrades { act(slot) }
    arm(slot)
  }

  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    progress.open -= 1
    progress.ended += 1
    switch cause {
    case .peerClosed, .peerReset: progress.cutOff += 1
    case .failed, .connectFailed, .tlsFailed: progress.failed += 1
    case .closedByUs: break
    }
  }

  func overflowed(_ id: ConnectionID) { loop.abort(id, reset: true) }
}
