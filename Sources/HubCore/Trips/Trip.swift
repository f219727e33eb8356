// A trip's record: its state, and the effect of each move and change.
import HubGeo
import HubMessages

/// One trip: 400 bytes, with small members in the padding behind the ids, since a hub keeps all trips of a day.
struct Trip {
  let compactID: CompactIdentifier
  private(set) var status: TripStatus
  /// The role of its creator, which decides its limits. Where a driver created it, that is in `creator`.
  private(set) var begunBy: Role
  /// Its subscribers were notified of its end.
  private(set) var isClosed = false
  /// The index of its leg; −1 for none.
  var leg: Int32 = -1
  private(set) var compactDriverID: CompactIdentifier?
  /// How many shares were made, ended ones included.
  var sharesMade: UInt8 = 0
  /// Index of the trip's channel, where it has one.
  @PackedIndex var channel: Int?
  private var compactRiderID: CompactIdentifier?
  /// The driver that counts this trip as active.
  @Packed var occupied: Handle?
  @Packed var creator: Handle?
  /// The trip's number: a hub numbers its trips in the order in which they began.
  private(set) var number: UInt64
  /// When it began and was last moved, by the hub's wall clock.
  private(set) var created: Timestamp
  private(set) var updated: Timestamp
  /// When a driver accepted it, by the hub's wall clock; nil before that.
  @Packed private(set) var accepted: Timestamp?
  /// When the last move happened, by the sender's clock.
  private(set) var changed: Timestamp
  @PackedPlace private(set) var pickup: Coordinate?
  @PackedPlace private(set) var dropoff: Coordinate?
  private(set) var route: Route?
  /// Its shares, oldest first; also those that were ended (TripShares.swift).
  var shares: [TripShare] = []
  /// Its last move, change or accepted fix (uptime, ns). After a retention without one the trip is cancelled.
  private(set) var lastHeard: Int64
  /// When it ended by the hub's wall clock, which a restart does not change.
  @Packed private(set) var endedAt: Timestamp?
  /// Its progress.
  var progress = TripProgress()
  /// The ETA that was published last.
  var lastPublishedETA: PublishedETA?
  /// When it ended, and when its live positions end (uptime, ns).
  @Packed private(set) var ended: Int64?
  private(set) var closes = Int64.max
  /// Hashes of (sender, messageId) of the last moves: the same message again gets the same ack and changes nothing.
  private(set) var recentMoves = RecentMoves()

  init(id: Identifier, number: UInt64, status: TripStatus, at time: Timestamp, by role: Role, now: Moment) {
    compactID = CompactIdentifier(id)
    self.number = number
    self.status = status
    changed = time
    begunBy = role
    created = now.timestamp
    updated = now.timestamp
    lastHeard = now.uptime
    if status.occupiesDriver { accepted = now.timestamp }
  }

  var id: Identifier {
    @inline(__always) get { compactID.identifier }
  }

  private(set) var driverID: Identifier? {
    @inline(__always) get { compactDriverID?.identifier }
    set { compactDriverID = newValue.map { CompactIdentifier($0) } }
  }

  private(set) var riderID: Identifier? {
    @inline(__always) get { compactRiderID?.identifier }
    set { compactRiderID = newValue.map { CompactIdentifier($0) } }
  }

  /// The driver or rider who began it, whose limit its route counts for; nil for ops.
  var routeHolder: Actor? { Trip.routeHolder(begunBy: begunBy, rider: riderID, driver: driverID) }

  static func routeHolder(begunBy role: Role, rider: Identifier?, driver: Identifier?) -> Actor? {
    let id = role == .rider ? rider : role == .driver ? driver : nil
    return id.map { Actor(role: role, id: $0) }
  }

  var routeBytes: Int { route?.polyline.utf8.count ?? 0 }

  /// The driver that ops have booked for it.
  var bookedDriver: Identifier? { begunBy == .ops ? driverID : nil }

  /// Whether the trip has the target's coordinate.
  @inline(__always)
  func hasPlace(of target: TripTarget) -> Bool {
    switch target {
    case .pickup: pickup != nil
    case .dropoff: dropoff != nil || route != nil
    }
  }

  func party(of actor: Actor) -> TripParty {
    switch actor.role {
    case .ops: .ops
    case .driver: driverID == actor.id ? .driver : .stranger
    case .rider: riderID == actor.id ? .rider : .stranger
    }
  }

  /// Whether the trip has this driver and has not ended. The trip that a driver's fixes name may have no driver yet, or
  /// get another one.
  func isServed(by driver: CompactIdentifier) -> Bool { !status.isFinal && compactDriverID?.matches(driver) == true }

  /// Whether a driver accepted it after this time; false where the clock was set back since and cannot tell.
  func wasAccepted(after time: Timestamp, now: Timestamp) -> Bool { accepted.map { time < $0 && $0 <= now } ?? false }

  /// Whether an ended trip's grace is over, by the clock, since the deadline may be late.
  @inline(__always)
  func isOver(at uptime: Int64) -> Bool { uptime >= closes }

  /// When its retention began (uptime, ns).
  var retained: Int64 { ended ?? lastHeard }

  /// The published ETA for the present target.
  var currentETA: PublishedETA? { lastPublishedETA?.target == status.target ? lastPublishedETA : nil }

  // MARK: Moves

  /// Takes parties and content from the request.
  mutating func take(_ report: TripStatusReport, rider: Identifier?, driver: Identifier?) {
    riderID = rider
    driverID = driver
    pickup = report.pickup
    dropoff = report.dropoff
    route = report.route
  }

  /// It was requested, and no driver has it yet: it may be offered.
  var isWithoutDriver: Bool { status == .requested && driverID == nil }

  mutating func take(driver: Identifier) { driverID = driver }

  /// Moves to another status. `grace`: how long live positions continue after the end (ns).
  mutating func move(to target: TripStatus, at time: Timestamp, now: Moment, grace: Int64) {
    status = target
    changed = time
    lastHeard = now.uptime
    progress.move(to: target, at: time)
    if target.occupiesDriver, accepted == nil { accepted = now.timestamp }
    guard target.isFinal else { return }
    endedAt = now.timestamp
    end(at: now.uptime, grace: grace)
  }

  private mutating func end(at uptime: Int64, grace: Int64) {
    ended = uptime
    closes = min(closes, uptime + grace)
  }

  /// Notes a message that moved it. The first one is never dropped, so the trip's request is always recognised.
  mutating func note(_ move: UInt64) { recentMoves.insert(move, keepsFirst: true) }

  mutating func noteHeard(at uptime: Int64) { lastHeard = uptime }

  mutating func noteUpdate(at time: Timestamp) { updated = time }

  /// Marks it as closed; false where it is closed already.
  mutating func close() -> Bool {
    if isClosed { return false }
    isClosed = true
    return true
  }

  /// Applies the members of a change that differ from the trip, and gives the update that has them.
  ///
  /// A route leads from the pickup to the dropoff. Where one of these changes without a new route, the trip has no
  /// route any more: a driver must not be guided to where nobody waits.
  mutating func take(_ change: TripChange, at time: Timestamp) -> TripUpdate {
    var update = TripUpdate(
      tripID: id, status: status, previousStatus: nil, driverID: driverID, timestamp: time, location: nil, sequence: 0)
    if change.pickup != pickup { update.pickup = change.pickup }
    if change.dropoff != dropoff { update.dropoff = change.dropoff }
    if change.route != route { update.route = change.route?.polyline }
    guard update.isChange else { return update }
    let isElsewhere = update.pickup != nil || update.dropoff != nil
    if isElsewhere { update.route = change.route?.polyline }  // nil says that the trip has no route any more
    if let place = update.pickup { pickup = place }
    if let place = update.dropoff { dropoff = place }
    if let way = change.route { route = way } else if isElsewhere { route = nil }
    // Notices about the old coordinate are published again for the new one.
    if update.pickup != nil { progress.notices.subtract([.pickupNear, .pickupReached]) }
    let leadsElsewhere = update.dropoff != nil || update.route != nil && dropoff == nil
    if leadsElsewhere { progress.notices.subtract([.dropoffNear, .dropoffReached]) }
    progress.notices.remove(.offRoute)
    // The ETA was for another target or route: the next one is news, and a restart must not restore this one.
    lastPublishedETA = nil
    return update
  }

  /// The publication of a move.
  func update(from previous: TripStatus?, at location: Coordinate?) -> TripUpdate {
    TripUpdate(
      tripID: id, status: status, previousStatus: previous, driverID: driverID, timestamp: changed, location: location,
      summary: status.isFinal ? progress.summary : nil, sequence: 0)
  }

  /// An update for the channel of all trips: with the trip's present coordinates, and its rider.
  func listed(_ update: TripUpdate) -> TripUpdate {
    var update = update
    (update.pickup, update.dropoff, update.riderID) = (pickup, dropoff, riderID)
    return update
  }

  // MARK: Storing and reading back

  var durable: DurableTrip {
    DurableTrip(
      id: id, number: number, created: created, updated: updated, begunBy: begunBy, status: status,
      changed: changed, accepted: accepted, driverID: driverID, riderID: riderID, pickup: pickup, dropoff: dropoff,
      route: route, progress: progress, ended: endedAt, recentMoves: recentMoves.oldestFirst,
      eta: currentETA?.durable, shares: shares, sharesMade: sharesMade)
  }

  /// `uptime`: when it is loaded.
  init(_ durable: DurableTrip, now uptime: Int64) {
    let now = Moment(uptime: uptime, timestamp: durable.created)
    self.init(
      id: durable.id, number: durable.number, status: durable.status, at: durable.changed, by: durable.begunBy,
      now: now)
    take(durable, now: uptime)
  }

  mutating func take(_ durable: DurableTrip, now uptime: Int64) {
    created = durable.created
    updated = durable.updated
    accepted = durable.accepted
    begunBy = durable.begunBy
    status = durable.status
    changed = durable.changed
    driverID = durable.driverID
    riderID = durable.riderID
    pickup = durable.pickup
    dropoff = durable.dropoff
    route = durable.route
    progress = durable.progress
    endedAt = durable.ended
    recentMoves = RecentMoves(durable.recentMoves)
    shares = durable.shares
    sharesMade = durable.sharesMade
    lastPublishedETA = durable.eta.map { PublishedETA($0, publishedAt: uptime) }
  }

  /// Reckons by the wall clock when a restored trip ended or, while it is active, was last moved or had a position.
  mutating func resume(at now: Moment, grace: Int64) {
    let since = endedAt ?? max(updated, progress.newest ?? updated)
    let passed = min(max(0, now.timestamp.milliseconds - since.milliseconds), 1 << 40)
    let uptime = now.uptime - passed * 1_000_000
    if endedAt == nil { lastHeard = uptime } else { end(at: uptime, grace: grace) }
  }
}
