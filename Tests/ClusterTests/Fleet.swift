// Three hubs with journals, and those who rely on them: phones that change hubs, one that posts its fixes to any hub,
// trips that are moved from anywhere until each move is acked, riders, and people who watch a map. One seed makes one
// history; what may go wrong is in Fleet+Faults.swift, what must hold nonetheless in Fleet+Promises.swift.
import HubBackplaneSupport
import HubCore
import HubGeo
import HubMessages
import HubTestSupport

@testable import HubCluster

final class Fleet {
  static let names = ["a", "b", "c"]
  static let driverCount = 5
  /// The driver whose phone has no session, and posts.
  static let poster = 4
  /// All drivers are in it.
  static let box = BoundingBox(south: 47.9, west: 11.4, north: 48.3, east: 11.6)!

  /// A driver's phone.
  struct Phone {
    /// The session that it believes in.
    var session: Session?
    var place: Coordinate
    /// The trip that its fixes name.
    var trip: Int?
    var nextFix: Int64 = 0
  }

  struct Session: Hashable {
    let driver: Int
    let hub: String
    let slot: UInt32
  }

  /// A trip, as those who move it know it.
  struct Trip {
    let id: Identifier
    let driver: Int
    /// Its moves so far, in order; all but the last are acked.
    var moves: [Move] = []
  }

  /// A link to a trip, and who has it. It is asked for, and for its end, at whichever hub, until that is answered.
  struct Share {
    let trip: Int
    let made: TripShare
    var session: SessionRef?
    var isMade = false
    /// It is to end, or has.
    var isEnding = false
    var isOver = false
    var due: Int64 = 0
    var holders: [Follower] = []
  }

  /// It is sent, to whichever hub, until it is acked.
  struct Move {
    let status: TripStatus
    let message: MessageID
    let timestamp: Timestamp
    var isAcked = false
    /// When it is sent again (uptime, ns).
    var due: Int64
  }

  let world: ClusterWorld
  let seed: UInt64
  var random: SplitMix64
  var phones: [Phone] = []
  /// Sessions that hubs have not ended, and that are not closed.
  var open: Set<Session> = []
  var trips: [Trip] = []
  var riders: [Follower] = []
  var shares: [Share] = []
  /// By hub.
  var maps: [String: MapClient] = [:]
  /// A hub that dies and never begins anew.
  var gone: String?
  /// Hubs that are dead, and when they begin anew (uptime, ns).
  var dead: [String: Int64] = [:]
  var reach: [FleetReach: Int] = [:]
  /// What was done, for who has to find out why.
  private(set) var diary: [String] = []
  private var lastMessage = 100_000
  var drives = true

  init(seed: UInt64) {
    self.seed = seed
    random = SplitMix64(seed: seed)
    var offsets: [Int64] = [-2500, 0, 2500]
    offsets.shuffle(using: &random)
    world = ClusterWorld(
      Fleet.names, seed: seed, hasJournals: true,
      clockOffsets: Dictionary(uniqueKeysWithValues: zip(Fleet.names, offsets)))
    for name in Fleet.names { watch(at: name) }
    for driver in 0..<Fleet.driverCount {
      phones.append(Phone(place: Coordinate(latitude: 48.1 + Double(driver) * 0.02, longitude: 11.5)!))
      connect(driver)
    }
    run(seconds: 0.5)
  }

  func note(_ text: String) { diary.append("\(world.now.uptime / 1_000_000): \(text)") }

  func count(_ event: FleetReach, _ number: Int = 1) { reach[event, default: 0] += number }

  func oneIn(_ count: Int) -> Bool { pick(count) == 0 }
  func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  /// A hub that a load balancer leads to: one that is there, and reaches the engine unless none does.
  func anyHub() -> String? {
    let living = Fleet.names.filter { dead[$0] == nil }
    let good = living.filter { !world.engine.isolated.contains($0) }
    return (good.isEmpty ? living : good).randomElement(using: &random)
  }

  func run(seconds: Double) {
    for _ in 0..<Int(seconds * 50) { step() }
  }

  private func step() {
    for (name, time) in dead.sorted(by: { $0.key < $1.key }) where time <= world.now.uptime { begin(name) }
    if drives { for driver in phones.indices where phones[driver].nextFix <= world.now.uptime { drive(driver) } }
    for trip in trips.indices { send(trip) }
    for share in shares.indices { send(share: share) }
    world.step(milliseconds: 20)
    hear()
  }

  /// What hubs have sent to phones and to those who move trips.
  private func hear() {
    for member in world.members {
      for session in member.replaced {
        if let ended = open.first(where: { $0.hub == member.name && $0.slot == session.slot }) { close(ended) }
      }
      for (session, reply) in member.replies {
        hear(reply)
        if case .error(let error) = reply { hear(.refused(error), at: session) }
      }
      for (session, answer) in member.shares { hear(answer, at: session) }
      member.replaced.removeAll()
      member.replies.removeAll()
      member.shares.removeAll()
    }
    for rider in riders + shares.filter({ !$0.isOver }).flatMap(\.holders) where !rider.refusals.isEmpty {
      rider.refusals.removeAll()
      rider.wantsToAsk = true
    }
  }

  private func hear(_ reply: Reply) {
    switch reply {
    case .ack(let ack):
      if ack.batch != nil { count(.posts) }
      guard let trip = trips.firstIndex(where: { $0.moves.last?.message == ack.replyTo }),
        let last = trips[trip].moves.indices.last
      else { return }
      trips[trip].moves[last].isAcked = true
      count(.acks)
      if trips[trip].isOver { phones[trips[trip].driver].trip = nil }
    case .error(let error):
      note("refused: \(error.code) \(error.message)")
      count(.refusals)
    case .connected, .subscribed, .unsubscribed, .pong, .sampling, .result: break
    }
  }

  // MARK: Drivers

  /// A phone comes to any hub. Mostly it closes the connection that it had; of some a hub never hears again.
  func connect(_ driver: Int) {
    guard driver != Fleet.poster, let name = anyHub() else { return }
    if let old = phones[driver].session, !oneIn(3) { close(old) }
    let session = Session(driver: driver, hub: name, slot: world.nextSlot())
    world[name].inputs.append(
      .driverConnecting(world.session(session.slot), id("d\(driver)"), client: UInt32(driver + 1)))
    open.insert(session)
    phones[driver].session = session
    note("d\(driver) connects at \(name)")
  }

  private func close(_ session: Session) {
    guard open.remove(session) != nil else { return }
    if dead[session.hub] == nil {
      world[session.hub].inputs.append(.driverDisconnected(world.session(session.slot)))
    }
  }

  /// The session that a phone has and its hub has not ended.
  func session(of driver: Int) -> Session? {
    guard let session = phones[driver].session, open.contains(session) else { return nil }
    return session
  }

  func drive(_ driver: Int) {
    phones[driver].nextFix = world.now.uptime + 1_000_000_000
    phones[driver].place = Coordinate(
      latitude: phones[driver].place.latitude + 5e-5, longitude: phones[driver].place.longitude)!
    if driver == Fleet.poster { return post() }
    guard let session = session(of: driver) else { return connect(driver) }
    lastMessage += 1
    // One whose hub never comes back is not there for a driver to name, where nobody has begun it or the ledger has
    // forgotten it.
    let trip = phones[driver].trip.map { trips[$0] }.flatMap { trip in
      gone == nil || trip.moves[0].isAcked && world.engine.owner(of: "t:\(trip.id)") != nil ? trip.id : nil
    }
    let update = LocationUpdate(
      tripID: trip,
      fix: Fix(coordinate: phones[driver].place, timestamp: world.now.timestamp, accuracy: 5))
    world[session.hub].inputs.append(
      .fix(
        FixInput(
          session: world.session(session.slot), messageID: message(lastMessage), sent: world.now.timestamp,
          received: world.clock(of: session.hub), update: update, tripIsGranted: false)))
  }

  /// The phone that posts sends its newest fix to any hub.
  private func post() {
    guard let name = anyHub() else { return }
    lastMessage += 1
    let fix = Fix(coordinate: phones[Fleet.poster].place, timestamp: world.now.timestamp, accuracy: 5)
    var input = BatchInput(
      session: world.session(world.nextSlot()), driverID: id("d\(Fleet.poster)"), messageID: message(lastMessage),
      sent: world.now.timestamp, received: world.clock(of: name), batch: LocationBatch(fixes: [.success(fix)]),
      tripIsGranted: false)
    (input.phone, input.takesCurrentTrip) = (.overland, true)
    world[name].inputs.append(.batch(input))
  }

  // MARK: Trips

  /// A back end asks for a trip for a driver that has none.
  func requestTrip() {
    guard
      let driver = phones.indices.filter({ $0 != Fleet.poster && phones[$0].trip == nil }).randomElement(using: &random)
    else { return }
    trips.append(Trip(id: id("t\(trips.count)"), driver: driver))
    phones[driver].trip = trips.count - 1
    make(.requested, of: trips.count - 1)
  }

  private static let course: [TripStatus] = [
    .requested, .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed,
  ]

  /// The next move of a trip, or its end, where the one before is acked.
  func moveTrip(_ trip: Int) {
    guard let last = trips[trip].moves.last, last.isAcked, !trips[trip].isOver,
      let next = Fleet.course.firstIndex(of: last.status).map({ Fleet.course[$0 + 1] })
    else { return }
    make(oneIn(15) ? .cancelled : next, of: trip)
  }

  private func make(_ status: TripStatus, of trip: Int) {
    lastMessage += 1
    let timestamp = max(world.now.timestamp, trips[trip].moves.last?.timestamp ?? world.now.timestamp)
    trips[trip].moves.append(
      Move(status: status, message: message(lastMessage), timestamp: timestamp, due: world.now.uptime))
    note("\(trips[trip].id) is to be \(status)")
  }

  /// Sends a trip's last move, if it has no answer in time. The back end asks and cancels, the driver does the rest.
  private func send(_ trip: Int) {
    guard let last = trips[trip].moves.indices.last else { return }
    let (move, driver) = (trips[trip].moves[last], trips[trip].driver)
    guard !move.isAcked, move.due <= world.now.uptime else { return }
    trips[trip].moves[last].due += 1_500_000_000
    let isBackEnds = move.status == .requested || move.status == .cancelled
    guard let hub = isBackEnds ? anyHub() : session(of: driver)?.hub else { return }
    let session =
      isBackEnds ? SessionRef(outlet: 0, slot: 9, generation: 1) : world.session(phones[driver].session!.slot)
    let report = TripStatusReport(
      tripID: trips[trip].id, status: move.status, timestamp: move.timestamp,
      driverID: move.status == .requested ? id("d\(driver)") : nil)
    let actor = isBackEnds ? Actor(role: .ops, id: id("desk")) : Actor(role: .driver, id: id("d\(driver)"))
    world[hub].inputs.append(
      .tripStatus(
        TripStatusInput(
          session: session, actor: actor, messageID: move.message, report: report, tripIsGranted: false)))
    note("\(trips[trip].id) \(move.status) sent to \(hub)")
  }

  // MARK: Riders and maps

  func follow() {
    guard riders.count < 16, let name = anyHub(), let trip = trips.last else { return }
    let driver = oneIn(3) ? Fleet.poster : trip.driver
    let channel = oneIn(3) ? Channel.driver(id("d\(driver)")) : .trip(trip.id)
    riders.append(world.follow(channel, at: name, slot: world.nextSlot()))
    note("a rider follows \(channel) at \(name)")
  }

  /// A rider comes back, there or elsewhere.
  func reconnect(_ rider: Int) {
    guard let name = anyHub() else { return }
    riders[rider] = world.reconnect(riders[rider], at: name)
    note("rider \(rider) of \(riders[rider].channel) continues at \(name)")
  }

  func watch(at name: String) {
    maps[name] = world.map(.ops, .box(Fleet.box), at: name, slot: world.nextSlot())
  }
}

extension Fleet.Trip {
  var isOver: Bool {
    guard let last = moves.last, last.isAcked else { return false }
    return last.status == .completed || last.status == .cancelled
  }
}

/// What histories come across: a check that never meets what it checks for proves nothing.
enum FleetReach: CaseIterable {
  case acks, refusals, kills, stalls, isolations, events, recovered, homes, framesLost, framesSpoiled, framesMissed,
    shares, sharesEnded, driverRiders, longCuts, forgotten, gone, posts
}

extension ClusterWorld {
  /// A follower continues at another hub, or at the same, with what it has.
  func reconnect(_ old: Follower, at name: String) -> Follower {
    for member in members where member.followers.contains(where: { $0 === old }) { member.leave(old) }
    let new = follow(old.channel, at: name, slot: nextSlot())
    (new.point, new.log, new.beginnings, new.faults) = (old.point, old.log, old.beginnings, old.faults)
    (new.gaps, new.doubles, new.unrecovered, new.answers) = (old.gaps, old.doubles, old.unrecovered, old.answers)
    return new
  }
}
