// The metrics page, read back by the rules of the text format 0.0.4: what a scraper would trip over fails here.
// https://github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md
import Foundation
import HubCore
import Messages
import Testing

@testable import Gateway

@Suite struct PrometheusTextTests {
  private struct Page {
    var types: [String: String] = [:]
    var samples: [(name: String, labels: String, value: Double)] = []

    func value(_ name: String, _ labels: String = "") -> Double? {
      samples.first { $0.name == name && $0.labels == labels }?.value
    }
  }

  private func page(_ loops: [LoopCounters] = [LoopCounters()], _ hub: HubCounters = HubCounters()) throws -> Page {
    let text = String(decoding: PrometheusText.write(loops: loops, hub: hub, residentBytes: 4096), as: UTF8.self)
    #expect(text.hasSuffix("\n") && !text.contains("\n\n") && !text.contains("\r"))
    let sample = /([a-z_]+)(?:\{([a-z_]+="[^"\\\n]*")\})? (\S+)/
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
      #expect(sample.name.hasPrefix("locationhub_"))
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
    hub.eventsKept = 6
    let page = try page(loops, hub)
    #expect(page.value("locationhub_connections") == 7)
    #expect(page.value("locationhub_sessions", "role=\"ops\"") == 2)
    #expect(page.value("locationhub_closes_total", "code=\"4413\"") == 2)
    #expect(page.value("locationhub_errors_total", "code=\"forbidden\"") == 9)
    #expect(page.value("locationhub_fixes_received_total") == 12)
    #expect(page.value("locationhub_fixes_total", "outcome=\"refused_too_fast\"") == 5)
    #expect(page.value("locationhub_fixes_absorbed_total", "reason=\"gated\"") == 4)
    #expect(page.value("locationhub_table_entries", "table=\"events\"") == 6)
    #expect(page.value("locationhub_resident_bytes") == 4096)
    for code in ErrorCode.allCases { #expect(page.value("locationhub_errors_total", "code=\"\(code.name)\"") != nil) }
    for refusal in Tracker.Refusal.allCases {
      #expect(page.value("locationhub_fixes_total", "outcome=\"refused_\(refusal.name)\"") != nil)
    }
  }

  @Test("the histogram's buckets ascend, never fall, end with +Inf, and agree with its count and sum")
  func histogram() throws {
    var loops = [LoopCounters(), LoopCounters()]
    for value in [10, 80, 300, 4000, 90_000, 5_000_000] as [UInt64] {
      loops[0].latency.record(microseconds: value)
      loops[1].latency.record(microseconds: value)
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
