// Simulated drivers as clients of a hub, on one loop.
//
// Each driver's clock begins at its own time, spread over one interval, so that fixes leave evenly. A fix has the
// timestamp at which it was due: delays of the loop count as latency.
//
// By ClientLoop and not by DriverHub, which at 1 Hz takes a thread, 184 KB and 0.03-0.05 % of a core for each driver:
// these take 8 KB and 0.003 % on one thread (2,000 drivers: 33 MB and 7 % of a core, not 370 MB and most of one).
import HubClientLoop
import HubCommandLine
import HubGeo
import HubMessages
import HubSimulation
import HubTransport

/// The owner of a fleet, called on the loop's thread.
protocol FleetObserver: AnyObject {
  func opened(_ driver: Int)
  func closed(_ driver: Int, _ disconnection: Disconnection)
  /// A driver's trip has a new status, which is being sent.
  func moved(_ driver: Int, _ trip: Identifier, _ status: TripStatus)
  /// A fix is being sent.
  func sent(_ driver: Int, _ fix: Fix)
  /// Once a second.
  func second()
  /// The loop was woken.
  func woken()
}

extension FleetObserver {
  func sent(_ driver: Int, _ fix: Fix) {}
  func woken() {}
}

struct FleetOptions {
  static func options(drivers: Int) -> [Option] {
    [
      Option("drivers", "N", "how many (\(drivers))"),
      Option(
        "rate", "HZ", "fixes a second of each driver, 0.01-2: the nearest of one each 0.5, 1, 1.5 s and so on (1)"),
      Option("duration", "SECONDS", "end after so long (without: until a signal)"),
      Option("seed", "K", "chance of city, drives and phones (1)"),
      Option("center", "LAT,LON", "the city's centre (37.7749,-122.4194)"),
      Option("radius", "METRES", "half of the city's width, 300-50000 (5000)"),
      Option("adaptive", nil, "send only as often as the hub asks"),
      Option("prefix", "TEXT", "driver ids are this and a number from 0 on (sim-)"),
    ]
  }

  var drivers: Int
  var rate: Double
  var duration: Double?
  var seed: UInt64
  var center: Coordinate
  var radius: Double
  /// Drivers follow the hub's sampling advice.
  var isAdaptive: Bool
  var prefix: String

  init(_ arguments: Arguments, drivers: Int) throws(CommandError) {
    self.drivers = try arguments.value("drivers", .whole(1...1_000_000)) ?? drivers
    rate = try arguments.value("rate", .number(0.01...2)) ?? 1
    duration = try arguments.value("duration", .number(0...1e9))
    seed = try arguments.value("seed", .whole(0...UInt64.max)) ?? 1
    radius = try arguments.value("radius", .number(City.radii)) ?? 5000
    isAdaptive = arguments.has("adaptive")
    prefix = arguments.string("prefix") ?? "sim-"
    guard Identifier(prefix + "1000000-1000000") != nil else {
      throw .usage("--prefix must be up to 40 of A-Z a-z 0-9 . _ -, not \(prefix)")
    }
    let parts = (arguments.string("center") ?? "37.7749,-122.4194").split(separator: ",")
    guard parts.count == 2, let latitude = Double(parts[0]), let longitude = Double(parts[1]),
      let center = Coordinate(latitude: latitude, longitude: longitude)
    else { throw .usage("--center must be LATITUDE,LONGITUDE, for instance 37.7749,-122.4194") }
    self.center = center
  }
}

extension FleetOptions {
  /// The city of these options, the same each time.
  var city: City { City(seed: seed, center: center, radiusMeters: radius) }
}

/// A checked fleet before its start, which may be sent to another thread.
struct FleetPlan: Sendable {
  let options: FleetOptions
  /// Drivers serve trips; each names its rider if there are riders.
  let hasTrips: Bool
  let riders: [Identifier]
  /// Seconds of driving before the start, so that trips are under way.
  let head: Double
  fileprivate let drivers: [(id: Identifier, configuration: ClientConfiguration)]

  init(
    _ options: FleetOptions, _ connection: ClientOptions, hasTrips: Bool, riders: [Identifier] = [], head: Double = 0
  ) throws(CommandError) {
    self.options = options
    self.hasTrips = hasTrips
    self.riders = riders
    self.head = head
    var drivers: [(id: Identifier, configuration: ClientConfiguration)] = []
    for index in 0..<options.drivers {
      guard let id = Identifier("\(options.prefix)\(index)") else { preconditionFailure("checked with the prefix") }
      var configuration = try connection.configuration(.driver, id, number: index)
      configuration.followsSampling = options.isAdaptive
      drivers.append((id, configuration))
    }
    self.drivers = drivers
  }
}

final class Fleet: ClientLoopDelegate {
  private struct Member {
    let client: ClientID
    let id: Identifier
    var simulated: SimulatedDriver
    /// When its simulation began (uptime, ns).
    let start: Int64
    var shift: Shift
    var trip: Identifier?
    var answers: OfferAnswers
    /// An offered trip, with the driver's future answer.
    var offer: PendingOffer?
    /// The message that accepts such a trip, until the hub has answered.
    var accepting: MessageID?
    var isOpen = false
    /// Whether it was connected before: from then on fixes are kept while it is not.
    var wasOpen = false
    var hasEnded = false
    /// It went offline by itself, and will return.
    var isAway = false
  }

  private struct PendingOffer {
    let trip: Identifier
    let pickup: Coordinate
    let dropoff: Coordinate
    /// When the driver answers, in seconds of its simulation.
    let seconds: Double
    let accepts: Bool
  }

  weak var observer: (any FleetObserver)?
  private(set) var openCount = 0
  private(set) var endedCount = 0
  private(set) var fixesSent: UInt64 = 0
  private var isOver = false
  private(set) var errors: UInt64 = 0
  private(set) var lostConnections: UInt64 = 0
  private(set) var activeTrips = 0
  private(set) var tripsEnded: UInt64 = 0
  private let clients: ClientLoop
  private let plan: FleetPlan
  private var members: [Member] = []
  private var nextSecond: Int64 = 0

  var options: FleetOptions { plan.options }

  init(_ clients: ClientLoop, _ plan: FleetPlan) {
    self.clients = clients
    self.plan = plan
    clients.delegate = self
  }

  /// Lets all connect, a thousand a second, and drive.
  func start() {
    // Simulated phones measure on ticks of the simulation only.
    let ticks = max(1, (1 / options.rate / SimulatedDriver.tickSeconds).rounded())
    let interval = ticks * SimulatedDriver.tickSeconds
    let city = options.city
    let now = clients.now
    for (index, driver) in plan.drivers.enumerated() {
      let offset = Int64((interval * Double(index) / Double(options.drivers) - plan.head) * 1000)
      var simulated = SimulatedDriver(
        index: index, city: city, seed: options.seed,
        start: Timestamp(milliseconds: now.timestamp.milliseconds + offset), fixInterval: interval)
      simulated.takesRoutes = plan.hasTrips
      simulated.takesTrips = hasOwnTrips(index)
      let client = clients.add(driver.configuration, after: Double(index) / 1000)
      precondition(client.index == index, "the loop has no other clients")
      members.append(
        Member(
          client: client, id: driver.id, simulated: simulated, start: now.uptime + offset * 1_000_000,
          shift: Shift(seed: options.seed, index: index),
          answers: OfferAnswers(seed: options.seed, index: index)))
      if plan.hasTrips { clients.subscribe(client, to: .driver(driver.id), isEventsOnly: true) }
      if plan.head > 0 { catchUp(index) }
      clients.schedule(client, at: nextDue(index, after: now.uptime))
    }
    nextSecond = now.uptime + 1_000_000_000
    clients.scheduleTick(at: nextSecond)
  }

  /// Simulates the driving before the start: sends each move of the present trip to the hub.
  private func catchUp(_ index: Int) {
    let step = members[index].simulated.step(to: Double(clients.now.uptime - members[index].start) / 1e9)
    guard let current = members[index].simulated.trip else { return }
    for move in step.moves where move.trip.number == current.number { send(move, index) }
  }

  /// The driver's first tick after a time; the simulation decides whether it has a fix.
  private func nextDue(_ index: Int, after uptime: Int64) -> Int64 {
    let tick = Int64(SimulatedDriver.tickSeconds * 1e9)
    let passed = uptime - members[index].start
    return members[index].start + (max(0, passed) / tick + 1) * tick
  }

  /// Stops sending: messages to a client that is closing never leave.
  func end() { isOver = true }

  func due(_ client: ClientID) {
    if isOver { return }
    let index = client.index
    let now = clients.now.uptime
    let seconds = Double(now - members[index].start) / 1e9
    let step = members[index].simulated.step(to: seconds)
    if plan.hasTrips {
      for move in step.moves { send(move, index) }
      if let part = members[index].shift.step(to: seconds, isOnTrip: members[index].simulated.trip != nil) {
        begin(part, index)
      }
      answerOffer(index, at: seconds)
    }
    if let fix = step.fix { send(fix, index) }
    if !members[index].hasEnded { clients.schedule(client, at: nextDue(index, after: now)) }
  }

  private func send(_ fix: Fix, _ index: Int) {
    guard members[index].wasOpen, members[index].shift.part != .offline else { return }
    // The fix is written at the end of this turn.
    guard clients.send(fix, trip: members[index].trip, from: members[index].client) else { return }
    fixesSent += 1
    observer?.sent(index, fix)
  }

  /// The driver rests, goes out of reach, or works again.
  private func begin(_ part: Shift.Part, _ index: Int) {
    let client = members[index].client
    updateTakesTrips(index)
    switch part {
    case .offline: clients.close(client)
    case .unavailable: clients.send(DriverStatusReport(status: .unavailable), from: client)
    case .background: clients.send(DriverStatusReport(status: .background), from: client)
    case .working:
      if members[index].isAway { clients.restart(client) }
      clients.send(DriverStatusReport(status: .available), from: client)
    }
    members[index].isAway = part == .offline
  }

  private func send(_ move: SimulatedDriver.TripMove, _ index: Int) {
    let isRequest = move.trip.status == .requested
    let named = isRequest ? Identifier("\(members[index].id)-\(move.trip.number)") : members[index].trip
    guard let trip = named else { return }
    clients.send(
      TripStatusReport(
        tripID: trip, status: move.trip.status, timestamp: move.timestamp, location: move.location,
        pickup: isRequest ? move.trip.pickup : nil, dropoff: isRequest ? move.trip.dropoff : nil,
        driverID: isRequest ? members[index].id : nil,
        riderID: isRequest && index < plan.riders.count ? plan.riders[index] : nil,
        route: isRequest ? route(of: move.trip) : nil),
      from: members[index].client)
    if isRequest { activeTrips += 1 }
    if move.trip.status.isFinal {
      activeTrips -= 1
      tripsEnded += 1
    }
    members[index].trip = move.trip.status.isFinal ? nil : trip
    observer?.moved(index, trip, move.trip.status)
  }

  // MARK: Offers

  private func received(_ offer: Offer, _ index: Int) {
    switch offer.state {
    case .made(let terms):
      let (answer, delay) = members[index].answers.next()
      guard answer != .silence, members[index].simulated.trip == nil else { return }
      members[index].offer = PendingOffer(
        trip: offer.tripID, pickup: terms.pickup, dropoff: terms.dropoff ?? terms.pickup,
        seconds: members[index].simulated.seconds + delay, accepts: answer == .accept)
      updateTakesTrips(index)
    case .withdrawn: if members[index].offer?.trip == offer.tripID { forgetOffer(index) }
    }
  }

  private func forgetOffer(_ index: Int) {
    members[index].offer = nil
    updateTakesTrips(index)
  }

  /// Every fifth driver has only offered trips.
  private func hasOwnTrips(_ index: Int) -> Bool { !plan.hasTrips || index % 5 != 4 }

  /// Lets a driver begin trips of its own only if it may have them, works, and has no open offer.
  private func updateTakesTrips(_ index: Int) {
    let isFree = members[index].shift.part == .working && members[index].offer == nil
    members[index].simulated.takesTrips = isFree && hasOwnTrips(index)
  }

  private func answerOffer(_ index: Int, at seconds: Double) {
    guard let offer = members[index].offer, seconds >= offer.seconds else { return }
    forgetOffer(index)
    let client = members[index].client
    guard offer.accepts else {
      clients.send(OfferDecline(tripID: offer.trip), from: client)
      return
    }
    guard let move = members[index].simulated.accept(pickup: offer.pickup, dropoff: offer.dropoff) else { return }
    members[index].trip = offer.trip
    members[index].accepting = clients.send(
      TripStatusReport(
        tripID: offer.trip, status: .accepted, timestamp: move.timestamp, location: move.location),
      from: client)
    activeTrips += 1
    observer?.moved(index, offer.trip, .accepted)
  }

  /// The hub has answered the acceptance of an offered trip.
  private func accepted(_ isTaken: Bool, _ index: Int) {
    members[index].accepting = nil
    if isTaken { return }
    activeTrips -= 1
    members[index].trip = nil
    members[index].simulated.giveUp()
  }

  /// Nil for a route without length.
  private func route(of trip: SimulatedTrip) -> Route? {
    do throws(Route.Fault) { return try Route(points: trip.route) } catch { return nil }
  }

  // MARK: Connections

  func opened(_ client: ClientID, _ connected: Connected) {
    members[client.index].isOpen = true
    members[client.index].wasOpen = true
    openCount += 1
    observer?.opened(client.index)
  }

  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {
    switch envelope.message {
    case .publication(let publication):
      if case .offer(let offer) = publication.body { received(offer, client.index) }
    case .reply(.error(let error)):
      if let id = error.replyTo, members[client.index].accepting == id {
        accepted(false, client.index)  // another driver was faster
      } else {
        errors += 1
      }
    case .reply(.ack(let ack)):
      if members[client.index].accepting == ack.replyTo { accepted(true, client.index) }
    case .reply, .unknown: break
    }
  }

  func closed(_ client: ClientID, _ disconnection: Disconnection) {
    if members[client.index].isOpen {
      members[client.index].isOpen = false
      openCount -= 1
      lostConnections += disconnection.cause == .closedByUs ? 0 : 1
    }
    if case .ended = disconnection.next, !members[client.index].isAway {
      members[client.index].hasEnded = true
      endedCount += 1
    }
    observer?.closed(client.index, disconnection)
  }

  func woken() { observer?.woken() }

  func tick() {
    observer?.second()
    nextSecond += 1_000_000_000
    clients.scheduleTick(at: max(nextSecond, clients.now.uptime))
  }
}
