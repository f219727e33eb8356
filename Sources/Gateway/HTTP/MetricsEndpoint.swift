// `GET /metrics`: the counters of all loops and the hub, as they are when it is asked.
import HubHTTP
import HubSystem

extension SharedState {
  func metricsPage(_ configuration: ServerConfiguration, connectionsPerLoop: Int) -> Response {
    let reading = MetricsReading(
      loops: metrics.loops, hub: metrics.hub.counters, journal: journal, history: history,
      tables: TableBounds(
        limits: configuration.limits, loops: configuration.loops, sessions: admissions.sessionLimit,
        connectionsPerLoop: connectionsPerLoop, addresses: admissions.addressCount,
        identities: admissions.identityCount),
      residentBytes: ProcessFacts.residentBytes() ?? 0, incompleteBytes: admissions.incomplete)
    return Response(.ok, contentType: "text/plain; version=0.0.4; charset=utf-8", body: reading.text())
  }
}
