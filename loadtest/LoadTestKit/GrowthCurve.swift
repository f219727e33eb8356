// How what a message costs grows with one number while all else stays: how many connections there are, how many drivers
// stand in the index, how many channels are followed. The rate of all together is the same at each size.

package enum GrowthCurve: String, CaseIterable, Sendable {
  case connections
  case index
  case channels

  /// What grows.
  package var figure: Figure {
    switch self {
    case .connections: .connections
    case .index: .fleet
    case .channels: .quietChannels
    }
  }

  package var title: String {
    switch self {
    case .connections: "connections"
    case .index: "drivers in the index"
    case .channels: "channels that are followed"
    }
  }

  package var sizes: [Int] {
    switch self {
    case .connections: [1000, 2000, 4000, 9000, 18_000]
    case .index: [1000, 10_000, 100_000, 1_000_000]
    case .channels: [10, 100, 1000, 10_000, 100_000]
    }
  }

  /// Fixes a second of all drivers: many, for what is counted are samples or the kernel's ticks.
  static let fixesPerSecond = 18_000 * SpeedLoad.offTheTicks
  /// Of the curves in which connections stay as they are.
  static let drivers = 1000
  /// Who follow the channels on which nothing happens: a session may have 256 subscriptions.
  static let followers = 400

  package func scenario(size: Int) -> Scenario {
    var scenario = Scenario()
    scenario.name = rawValue
    scenario.ridersPerTrip = 1
    scenario.inFlight = 1000
    // Nobody goes offline meanwhile for saying nothing.
    scenario.serve = ["--accept-rate", "0", "--sampling", "3600"]
    switch self {
    case .connections:
      scenario.about = "a rider follows each driver's trip, with more and more of them"
      scenario.drivers = max(1, size / 2)
    case .index:
      scenario.about = "1,000 drivers and their riders, while more and more others stand in the index"
      scenario.drivers = GrowthCurve.drivers
      scenario.fleet = size
    case .channels:
      scenario.about =
        "1,000 drivers and their riders, while more and more channels are followed on which nothing happens"
      scenario.drivers = GrowthCurve.drivers
      scenario.idle = GrowthCurve.followers
      scenario.quietChannels = size
    }
    scenario.rate = GrowthCurve.fixesPerSecond / Double(scenario.drivers)
    return scenario
  }
}

/// make growth: all sizes of all curves in turn, round after round.
package struct GrowthRun {
  package var options: RunOptions
  package var rounds = 3
  package var seconds = 10.0
  /// Of sizes and of the rate: 1 is what the curves are about.
  package var scale = 1.0
  package var progress: (String) -> Void = { _ in }
  /// Called with all that there is, after each run.
  package var keep: (Results) throws(LoadTestError) -> Void = { _ in }

  package init(options: RunOptions) {
    self.options = options
    // A million drivers are sent to the hub one by one.
    self.options.connectSeconds = 300
    self.options.samplesModes = true
  }

  package func run() throws(LoadTestError) -> Results {
    var results = Results(machine: Machine.description(), runs: [])
    for round in 0..<rounds {
      for curve in GrowthCurve.allCases {
        for size in curve.sizes {
          if options.interruption.signal != nil { return results }
          let scenario = sized(curve, size)
          progress("round \(round + 1) of \(rounds): \(curve.title), \(grouped(Int(Double(size) * scale)))")
          results.runs.append(LoadRun(scenario, options).runOrSay())
          try keep(results)
        }
      }
    }
    return results
  }

  private func sized(_ curve: GrowthCurve, _ size: Int) -> Scenario {
    var scenario = curve.scenario(size: max(1, Int(Double(size) * scale)))
    if scale < 1, curve != .connections { scenario.drivers = max(1, Int(Double(scenario.drivers) * scale)) }
    scenario.rate = GrowthCurve.fixesPerSecond * scale / Double(scenario.drivers)
    scenario.duration = seconds
    scenario.warmUp = min(2, seconds)
    return scenario
  }
}
