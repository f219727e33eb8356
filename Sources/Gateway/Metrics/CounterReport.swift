// A loop's publication of its counters: copies for the metrics board and, from the first loop, the figures of all.
import HubCore
import HubMessages
import HubRuntime

struct CounterReport {
  private let board: MetricsBoard
  private let loop: Int
  /// The newest request for counters that this loop has answered.
  private var answered: UInt64 = 0
  private var meter = FiguresMeter()

  init(_ board: MetricsBoard, loop: Int) {
    self.board = board
    self.loop = loop
  }

  /// Whether newer counters of this loop are requested.
  var isAsked: Bool { board.hub.question != answered }

  /// Publishes this loop's counters, and the hub's if this loop has just run it.
  mutating func publish(_ counters: LoopCounters, _ hub: HubCounters?) {
    answered = board.hub.question
    board.store(counters, loop: loop, answering: answered)
    if let hub { board.hub.store(hub, answering: answered) }
  }

  /// The figures for the channel `stats` since the last call.
  mutating func figures(_ reading: MetricsReading, now: Moment) -> HubFigures {
    meter.figures(reading, uptime: now.uptime, at: now.timestamp)
  }
}
