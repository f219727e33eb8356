// The state that threads of one server share: lifecycle, metrics, log.
import HubPages
import HubRuntime
import HubSystem
import HubWebhooks

final class SharedState: Sendable {
  let lifecycle: Lifecycle
  let metrics: MetricsBoard
  let log: Log
  /// Nil where no tokens are accepted.
  let access: Board<TokenAccess?>
  /// Settings that may change while the server runs are replaced in it.
  let settings: Board<ServerConfiguration>
  /// Nil where nothing is stored.
  let journal: JournalQueue?
  let history: HistoryReader?
  /// Nil where the hub has no images of a map.
  let tiles: TileThread?
  /// Nil for a hub without a journal.
  let webhooks: WebhookControl?
  let admissions: Admissions
  /// The memory of long answers over HTTP while they are sent.
  let longAnswers: MemoryBudget
  let reloads = ReloadBoard()
  let ticks: LoopTicks
  let serviceManager: ServiceManager?
  /// When it was started (ms since 1970).
  let started = ClockReading.read().unixMilliseconds

  /// `sessionLimit`: sessions of all loops together.
  init(configuration: ServerConfiguration, sessionLimit: Int = .max, log: Log? = nil) {
    lifecycle = Lifecycle(delaySeconds: configuration.drainDelay, spreadSeconds: configuration.drainSpread)
    metrics = MetricsBoard(loops: configuration.loops, isInCluster: configuration.cluster != nil)
    ticks = LoopTicks(loops: configuration.loops)
    let log = log ?? Log(level: configuration.logLevel, format: configuration.logFormat)
    self.log = log
    access = Board(configuration.tokens)
    settings = Board(configuration)
    journal = configuration.journal.map { JournalQueue(limits: $0.limits, log: log) }
    history = configuration.journal.map { _ in
      HistoryReader(
        questions: configuration.limits.historyQuestions, answerBytes: configuration.limits.historyAnswerBytes)
    }
    tiles = configuration.pages?.map.tiles?.pack.map { TileThread($0, configuration.limits) }
    webhooks = configuration.journal.map { _ in WebhookControl() }
    serviceManager = configuration.serviceManager
    admissions = Admissions(configuration.limits, sessionLimit: sessionLimit)
    longAnswers = MemoryBudget(bytes: configuration.limits.longAnswerBytes)
  }

  /// Notes a loop's tick (uptime, ns). At the first loop's, the service manager is notified unless another loop hangs.
  func ticked(_ loop: Int, at uptime: Int64) {
    ticks.note(loop, at: uptime)
    if loop == 0, ticks.hanging(at: uptime, asker: loop) == nil { serviceManager?.alive(at: uptime) }
  }
}
