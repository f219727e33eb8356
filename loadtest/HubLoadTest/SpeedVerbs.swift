// hub-loadtest figures and growth: what make figures and make growth call.
import HubCommandLine
import HubLoadTestKit
import HubSystem

enum SpeedVerbs {
  /// All loads of the table, round after round; or the table of results that are there already (`--from`). False where
  /// a threshold is missed, a run was violated, or nothing could be judged.
  static func figures(_ words: [String]) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .figures)
    try options.nothingIsMeasured(with: "from", but: ["json", "output", "server-cpu", "threads"])
    let (json, output) = (
      try OutputFile.optional(options.string("json")), try OutputFile.optional(options.string("output"))
    )
    let results: Results
    if let file = options.string("from") {
      results = try Results(parsing: try readText(file), file: file)
      guard results.kind == SpeedRun.kind else {
        throw .usage("\(file) was not written by `figures --json`: its runs are not the loads of the table")
      }
    } else {
      var run = SpeedRun(options: try options.run())
      try HubProcess.check(executable: run.options.executable)
      run.keep = { (results) throws(LoadTestError) in try json?.update(results.json) }
      run.rounds = try options.whole("rounds", or: run.rounds)
      run.seconds = try options.number("seconds", or: run.seconds)
      run.scale = try options.number("scale", or: run.scale, in: 0.001...1)
      if let names = options.string("only") {
        let wanted = names.split(separator: ",").map { String($0.trimmed) }
        guard !wanted.isEmpty, wanted.allSatisfy(SpeedRun.names.contains) else {
          throw .usage(
            "--only takes names, with commas between them, out of: \(SpeedRun.names.joined(separator: ", "))")
        }
        run.only = Set(wanted)
      }
      run.directory = options.string("data") ?? run.directory
      run.progress = { StandardStream.error.write($0 + "\n") }
      results = try run.run()
    }
    try json?.write(results.json)
    let table = SpeedTable(results)
    try output?.write(table.markdown)
    show(table.markdown)
    return table.isGood
  }

  /// All sizes of all curves, round after round. False where a run does not count, or a curve misses its threshold.
  static func growth(_ words: [String]) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .growth)
    let (json, html) = (
      try OutputFile.optional(options.string("json")), try OutputFile.optional(options.string("html"))
    )
    var run = GrowthRun(options: try options.run())
    try HubProcess.check(executable: run.options.executable)
    run.keep = { (results) throws(LoadTestError) in try json?.update(results.json) }
    run.rounds = try options.whole("rounds", or: run.rounds)
    run.seconds = try options.number("seconds", or: run.seconds)
    run.scale = try options.number("scale", or: run.scale, in: 0.001...1)
    run.progress = { StandardStream.error.write($0 + "\n") }
    let results = try run.run()
    try json?.write(results.json)
    try html?.write(HTMLReport.page([("growth", results)]))
    let lines = GrowthCurve.allCases.compactMap { GrowthLine($0, results.runs) }
    for line in lines { show(line.text) }
    return results.runs.allSatisfy(\.isGood) && !lines.contains { $0.verdict == .missed }
  }
}
