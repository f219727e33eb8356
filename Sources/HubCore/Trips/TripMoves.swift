// The statuses of a trip and its moves as one table, and who may make which (protocol/trips.md, "States and moves").
import HubBytes
import HubGeo
public import HubMessages

extension TripStatus {
  /// The next status in the normal course; nil at the end.
  var next: TripStatus? {
    switch self {
    case .requested: .accepted
    case .accepted: .driverEnRoute
    case .driverEnRoute: .arrivedPickup
    case .arrivedPickup: .tripStarted
    case .tripStarted: .arrivedDestination
    case .arrivedDestination: .completed
    case .completed, .cancelled: nil
    }
  }

  /// Forward one step at a time; cancelled from every state before completed.
  func allows(_ target: TripStatus) -> Bool {
    target == .cancelled ? !isFinal : next == target
  }

  /// True while the trip keeps its driver busy, which makes the driver `on_trip`.
  var occupiesDriver: Bool {
    switch self {
    case .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination: true
    case .requested, .completed, .cancelled: false
    }
  }
}

/// The relation of an identity to a trip.
enum TripParty {
  case driver, rider, ops, stranger

  /// Whether this party may make the move, whatever the trip's status. A party may repeat `requested`, which no status
  /// allows, and a rider may cancel what is over: both are answered with the present status.
  func mayMove(from status: TripStatus, to target: TripStatus) -> Bool {
    switch self {
    case .ops, .driver: true
    case .rider: target == .cancelled && (status < .tripStarted || status.isFinal) || target == .requested
    case .stranger: false
    }
  }

  /// Whether this party may change the trip: its rider, ops, and its driver where it has no rider.
  func mayChange(hasRider: Bool) -> Bool {
    switch self {
    case .ops, .rider: true
    case .driver: !hasRider
    case .stranger: false
    }
  }
}

extension Trip {
  /// Whether the sender may make the move: ops, a party within its rights, or a driver entitled to accept the trip.
  func mayBeMoved(by input: TripStatusInput) -> Bool {
    if input.acceptsForAnother { return false }
    let party = party(of: input.actor)
    if party == .stranger, input.actor.role == .driver, driverID == nil {
      return input.tripIsGranted && input.report.status == .accepted
    }
    return party.mayMove(from: status, to: input.report.status)
  }

  /// Whether a `requested` repeats this trip's request: it is active, with the same parties and content. A driver may
  /// have accepted since, so a request without a driver is the same.
  func isRepeated(by input: TripStatusInput) -> Bool {
    let report = input.report
    let (rider, driver) = input.parties
    return !status.isFinal && rider == riderID && (driver == nil || driver == driverID) && report.pickup == pickup
      && report.dropoff == dropoff && report.route == route
  }
}

extension TripStatusInput {
  /// Whether a driver accepts a trip for another driver, which only ops may do.
  var acceptsForAnother: Bool {
    actor.role == .driver && report.status == .accepted && report.driverID.map { $0 != actor.id } ?? false
  }

  /// Whether the sender may request the trip: riders and drivers only for themselves, ops for anybody.
  var mayRequest: Bool {
    switch actor.role {
    case .ops: true
    case .rider: tripIsGranted && (report.riderID ?? actor.id) == actor.id
    case .driver: tripIsGranted && (report.driverID ?? actor.id) == actor.id
    }
  }

  /// The refusal of a move that its sender may not make. For a stranger to the trip its text depends on the message
  /// alone, so it reveals nothing of the trip.
  func refusal(to party: TripParty = .stranger) -> ErrorReply {
    let needsGrant = report.status == .requested || report.status == .accepted
    let reason =
      if acceptsForAnother {
        ": a driver accepts trips for itself only"
      } else if party == .rider, report.status == .cancelled {
        ": a rider cancels before trip_started"
      } else if needsGrant, !tripIsGranted {
        ": its token's trips do not include it\(report.status == .accepted ? ", and it has no open offer of it" : "")"
      } else if report.status == .requested, !mayRequest {
        ": a \(actor.role.name) requests trips for itself only"
      } else {
        ""
      }
    return ErrorReply(
      code: .forbidden,
      message: "\(actor.role.name) \(actor.id) may not set trip \(report.tripID) to \(report.status.name)\(reason)")
  }

  /// The parties of a requested trip.
  var parties: (rider: Identifier?, driver: Identifier?) {
    (
      report.riderID ?? (actor.role == .rider ? actor.id : nil),
      report.driverID ?? (actor.role == .driver ? actor.id : nil)
    )
  }
}

extension Trips {
  /// The driver that begins an unknown trip by this request, whose limit the trip counts for; nil for other inputs.
  func creator(by input: TripStatusInput) -> Identifier? {
    let begins = input.actor.role == .driver && input.report.status == .requested && input.mayRequest
    return begins && find(input.report.tripID) == nil ? input.actor.id : nil
  }
}

extension TripStatusReport {
  /// A hash of the request's content without its timestamp, which a repetition may change. It is kept among the trip's
  /// moves, so it is as durable as they are, and, as the first of them, never forgotten.
  func contentHash(seed: UInt64) -> UInt64 {
    var hash = InlineText("POST")!.hashValue(seed: seed)
    func add(_ word: UInt64) {
      let product = (hash ^ word).multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
      hash = product.high ^ product.low
    }
    for id in [driverID, riderID] { hash = (id?.text ?? InlineText()).hashValue(seed: hash) }
    for place in [pickup, dropoff, location] {
      add(place == nil ? 1 : 2)
      add(place?.latitude.bitPattern ?? 0)
      add(place?.longitude.bitPattern ?? 0)
    }
    add(route == nil ? 1 : 2)
    for byte in (route?.polyline ?? "").utf8 { add(UInt64(byte)) }
    if let offer {
      for text in [offer.vehicleType ?? InlineText()] + offer.tags { hash = text.hashValue(seed: hash) }
      add(offer.radiusMeters.bitPattern)
      for number in [offer.atOnce, offer.seconds, offer.limit] { add(UInt64(number)) }
    }
    return hash
  }
}

extension TripStatus: Comparable {
  /// The order of a trip's course, by raw values; all final states come last.
  public static func < (a: TripStatus, b: TripStatus) -> Bool { a.rawValue < b.rawValue }
}
