// hub-loadtest bench and capacity: what make bench and make capacity call.
import LoadTestKit
import Transport

enum MeasuringVerbs {
  static func bench(_ words: [String]) throws(LoadTestError) -> Bool {
    let options = try options(words, ["--thresholds", "--executable"])
    let file = options["--thresholds"] ?? "loadtest/thresholds.json"
    let thresholds = try Bench.thresholds(parsing: try readText(file), file: file)
    return try Bench(executable: options["--executable"] ?? Machine.hubBesides()).run(thresholds)
  }

  /// Measures the terms, or reads them (`--terms`), and writes what follows from them. `--drivers`, `--fixes` and
  /// `--seconds`: of how many drivers the three sizes are, how many fixes a second they send together, how long each run is.
  static func capacity(_ words: [String]) throws(LoadTestError) -> Bool {
    let options = try options(
      words,
      ["--terms", "--json", "--output", "--server-cpu", "--executable", "--drivers", "--fixes", "--seconds"])
    let terms: CapacityTerms
    if let file = options["--terms"] {
      terms = try CapacityTerms(parsing: try readText(file), file: file)
    } else {
      var run = RunOptions(executable: options["--executable"] ?? Machine.hubBesides())
      run.serverCPU = options["--server-cpu"]
      var measuring = CapacityMeasuring(options: run)
      if let sizes = options["--drivers"] {
        measuring.drivers = sizes.split(separator: ",").compactMap { Int($0) }
        guard measuring.drivers.count == 3, measuring.drivers == measuring.drivers.sorted(), measuring.drivers[0] > 0,
          Set(measuring.drivers).count == 3
        else { throw .usage("--drivers must be three growing numbers, for instance 500,2000,8000") }
      }
      measuring.fixesPerSecond = try number("--fixes", options, or: measuring.fixesPerSecond)
      measuring.seconds = try number("--seconds", options, or: measuring.seconds)
      measuring.progress = { StandardStream.error.write($0 + "\n") }
      terms = try measuring.measure(machine: Machine.description())
    }
    if let path = options["--json"] { try write(terms.json, to: path) }
    let text = CapacityModel(terms).markdown()
    if let path = options["--output"] { try write(text, to: path) } else { show(text) }
    return true
  }

  private static func number(
    _ name: String, _ options: [String: String], or other: Double
  ) throws(LoadTestError) -> Double {
    guard let text = options[name] else { return other }
    guard let value = Double(text), value > 0, value < 1e6 else { throw .usage("\(name) must be a positive number") }
    return value
  }

  private static func options(_ words: [String], _ known: Set<String>) throws(LoadTestError) -> [String: String] {
    var options: [String: String] = [:]
    var words = words[...]
    while let word = words.popFirst() {
      guard known.contains(word) else { throw .usage("there is no option \(word) here") }
      guard let value = words.popFirst() else { throw .usage("\(word) needs a value") }
      options[word] = value
    }
    return options
  }
}
