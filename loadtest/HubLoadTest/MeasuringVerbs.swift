// hub-loadtest bench and capacity: what make bench and make capacity call.
import HubCommandLine
import HubLoadTestKit
import HubSystem

enum MeasuringVerbs {
  static func bench(_ words: [String]) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .bench)
    let file = options.string("thresholds") ?? "loadtest/thresholds.json"
    let executable = options.string("executable") ?? Machine.hubBesides()
    try HubProcess.check(executable: executable)
    let thresholds = try Bench.thresholds(parsing: try readText(file), file: file)
    return try Bench(executable: executable).run(thresholds)
  }

  /// Measures the terms, or reads them (`--terms`), and writes what follows from them. `--drivers`, `--fixes` and
  /// `--seconds`: of how many drivers the three sizes are, how many fixes a second they send together, how long each
  /// run is. False where runs that they are made of do not count, which the text says.
  static func capacity(_ words: [String]) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .capacity)
    try options.nothingIsMeasured(with: "terms", but: ["json", "output", "crossing", "server-cpu", "threads"])
    let (json, output) = (
      try OutputFile.optional(options.string("json")), try OutputFile.optional(options.string("output"))
    )
    var terms: CapacityTerms
    if let file = options.string("terms") {
      terms = try CapacityTerms(parsing: try readText(file), file: file)
    } else {
      var measuring = CapacityMeasuring(options: try options.run())
      try HubProcess.check(executable: measuring.options.executable)
      measuring.directory = options.string("data") ?? measuring.directory
      if let sizes = options.string("drivers") {
        // What is no number is 0 here, and refused as that.
        measuring.drivers = sizes.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        guard measuring.drivers.count == 3, measuring.drivers == measuring.drivers.sorted(),
          measuring.drivers[0] >= CapacityMeasuring.fewestDrivers, measuring.drivers[2] <= 1_000_000,
          Set(measuring.drivers).count == 3
        else {
          throw .usage(
            "--drivers must be three growing numbers from \(CapacityMeasuring.fewestDrivers) to 1000000, for instance "
              + "500,2000,8000"
          )
        }
      }
      measuring.fixesPerSecond = try options.number("fixes", or: measuring.fixesPerSecond, in: 100...1_000_000)
      measuring.seconds = try options.number("seconds", or: measuring.seconds)
      measuring.progress = { StandardStream.error.write($0 + "\n") }
      terms = try measuring.measure(machine: Machine.description())
    }
    if let file = options.string("crossing") {
      terms.crossing = try CapacityTerms.Crossing(parsing: try readText(file), file: file)
    }
    try json?.write(terms.json)
    let text = CapacityModel(terms).markdown()
    if let output { try output.write(text) } else { show(text) }
    return terms.doubts.isEmpty
  }
}
