// What the demo's two threads exchange, and their common figures.
import HubBytes
import HubGateway
import HubMessages
import HubSystem
import Synchronization

/// A trip that has begun, for its rider to follow.
struct TripNews: Sendable {
  var driver: Int
  var trip: Identifier
}

/// Figures of the drivers' side.
struct DriverFigures: Sendable {
  var open = 0
  var count = 0
  var fixes: UInt64 = 0
  var errors: UInt64 = 0
  var trips = 0
  var tripsEnded: UInt64 = 0
}

/// State shared by the threads. Locks are held for a few loads and stores.
final class DemoBoard: Sendable {
  /// When a driver's newest fix was sent.
  private struct Send {
    var timestamp = Timestamp(milliseconds: -1)
    var uptime: Int64 = 0
  }

  private let sends: Locked<[Send]>
  private let drivers = Locked(DriverFigures())
  private let waker = Locked<Waker?>(nil)
  private let stops = Atomic(false)
  private let news: Mailbox<TripNews>

  init(drivers: Int, waker: Waker) {
    sends = Locked(Array(repeating: Send(), count: drivers))
    news = Mailbox(capacity: 1 << 20, waking: waker)
  }

  /// What wakes the drivers' loop.
  var driversWaker: Waker? {
    get { waker.withLock { $0 } }
    set { waker.withLock { $0 = newValue } }
  }

  func stopDrivers() {
    stops.store(true, ordering: .releasing)
    driversWaker?.wake()
  }

  var driversShouldStop: Bool { stops.load(ordering: .acquiring) }

  func noteSend(driver: Int, _ timestamp: Timestamp, at uptime: Int64) {
    sends.withLock { $0[driver] = Send(timestamp: timestamp, uptime: uptime) }
  }

  /// When the fix with this timestamp was sent (uptime, ns); nil for one newer than the driver's newest. A driver sends
  /// when it measures, so an older fix was sent earlier by the difference of their timestamps.
  func sendTime(driver: Int, _ timestamp: Timestamp) -> Int64? {
    let send = sends.withLock { $0[driver] }
    let before = send.timestamp.milliseconds - timestamp.milliseconds
    return before >= 0 ? send.uptime - before * 1_000_000 : nil
  }

  func store(_ figures: DriverFigures) { drivers.withLock { $0 = figures } }
  var figures: DriverFigures { drivers.withLock { $0 } }

  /// The mailbox has room for more trips than a demo has; a rider without the message would follow no trip.
  func post(_ item: TripNews) { _ = news.append(item) }
  func drainNews(into list: inout [TripNews]) { news.drain(into: &list) }
}

/// Counts of the riders' side, and their text.
struct DemoFigures {
  var positions: UInt64 = 0
  var events: UInt64 = 0
  private var etas: UInt64 = 0
  /// Latencies of this second, and of all seconds before.
  var latency = LatencyHistogram()
  private var total = LatencyHistogram()
  private var last = DriverFigures()
  private var lastPositions: UInt64 = 0
  private var lastSeconds = 0.0

  mutating func note(_ update: ETAUpdate) { etas += 1 }

  /// The text of the last second; begins the next one.
  mutating func second(
    _ board: DemoBoard, riders: Int, of count: Int, seconds: Double, _ server: Server?
  ) -> (block: String, line: String) {
    let drivers = board.figures
    let passed = max(seconds - lastSeconds, 0.001)
    let fixes = fixed(Double(drivers.fixes - last.fixes) / passed, 0)
    let out = fixed(Double(positions - lastPositions) / passed, 0)
    let lost = DemoFigures.lost(server, errors: drivers.errors)
    let memory = DemoFigures.memory
    let times = DemoFigures.text(latency)
    total.merge(latency)
    latency.reset()
    last = drivers
    lastPositions = positions
    lastSeconds = seconds
    let sessions = "\(drivers.open)/\(drivers.count) drivers, \(riders)/\(count) riders"
    return (
      """
      \(fixed(seconds, 0)) s   \(sessions), \(drivers.trips) trips, \(drivers.tripsEnded) ended   memory \(memory)
      fixes in \(fixes)/s   positions out \(out)/s   \(lost)
      latency, driver to rider: \(times)
      """,
      "\(fixed(seconds, 0)) s: \(sessions), \(drivers.trips) trips; "
        + "in \(fixes)/s, out \(out)/s; \(times); \(lost); \(memory)"
    )
  }

  func summary(_ board: DemoBoard, seconds: Double, _ server: Server?) -> String {
    var all = total
    all.merge(latency)
    let drivers = board.figures
    return """
      \(drivers.count) drivers and their riders, \(fixed(seconds, 1)) s, \(drivers.tripsEnded) trips ended: \
      \(drivers.fixes) fixes in, \(positions) positions, \(etas) ETAs and \(events) events out, \
      \(DemoFigures.lost(server, errors: drivers.errors))
      latency, driver to rider: \(DemoFigures.text(all)) of \(all.count) positions; memory \(DemoFigures.memory)
      """
  }

  /// For a hub in this process, what it dropped or replaced; for another, what it refused.
  private static func lost(_ server: Server?, errors: UInt64) -> String {
    guard let statistics = server?.statistics else { return "refused \(errors)" }
    return "refused \(errors)   dropped \(statistics.dropped + statistics.conflated)"
  }

  private static func text(_ latency: LatencyHistogram) -> String {
    guard latency.count > 0 else { return "no position yet" }
    func milliseconds(_ value: UInt64) -> String { fixed(Double(value) / 1000, 2) }
    return "p50 \(milliseconds(latency.value(atQuantile: 0.5)))  p99 \(milliseconds(latency.value(atQuantile: 0.99)))  "
      + "max \(milliseconds(latency.maximum)) ms"
  }

  /// Resident memory of the process: hub, drivers and riders.
  private static var memory: String {
    ProcessFacts.residentBytes().map { "\(fixed(Double($0) / 1_048_576, 1)) MB" } ?? "unknown"
  }
}
