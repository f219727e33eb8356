// The metrics page, read back by the rules of the text format 0.0.4: what a scraper would trip over fails here.
// https://github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md
import Foundation
import HubBytes
import HubCore
import HubJournal
import HubMessages
import HubRuntime
import Testing

@testable import HubGateway

@Suite struct MetricsPageTests {
  private struct Page {
    var types: [String: String] = [:]
    var samples: [(name: String, labels: String, value: Double)] = []

    func value(_ name: String, _ labels: String = "") -> Double? {
      samples.first { $0.name == name && $0.labels == labels }?.value
    }
  }

  private let bounds = TableBounds(
    limits: Limits(), loops: 2, sessions: 900, connectionsPerLoop: 480, addresses: 5, identities: 6)

  private func page(_ loops: [LoopCounters] = [LoopCounters()], _ hub: HubCounters = HubCounters()) throws -> Page {
    let text = String(
      decoding: Metric.page(MetricsReading(loops: loops, hub: hub, tables: bounds, residentBytes: 4096)),
      as: UTF8.self)
    #expect(text.hasSuffix("\n") && !text.contains("\n\n") && !text.contains("\r"))
    let sample = /([a-z_]+)(?:\{([a-z_]+="[^"\\\n]*"(?:,[a-z_]+="[^"\\\n]*")*)\})? (\S+)/
    var page = Page()
    var helped: Set<String> = []
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 3).map(String.init)
      if words[0] == "#", words[1] == "HELP" {
        #expect(words.count == 4 && helped.insert(words[2]).inserted, "\(line)")
      } else if words[0] == "#" {
        #expect(words[1] == "TYPE" && page.types.updateValue(words[3], forKey: words[2]) == nil, "\(line)")
      } else {
        let match = try #require(line.wholeMatch(of: sample), "\(line)")
        page.samples.append((String(match.1), String(match.2 ?? ""), try #require(Double(match.3), "\(line)")))
      }
    }
    #expect(helped == Set(page.types.keys))
    return page
  }

  @Test("every sample has a family with help and type, no series comes twice, and counters end in _total")
  func families() throws {
    let page = try page()
    var series: Set<String> = []
    for sample in page.samples {
      #expect(
        series.insert(sample.name + "{" + sample.labels).inserted, "\(sample.name) {\(sample.labels)} comes twice")
      let family = ["_bucket", "_sum", "_count"].reduce(sample.name) {
        page.types[$0] == nil && $0.hasSuffix($1) ? String($0.dropLast($1.count)) : $0
      }
      let type = try #require(page.types[family], "\(sample.name) has no family")
      #expect(["counter", "gauge", "histogram"].contains(type))
      #expect((type == "counter") == family.hasSuffix("_total"), "\(family) is a \(type)")
      #expect(sample.name.hasPrefix("locationhub_") || sample.name.hasPrefix("process_"))
    }
  }

  /// The rules of `promtool check metrics` (prometheus/client_golang, testutil/promlint) that a page can break.
  @Test("names are as promtool wants them: base units, no abbreviations, no types, reserved endings where they belong")
  func names() throws {
    let reading = MetricsReading(
      loops: [LoopCounters()], hub: HubCounters(),
      journal: JournalQueue(limits: JournalLimits(), log: Log(level: .error)),
      history: HistoryReader(questions: 4, answerBytes: 1 << 20), tables: bounds, residentBytes: 4096)
    let text = String(decoding: Metric.page(reading), as: UTF8.self)
    let types = Dictionary(
      uniqueKeysWithValues: text.matches(of: /# TYPE (\S+) (\S+)/).map { (String($0.1), String($0.2)) })
    #expect(types.count > 50 && types["locationhub_journal_busy_seconds_total"] == "counter")
    let prefixes = [
      "pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega", "mebi", "giga",
    ]
    let units = ["seconds", "bytes", "meters", "metres", "grams", "joules", "volts", "amperes", "celsius"]
    let others = [
      "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks", "bits", "inches", "yards", "miles",
      "pounds",
      "ounces", "calories", "fahrenheit", "kelvin",
    ]
    let abbreviations = ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"]
    for (name, type) in types {
      let words = name.split(separator: "_").map(String.init)
      #expect(name.wholeMatch(of: /[a-z][a-z0-9_]*/) != nil, "\(name)")
      for word in words {
        #expect(!prefixes.contains { prefix in units.contains { word == prefix + $0 } }, "\(name): use the base unit")
        #expect(!others.contains(word) && !abbreviations.contains(word), "\(name): \(word)")
        #expect(!["counter", "gauge", "histogram", "summary", "untyped"].contains(word), "\(name) has its type in it")
      }
      let last = words.last ?? ""
      #expect((type == "counter") == (last == "total"), "\(name)")
      if type != "histogram" { #expect(!["bucket", "count", "sum"].contains(last), "\(name)") }
    }
  }

  @Test("loops are summed, and every outcome of a fix, error code and role has its series even at 0")
  func values() throws {
    var loops = [LoopCounters(), LoopCounters()]
    loops[0].connections = 3
    loops[1].connections = 4
    loops[1].sessions[Int(Role.ops.rawValue)] = 2
    loops[0].count(close: 4413)
    loops[1].count(close: 4413)
    loops[1].errors[Int(ErrorCode.forbidden.rawValue)] = 9
    var hub = HubCounters()
    hub.fixesReceived = 12
    hub.fixesRefused[Int(Tracker.Refusal.tooFast.rawValue)] = 5
    hub.fixesAbsorbed[Int(Tracker.Refusal.gated.rawValue)] = 4
    hub.set(.events, 6)
    hub.tableLimitHits[Int(HubTable.areas.rawValue)] = 8
    hub.shareLimitHits[Int(ShareLimit.queriesPerIdentity.rawValue)] = 3
    loops[0].count(.queriesPerIdentity)
    let page = try page(loops, hub)
    #expect(page.value("locationhub_connections") == 7)
    #expect(page.value("locationhub_sessions", "role=\"ops\"") == 2)
    #expect(page.value("locationhub_closes_total", "code=\"4413\"") == 2)
    #expect(page.value("locationhub_errors_total", "code=\"forbidden\"") == 9)
    #expect(page.value("locationhub_fixes_received_total") == 12)
    #expect(page.value("locationhub_fixes_total", "outcome=\"refused_too_fast\"") == 5)
    #expect(page.value("locationhub_fixes_absorbed_total", "reason=\"gated\"") == 4)
    #expect(page.value("locationhub_table_entries", "table=\"events\"") == 6)
    #expect(page.value("locationhub_table_limit_hits_total", "table=\"areas\"") == 8)
    #expect(page.value("locationhub_limit_hits_total", "limit=\"queries_per_identity\"") == 4)
    #expect(page.value("process_resident_memory_bytes") == 4096)
    for code in ErrorCode.allCases { #expect(page.value("locationhub_errors_total", "code=\"\(code.name)\"") != nil) }
    for refusal in Tracker.Refusal.allCases {
      #expect(page.value("locationhub_fixes_total", "outcome=\"refused_\(refusal.name)\"") != nil)
    }
  }

  @Test("every table has its entries, its capacity and its hits, also the ones that the hub does not keep")
  func tables() throws {
    var loops = [LoopCounters(), LoopCounters()]
    loops[0].connections = 3
    loops[1].sessions[Int(Role.rider.rawValue)] = 2
    loops[0].count(.sessions)
    loops[1].pendingReplies = 4
    let page = try page(loops)
    let expected: [(String, Double?, Double)] = [
      ("connections", 3, 960), ("sessions", 2, 900), ("identities", 6, 900), ("addresses", 5, 960 + 65_536),
      ("subscriptions", 0, 900 * 256), ("answers", 4, 512), ("history_questions", 0, 64), ("areas", 0, 65_536),
      ("queries", 0, 256), ("drivers", 0, 1_048_576), ("fences", 0, 50_000), ("waiting_fixes", 0, 600_000),
    ]
    for (table, entries, capacity) in expected {
      #expect(page.value("locationhub_table_entries", "table=\"\(table)\"") == entries, "\(table)")
      #expect(page.value("locationhub_table_capacity", "table=\"\(table)\"") == capacity, "\(table)")
      let hits: Double = table == "sessions" ? 1 : 0
      #expect(page.value("locationhub_table_limit_hits_total", "table=\"\(table)\"") == hits, "\(table)")
    }
    let tables = page.samples.filter { $0.name == "locationhub_table_capacity" }
    #expect(tables.count == HubTable.allCases.count + 7 && tables.allSatisfy { $0.value > 0 })
  }

  @Test("the process's metrics: start, certificate, reloads, drain, release")
  func process() throws {
    var reading = MetricsReading(loops: [LoopCounters()], hub: HubCounters(), tables: bounds, residentBytes: 4096)
    (reading.started, reading.certificateEnd, reading.commit) = (1_795_520_407_910, 1_798_112_407, "0123456789ab")
    reading.isDraining = true
    reading.reloads = [("tls", false, 1_795_520_407_910)]
    let page = String(decoding: Metric.page(reading), as: UTF8.self)
    for line in [
      "process_start_time_seconds 1795520407.91", "locationhub_draining 1",
      "locationhub_tls_certificate_not_after_timestamp_seconds 1798112407",
      "locationhub_reload_successful{what=\"tls\"} 0",
      "locationhub_reload_timestamp_seconds{what=\"tls\"} 1795520407",
    ] {
      #expect(page.contains("\n\(line)\n"), "\(line)")
    }
    #expect(page.contains("commit=\"0123456789ab\"} 1\n"))
  }

  @Test("the histogram's buckets ascend, never fall, end with +Inf, and agree with its count and sum")
  func histogram() throws {
    var loops = [LoopCounters(), LoopCounters()]
    for value in [10, 80, 300, 4000, 90_000, 5_000_000] as [UInt64] {
      loops[0].fanOut.latency.record(microseconds: value)
      loops[1].fanOut.latency.record(microseconds: value)
    }
    let page = try page(loops)
    let buckets = page.samples.filter { $0.name == "locationhub_delivery_seconds_bucket" }
    let bounds = buckets.map { Double($0.labels.dropFirst(4).dropLast().replacing("+Inf", with: "inf"))! }
    #expect(bounds == bounds.sorted() && bounds.last == .infinity)
    #expect(buckets.map(\.value) == buckets.map(\.value).sorted())
    #expect(buckets.first?.value == 2 && buckets.last?.value == 12)
    #expect(page.value("locationhub_delivery_seconds_count") == 12)
    #expect(page.value("locationhub_delivery_seconds_sum") == 2 * 5.09439)
  }
}
