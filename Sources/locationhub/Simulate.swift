// `simulate`: drivers of a simulated city, over real connections.
import Glibc
import HubClientLoop
import HubCommandLine
import HubGeo
import HubMessages
import HubSimulation
import HubSystem
import HubTransport

/// The default of `--drivers`.
private let simulatedDrivers = 100

let simulate = Verb(
  name: "simulate", operands: "",
  summary: """
    Drives N simulated cars through a simulated city and sends what their phones measure.
    The same seed gives the same drives; timestamps are the real clock's. Ends by --duration, SIGINT or SIGTERM.
    """,
  options: ClientOptions.options + FleetOptions.options(drivers: simulatedDrivers) + [
    Option("trips", nil, "drivers serve trips with routes, rest, and go offline for a while")
  ],
  run: runSimulate)

private func runSimulate(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let options = try ClientOptions(arguments)
  let fleetOptions = try FleetOptions(arguments, drivers: simulatedDrivers)
  try options.checkTokens(for: fleetOptions.drivers)
  try system { () throws(SystemError) in try blockSignals([SIGINT, SIGTERM]) }
  try raiseOpenFileLimit(for: fleetOptions.drivers)
  let clients = try options.makeLoop()
  let plan = try FleetPlan(fleetOptions, options, hasTrips: arguments.has("trips"))
  let simulation = Simulator(clients, options, Fleet(clients, plan))
  try clients.stopAtSignals()
  return try simulation.run()
}

/// Each connection is a descriptor, and a usual limit is 1024.
func raiseOpenFileLimit(for connections: Int) throws(CommandError) {
  let wanted = connections + 64
  let limit = try system { () throws(SystemError) in try ProcessFacts.raiseOpenFileLimit(to: wanted) }
  guard limit >= wanted else {
    throw .failed(
      "\(connections) connections need \(wanted) open files, but only \(limit) are allowed: raise ulimit -n")
  }
}

/// Runs a fleet and prints its state once a second.
private final class Simulator: FleetObserver {
  private let clients: ClientLoop
  private let options: ClientOptions
  private let fleet: Fleet
  private var report: ConnectionReport
  private var failure: CommandError?
  private var display = StatusDisplay()
  private let started: Int64
  private var lastFixes: UInt64 = 0

  init(_ clients: ClientLoop, _ options: ClientOptions, _ fleet: Fleet) {
    self.clients = clients
    self.options = options
    self.fleet = fleet
    started = clients.now.uptime
    report = ConnectionReport(timeoutSeconds: options.connectTimeout, now: started)
    fleet.observer = self
  }

  func run() throws(CommandError) -> ExitCode {
    fleet.start()
    clients.run()
    fleet.end()
    finish(clients)
    display.end()
    if let failure = failure ?? report.neverConnected(options.url) { throw failure }
    StandardStream.output.write(summary() + "\n")
    return .ok
  }

  func opened(_ driver: Int) {
    if fleet.openCount == 1 { report.opened(options.url) }
  }

  /// The hub counts as unreachable only when no driver is connected; single drivers disconnect and return.
  func closed(_ driver: Int, _ disconnection: Disconnection) {
    guard fleet.openCount == 0, disconnection.cause != .closedByUs else { return }
    if case .ended = disconnection.next, fleet.endedCount < fleet.options.drivers { return }
    display.end()
    guard let failed = report.closed(disconnection, options.url, now: clients.now.uptime) else { return }
    failure = failure ?? failed
    clients.stop()
  }

  func moved(_ driver: Int, _ trip: Identifier, _ status: TripStatus) {}

  func second() {
    let now = clients.now.uptime
    if fleet.openCount == 0, let failure = report.check(now: now, options.url) {
      self.failure = failure
      return clients.stop()
    }
    let fixes = fleet.fixesSent
    display.show(
      "\(fleet.openCount) of \(fleet.options.drivers) drivers connected, \(fixes - lastFixes) fixes/s, "
        + "\(fleet.errors) refused, \(fleet.activeTrips) trips")
    lastFixes = fixes
    if let duration = fleet.options.duration, Double(now - started) / 1e9 >= duration { clients.stop() }
  }

  private func summary() -> String {
    let seconds = Double(clients.now.uptime - started) / 1e9
    return "\(fleet.options.drivers) drivers sent \(fleet.fixesSent) fixes in \(fixed(seconds, 1)) s "
      + "(\(fixed(Double(fleet.fixesSent) / max(seconds, 0.001), 1))/s), \(fleet.errors) refused, "
      + "\(fleet.lostConnections) connections lost, \(fleet.tripsEnded) trips ended"
  }
}
