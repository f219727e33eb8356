// make bench: what a message costs in figures that come out the same on a busy machine, held against limits in a file.
// For times and rates there are the scenarios; a limit on those would fail with the weather.
//
// Instructions and allocations of one message are differences: the hub runs twice under callgrind, with few messages
// and with more, and what it did more is divided by the messages that were more. So its start, and connecting, do not
// count. Each fix waits for the positions of the one before: else a busy machine lets several come at once, of which
// each costs less; and turns are not paced, which makes of their number a matter of how fast valgrind is that day.
import Glibc
import HubBytes
import HubCommandLine

/// What is bounded.
package enum BenchFigure: String, CaseIterable, Sendable {
  /// One fix in and one position out.
  case instructionsPerFix, allocationsPerFix
  /// One of the positions that a fix becomes where many follow.
  case instructionsPerDelivery, allocationsPerDelivery
  /// Resident memory of a session that says nothing.
  case bytesPerConnection

  func text(_ value: Double) -> String {
    switch self {
    case .instructionsPerFix, .instructionsPerDelivery, .bytesPerConnection: grouped(Int(value.rounded()))
    case .allocationsPerFix, .allocationsPerDelivery: decimals(value, 3)
    }
  }
}

package struct Bench {
  package let executable: String
  /// Fixes of the two runs under callgrind, with one follower, and where a hundred follow.
  package var fixes = (few: 200, many: 4200)
  package var fixesInFanOut = (few: 10, many: 50)
  /// Sessions of the two runs whose memory is compared: what the hub has whether anybody comes or not does not count.
  package var sessions = (few: 2000, many: 10_000)

  package init(executable: String) { self.executable = executable }

  /// The upper bounds in a file: {"instructionsPerFix": 17000, …}.
  package static func thresholds(
    parsing text: String, file: String
  ) throws(LoadTestError) -> [(figure: BenchFigure, limit: Double)] {
    guard let members = JSONValue(parsing: text.utf8)?.members else { throw .failed("\(file) is no JSON object") }
    var limits: [BenchFigure: Double] = [:]
    for (name, value) in members {
      guard let figure = BenchFigure(rawValue: name) else { throw .failed("\(file): there is no figure \(name)") }
      guard let limit = value.number, limit >= 0 else { throw .failed("\(file): \(name) is no bound") }
      limits[figure] = limit
    }
    return BenchFigure.allCases.compactMap { figure in limits[figure].map { (figure, $0) } }
  }

  /// Measures what is bounded, and shows it. False where something is over its bound.
  package func run(_ thresholds: [(figure: BenchFigure, limit: Double)]) throws(LoadTestError) -> Bool {
    var measured: [BenchFigure: Double] = [:]
    if CallgrindProfile.isAvailable {
      let trip = try difference(.trip)
      measured[.instructionsPerFix] = trip.instructions
      measured[.allocationsPerFix] = trip.allocations
      let fanOut = try difference(.fanOut)
      measured[.instructionsPerDelivery] = fanOut.instructions
      measured[.allocationsPerDelivery] = fanOut.allocations
    } else {
      show("skipped, for there is no valgrind: instructions and allocations (apt-get install valgrind)")
    }
    measured[.bytesPerConnection] = try bytesPerConnection()
    return Bench.judge(measured, thresholds)
  }

  /// Shows each bounded figure; false where one is over its bound.
  static func judge(_ measured: [BenchFigure: Double], _ thresholds: [(figure: BenchFigure, limit: Double)]) -> Bool {
    var isGood = true
    for (figure, limit) in thresholds {
      guard let value = measured[figure] else { continue }
      let isOver = value > limit
      isGood = isGood && !isOver
      show(
        padded(figure.rawValue, to: 26) + padded(figure.text(value), to: 12, right: true) + "  at most "
          + padded(figure.text(limit), to: 10, right: true) + (isOver ? "  OVER" : ""))
    }
    return isGood
  }

  // MARK: Measuring

  private enum Load { case trip, fanOut }

  private func scenario(_ load: Load, fixes: Int) -> Scenario {
    var scenario = Scenario()
    switch load {
    case .trip:
      scenario.name = "trip"
      scenario.drivers = 40
      scenario.ridersPerTrip = 1
    case .fanOut:
      scenario.name = "fan-out"
      scenario.drivers = 2
      scenario.ridersPerTrip = 100
    }
    scenario.lockstep = fixes
    scenario.warmUp = 0
    scenario.serve += ["--turn-pace", "0"]
    // It ends with the last fix.
    scenario.duration = 300
    return scenario
  }

  /// What one message costs: a fix with its position, or one of a fix's positions.
  private func difference(_ load: Load) throws(LoadTestError) -> (instructions: Double, allocations: Double) {
    let counts = load == .trip ? fixes : fixesInFanOut
    let (few, many) = (try profile(load, counts.few), try profile(load, counts.many))
    let messages = many.messages - few.messages
    guard messages > 0 else { throw .failed("under valgrind the hub was too slow to get all messages in five minutes") }
    return (
      (many.profile.instructions - few.profile.instructions) / messages,
      max(0, many.profile.allocations - few.profile.allocations) / messages
    )
  }

  private func profile(
    _ load: Load, _ fixes: Int
  ) throws(LoadTestError) -> (profile: CallgrindProfile, messages: Double) {
    let path = "/tmp/hub-loadtest-\(getpid()).callgrind"
    defer { unlink(path) }
    var options = RunOptions(executable: executable)
    options.wrapper = ["valgrind", "--tool=callgrind", "--callgrind-out-file=\(path)"]
    options.quiet = true
    // It writes its profile when it ends.
    options.stopSeconds = 120
    let result = try LoadRun(scenario(load, fixes: fixes), options).run()
    try options.interruption.check()
    guard result.violations.isEmpty else {
      throw .failed("under valgrind: \(result.violations.joined(separator: "; "))")
    }
    guard let profile = CallgrindProfile(parsing: try readText(path)) else {
      throw .failed("valgrind left no profile in \(path)")
    }
    return (profile, result[load == .trip ? .sent : .delivered])
  }

  private func bytesPerConnection() throws(LoadTestError) -> Double {
    let few = try residentBytes(sessions.few)
    return (try residentBytes(sessions.many) - few) / Double(sessions.many - sessions.few)
  }

  func residentBytes(_ count: Int) throws(LoadTestError) -> Double {
    var scenario = Scenario()
    scenario.name = "idle"
    scenario.idle = count
    scenario.warmUp = 0
    scenario.duration = 0.2
    let options = RunOptions(executable: executable)
    let result = try LoadRun(scenario, options).run()
    try options.interruption.check()
    guard result.violations.isEmpty else {
      throw .failed("\(count) sessions: \(result.violations.joined(separator: "; "))")
    }
    guard let bytes = result.figures[.residentBytes] else { throw .failed("there is no /proc of the hub") }
    return bytes
  }
}
