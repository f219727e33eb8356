// hub-loadtest SCENARIO: runs it, once or several times, and says what came of it.
import LoadTestKit
import Transport

struct ScenarioVerb {
  private var arguments: LoadArguments

  init(_ words: [String], _ folders: [String]) throws(LoadTestError) {
    arguments = try LoadArguments(words, executable: Machine.hubBesides(), folders: folders)
    let isTerminal = StandardStream.error.isTerminal
    arguments.run.progress = { line in
      // On a terminal each line takes the place of the one before.
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
    if let path = arguments.json { try write(results.json, to: path) }
    if let path = arguments.html { try write(HTMLReport.page([(arguments.scenario.name, results)]), to: path) }
    return arguments.seeksMaximum ? results.steps.contains(where: \.isKept) : results.runs.allSatisfy(\.isGood)
  }

  /// In turn, and the first of a round is the second of the next: what changes on the machine meanwhile meets both.
  private func rounds(_ results: inout Results) throws(LoadTestError) {
    for round in 0..<arguments.rounds {
      var hubs = [arguments.run.executable] + (arguments.against.map { [$0] } ?? [])
      if round % 2 == 1 { hubs.reverse() }
      for hub in hubs where !isInterrupted {
        var options = arguments.run
        options.executable = hub
        let result = try LoadRun(arguments.scenario, options).run()
        endProgress()
        results.runs.append(result)
        show(ResultTable.text(result))
        if arguments.against != nil { show("  hub: \(hub)") }
      }
    }
    if let against = arguments.against, !isInterrupted {
      let (first, second) = (results.runs.filter { $0.hub != against }, results.runs.filter { $0.hub == against })
      show(Comparison(first, second, names: (arguments.run.executable, against)).text)
    }
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
