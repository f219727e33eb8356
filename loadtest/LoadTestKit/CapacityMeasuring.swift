// The terms of the capacity model, each measured by runs of its own.
import HubCommandLine
import HubSystem

package struct CapacityMeasuring {
  package var options: RunOptions
  /// Drivers of the three sizes; their fixes a second are the same, so that only the number of connections differs.
  package var drivers = [500, 2000, 8000]
  /// With fewer, memory of a session is that of the hub's own tables, which grow in steps.
  package static let fewestDrivers = LoadRun.fewestForMemory / 2
  package var fixesPerSecond = 4000.0
  package var seconds = 8.0
  /// Under which directory a journal is made.
  package var directory = "/tmp"
  /// Called with a line before each run.
  package var progress: (String) -> Void = { _ in }
  /// What speaks against a run: the load itself was the limit.
  private let doubts = Locked<[String]>([])

  package init(options: RunOptions) { self.options = options }

  package func measure(machine: String) throws(LoadTestError) -> CapacityTerms {
    var points: [CapacityTerms.Point] = []
    var (fixBytes, positionBytes) = (0.0, 0.0)
    var (ofDrivers, ofPairs): ([Double], [Double]) = ([], [])
    let idle = try run("sessions that only are there", needs: memory + [.cpuPerConnection, .hubCores]) {
      $0.idle = 2 * drivers[1]
    }
    let manyIdle = try run("more of them", needs: memory) { $0.idle = 2 * drivers[2] }
    for count in drivers {
      // As many connections as with the riders, so that these cost a fix as much in both.
      let alone = try run(
        "\(count) drivers whom nobody follows, and as many idle sessions", needs: memory + [.cpuPerFix, .bytesInPerFix]
      ) {
        $0.drivers = count
        $0.idle = count
        $0.rate = fixesPerSecond / Double(count)
      }
      let followed = try run(
        "\(count) drivers, each with a rider", needs: memory + [.cpuPerFix, .bytesOutPerDelivery]
      ) {
        $0.drivers = count
        $0.rate = fixesPerSecond / Double(count)
        $0.ridersPerTrip = 1
      }
      points.append(
        CapacityTerms.Point(
          connections: Double(2 * count), fix: alone[.cpuPerFix], fixAndPosition: followed[.cpuPerFix]))
      fixBytes = alone[.bytesInPerFix]
      positionBytes = followed[.bytesOutPerDelivery]
      ofDrivers.append(alone.residentAtEnd)
      ofPairs.append(followed.residentAtEnd)
    }
    // Memory is what there is when all trips have begun: the sessions', and the drivers', trips' and channels'.
    let more = Double(drivers[2] - drivers[1])
    let idleBytes = max(0, (manyIdle.residentAtEnd - idle.residentAtEnd) / (2 * more))
    let driverBytes = max(0, (ofDrivers[2] - ofDrivers[1]) / more - idleBytes)
    let riderBytes = max(0, (ofPairs[2] - ofPairs[1]) / more - driverBytes)
    let crowd = try measureCrowds()
    let stored = try measureStored()
    let heartbeats = try run(
      "the same with a heartbeat each second", serve: ["--heartbeat", "1"], needs: [.hubCores]
    ) {
      $0.idle = 2 * drivers[1]
    }
    let pings = Double(2 * drivers[1])
    return CapacityTerms(
      machine: machine, points: points, delivery: crowd.delivery,
      heartbeat: max(0, heartbeats[.hubCores] - idle[.hubCores]) * 1e6 / pings, connection: idle[.cpuPerConnection],
      idleBytes: idleBytes, riderBytes: riderBytes, driverBytes: driverBytes, fixBytes: fixBytes,
      positionBytes: positionBytes, mapUpdate: crowd.map[.cpuPerAreaUpdate],
      mapBytes: crowd.map[.bytesOutPerAreaUpdate],
      stored: max(0, stored[.cpuPerFix] - points[1].fix),
      storedBytes: stored[.journalGroups] * stored[.journalBytes] / max(1, stored[.fixesPerSecond] * seconds),
      doubts: doubts.withLock { $0 })
  }

  /// What `RunResult.residentAtEnd` is of.
  private var memory: [Figure] { [.residentBytes, .bytesUnderLoad, .bytesPerConnection] }

  /// What one more follower costs, and one who looks at a map that many look at.
  private func measureCrowds() throws(LoadTestError) -> (delivery: Double, map: RunResult) {
    let costs = [Figure.hubCores, .deliveriesPerSecond]
    let few = try run("10 drivers, each with 100 riders", needs: costs) { fanOut(&$0, riders: 100) }
    let many = try run("10 drivers, each with 400 riders", needs: costs) { fanOut(&$0, riders: 400) }
    let moreCPU = many[.hubCores] - few[.hubCores]
    let moreDeliveries = many[.deliveriesPerSecond] - few[.deliveriesPerSecond]
    guard moreDeliveries > 0 else { throw .failed("more riders did not get more") }
    // As often as drivers send in the load that the model is for: 20 fixes a minute.
    let map = try run(
      "a map with 100 drivers that many look at", needs: [.cpuPerAreaUpdate, .bytesOutPerAreaUpdate]
    ) {
      $0.drivers = 100
      $0.rate = 1 / 3.0
      $0.watchers = 2 * drivers[1]
    }
    return (moreCPU * 1e6 / moreDeliveries, map)
  }

  /// The middle size again, with a journal.
  private func measureStored() throws(LoadTestError) -> RunResult {
    let folder = try TemporaryFolder(in: directory)
    defer { withExtendedLifetime(folder) {} }
    return try run(
      "\(drivers[1]) drivers whose fixes are stored", serve: ["--data", folder.path],
      needs: [.cpuPerFix, .fixesPerSecond, .journalGroups, .journalBytes]
    ) {
      $0.drivers = drivers[1]
      $0.idle = drivers[1]
      $0.rate = fixesPerSecond / Double(drivers[1])
    }
  }

  private func fanOut(_ scenario: inout Scenario, riders: Int) {
    scenario.drivers = 10
    scenario.rate = 1
    scenario.ridersPerTrip = riders
  }

  private func run(
    _ what: String, serve: [String] = [], needs: [Figure], _ set: (inout Scenario) -> Void
  ) throws(LoadTestError) -> RunResult {
    progress(what)
    var scenario = Scenario()
    scenario.name = "capacity"
    scenario.about = what
    scenario.duration = seconds
    scenario.warmUp = min(2, seconds)
    scenario.serve = serve
    set(&scenario)
    let result = try LoadRun(scenario, options).run()
    try options.interruption.check()
    guard result.violations.isEmpty else { throw .failed("\(what): \(result.violations.joined(separator: "; "))") }
    for reason in result.invalid { progress("  not to be trusted: \(reason)") }
    doubts.withLock { $0 += result.invalid.map { "\(what): \($0)" } }
    try CapacityMeasuring.check(result, has: needs)
    return result
  }

  /// Throws where a figure is missing that a term is made of: it would count as nothing.
  static func check(_ run: RunResult, has figures: [Figure]) throws(LoadTestError) {
    for figure in figures where run.figures[figure] == nil {
      throw .failed("\(run.about): not measured: \(figure.title)")
    }
  }
}
