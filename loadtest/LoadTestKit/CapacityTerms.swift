// What the capacity model is computed from: what one of each thing costs, measured here, each by a run of its own.
import Tokens

package struct CapacityTerms: Sendable, Equatable {
  /// CPU of a hub, µs, at one number of connections: a fix that nobody follows, and with one follower.
  package struct Point: Sendable, Equatable {
    package var connections: Double
    package var fix: Double
    package var fixAndPosition: Double
  }

  package var machine: String
  /// Three sizes, growing.
  package var points: [Point]
  /// CPU of one position more where many follow, µs.
  package var delivery: Double
  /// CPU of a ping and its pong, and of a connection, its upgrade and `connected`, µs.
  package var heartbeat: Double
  package var connection: Double
  /// Resident bytes: a session that says nothing, a rider who follows a trip, a driver with a trip.
  package var idleBytes: Double
  package var riderBytes: Double
  package var driverBytes: Double
  /// Bytes on the socket: of a fix, and of a position.
  package var fixBytes: Double
  package var positionBytes: Double

  package var json: String {
    JSONText.record([
      ("machine", .text(machine)),
      // [connections, µs for a fix, µs for a fix and its position]
      ("points", .list(points.map { .row([$0.connections, $0.fix, $0.fixAndPosition]) })),
      ("delivery", .number(delivery)), ("heartbeat", .number(heartbeat)), ("connection", .number(connection)),
      ("idleBytes", .number(idleBytes)), ("riderBytes", .number(riderBytes)), ("driverBytes", .number(driverBytes)),
      ("fixBytes", .number(fixBytes)), ("positionBytes", .number(positionBytes)),
    ]).text
  }

  package init(parsing text: String, file: String) throws(LoadTestError) {
    guard let members = JSONValue(parsing: text.utf8)?.members, let rows = Results.rows(members["points"], 3),
      rows.count == 3
    else { throw .failed("\(file) is no file of capacity terms") }
    func number(_ name: String) throws(LoadTestError) -> Double {
      guard let value = members[name]?.number else { throw .failed("\(file) lacks \(name)") }
      return value
    }
    machine = members["machine"]?.string ?? ""
    points = rows.map { Point(connections: $0[0], fix: $0[1], fixAndPosition: $0[2]) }
    delivery = try number("delivery")
    heartbeat = try number("heartbeat")
    connection = try number("connection")
    idleBytes = try number("idleBytes")
    riderBytes = try number("riderBytes")
    driverBytes = try number("driverBytes")
    fixBytes = try number("fixBytes")
    positionBytes = try number("positionBytes")
  }

  package init(
    machine: String, points: [Point], delivery: Double, heartbeat: Double, connection: Double, idleBytes: Double,
    riderBytes: Double, driverBytes: Double, fixBytes: Double, positionBytes: Double
  ) {
    self.machine = machine
    self.points = points
    self.delivery = delivery
    self.heartbeat = heartbeat
    self.connection = connection
    self.idleBytes = idleBytes
    self.riderBytes = riderBytes
    self.driverBytes = driverBytes
    self.fixBytes = fixBytes
    self.positionBytes = positionBytes
  }
}

/// Measures the terms.
package struct CapacityMeasuring {
  package var options: RunOptions
  /// Drivers of the three sizes; their fixes a second are the same, so that only the number of connections differs.
  package var drivers = [500, 2000, 8000]
  package var fixesPerSecond = 4000.0
  package var seconds = 8.0
  /// Called with a line before each run.
  package var progress: (String) -> Void = { _ in }

  package init(options: RunOptions) { self.options = options }

  package func measure(machine: String) throws(LoadTestError) -> CapacityTerms {
    var points: [CapacityTerms.Point] = []
    var (driverBytes, riderBytes, fixBytes, positionBytes) = (0.0, 0.0, 0.0, 0.0)
    for count in drivers {
      let alone = try run("\(count) drivers whom nobody follows") {
        $0.drivers = count
        $0.rate = fixesPerSecond / Double(count)
      }
      let followed = try run("\(count) drivers, each with a rider") {
        $0.drivers = count
        $0.rate = fixesPerSecond / Double(count)
        $0.ridersPerTrip = 1
      }
      points.append(
        CapacityTerms.Point(
          connections: Double(2 * count), fix: alone[.cpuPerFix], fixAndPosition: followed[.cpuPerFix]))
      fixBytes = alone[.bytesInPerFix]
      positionBytes = followed[.bytesOutPerDelivery]
      // Memory is what there is when all trips have begun: the sessions', and the drivers', trips' and channels'.
      driverBytes = alone[.bytesUnderLoad]
      riderBytes = max(0, followed[.bytesUnderLoad] * 2 - driverBytes)
    }
    let few = try run("10 drivers, each with 100 riders") { fanOut(&$0, riders: 100) }
    let many = try run("10 drivers, each with 400 riders") { fanOut(&$0, riders: 400) }
    let moreCPU = many[.hubCores] - few[.hubCores]
    let moreDeliveries = many[.deliveriesPerSecond] - few[.deliveriesPerSecond]
    guard moreDeliveries > 0 else { throw .failed("more riders did not get more") }
    let idle = try run("sessions that only are there") { $0.idle = 2 * drivers[1] }
    let heartbeats = try run("the same with a heartbeat each second", serve: ["--heartbeat", "1"]) {
      $0.idle = 2 * drivers[1]
    }
    let pings = Double(2 * drivers[1])
    return CapacityTerms(
      machine: machine, points: points, delivery: moreCPU * 1e6 / moreDeliveries,
      heartbeat: max(0, heartbeats[.hubCores] - idle[.hubCores]) * 1e6 / pings, connection: idle[.cpuPerConnection],
      idleBytes: idle[.bytesPerConnection], riderBytes: riderBytes, driverBytes: driverBytes, fixBytes: fixBytes,
      positionBytes: positionBytes)
  }

  private func fanOut(_ scenario: inout Scenario, riders: Int) {
    scenario.drivers = 10
    scenario.rate = 1
    scenario.ridersPerTrip = riders
  }

  private func run(
    _ what: String, serve: [String] = [], _ set: (inout Scenario) -> Void
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
    guard result.violations.isEmpty else { throw .failed("\(what): \(result.violations.joined(separator: "; "))") }
    for reason in result.invalid { progress("  not to be trusted: \(reason)") }
    return result
  }
}
