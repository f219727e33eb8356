// What the simulation believes about the hub: who is connected, how trips stand, who listens. Written from the
// contract, not from the hub's code.
import HubMessages

@testable import HubCore

struct SimulationModel {
  struct Move: Equatable {
    var actor: Int
    var message: Int
  }

  /// Whose a trip is: a driver's and a rider's number.
  struct Parties {
    var driver: Int?
    var rider: Int?

    /// Whether someone of the cast has part in it; ops has in all.
    func has(_ actor: Int) -> Bool {
      switch Cast.actors[actor].role {
      case .driver: driver == actor
      case .rider: rider.map { $0 + Cast.drivers } == actor
      case .ops: true
      }
    }
  }

  struct Trip {
    var status: TripStatus
    var driver: Int?
    var rider: Int?
    /// What it was requested with; nil for one that began with a fix.
    var request: TripStatusReport?
    var ended: Int64?
    /// Its last move or position (uptime, ns).
    var heard: Int64
    /// The last 16 that were made.
    var moves: [Move] = []
    /// The channel's number before the trip's first event.
    var base: UInt64?

    var parties: Parties { Parties(driver: driver, rider: rider) }

    /// The grace is over: nobody but its parties sees anything of it.
    func isOver(_ uptime: Int64) -> Bool { ended.map { uptime >= $0 + 60_000_000_000 } ?? false }
  }

  /// What a `trip_status` gets.
  enum Verdict: Equatable {
    case moved, repeated
    case refused(ErrorCode)
  }

  var sessions = [SessionRef?](repeating: nil, count: Cast.drivers)
  var trips = [Trip?](repeating: nil, count: Cast.trips)
  /// By topic and loop, as the hub has been notified.
  var subscribers: [[Int]]
  /// By topic and loop: the newest sequence that was handed to that loop.
  var sequences: [[UInt64]]
  var handles = [ChannelHandle?](repeating: nil, count: Cast.topics)
  /// By driver: which life of its record, the timestamp of its newest published position, and the trip it was for.
  var positions = [(life: Handle, time: Int64, trip: Int?)?](repeating: nil, count: Cast.drivers)

  init(loops: Int) {
    subscribers = Array(repeating: Array(repeating: 0, count: loops), count: Cast.topics)
    sequences = Array(repeating: Array(repeating: 0, count: loops), count: Cast.topics)
  }

  // MARK: Subscriptions

  func trip(ofTopic topic: Int) -> Trip? {
    topic >= Cast.drivers && topic < Cast.fleet ? trips[topic - Cast.drivers] : nil
  }

  /// Whether someone may follow a channel now.
  func mayFollow(_ actor: Int, _ topic: Int, _ grant: ChannelGrant, uptime: Int64) -> Bool {
    guard let trip = trip(ofTopic: topic) else { return grant != .onlyForParties }
    if trip.parties.has(actor) { return true }
    return !trip.isOver(uptime) && (grant == .granted || grant == .whileUnclaimed && trip.driver == nil)
  }

  // MARK: Fixes

  /// Whether fixes that name a trip are let through; begins the trip where nobody did.
  mutating func admitFixes(driver: Int, trip: Int, isGranted: Bool, hasRoom: Bool, uptime: Int64) -> Bool {
    guard let known = trips[trip] else {
      if isGranted, hasRoom { trips[trip] = Trip(status: .accepted, driver: driver, heard: uptime) }
      return isGranted && hasRoom
    }
    return known.driver == driver || (isGranted && known.driver == nil)
  }

  // MARK: Moves

  func judge(actor: Int, trip: Int, _ report: TripStatusReport, message: Int, isGranted: Bool, hasRoom: Bool) -> Verdict
  {
    guard let known = trips[trip] else {
      guard report.status == .requested else { return .refused(.unknownTrip) }
      guard mayRequest(actor, report, isGranted) else { return .refused(.forbidden) }
      return hasRoom ? .moved : .refused(.storageFull)
    }
    if known.moves.contains(Move(actor: actor, message: message)) { return .repeated }
    let named = report.driverID.flatMap { Cast.driverIDs.firstIndex(of: $0) }
    guard mayMove(actor, known, report.status, named: named, isGranted) else { return .refused(.forbidden) }
    if let expected = report.expectedStatus, expected != known.status { return .refused(.invalidTransition) }
    if report.status == .requested, isSame(actor, known, report) { return .repeated }
    let targets = TripMovesTests.table[Int(known.status.rawValue)].1
    guard targets.contains(report.status) else { return .refused(.invalidTransition) }
    if report.status == .accepted, Cast.actors[actor].role == .ops {
      let (has, named) = (known.driver.map { Cast.driverIDs[$0] }, report.driverID)
      let isRight = has == nil ? named != nil : named == nil || named == has
      if !isRight { return .refused(.invalidTransition) }
    }
    return .moved
  }

  private func mayRequest(_ actor: Int, _ report: TripStatusReport, _ isGranted: Bool) -> Bool {
    let me = Cast.actors[actor]
    switch me.role {
    case .ops: return true
    case .rider: return isGranted && (report.riderID ?? me.id) == me.id
    case .driver: return isGranted && (report.driverID ?? me.id) == me.id
    }
  }

  private func mayMove(
    _ actor: Int, _ trip: Trip, _ status: TripStatus, named: Int?, _ isGranted: Bool
  ) -> Bool {
    switch Cast.actors[actor].role {
    case .ops: return true
    case .driver:
      if status == .accepted, let named, named != actor { return false }
      return trip.driver == actor || (trip.driver == nil && isGranted && status == .accepted)
    case .rider:
      let early: [TripStatus] = [.requested, .accepted, .driverEnRoute, .arrivedPickup]
      guard trip.rider == actor - Cast.drivers else { return false }
      let mayCancel = early.contains(trip.status) || trip.status == .completed || trip.status == .cancelled
      return status == .requested || status == .cancelled && mayCancel
    }
  }

  /// Whether someone who has part in a trip asks for the same trip again.
  private func isSame(_ actor: Int, _ trip: Trip, _ report: TripStatusReport) -> Bool {
    let me = Cast.actors[actor]
    let rider = report.riderID ?? (me.role == .rider ? me.id : nil)
    let driver = report.driverID ?? (me.role == .driver ? me.id : nil)
    if trip.status == .completed || trip.status == .cancelled { return false }
    if rider != trip.rider.map({ Cast.actors[Cast.drivers + $0].id }) { return false }
    if let driver, driver != trip.driver.map({ Cast.driverIDs[$0] }) { return false }
    return report.pickup == trip.request?.pickup && report.dropoff == trip.request?.dropoff
      && report.route == trip.request?.route
  }

  mutating func apply(actor: Int, trip: Int, _ report: TripStatusReport, message: Int, uptime: Int64) {
    let role = Cast.actors[actor].role
    let named = report.driverID.flatMap { Cast.driverIDs.firstIndex(of: $0) }
    if trips[trip] == nil {
      let rider = report.riderID.flatMap { id in Cast.actors.firstIndex { $0.role == .rider && $0.id == id } }
      trips[trip] = Trip(
        status: .requested, driver: role == .driver ? actor : named,
        rider: role == .rider ? actor - Cast.drivers : rider.map { $0 - Cast.drivers }, request: report,
        heard: uptime)
    } else {
      trips[trip]!.status = report.status
      trips[trip]!.heard = uptime
      if report.status == .accepted, trips[trip]!.driver == nil {
        trips[trip]!.driver = role == .driver ? actor : named
      }
      if report.status == .completed || report.status == .cancelled { trips[trip]!.ended = uptime }
    }
    trips[trip]!.moves.append(Move(actor: actor, message: message))
    if trips[trip]!.moves.count > 16 { trips[trip]!.moves.remove(at: 1) }
  }
}
