// The line that a run says each second of how far it is.
import HubSystem

/// How far a thread is, or all of them.
package struct Progress: Sendable {
  package var ready = 0
  /// How many sessions there will be when all stand.
  package var wanted = 0
  package var sent = 0
  package var delivered = 0
  package var joined = 0
  package var errors = 0
  /// What was sent and is not answered, positions and acks, and sessions that are still to come.
  package var missing = 0
  /// The highest latency since it was last shown, µs.
  package var worst: UInt64 = 0

  package init() {}

  /// Becomes what came later; the highest latency is of both.
  mutating func update(_ later: Progress) {
    let before = worst
    self = later
    worst = max(before, later.worst)
  }

  mutating func add(_ other: Progress) {
    ready += other.ready
    wanted += other.wanted
    sent += other.sent
    delivered += other.delivered
    joined += other.joined
    errors += other.errors
    missing += other.missing
    worst = max(worst, other.worst)
  }
}

struct ProgressLines {
  enum Phase { case connecting, warmUp, window, waiting }

  private let name: String
  private var phase = Phase.connecting
  /// What the line before reported, or what there was when the phase began.
  private var last = Progress()
  private var nextAt: Int64
  private static let interval: Int64 = 1_000_000_000

  /// Begins with `connecting`, at `now` (uptime, ns).
  init(name: String, at now: Int64 = ClockReading.read().uptimeNanoseconds) {
    self.name = name
    nextAt = now + ProgressLines.interval
  }

  mutating func begin(_ phase: Phase, at now: Int64, _ sum: Progress) {
    self.phase = phase
    last = sum
    nextAt = now + ProgressLines.interval
  }

  func isDue(_ now: Int64) -> Bool { now >= nextAt }

  /// The line to print now; the next a second later.
  mutating func line(_ sum: Progress, at now: Int64) -> String {
    nextAt = max(now, nextAt + ProgressLines.interval)
    defer { last = sum }
    switch phase {
    case .connecting: return "\(name): connecting, \(grouped(sum.ready)) of \(grouped(sum.wanted)) sessions"
    case .warmUp: return "\(name): warm-up, \(traffic(sum))\(others(sum))"
    case .window:
      return "\(name): \(traffic(sum)), worst \(Figure.latencyMax.text(Double(sum.worst)))\(others(sum))"
    case .waiting:
      let what = sum.missing > 0 ? "for what is missing: \(grouped(sum.missing))" : "whether anything else comes"
      return "\(name): waiting \(what)\(others(sum))"
    }
  }

  private func traffic(_ sum: Progress) -> String {
    "\(grouped(sum.ready)) sessions, \(grouped(sum.sent - last.sent)) fixes and "
      + "\(grouped(sum.delivered - last.delivered)) positions in this second"
  }

  private func others(_ sum: Progress) -> String {
    (sum.joined > 0 ? ", \(grouped(sum.joined)) came again" : "")
      + (sum.errors > 0 ? ", \(grouped(sum.errors)) errors" : "")
  }
}
