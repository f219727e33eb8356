// Results as one page of HTML that needs nothing else: what came of each run in words and figures, then plots.
import Glibc  // pow

package enum HTMLReport {
  /// Of several files, each with its name.
  package static func page(_ files: [(name: String, results: Results)]) -> String {
    var body = "<h1>Load on a location hub</h1>\n"
    for (name, results) in files {
      body += "<p class=\"machine\">\(files.count > 1 ? escaped(name) + ": " : "")\(escaped(results.machine))</p>\n"
    }
    for (_, results) in files where !results.steps.isEmpty { body += search(results) }
    body += growth(files.flatMap(\.results.runs))
    for (name, results) in files {
      // Of a search, what was found is of interest, and the run at that rate.
      let runs = results.steps.isEmpty ? results.runs : best(results)
      if runs.count > maximumOpen { body += "<h2>The \(runs.count) runs</h2>\n" }
      for (index, run) in runs.enumerated() {
        let title = files.count > 1 || runs.count > 1 ? " · \(name), run \(index + 1)" : ""
        let section = section(run, title)
        body += runs.count > maximumOpen ? folded(run, title, section) : section
      }
    }
    return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      + "<meta name=\"viewport\" content=\"width=device-width\"><title>hub-loadtest</title>\n<style>\(style)</style>"
      + "</head>\n<body><main>\n\(body)</main></body></html>\n"
  }

  /// Of more runs than these, each is opened by a click.
  private static let maximumOpen = 4

  private static func folded(_ run: RunResult, _ title: String, _ section: String) -> String {
    let latency = run[.latencyP99] > 0 ? ", p99 \(Figure.latencyP99.text(run[.latencyP99]))" : ""
    let cost = run[.cpuPerDelivery] > 0 ? ", \(Figure.cpuPerDelivery.text(run[.cpuPerDelivery])) a position" : ""
    let doubt = run.isGood ? "" : " — does not count"
    let more = [Figure.fleet, .quietChannels].filter { run[$0] > 0 }.map { ", \($0.text(run[$0])) \($0.title)" }
    let size = "\(grouped(Int(run[.connections]))) connections\(more.joined())"
    let summary = "\(run.scenario)\(title): \(size)\(cost)\(latency)\(doubt)"
    return "<details class=\"run\"><summary>\(escaped(summary))</summary>\(section)</details>\n"
  }

  private static func best(_ results: Results) -> [RunResult] {
    let index = results.steps.indices.filter { results.steps[$0].isKept && $0 < results.runs.count }
      .max { results.steps[$0].fixesPerSecond < results.steps[$1].fixesPerSecond }
    return index.map { [results.runs[$0]] } ?? []
  }

  // MARK: One run

  private static func section(_ run: RunResult, _ title: String) -> String {
    var html = "<section><h2>\(escaped(run.scenario))\(escaped(title))</h2><p>\(escaped(run.about))</p>\n"
    html += verdict(run)
    html += "<dl class=\"cards\">"
    for figure in cards where run.figures[figure] != nil {
      html += "<div><dt>\(escaped(figure.title))</dt><dd>\(escaped(figure.text(run[figure])))</dd></div>"
    }
    html += "</dl>\n<div class=\"plots\">\(overTime(run))\(distribution(run))\(quantiles(run))</div>\n"
    html += "<details><summary>All figures and settings</summary><pre>\(escaped(ResultTable.text(run)))\n\n"
    html += escaped((["hub: \(run.hub)"] + run.settings).joined(separator: "\n")) + "</pre></details></section>\n"
    return html
  }

  private static let cards: [Figure] = [
    .fixesPerSecond, .deliveriesPerSecond, .latencyP50, .latencyP99, .latencyP999, .cpuPerFix, .cpuPerDelivery, .lost,
    .areaUpdatesPerSecond, .cpuPerAreaUpdate, .spreadP99, .connections, .bytesPerConnection, .connectP99, .ackP99,
    .joinMax, .harnessCores,
  ]

  private static func verdict(_ run: RunResult) -> String {
    let lines = ResultTable.verdict(run)
    guard !lines.isEmpty else {
      return "<p class=\"verdict good\">Valid, and nothing was lost, doubled or out of order.</p>\n"
    }
    return lines.map { "<p class=\"verdict bad\">\(escaped($0))</p>\n" }.joined()
  }

  private static func overTime(_ run: RunResult) -> String {
    guard run.parts.count > 1 else { return "" }
    var plot = Plot(
      "Latency over time, from when a fix was due", x: "second of the run", y: "latency", yScale: .logarithmic,
      series: [
        Plot.Series(name: "p50", color: 1, mark: .line, points: run.parts.map { ($0.second, $0.p50) }),
        Plot.Series(name: "p99", color: 2, mark: .line, points: run.parts.map { ($0.second, $0.p99) }),
        Plot.Series(name: "max", color: 3, mark: .line, points: run.parts.map { ($0.second, $0.maximum) }),
      ])
    plot.yText = time
    return plot.html
  }

  /// Into sixty columns, each as much wider than the one before as it lies higher.
  private static func distribution(_ run: RunResult) -> String {
    guard let low = run.buckets.first?.microseconds, let high = run.buckets.last?.microseconds, high > low else {
      return ""
    }
    let columns = 60
    let axis = Plot.Axis([max(1, low), high], .logarithmic)
    var counts = Array(repeating: 0.0, count: columns)
    for bucket in run.buckets {
      let part = axis?.part(bucket.microseconds) ?? 0
      counts[min(columns - 1, max(0, Int(part * Double(columns))))] += bucket.count
    }
    let ratio = high / max(1, low)
    let points = counts.enumerated().map { index, count in
      (x: max(1, low) * pow(ratio, Double(index) / Double(columns)), y: count)
    }
    var plot = Plot(
      "\(run.timed.title): how it is distributed", x: "time", y: run.timed.what, xScale: .logarithmic,
      series: [Plot.Series(name: run.timed.what, color: 1, mark: .bars, points: points)])
    plot.xText = time
    return plot.html
  }

  /// Latency by how many in so many are slower, as HdrHistogram draws it.
  private static func quantiles(_ run: RunResult) -> String {
    let total = run.buckets.reduce(0) { $0 + $1.count }
    guard total > 1 else { return "" }
    var seen = 0.0
    var points: [(x: Double, y: Double)] = []
    for bucket in run.buckets {
      seen += bucket.count
      points.append((total / max(1, total - seen), bucket.microseconds))
    }
    var plot = Plot(
      "\(run.timed.title): by percentile", x: "percentile", y: "time", xScale: .logarithmic, yScale: .logarithmic,
      series: [Plot.Series(name: run.timed.what, color: 2, mark: .line, points: points)])
    plot.xText = { value in
      let percent = 100 - 100 / value
      // As many nines as there are: 99, 99.5, 99.99.
      var text = decimals(percent, 5)
      while text.hasSuffix("0") { text.removeLast() }
      if text.hasSuffix(".") { text.removeLast() }
      return text
    }
    plot.yText = time
    return plot.html
  }

  // MARK: Several runs

  private static func search(_ results: Results) -> String {
    let steps = results.steps.filter(\.isValid).sorted { $0.fixesPerSecond < $1.fixesPerSecond }
    let bound = results.bound ?? 0
    let through = Plot(
      "Throughput over offered rate", x: "fixes a second", y: "positions a second",
      series: [
        Plot.Series(
          name: "delivered", color: 1, mark: .points, points: steps.map { ($0.fixesPerSecond, $0.deliveriesPerSecond) })
      ])
    var latency = Plot(
      "p99 over offered rate", x: "fixes a second", y: "p99", yScale: .logarithmic,
      series: [
        Plot.Series(name: "p99", color: 2, mark: .points, points: steps.map { ($0.fixesPerSecond, $0.p99) })
      ], limit: bound)
    latency.yText = time
    let cores = Plot(
      "The hub's CPU over offered rate", x: "fixes a second", y: "cores",
      series: [
        Plot.Series(name: "cores", color: 3, mark: .points, points: steps.map { ($0.fixesPerSecond, $0.hubCores) })
      ])
    return "<section><h2>The highest rate</h2><p class=\"verdict good\">"
      + "\(escaped(RateSearch.verdict(results.steps, bound: bound)))</p>\n"
      + "<div class=\"plots\">\(through.html)\(latency.html)\(cores.html)</div></section>\n"
  }

  static func time(_ microseconds: Double) -> String {
    switch microseconds {
    case ..<1000: Plot.short(microseconds) + " µs"
    case ..<1e6: Plot.short(microseconds / 1000) + " ms"
    case _: Plot.short(microseconds / 1e6) + " s"
    }
  }

  private static let style = """
    :root{color-scheme:light dark;--ground:#fff;--panel:#f6f7f9;--text:#1b1f24;--soft:#66707c;--line:#dde1e6;--c1:#2563eb;
    --c2:#c2410c;--c3:#6d28d9;--c4:#0f766e;--good:#0f766e;--bad:#b42318}
    @media(prefers-color-scheme:dark){:root{--ground:#101317;--panel:#181c22;--text:#e7eaee;--soft:#98a2ae;--line:#2c333c;
    --c1:#7aa7ff;--c2:#fb9a5b;--c3:#b79bff;--c4:#4fd1c0;--good:#4fd1c0;--bad:#ff8a80}}
    body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif}
    main{max-width:1360px;margin:0 auto;padding:28px 24px 60px}h1{font-size:24px;margin:0 0 2px}
    h2{font-size:19px;margin:36px 0 2px}p{margin:4px 0}.machine{color:var(--soft);font-size:13px}
    .verdict{padding:6px 12px;border-left:4px solid;background:var(--panel);margin:8px 0}.good{border-color:var(--good)}
    .bad{border-color:var(--bad)}.open{border-color:var(--soft)}.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(170px,1fr));gap:10px;
    margin:14px 0}.cards div{background:var(--panel);border-radius:8px;padding:9px 13px}dt{color:var(--soft);font-size:12.5px}
    dd{margin:0;font-size:19px;font-variant-numeric:tabular-nums}.plots{display:grid;gap:16px;
    grid-template-columns:repeat(auto-fill,minmax(min(100%,370px),1fr))}figure{margin:0;background:var(--panel);
    border-radius:8px;padding:12px 12px 6px}figcaption{font-weight:600;font-size:14px;padding-left:4px}svg{width:100%;
    height:auto;display:block}text{fill:var(--soft);font-size:12px}.title{font-size:12.5px}.grid{stroke:var(--line)}
    .axis,.mark{stroke:var(--soft)}.limit{stroke:var(--bad);stroke-dasharray:6 4;stroke-width:1.5}.line{fill:none;
    stroke:currentColor;stroke-width:2;stroke-linejoin:round}.thin{stroke-width:1.2}rect,circle{fill:currentColor}
    .c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}.c4{color:var(--c4)}.legend{font-size:13px;
    padding-left:4px}.key::before{content:"";display:inline-block;width:14px;height:3px;background:currentColor;
    margin-right:6px;vertical-align:middle}.key{margin-right:14px}details{margin:12px 0}details.run{margin:4px 0}summary{cursor:pointer;
    color:var(--soft)}pre{background:var(--panel);border-radius:8px;padding:14px;overflow:auto;font-size:12.5px}
    """
}
