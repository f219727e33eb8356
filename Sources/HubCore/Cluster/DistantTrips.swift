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
    /// No hub has it, as far as can be known.
    case nowhere
    case over

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
    let time: Timestamp
  }

  private enum State: Equatable {
    case asked, nowhere
    /// Another hub has it, whether or not that can be reached now.
    case elsewhere
    /// It has ended at another hub, and is not followed any more.
    case over
  }

  /// Whose another hub's trip is, as far as is known.
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
    /// When that was asked (uptime, ns).
    let since: Int64

    /// It is another driver's, or nobody's that the token does not name: this one's fixes may not name it.
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
    guard let naming = namings[driver], naming.isCurrent, !naming.isForbidden, naming.state != .over else { return nil }
    return naming.fix.trip
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

  /// Handles a fix that names a trip that is not here: true where no hub has it, so that it may begin here. Else looks
  /// it up, once. Throws where it is known that the driver's fixes may not name it.
  mutating func mayBegin(
    _ fix: Beginning, by driver: Int, _ drivers: inout Drivers, _ channels: inout Channels, at now: Moment
  ) throws(ErrorReply) -> Bool {
    if namings[driver]?.fix.trip == fix.trip {
      namings[driver]?.fix.isGranted = fix.isGranted
      if namings[driver]?.isForbidden == true { throw Trips.forbidsNaming(fix.trip) }
    }
    return name(fix, by: driver, &drivers, &channels, at: now)
  }

  /// Notes that another hub's trip is the driver's, who has accepted it.
  mutating func accept(
    _ fix: Beginning, by driver: Int, _ drivers: inout Drivers, _ channels: inout Channels, at now: Moment
  ) {
    _ = name(fix, by: driver, &drivers, &channels, at: now)
    if namings[driver]?.fix.trip == fix.trip { namings[driver]?.owner = .driver }
  }

  private mutating func name(
    _ fix: Beginning, by driver: Int, _ drivers: inout Drivers, _ channels: inout Channels, at now: Moment
  ) -> Bool {
    let trip = fix.trip
    if let known = namings[driver] {
      if known.fix.trip == trip, known.state == .nowhere { return true }
      namings[driver]?.isCurrent = known.fix.trip == trip
      if known.fix.trip == trip || now.uptime - known.since < DistantTrips.patience { return false }
      forget(driver, &drivers, &channels, at: now.timestamp)
    }
    guard channels.want(.trip(trip)) else { return false }
    namings[driver] = Naming(fix: fix, since: now.uptime)
    namers[trip, default: []].append(driver)
    return false
  }

  /// Takes news of a trip. Gives the drivers that have named it.
  mutating func take(
    _ finding: Finding, of name: Channel, _ drivers: inout Drivers, _ channels: inout Channels, at now: Timestamp
  ) -> [Int] {
    guard case .trip(let trip) = name, let namers = namers[trip] else { return [] }
    for driver in namers {
      switch finding {
      case .elsewhere(let status, let owner):
        namings[driver]?.state = .elsewhere
        let isOwner = owner == drivers[driver].id
        namings[driver]?.owner = isOwner ? .driver : owner == nil ? .nobody : .another
        setBusy(driver, status.occupiesDriver && isOwner, &drivers, at: now)
      // A known trip of another hub does not begin here because its hub cannot be reached.
      case .nowhere: if namings[driver]?.state == .asked { namings[driver]?.state = .nowhere }
      // If the driver names it again, it is not looked for again.
      case .over:
        unname(driver, &drivers, &channels, at: now)
        namings[driver]?.state = .over
      }
    }
    return namers
  }

  /// Another hub has a trip or a driver, as is known now, or known again: sessions here follow it there. Its drivers'
  /// batches wait no longer, whether or not that hub can be reached.
  mutating func beginElsewhere(_ name: Channel, _ channels: inout Channels) {
    channels.followElsewhere(name)
    guard case .trip(let trip) = name else { return }
    for driver in namers[trip] ?? [] { namings[driver]?.state = .elsewhere }
  }

  /// A trip has begun here.
  mutating func begin(_ trip: Identifier, _ drivers: inout Drivers, _ channels: inout Channels, at now: Timestamp) {
    channels.takeOver(.trip(trip), nil)
    for driver in namers[trip] ?? [] { forget(driver, &drivers, &channels, at: now) }
  }

  /// The driver has left this hub, or names another trip.
  mutating func forget(_ driver: Int, _ drivers: inout Drivers, _ channels: inout Channels, at now: Timestamp) {
    unname(driver, &drivers, &channels, at: now)
    namings[driver] = nil
  }

  /// The trip that the driver names is not followed for it any more.
  private mutating func unname(
    _ driver: Int, _ drivers: inout Drivers, _ channels: inout Channels, at now: Timestamp
  ) {
    setBusy(driver, false, &drivers, at: now)
    guard let trip = namings[driver]?.fix.trip, let index = namers[trip]?.firstIndex(of: driver) else { return }
    namers[trip]?.remove(at: index)
    guard namers[trip]?.isEmpty == true else { return }
    namers[trip] = nil
    channels.unwant(.trip(trip), isNowhere: namings[driver]?.state == .nowhere)
  }

  private mutating func setBusy(_ driver: Int, _ isBusy: Bool, _ drivers: inout Drivers, at now: Timestamp) {
    guard let known = namings[driver], known.isBusy != isBusy else { return }
    namings[driver]?.isBusy = isBusy
    if isBusy { drivers.beginTrip(driver) } else { drivers.endTrip(driver, at: now) }
  }
}

extension DistantTrips.Beginning {
  /// Makes the fix, which was published before its trip began, the trip's first position. Nil for a fix of a batch.
  func start(_ trip: Int, _ trips: inout Trips, _ driver: Int, _ drivers: inout Drivers, at now: Moment) -> Position? {
    guard let position = drivers[driver].position, position.timestamp >= time else { return nil }
    trips.measure(position, after: nil, trip: trip, at: now.uptime)
    drivers.accept(position, of: driver, trip: trips.handle(of: trip), at: now)
    return position
  }
}

extension Trips {
  /// Takes a position of a trip's driver at another hub: updates the trip's figures and gives the driver's position.
  /// Nil where the trip has ended, has another driver or a newer position.
  mutating func drive(
    _ location: DriverLocation, _ drivers: inout Drivers, at now: Moment
  ) -> (trip: Int, driver: Int, position: Position)? {
    guard let trip = location.tripID.flatMap({ find($0) }), !self[trip].isOver(at: now.uptime),
      self[trip].driverID == location.driverID, let driver = drivers.find(location.driverID),
      drivers[driver].isElsewhere, drivers[driver].position.map({ $0.published < location.timestamp }) ?? true
    else { return nil }
    let position = Position(location)
    measure(position, after: drivers[driver].position, trip: trip, at: now.uptime)
    drivers.accept(position, of: driver, trip: handle(of: trip), at: now)
    return (trip, driver, position)
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
