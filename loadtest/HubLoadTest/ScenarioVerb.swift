// hub-loadtest SCENARIO: runs it, once or several times, and prints the result.
import HubLoadTestKit
import HubSystem

struct ScenarioVerb {
  private var arguments: LoadArguments
  private let json: OutputFile?
  private let html: OutputFile?

  init(_ words: [String], _ folders: [String]) throws(LoadTestError) {
    arguments = try LoadArguments(words, executable: Machine.hubBesides(), folders: folders)
    if arguments.run.address == nil {
      for hub in arguments.hubs { try HubProcess.check(executable: hub.executable) }
    }
    json = try .optional(arguments.json)
    html = try .optional(arguments.html)
    let isTerminal = StandardStream.error.isTerminal
    arguments.run.progress = { line in
      // On a terminal each line replaces the one before.
      StandardStream.error.write(isTerminal ? "\r\u{1B}[K\(line)" : line + "\n")
    }
  }

  /// True where all is good.
  func run() throws(LoadTestError) -> Bool {
    var results = Results(machine: Machine.description(), runs: [])
    if arguments.seeksMaximum {
      try search(&results)
    } else {
      try rounds(&results)
    }
    try json?.write(results.json)
    try html?.write(HTMLReport.page([(arguments.scenario.name, results)]))
    return arguments.seeksMaximum ? results.steps.contains(where: \.isKept) : results.runs.allSatisfy(\.isGood)
  }

  /// In turn, and the first of a round is the second of the next: what changes on the machine meanwhile meets both.
  private func rounds(_ results: inout Results) throws(LoadTestError) {
    let hubs = arguments.hubs
    /// Of each hub, by its index: both may have the same path.
    var runs: [[RunResult]] = Array(repeating: [], count: hubs.count)
    for round in 0..<arguments.rounds {
      let order = round % 2 == 0 ? Array(hubs.indices) : hubs.indices.reversed()
      for index in order where !isInterrupted {
        var options = arguments.run
        options.executable = hubs[index].executable
        var result = try LoadRun(arguments.scenario, options).run()
        endProgress()
        if hubs.count > 1 { result.hub = hubs[index].name }
        runs[index].append(result)
        results.runs.append(result)
        show(ResultTable.text(result))
        if hubs.count > 1 { show("  hub: \(hubs[index].name)") }
        try json?.update(results.json)
      }
    }
    guard hubs.count > 1, !isInterrupted else { return }
    show(Comparison(runs[0], runs[1], names: (hubs[0].executable, hubs[1].executable)).text)
  }

  private func search(_ results: inout Results) throws(LoadTestError) {
    var search = RateSearch(first: arguments.scenario.rate, bound: arguments.bound)
    while !isInterrupted, let rate = search.next {
      var scenario = arguments.scenario
      scenario.rate = rate
      let run = try LoadRun(scenario, arguments.run).run()
      endProgress()
      search.note(run)
      results.runs.append(run)
      try json?.update(results.json)
      let verdict = ResultTable.verdict(run).first
      show(
        "\(Figure.fixesPerSecond.text(run[.fixesPerSecond])) fixes/s: p99 "
          + "\(Figure.latencyP99.text(run[.latencyP99]))\(verdict.map { "; " + $0 } ?? "")")
    }
    results.steps = search.steps
    results.bound = arguments.bound
    show(ResultTable.text(results))
  }

  private var isInterrupted: Bool { arguments.run.interruption.signal != nil }

  private func endProgress() { if StandardStream.error.isTerminal { StandardStream.error.write("\r\u{1B}[K") } }
}
