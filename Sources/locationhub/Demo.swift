// `demo`: a hub, a city of drivers and their riders, in one process over real WebSockets, with live figures.
//
// Two threads beside the hub's: the drivers' loop, and the riders' loop, which is the main thread and shows the
// figures. A position's latency is measured from the driver's send to the rider's receipt, by one clock.
//
// Riders are clients of a ClientLoop like the drivers (see Fleet.swift): with a RiderHub, and so a thread, for each of
// hundreds, the latency would be that of the machine's scheduler.
import Glibc
import HubBytes
import HubClientLoop
import HubCommandLine
import HubGateway
import HubGeo
import HubMessages
import HubPages
import HubRuntime
import HubSystem
import HubTokens
import HubTransport

/// The default of `--drivers`.
private let demoDrivers = 200

let demo = Verb(
  name: "demo", operands: "",
  summary: """
    Shows a hub at work: simulated drivers serve trips, and their riders follow them.
    Starts a hub on this machine, or uses the one at --url, and shows once a second what goes in and out of it and how
    long a position takes from driver to rider. Ends by --duration, SIGINT or SIGTERM.
    """,
  options: [
    Option("port", "PORT", "the hub's TCP port; 0 picks a free one (8080)"),
    Option("loops", "N", "the hub's event loops, 1-64 (1)"),
    Option("data", "DIR", "the hub's journal (a directory of its own in /tmp, gone at the end)"),
    Option("url", "URL", "the WebSocket of a hub that runs already (without: a hub of its own)"),
  ] + ClientOptions.options.filter { !["url", "token", "token-file"].contains($0.name) }
    + FleetOptions.options(drivers: demoDrivers),
  run: runDemo)

private func runDemo(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let fleetOptions = try FleetOptions(arguments, drivers: demoDrivers)
  try system { () throws(SystemError) in
    try blockSignals([SIGINT, SIGTERM, SIGPIPE])
    try ignoreSignals([SIGXFSZ, SIGUSR1, SIGUSR2])  // as in `serve`, since it contains a hub
  }
  // Two clients for each driver here, and the hub's ends of them.
  try raiseOpenFileLimit(for: fleetOptions.drivers * 4)
  let ownJournal = arguments.string("url") == nil && arguments.string("data") == nil ? try TemporaryJournal() : nil
  let server = try startHub(arguments, fleetOptions, journal: arguments.string("data") ?? ownJournal?.path)
  defer {
    server?.drain()
    server?.wait()
    withExtendedLifetime(ownJournal) {}
  }
  let options = try ClientOptions(
    arguments, defaultURL: "ws://\(server.map { "\($0.address)" } ?? "127.0.0.1:8080")/v1/ws")
  var riders: [Identifier] = []
  for index in 0..<fleetOptions.drivers {
    guard let id = Identifier("\(fleetOptions.prefix)rider-\(index)") else { throw .usage("--prefix is too long") }
    riders.append(id)
  }
  let plan = try FleetPlan(fleetOptions, options, hasTrips: true, riders: riders, head: Demo.headSeconds)
  let demo = try Demo(plan, options, server)
  return try demo.run()
}

/// The hub of the demo; nil where an existing one is used.
private func startHub(
  _ arguments: Arguments, _ fleet: FleetOptions, journal directory: String?
) throws(CommandError) -> Server? {
  guard arguments.string("url") == nil else {
    guard arguments.string("data") == nil else { throw .usage("--data is for a hub of the demo's own, not for --url") }
    return nil
  }
  var configuration = ServerConfiguration()
  configuration.port = try arguments.value("port", .whole(0...65535)) ?? 8080
  configuration.loops = try arguments.value("loops", .whole(1...64)) ?? 1
  configuration.allowsDevelopmentCredentials = true
  configuration.logLevel = .warning
  try signShares(&configuration)
  configuration.pages?.map = try BaseMap(of: fleet.city)
  configuration.fences = Demo.places(at: fleet.center, radiusMeters: fleet.radius)
  configuration.journal = directory.map { JournalConfiguration(directory: $0) }
  do throws(ServerError) {
    return try Server.start(configuration)
  } catch {
    throw .failed("\(error). Give --port 0, or --url for a hub that runs already")
  }
}

/// Lets trips of the demo be shared, with a key of its own that ends with it.
private func signShares(_ configuration: inout ServerConfiguration) throws(CommandError) {
  var random = SystemRandomNumberGenerator()
  let secret = (0..<4).map { _ in String(random.next() | 1 << 63, radix: 16) }.joined()
  do throws(KeyError) {
    let keys = try KeySet(parsing: Array(secret.utf8))
    configuration.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
    configuration.tokenSigner = keys.keys[0]
  } catch {
    throw .failed("cannot make a key: \(error)")
  }
}

/// The riders' side, the figures, and the end of the program.
private final class Demo: ClientLoopDelegate {
  /// Long enough that most drivers are on a trip when the demo begins.
  static let headSeconds = 240.0

  /// Two areas that drivers enter and leave. They grow with the city: each has some of 200 drivers inside.
  static func places(at center: Coordinate, radiusMeters: Double) -> [Fence] {
    let market = center.destination(bearingDegrees: 230, distanceMeters: 0.5 * radiusMeters)
    let places = [("central-station", "Central station", center), ("market", "Market", market)]
    return places.compactMap { name, title, place in
      guard let id = Identifier(name), let title = InlineText(title),
        let circle = Circle(center: place, radiusMeters: 0.12 * radiusMeters)
      else { return nil }
      return Fence(id: id, title: title, shape: .area(.circle(circle)))
    }
  }

  private let plan: FleetPlan
  private let options: ClientOptions
  private let server: Server?
  private let clients: ClientLoop
  private let board: DemoBoard
  private var report: ConnectionReport
  private var figures: DemoFigures
  private var display = StatusDisplay()
  private var news: [TripNews] = []
  private var failure: CommandError?
  private let started: Int64
  private var openRiders = 0
  private var requests: OfferRequests

  init(_ plan: FleetPlan, _ options: ClientOptions, _ server: Server?) throws(CommandError) {
    self.plan = plan
    self.options = options
    self.server = server
    clients = try options.makeLoop()
    board = DemoBoard(drivers: plan.options.drivers, waker: clients.loop.waker)
    started = clients.now.uptime
    report = ConnectionReport(timeoutSeconds: options.connectTimeout, now: started)
    figures = DemoFigures()
    requests = OfferRequests(plan.options)
  }

  func run() throws(CommandError) -> ExitCode {
    clients.delegate = self
    try clients.stopAtSignals()
    if let server { StandardStream.output.write("http://\(server.address)/ shows it on a map\n") }
    StandardStream.output.write(
      "\(server == nil ? "using the hub" : "hub") at \(options.url); look into it with\n"
        + "  locationhub watch fleet --url \(options.url)\n")
    for index in plan.riders.indices {
      clients.add(try options.configuration(.rider, plan.riders[index]), after: Double(index) / 1000)
    }
    let drivers = try startDrivers(plan, options, board)
    clients.scheduleTick(at: started + 1_000_000_000)
    clients.run()
    board.stopDrivers()
    drivers.join()
    finish(clients)
    display.end()
    if let failure { throw failure }
    StandardStream.output.write(figures.summary(board, seconds: seconds, server) + "\n")
    return .ok
  }

  private var seconds: Double { Double(clients.now.uptime - started) / 1e9 }

  // MARK: What the riders see

  func opened(_ client: ClientID, _ connected: Connected) {
    openRiders += 1
    if openRiders == 1 { report.opened(options.url) }
  }

  func closed(_ client: ClientID, _ disconnection: Disconnection) {
    if disconnection.wasOpen { openRiders -= 1 }
    guard openRiders == 0, disconnection.cause != .closedByUs else { return }
    display.end()
    fail(report.closed(disconnection, options.url, now: clients.now.uptime))
  }

  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {
    guard case .publication(let publication) = envelope.message else { return }
    switch publication.body {
    case .driverLocation(let location):
      figures.positions += 1
      if let sent = board.sendTime(driver: client.index, location.timestamp) {
        figures.latency.record(nanoseconds: ClockReading.read().uptimeNanoseconds - sent)
      }
    case .etaUpdate(let update): figures.note(update)
    case .tripUpdate(let update):
      figures.events += 1
      // The ride is over; the rider disconnects.
      if update.status.isFinal { clients.unsubscribe(client, from: publication.channel) }
    case .notification, .offer: figures.events += 1
    case .areaUpdate, .rawFix, .countsUpdate, .stats: break
    }
  }

  /// Trips have begun: their riders follow them.
  func woken() {
    board.drainNews(into: &news)
    for item in news { clients.subscribe(ClientID(index: item.driver), to: .trip(item.trip)) }
    news.removeAll(keepingCapacity: true)
  }

  // MARK: Once a second

  func tick() {
    let now = clients.now.uptime
    if openRiders == 0 { fail(report.check(now: now, options.url)) }
    let line = figures.second(board, riders: openRiders, of: plan.riders.count, seconds: seconds, server)
    if !display.show(line.block, short: line.line) { clients.stop() }
    if let duration = plan.options.duration, seconds >= duration { clients.stop() }
    if openRiders == plan.riders.count, let report = requests.next(riders: plan.riders, at: clients.now.timestamp) {
      let client = ClientID(index: report.rider)
      clients.subscribe(client, to: .trip(report.status.tripID))
      clients.send(report.status, from: client)
    }
    clients.scheduleTick(at: now + 1_000_000_000)
  }

  private func fail(_ failure: CommandError?) {
    guard let failure else { return }
    self.failure = self.failure ?? failure
    clients.stop()
  }
}

/// Starts the drivers' loop on a thread of its own. A separate function, so that it captures nothing of this thread.
private func startDrivers(
  _ plan: FleetPlan, _ options: ClientOptions, _ board: DemoBoard
) throws(CommandError) -> ThreadHandle {
  let loop = try options.makeLoop()
  board.driversWaker = loop.loop.waker
  do throws(SystemError) {
    return try startThread(name: "drivers") {
      let fleet = Fleet(loop, plan)
      let side = DriverSide(loop, fleet, board)
      withExtendedLifetime(side) {
        fleet.start()
        loop.run()
        fleet.end()
        finish(loop)
      }
    }
  } catch {
    throw .failed("\(error)")
  }
}

/// The drivers' side, on its own thread.
private final class DriverSide: FleetObserver {
  private let clients: ClientLoop
  private let fleet: Fleet
  private let board: DemoBoard

  init(_ clients: ClientLoop, _ fleet: Fleet, _ board: DemoBoard) {
    self.clients = clients
    self.fleet = fleet
    self.board = board
    fleet.observer = self
  }

  func opened(_ driver: Int) { publish() }
  func closed(_ driver: Int, _ disconnection: Disconnection) { publish() }
  func second() { publish() }
  func woken() { if board.driversShouldStop { clients.stop() } }

  func sent(_ driver: Int, _ fix: Fix) {
    board.noteSend(driver: driver, fix.timestamp, at: ClockReading.read().uptimeNanoseconds)
    publish()
  }

  func moved(_ driver: Int, _ trip: Identifier, _ status: TripStatus) {
    if status == .requested { board.post(TripNews(driver: driver, trip: trip)) }
  }

  private func publish() {
    board.store(
      DriverFigures(
        open: fleet.openCount, count: fleet.options.drivers, fixes: fleet.fixesSent, errors: fleet.errors,
        trips: fleet.activeTrips, tripsEnded: fleet.tripsEnded))
  }
}
