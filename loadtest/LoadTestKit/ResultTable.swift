// A run as a table for people.

package enum ResultTable {
  /// Sections, each with the figures that it has; what a run has not is left out, and so is what is 0 and was not asked
  /// for.
  private static let sections: [(String, [Figure])] = [
    ("messages", [.sent, .expected, .delivered, .conflated, .lost, .duplicated, .outOfOrder, .errors]),
    ("rates", [.fixesPerSecond, .deliveriesPerSecond, .writesPerSecond, .fixesPerRead]),
    ("latency, from when a fix was due", [.latencyP50, .latencyP90, .latencyP99, .latencyP999, .latencyMax]),
    (
      "cost; each row divides all of the hub's, so they do not add up",
      [
        .hubCores, .cpuPerFix, .cpuPerDelivery, .userPerDelivery, .systemPerDelivery, .userSamples,
        .bytesInPerFix, .bytesOutPerDelivery,
      ]
    ),
    (
      "connections",
      [
        .connections, .connectSeconds, .connectP50, .connectP90, .connectP99, .connectMax, .cpuPerConnection,
        .bytesPerConnection, .mostConnections, .bytesUnderLoad, .residentBytes, .fleet, .quietChannels,
      ]
    ),
    (
      "the cell that is watched",
      [
        .areaUpdates, .areaSnapshots, .areasSkipped, .areaUpdatesPerSecond, .spreadP50, .spreadP90, .spreadP99,
        .spreadMax, .cpuPerAreaUpdate, .userPerAreaUpdate, .systemPerAreaUpdate, .bytesOutPerAreaUpdate,
      ]
    ),
    ("batches and moves, from when due to the ack", [.requests, .acknowledged, .ackP50, .ackP90, .ackP99, .ackMax]),
    ("events", [.events, .eventsLost, .eventsDuplicated]),
    ("those who came (again)", [.joined, .recovered, .joinP50, .joinP90, .joinP99, .joinMax]),
    ("journal", [.journalGroups, .journalBytes, .journalBusyShare]),
    ("others", [.slowDelivered, .extra]),
    ("this program", [.harnessCores, .latenessP99]),
  ]
  /// Shown as 0, too, in a section that is not empty: they are what the run is for.
  private static let always: Set<Figure> = [.conflated, .lost, .duplicated, .outOfOrder, .errors, .eventsLost]

  package static func text(_ run: RunResult) -> String {
    var lines = ["\(run.scenario): \(run.about)"]
    for (title, figures) in sections {
      guard figures.contains(where: { run[$0] > 0 && !always.contains($0) || $0 == .errors && run[$0] > 0 }) else {
        continue
      }
      lines.append("  \(title)")
      for figure in figures where run.figures[figure] != nil && (run[figure] > 0 || always.contains(figure)) {
        lines.append("    " + padded(figure.title, to: 36) + padded(figure.text(run[figure]), to: 16, right: true))
      }
    }
    lines += verdict(run).map { "  " + $0 }
    return lines.joined(separator: "\n")
  }

  /// The objections to it.
  package static func verdict(_ run: RunResult) -> [String] {
    run.violations.map { "VIOLATED: \($0)" } + run.invalid.map { "NOT VALID: \($0)" }
  }

  /// The steps of a search for the highest rate.
  package static func text(_ results: Results) -> String {
    guard !results.steps.isEmpty, let bound = results.bound else { return "" }
    var lines = [
      "  \(padded("fixes/s", to: 12, right: true)) \(padded("positions/s", to: 12, right: true))"
        + padded("p99", to: 14, right: true) + padded("hub's cores", to: 14, right: true)
    ]
    for step in results.steps {
      lines.append(
        "  " + padded(grouped(Int(step.fixesPerSecond)), to: 12, right: true) + " "
          + padded(grouped(Int(step.deliveriesPerSecond)), to: 12, right: true)
          + padded(Figure.latencyP99.text(step.p99), to: 14, right: true)
          + padded(decimals(step.hubCores, 2), to: 14, right: true)
          + (!step.isValid ? "  not valid: the load was too slow" : step.isKept ? "" : "  too much"))
    }
    lines.append(RateSearch.verdict(results.steps, bound: bound))
    return lines.joined(separator: "\n")
  }
}
