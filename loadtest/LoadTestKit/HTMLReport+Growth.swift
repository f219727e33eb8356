// How cost grows, as plots: the curves of `hub-loadtest growth`, and of any other results whose runs differ in how many
// connections there are.

extension HTMLReport {
  static func growth(_ runs: [RunResult]) -> String {
    let lines = GrowthCurve.allCases.compactMap { GrowthLine($0, runs) }
    let others = runs.filter { GrowthCurve(rawValue: $0.scenario) == nil }
    let plots = lines.map(plot).joined() + overConnections(others)
    guard !plots.isEmpty else { return "" }
    return
      "<section><h2>How cost grows</h2>\(lines.map(verdict).joined())<div class=\"plots\">\(plots)</div></section>\n"
  }

  private static func verdict(_ line: GrowthLine) -> String {
    let mark: String
    switch line.verdict {
    case .met: mark = "good"
    case .missed: mark = "bad"
    case .open: mark = "open"
    }
    return "<p class=\"verdict \(mark)\">\(escaped(line.summary))</p>\n"
  }

  private static func plot(_ line: GrowthLine) -> String {
    func series(_ name: String, _ color: Int, _ path: KeyPath<GrowthLine.Point, Double>) -> Plot.Series {
      Plot.Series(name: name, color: color, mark: .points, points: line.points.map { ($0.size, $0[keyPath: path]) })
    }
    var plot = Plot(
      "A message over \(line.curve.title)", x: line.curve.title, y: "hub CPU", xScale: .logarithmic,
      series: [series("all", 1, \.all), series("kernel", 3, \.system), series("user", 2, \.user)])
    plot.yText = time
    return plot.html
  }

  /// Medians of the runs of each size.
  private static func overConnections(_ runs: [RunResult]) -> String {
    let scenarios = runs.reduce(into: [String]()) { if !$0.contains($1.scenario) { $0.append($1.scenario) } }
      .filter { name in Set(runs.filter { $0.scenario == name }.map { $0[.connections] }).count > 1 }
    func plot(_ title: String, _ figure: Figure) -> String {
      let series = scenarios.enumerated().map { index, scenario in
        let own = runs.filter { $0.scenario == scenario && $0.figures[figure] != nil }
        let points = Set(own.map { $0[.connections] }).sorted().map { size in
          (x: size, y: RankTest.median(own.filter { $0[.connections] == size }.map { $0[figure] }))
        }
        return Plot.Series(name: scenario, color: index % 4 + 1, mark: .points, points: points)
      }.filter { !$0.points.isEmpty }
      let isTime = figure.unit == .microseconds
      var plot = Plot(title, x: "connections", y: isTime ? "time" : "bytes", xScale: .logarithmic, series: series)
      if isTime { plot.yText = time }
      return plot.html
    }
    guard !scenarios.isEmpty else { return "" }
    return plot("All hub CPU over positions sent", .cpuPerDelivery)
      + plot("Its user space over positions sent", .userPerDelivery)
      + plot("Hub memory growth over connections", .bytesPerConnection) + plot("p99", .latencyP99)
  }
}
