// GET /metrics: the counters of all loops and the hub, as they are when it is asked. Where there are several loops,
// each is woken to tell its own, and the request waits for that.
import HubHTTP
import HubRuntime
import HubSystem
import HubTransport

/// A request for all counters, on a loop that waits for what others tell.
struct AwaitedMetrics {
  let connection: ConnectionID
  let question: UInt64
  /// When it is answered with what there is (uptime, ns).
  let deadline: Int64
}

extension SessionLoop {
  /// Between two looks whether the others have answered (ns).
  private static let metricsPause: Int64 = 1_000_000

  mutating func metrics(_ slot: Int, _ exchange: Exchange) {
    guard hub.isShared else {
      publishCounters()
      return respond(slot, exchange, metricsPage())
    }
    let question = shared.metrics.hub.ask()
    publishCounters()
    hub.wakeOthers()
    exchange.isWaiting = true
    nextMetricsLook = now.uptime + Self.metricsPause
    awaitedMetrics.append(
      AwaitedMetrics(
        connection: sessions[slot].connection, question: question,
        deadline: now.uptime + nanoseconds(limits.metricsSeconds)))
  }

  func isAwaitingMetrics(_ id: ConnectionID) -> Bool { awaitedMetrics.contains { $0.connection == id } }

  /// Answers those for whom everybody has told its counters.
  mutating func answerMetrics() {
    let waiting = awaitedMetrics
    awaitedMetrics = []
    nextMetricsLook = .max
    for awaited in waiting {
      guard isCurrent(awaited.connection), let exchange = sessions[Int(awaited.connection.slot)].exchange,
        exchange.isWaiting
      else { continue }
      let isWhole = shared.metrics.isAnswered(awaited.question)
      if isWhole || now.uptime >= awaited.deadline {
        if !isWhole { counters.count(.metricsTime) }
        finish(Int(awaited.connection.slot), exchange, metricsPage())
      } else {
        awaitedMetrics.append(awaited)
        nextMetricsLook = now.uptime + Self.metricsPause
      }
    }
  }

  private func metricsPage() -> Response {
    let reading = MetricsReading(
      loops: shared.metrics.loops, hub: shared.metrics.hub.counters, journal: shared.journal, history: shared.history,
      tables: TableBounds(
        limits: limits, loops: configuration.loops, sessions: shared.admissions.sessionLimit,
        connectionsPerLoop: loop.limits.maximumConnections, addresses: shared.admissions.addressCount,
        identities: shared.admissions.identityCount),
      residentBytes: ProcessFacts.residentBytes() ?? 0, incompleteBytes: shared.admissions.incomplete)
    return Response(.ok, contentType: "text/plain; version=0.0.4; charset=utf-8", body: reading.text())
  }
}
