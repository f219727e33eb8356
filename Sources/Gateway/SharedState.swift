// The little that threads of one server share: whether it is going, its metrics, its log.
import HubCore
import HubMessages
import HubTransport
import Synchronization

final class SharedState: Sendable {
  let lifecycle: Lifecycle
  let metrics: MetricsBoard
  let log: Log
  let access: AccessBoard
  /// Nil where nothing is stored.
  let journal: JournalQueue?
  let history: HistoryReader?
  let admissions: Admissions

  /// `sessionLimit`: sessions of all loops together.
  init(configuration: ServerConfiguration, sessionLimit: Int = .max) {
    lifecycle = Lifecycle(delaySeconds: configuration.drainDelay)
    metrics = MetricsBoard(loops: configuration.loops)
    let log = Log(level: configuration.logLevel)
    self.log = log
    access = AccessBoard(configuration.tokens)
    journal = configuration.journal.map { JournalQueue(limits: $0.limits, log: log) }
    history = configuration.journal.map { _ in HistoryReader(limits: configuration.limits) }
    admissions = Admissions(configuration.limits, sessionLimit: sessionLimit)
  }
}

/// Whether the server takes work, is about to stop, or is stopping. Written by the thread that was told to stop.
final class Lifecycle: Sendable {
  enum Phase {
    case serving
    /// Readiness fails so that a load balancer looks elsewhere; sessions go on.
    case unready
    /// Sessions are told to go.
    case draining
  }

  private let stopRequested = Atomic<Int64>(.max)
  private let finishedLoops = Atomic<UInt64>(0)
  private let delay: Int64

  init(delaySeconds: Double) { delay = seconds(delaySeconds) }

  /// The first call counts.
  func requestStop(at uptime: Int64) {
    _ = stopRequested.compareExchange(expected: .max, desired: uptime, ordering: .relaxed)
  }

  /// When sessions are told to go (uptime, ns), once that was asked for.
  var drainsAt: Int64 {
    let requested = stopRequested.load(ordering: .relaxed)
    return requested == .max ? .max : requested + delay
  }

  var isShuttingDown: Bool { stopRequested.load(ordering: .relaxed) != .max }

  func phase(at uptime: Int64) -> Phase {
    let requested = stopRequested.load(ordering: .relaxed)
    if requested == .max { return .serving }
    return uptime - requested < delay ? .unready : .draining
  }

  /// A loop's thread has ended: nobody reads its mailbox any more.
  func loopFinished(_ loop: Int) {
    finishedLoops.bitwiseOr(1 << UInt64(loop), ordering: .releasing)
  }

  func isFinished(_ loop: Int) -> Bool {
    finishedLoops.load(ordering: .acquiring) & (1 << UInt64(loop)) != 0
  }
}
