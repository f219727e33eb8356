// The figures of the channel `stats` for each second: differences of existing counters, and present sizes. Messages are
// not counted separately for it.
import HubBytes
import HubCore
import HubJournal
import HubMessages
import HubRuntime
import HubTransport

/// Computes a second's figures from two readings of the counters.
struct FiguresMeter {
  private var fixes: UInt64 = 0
  private var deliveries: UInt64 = 0
  private var latency = LatencyHistogram()
  private var dropped: [(String, UInt64)] = []
  private var errors: [(String, UInt64)] = []

  /// The figures since the last call. Goes through 3,000 buckets of times: some 10 µs; fewer where nothing was
  /// delivered.
  mutating func figures(_ reading: MetricsReading, uptime: Int64, at timestamp: Timestamp) -> HubFigures {
    let (fixesNow, deliveriesNow, latencyNow) = (
      reading.hub.fixesReceived, reading.sum(\.fanOut.publicationsOut), reading.latency
    )
    let passed = latencyNow.since(latency)
    var text = ByteBuffer(capacity: 512)
    text.append("\"fixes\":", fixesNow &- fixes)
    text.append(",\"deliveries\":", deliveriesNow &- deliveries)
    for (key, quantile) in [(",\"p50\":" as StaticString, 0.5), (",\"p90\":", 0.9), (",\"p99\":", 0.99)] {
      text.append(key)
      if passed.count == 0 {
        text.append("null")
      } else {
        text.append(double: Double(passed.value(atQuantile: quantile)) / 1e6)
      }
    }
    text.append(",\"outboxBytes\":", reading.sum(\.transport.outboxBytes))
    text.append(",\"sessions\":")
    FiguresMeter.write(reading.sessions, &text)
    text.append(",\"cpuSeconds\":", Double(reading.cpuNanoseconds) / 1e9)
    text.append(",\"residentBytes\":", reading.residentBytes)
    text.append(",\"drops\":")
    FiguresMeter.write(FiguresMeter.more(reading.dropped, than: dropped), &text)
    text.append(",\"errors\":")
    FiguresMeter.write(FiguresMeter.more(reading.errors, than: errors), &text)
    text.append(",\"journalLag\":", reading.journal.map { Double($0.commit.lag(at: uptime)) / 1e9 })
    (fixes, deliveries, latency) = (fixesNow, deliveriesNow, latencyNow)
    (dropped, errors) = (reading.dropped, reading.errors)
    let times = passed.count == 0 ? [] : passed.buckets
    return HubFigures(
      timestamp: timestamp, members: String(decoding: text.array(), as: UTF8.self),
      times: times.map { HubFigures.Time(microseconds: $0.microseconds, count: $0.count) })
  }

  /// The increase of each count, without zeros.
  private static func more(_ counts: [(String, UInt64)], than before: [(String, UInt64)]) -> [(String, UInt64)] {
    counts.enumerated().map { index, count in
      (count.0, count.1 &- (before.indices.contains(index) ? before[index].1 : 0))
    }.filter { $0.1 > 0 }
  }

  private static func write(_ counts: [(String, UInt64)], _ text: inout ByteBuffer) {
    text.append("{")
    for (index, count) in counts.enumerated() {
      if index > 0 { text.append(",") }
      text.append(json: count.0)
      text.append(":")
      text.append(integer: count.1)
    }
    text.append("}")
  }
}
