// The metrics page in Prometheus' text format, version 0.0.4. Its rows are in MetricTable.swift.
import HubBytes
import HubCluster
import HubCore
import HubMessages
import HubRuntime
import HubTransport
import HubWebhooks

/// The data of a page of metrics.
struct MetricsReading {
  var loops: [LoopCounters]
  var hub: HubCounters
  /// Nil where nothing is stored; the page then leaves it out.
  var journal: JournalQueue?
  var history: HistoryReader?
  /// Nil for a single hub.
  var cluster: ClusterCounters?
  /// Nil for a hub without webhooks.
  var webhooks: [WebhookFigures]?
  /// Nil for a hub without streams.
  var streams: [StreamFigures]?
  var tables: TableBounds
  var residentBytes: Int
  /// CPU time of the process.
  var cpuNanoseconds: Int64 = 0
  /// Incomplete input beyond what each peer has free.
  var incompleteBytes = 0
  /// When the server was started (ms since 1970).
  var started: Int64 = 0
  var commit = "unknown"
  /// It is stopping.
  var isDraining = false
  /// Reloads: of what, whether the newest was successful, and when the last successful one was (ms since 1970).
  var reloads: [(what: StaticString, isSuccessful: Bool, timestamp: Int64)] = []
  /// When the certificate ends (s since 1970); nil without TLS.
  var certificateEnd: Int64?
  /// The process's limit of descriptors.
  var openFileLimit = 0
  var openDescriptors: Int?

  /// The sum over all loops.
  func sum<Number: BinaryInteger>(_ value: (LoopCounters) -> Number) -> Number {
    loops.reduce(0) { $0 + value($1) }
  }

  /// Counts by number, summed over all loops, in the numbers' order.
  func merged(_ counts: (LoopCounters) -> [UInt16: UInt64]) -> [(String, UInt64)] {
    var all: [UInt16: UInt64] = [:]
    for loop in loops { all.merge(counts(loop), uniquingKeysWith: +) }
    return all.sorted { $0.key < $1.key }.map { (String($0.key), $0.value) }
  }

  /// By role.
  var sessions: [(String, UInt64)] {
    Role.allCases.map { role in ("\(role.name)", UInt64(sum { $0.sessions[Int(role.rawValue)] })) }
  }

  /// By reason.
  var dropped: [(String, UInt64)] {
    [
      ("conflated_slow", sum(\.transport.conflated)), ("conflated_interval", sum(\.fanOut.conflatedByInterval)),
      ("overflow", sum(\.transport.dropped)),
    ]
  }

  /// By code.
  var errors: [(String, UInt64)] {
    ErrorCode.allCases.map { code in ("\(code.name)", sum { $0.errors[Int(code.rawValue)] }) }
  }

  /// From receipt to write.
  var latency: LatencyHistogram {
    var latency = LatencyHistogram()
    for loop in loops { latency.merge(loop.fanOut.latency) }
    return latency
  }
}

/// A family of the page: one row of the table.
struct Metric: Sendable {
  /// A line: the suffix of the family's name, the label's value if there is one, and the value.
  typealias Sample = (suffix: String, label: String?, value: Value)

  enum Value {
    case count(UInt64)
    case seconds(Double)
  }

  /// The name behind `locationhub_`, or for standard metrics one that begins with `process_`. Counters end with
  /// `_total`, those of time with `_seconds_total`.
  let name: String
  /// The label that distinguishes the samples.
  var label: String?
  /// Its samples are cumulative counts of durations.
  var isHistogram = false
  let help: String
  /// Nil where this server has none.
  let samples: @Sendable (MetricsReading) -> [Sample]?

  /// The full name.
  var family: String { name.hasPrefix("process_") ? name : "locationhub_" + name }

  /// Prometheus' type.
  var kind: String { isHistogram ? "histogram" : name.hasSuffix("_total") ? "counter" : "gauge" }

  private func write(_ sample: Sample, into page: inout ByteBuffer) {
    let labels = label.flatMap { label in sample.label.map { "{\(label)=\"\($0)\"}" } } ?? ""
    page.append(utf8: "\(family)\(sample.suffix)\(labels) ")
    switch sample.value {
    case .count(let count): page.append(integer: count)
    case .seconds(let seconds): page.append(double: seconds)
    }
    page.append("\n")
  }

  /// The whole page.
  static func page(_ reading: MetricsReading) -> [UInt8] {
    var page = ByteBuffer(capacity: 32 * 1024)
    for metric in all {
      guard let samples = metric.samples(reading) else { continue }
      let name = metric.family
      page.append(utf8: "# HELP \(name) \(metric.help)\n# TYPE \(name) \(metric.kind)\n")
      for sample in samples { metric.write(sample, into: &page) }
    }
    return page.array()
  }
}

extension Metric {
  /// One number; nanoseconds where the name ends with `_seconds_total`.
  init<Number: BinaryInteger & SendableMetatype>(
    _ name: String, _ help: String, read: @escaping @Sendable (MetricsReading) -> Number?
  ) {
    let isTime = name.hasSuffix("_seconds_total")
    self.init(name: name, help: help) { reading in
      read(reading).map { [("", nil, isTime ? .seconds(Double($0) / 1e9) : .count(UInt64(clamping: $0)))] }
    }
  }

  /// A sum over loops' counters.
  init<Number: BinaryInteger & SendableMetatype>(
    _ name: String, loops path: any KeyPath<LoopCounters, Number> & Sendable, _ help: String
  ) {
    self.init(name, help) { reading in reading.sum { $0[keyPath: path] } }
  }

  /// A counter of the hub; `stored`: only where something is stored.
  init<Number: BinaryInteger & SendableMetatype>(
    _ name: String, hub path: any KeyPath<HubCounters, Number> & Sendable, stored: Bool = false,
    _ help: String
  ) {
    self.init(name, help) { stored && $0.journal == nil ? nil : $0.hub[keyPath: path] }
  }

  /// Several numbers by a label.
  init(
    _ name: String, by label: String, _ help: String,
    read: @escaping @Sendable (MetricsReading) -> [(String, UInt64)]
  ) {
    self.init(name: name, label: label, help: help) { read($0).map { ("", $0.0, .count($0.1)) } }
  }

  /// Several numbers by two labels.
  init(
    _ name: String, by first: String, and second: String, _ help: String,
    read: @escaping @Sendable (MetricsReading) -> [(String, String, UInt64)]
  ) {
    self.init(name: name, label: first, help: help) {
      read($0).map { ("", "\($0.0)\",\(second)=\"\($0.1)", .count($0.2)) }
    }
  }

  /// Times in microseconds, shown in seconds.
  init(
    _ name: String, bounds: [UInt64], _ help: String,
    read: @escaping @Sendable (MetricsReading) -> LatencyHistogram?
  ) {
    self.init(name: name, label: "le", isHistogram: true, help: help) { reading in
      guard let times = read(reading) else { return nil }
      let buckets = bounds.map { ("_bucket", "\(Double($0) / 1e6)", .count(times.count(upTo: $0))) as Sample }
      return buckets + [
        ("_bucket", "+Inf", .count(times.count)), ("_sum", nil, .seconds(Double(times.sum) / 1e6)),
        ("_count", nil, .count(times.count)),
      ]
    }
  }

  /// Times by a label, counted by loops in the order of the label's values.
  init(
    _ name: String, by label: String, _ values: [String], _ help: String,
    loops path: any KeyPath<LoopCounters, [BoundedTimes]> & Sendable
  ) {
    self.init(name: name, label: label, isHistogram: true, help: help) { reading in
      values.enumerated().flatMap { index, value -> [Sample] in
        var times = BoundedTimes()
        for loop in reading.loops { times.merge(loop[keyPath: path][index]) }
        let buckets = zip(BoundedTimes.bounds, times.upToBounds).map { bound, count in
          ("_bucket", "\(value)\",le=\"\(Double(bound) / 1e6)", .count(count)) as Sample
        }
        return buckets + [
          ("_bucket", "\(value)\",le=\"+Inf", .count(times.count)),
          ("_sum", "\(value)", .seconds(Double(times.sum) / 1e6)), ("_count", "\(value)", .count(times.count)),
        ]
      }
    }
  }
}
