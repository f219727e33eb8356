// make figures: all loads in turn, round after round; then the highest rate, what is at a fifth of it, a reconnect
// storm, and a start.

package struct SpeedRun {
  package var options: RunOptions
  package var rounds = 3
  package var seconds = 10.0
  /// Of sessions: 1 is what the table is about.
  package var scale = 1.0
  /// Which of the loads, by their names; nil for all.
  package var only: Set<String>?
  /// Under which directory a journal is made.
  package var directory = "/tmp"
  package var progress: (String) -> Void = { _ in }
  /// Called with all that there is, after each run.
  package var keep: (Results) throws(LoadTestError) -> Void = { _ in }

  /// By which its results are known in a file.
  package static let kind = "figures"

  /// p99 that the highest rate keeps, µs.
  static let bound = 20_000.0

  package init(options: RunOptions) { self.options = options }

  package func run() throws(LoadTestError) -> Results {
    var results = Results(machine: Machine.description(), runs: [])
    results.kind = SpeedRun.kind
    if isWanted(StartRun.name) { results.runs.append(try StartRun(options: options).run()) }
    for round in 0..<rounds {
      for load in SpeedLoad.all where isWanted(load.name) {
        if isInterrupted { return results }
        progress("round \(round + 1) of \(rounds): \(load.name)")
        results.runs.append(try run(load))
        try keep(results)
      }
    }
    if isWanted(SpeedRun.fifth) { try search(&results) }
    if isWanted(SpeedLoad.storm.name), !isInterrupted {
      progress(SpeedLoad.storm.name)
      results.runs.append(try run(.storm))
    }
    return results
  }

  private var isInterrupted: Bool { options.interruption.signal != nil }

  private func isWanted(_ name: String) -> Bool { only?.contains(name) ?? true }

  /// All names that `only` may hold.
  package static var names: [String] { [StartRun.name] + SpeedLoad.all.map(\.name) + [fifth, SpeedLoad.storm.name] }

  private func run(_ load: SpeedLoad) throws(LoadTestError) -> RunResult {
    var options = options
    let journal = load.stores ? try TemporaryFolder(in: directory) : nil
    if let journal { options.serveOptions += ["--data", journal.path] }
    var result = withExtendedLifetime(journal) { LoadRun(load.sized(scale, seconds: seconds), options).runOrSay() }
    // A run says for itself whether it counts.
    if result[.conflated] > 0 {
      result.invalid.append("\(Figure.conflated.text(result[.conflated])) positions were not sent, for newer ones were")
    }
    if result.tail > load.p99Bound {
      result.invalid.append(
        "p99 is \(Figure.latencyP99.text(result.tail)), over \(Figure.latencyP99.text(load.p99Bound))")
    }
    return result
  }

  /// The highest rate of the fast trips, in short runs, and then a fifth of it.
  private func search(_ results: inout Results) throws(LoadTestError) {
    let scenario = SpeedLoad.fastTrip.sized(scale, seconds: min(3, seconds))
    var search = RateSearch(first: scenario.rate, bound: SpeedRun.bound)
    var best = 0.0
    while !isInterrupted, let rate = search.next {
      var step = scenario
      step.rate = rate
      step.warmUp = min(1, seconds)
      progress("the highest rate: \(grouped(Int(step.fixesPerSecond))) fixes/s")
      search.note(LoadRun(step, options).runOrSay())
      if search.steps.last?.isKept == true { best = max(best, rate) }
    }
    results.steps = search.steps
    results.bound = SpeedRun.bound
    guard best > 0, !isInterrupted else { return }
    var fifth = SpeedLoad.fastTrip.sized(scale, seconds: seconds)
    fifth.name = SpeedRun.fifth
    fifth.about = "a fifth of the highest rate"
    fifth.rate = best / 5
    progress(fifth.name)
    results.runs.append(LoadRun(fifth, options).runOrSay())
    try keep(results)
  }

  static let fifth = "a fifth"
}
