// Trips of other hubs that drivers of this one are on.
//
// A trip stays at the hub where it began, and its driver may connect to another one. Then each of the two hubs follows
// the other's channel, as riders do:
//
//     the driver's hub   a fix names a trip that is not here → follows `trip:` → learns whether there is such a trip,
//                        and whether it keeps the driver busy; the driver's positions name it
//     the trip's hub     the trip's driver is elsewhere → follows `driver:` → positions that name the trip are the
//                        trip's: its figures, its ETA, and what is published on `trip:` (Hub.drive)
//
// So nothing is sent that no rider could be sent, and losses are repaired in the same way.
import HubMessages

struct DistantTrips {
  /// What is known of another hub's trip.
  enum Finding {
    /// Another hub has it.
    case elsewhere(TripStatus, driver: Identifier?)
    /// No hub has it, as far as can be known. `isKnown`: the ledger says so. `isDenied`: the owner that the ledger
    /// named has answered that it does not have it.
    case nowhere(isKnown: Bool, isDenied: Bool)
    case over

    init(_ trip: TripState) { self = .elsewhere(trip.status, driver: trip.driverID) }

    /// Nil for publications that are no moves.
    init?(_ publication: Publication) {
      guard case .tripUpdate(let update) = publication.body else { return nil }
      self = .elsewhere(update.status, driver: update.driverID)
    }
  }

  /// A fix that may begin a trip.
  struct Beginning {
    let trip: Identifier
    /// The session's token grants it.
    var isGranted: Bool
    var time: Timestamp
  }

  /// What the hub does about a trip that a driver names.
  enum LookUp {
    /// No hub has it: it may begin here.
    case isNowhere
    case waits
    /// It is to be looked up, after these steps.
    case begins([Step])
  }

  /// What follows for others.
  enum Step {
    /// The driver is busy with another hub's trip, or is not any more.
    case busy(Int)
    case free(Int)
    /// No driver names the trip any more.
    case ended(Identifier, isNowhere: Bool)
    /// There is news of the trip that the driver has named.
    case changed(Int)
  }

  private enum State: Equatable {
    case asked, nowhere
    /// Another hub has it, whether or not that can be reached now.
    case elsewhere
    /// It has ended at another hub, and is not followed any more.
    case over
    /// No hub has it, and it may not begin here: it is not followed until the driver names it again.
    case refused
  }

  /// Which driver another hub's trip has, as far as this hub knows.
  private enum Owner {
    case unknown, driver, nobody, another
  }

  /// The trip of another hub that a driver's fixes named last.
  private struct Naming {
    var fix: Beginning
    var state = State.asked
    /// The newest fix named it.
    var isCurrent = true
    /// The trip has this driver, who is busy with it.
    var isBusy = false
    var owner = Owner.unknown
    /// When the trip was looked up (uptime, ns).
    let since: Int64

    /// Whether this driver's fixes may not name it: it has another driver, or none and the token does not grant it.
    var isForbidden: Bool {
      switch owner {
      case .unknown, .driver: false
      case .nobody: !fix.isGranted
      case .another: true
      }
    }
  }

  /// Nanoseconds before a driver may name another trip, or have one looked up again.
  private static let patience: Int64 = 1_000_000_000

  /// Positions between two records of a trip's figures where its driver is elsewhere; else each fix makes one.
  private static let positionsPerRecord: UInt64 = 16

  /// By the driver's index: at most one each.
  private var namings: [Int: Naming] = [:]
  private var namers: [Identifier: [Int]] = [:]

  var isEmpty: Bool { namings.isEmpty }

  static func isRecorded(_ progress: TripProgress) -> Bool { progress.fixes % positionsPerRecord == 0 }

  /// The trip of another hub that the driver's newest fix named.
  func named(by driver: Int) -> Identifier? {
    guard let naming = namings[driver], naming.isCurrent, !naming.isForbidden else { return nil }
    return [.over, .refused].contains(naming.state) ? nil : naming.fix.trip
  }

  /// The driver's newest fix that named a trip, where that is known to be at no hub.
  func begins(by driver: Int) -> Beginning? {
    guard let naming = namings[driver], naming.state == .nowhere, naming.isCurrent else { return nil }
    return naming.fix
  }

  /// Whether the trip that the driver's newest fixes named is still being looked up.
  func isLooking(by driver: Int) -> Bool {
    if let naming = namings[driver] { naming.isCurrent && naming.state == .asked } else { false }
  }

  /// Notes a fix that may name another trip, or none. `takesCurrent`: one that names none is of the trip that keeps the
  /// driver busy.
  mutating func noteFix(of driver: Int, takesCurrent: Bool = false) {
    if let known = namings[driver] { namings[driver]?.isCurrent = takesCurrent && known.isBusy }
  }

  /// Throws where it is known that the driver's fixes may not name the trip.
  mutating func checkNamed(_ fix: Beginning, by driver: Int) throws(ErrorReply) {
    guard let known = namings[driver], known.fix.trip == fix.trip else { return }
    namings[driver]?.fix.isGranted = fix.isGranted
    // If its hub loses the trip, it begins here with the driver's newest fix.
    if known.state == .elsewhere { namings[driver]?.fix.time = fix.time }
    guard namings[driver]?.isForbidden == true else { return }
    namings[driver]?.isCurrent = false
    throw Trips.forbidsNaming(fix.trip)
  }

  /// Whether a trip that is not here, but is named by a driver, has to be looked up.
  mutating func look(for fix: Beginning, by driver: Int, at uptime: Int64) -> LookUp {
    guard let known = namings[driver] else { return .begins([]) }
    let isSame = known.fix.trip == fix.trip
    if isSame, known.state == .nowhere { return .isNowhere }
    namings[driver]?.isCurrent = isSame
    if uptime - known.since < DistantTrips.patience { return .waits }
    guard isSame else { return .begins(forget(driver)) }
    return known.state == .refused ? .begins([]) : .waits
  }

  /// The trip that the driver names is being looked up. What was refused stays forbidden meanwhile.
  mutating func begin(_ fix: Beginning, by driver: Int, at uptime: Int64) {
    namings[driver] = Naming(fix: fix, owner: namings[driver]?.owner ?? .unknown, since: uptime)
    namers[fix.trip, default: []].append(driver)
  }

  /// Notes that another hub's trip is the driver's, who has accepted it.
  mutating func accept(_ trip: Identifier, by driver: Int) {
    if namings[driver]?.fix.trip == trip { namings[driver]?.owner = .driver }
  }

  /// Takes news of a trip.
  mutating func take(_ finding: Finding, of name: Channel, _ drivers: borrowing Drivers) -> [Step] {
    guard case .trip(let trip) = name, let namers = namers[trip] else { return [] }
    var steps: [Step] = []
    for driver in namers {
      switch finding {
      case .elsewhere(let status, let owner):
        namings[driver]?.state = .elsewhere
        let isOwner = owner == drivers[driver].id
        namings[driver]?.owner = isOwner ? .driver : owner == nil ? .nobody : .another
        steps += setBusy(driver, status.occupiesDriver && isOwner)
      // A trip known to be at another hub begins here only if that hub has lost it, not if it cannot be reached.
      case .nowhere(let isKnown, let isDenied):
        guard isDenied || namings[driver]?.state != .elsewhere else { continue }
        steps += setBusy(driver, false)
        namings[driver]?.state = .nowhere
        namings[driver]?.owner = .unknown
        if isKnown, namings[driver]?.fix.isGranted == false { steps += refuse(driver) }
      // If the driver names it again, it is not looked for again.
      case .over:
        steps += unname(driver)
        namings[driver]?.state = .over
      }
    }
    return steps + namers.map { .changed($0) }
  }

  /// The driver's fixes may not begin the trip.
  private mutating func refuse(_ driver: Int) -> [Step] {
    let steps = unname(driver)
    namings[driver]?.state = .refused
    namings[driver]?.owner = .nobody
    return steps
  }

  /// Another hub has a trip, as is known now, or known again. Its drivers' batches wait no longer, whether or not that
  /// hub can be reached.
  mutating func noteElsewhere(_ name: Channel) {
    guard case .trip(let trip) = name else { return }
    for driver in namers[trip] ?? [] { namings[driver]?.state = .elsewhere }
  }

  /// A trip has begun here.
  mutating func forget(trip: Identifier) -> [Step] { (namers[trip] ?? []).flatMap { forget($0) } }

  /// The driver has left this hub, or names another trip.
  mutating func forget(_ driver: Int) -> [Step] {
    defer { namings[driver] = nil }
    return unname(driver)
  }

  /// The trip that the driver names is not followed for it any more.
  private mutating func unname(_ driver: Int) -> [Step] {
    let steps = setBusy(driver, false)
    guard let trip = namings[driver]?.fix.trip, let index = namers[trip]?.firstIndex(of: driver) else { return steps }
    namers[trip]?.remove(at: index)
    guard namers[trip]?.isEmpty == true else { return steps }
    namers[trip] = nil
    return steps + [.ended(trip, isNowhere: namings[driver]?.state == .nowhere)]
  }

  private mutating func setBusy(_ driver: Int, _ isBusy: Bool) -> [Step] {
    guard let known = namings[driver], known.isBusy != isBusy else { return [] }
    namings[driver]?.isBusy = isBusy
    return [isBusy ? .busy(driver) : .free(driver)]
  }
}

extension Trips {
  /// The trip and the driver that a position of another hub belongs to; nil where the trip has ended, or has another
  /// driver or a newer position.
  @inline(__always)
  func driven(
    _ location: DriverLocation, among drivers: borrowing Drivers, at uptime: Int64
  ) -> (trip: Int, driver: Int)? {
    guard let trip = location.tripID.flatMap({ find($0) }), !self[trip].isOver(at: uptime),
      self[trip].driverID == location.driverID, let driver = drivers.find(location.driverID),
      drivers[driver].isElsewhere, drivers[driver].position.map({ $0.published < location.timestamp }) ?? true
    else { return nil }
    return (trip, driver)
  }
}

extension Position {
  /// As another hub has published it.
  init(_ location: DriverLocation) {
    self.init(
      coordinate: location.coordinate, speed: location.speed, heading: location.heading, accuracy: location.accuracy,
      confidence: location.confidence, timestamp: location.timestamp)
  }
}
