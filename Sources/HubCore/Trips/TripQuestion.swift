// What can be asked about trips, and what is answered.
import HubGeo
public import HubMessages

extension Trip {
  /// What its subscribers and who asks for it again are told of it.
  var state: TripState { TripState(tripID: id, status: status, driverID: driverID, timestamp: changed) }

  /// All of it, as queries show it.
  var report: TripReport {
    var report = TripReport(tripID: id, status: status, timestamp: changed, created: created, updated: updated)
    report.ended = endedAt
    report.driverID = driverID
    report.riderID = riderID
    report.pickup = pickup
    report.dropoff = dropoff
    report.route = route?.polyline
    if status.isFinal { report.summary = progress.summary }
    return report
  }
}

extension Trips {
  /// A trip for its new subscriber; and its driver's newest position, with the ETA, if that position is of this trip
  /// and the trip is not over.
  func snapshot(of trip: Int, among drivers: borrowing Drivers, at now: Moment, after: UInt64) -> Subscribed.Snapshot {
    let id = self[trip].id
    guard !self[trip].isOver(at: now.uptime), let driver = self[trip].driverID.flatMap({ drivers.find($0) }),
      let positionTrip = drivers[driver].positionTrip, current(positionTrip) == trip
    else { return Subscribed.Snapshot(trip: self[trip].state) }
    return Subscribed.Snapshot(
      trip: self[trip].state, position: drivers[driver].location(trip: id, at: now.timestamp, after: after),
      eta: self[trip].currentETA?.update(ofTrip: id, at: now.timestamp, after: after))
  }
}

/// One trip, for whoever may follow it.
public struct TripQuery: Sendable, Equatable {
  public var id: Identifier
  public var actor: Actor
  /// How far the credential opens the trip's channel.
  public var grant: ChannelGrant

  public init(id: Identifier, actor: Actor, grant: ChannelGrant) {
    self.id = id
    self.actor = actor
    self.grant = grant
  }
}

/// A set of states.
public struct TripStatusSet: Sendable, Equatable {
  private var bits: UInt8

  public static let all = TripStatusSet(TripStatus.allCases)

  public init(_ states: some Sequence<TripStatus>) {
    bits = 0
    for status in states { bits |= 1 << status.rawValue }
  }

  public func contains(_ status: TripStatus) -> Bool { bits & 1 << status.rawValue != 0 }
}

/// A page of trips, those that began last first.
public struct TripListQuery: Sendable, Equatable {
  public var statuses: TripStatusSet
  public var driverID: Identifier?
  /// Only what was moved at or after this, by the hub's wall clock.
  public var since: Timestamp?
  public var limit: Int
  /// Only trips with a smaller number; with the hub of a cluster that had what was shown last (ListCursor.swift).
  public var below: UInt64
  public var lastHub: String?

  public init(
    statuses: TripStatusSet = .all, driverID: Identifier? = nil, since: Timestamp? = nil, limit: Int,
    below: UInt64 = .max
  ) {
    self.statuses = statuses
    self.driverID = driverID
    self.since = since
    self.limit = limit
    self.below = below
  }

  /// Whether a trip belongs into the list, wherever it is in the order.
  public func matches(_ trip: TripReport) -> Bool {
    matches(status: trip.status, driverID: trip.driverID, updated: trip.updated)
  }

  func matches(status: TripStatus, driverID: Identifier?, updated: Timestamp) -> Bool {
    if let since, updated < since { return false }
    if let wanted = self.driverID, driverID != wanted { return false }
    return statuses.contains(status)
  }
}

/// What is asked about trips.
public enum TripQuestion: Sendable {
  case show(TripQuery)
  case list(TripListQuery)
  /// Ops ask for a trip: its status is `requested`.
  case begin(TripStatusReport, by: Actor? = nil)
  /// Another pickup, dropoff or route.
  case change(TripChange, Actor)
  /// Something about a trip's shares.
  case shares(Identifier, TripShareQuestion, Actor)
  /// Something about the offers of a trip.
  case offers(Identifier, OffersQuestion, Actor)
}

/// What is asked about the shares of a trip.
public enum TripShareQuestion: Sendable {
  case list
  case begin(TripShare)
  case end(Identifier)

  /// Whether the question changes the trip's shares.
  var isChange: Bool {
    switch self {
    case .list: false
    case .begin, .end: true
    }
  }
}

/// A page of a list of trips, without their routes.
public struct TripPage: Sendable {
  public var trips: [TripReport]
  /// Where the next page begins; nil where there is none.
  public var next: ListCursor?
  /// The trips' numbers, by which hubs put their pages together.
  public var numbers: [UInt64]

  public init(trips: [TripReport] = [], next: ListCursor? = nil, numbers: [UInt64] = []) {
    self.trips = trips
    self.next = next
    self.numbers = numbers
  }
}

/// The answer to a `TripQuestion`.
public enum TripAnswer: Sendable {
  /// `isNew` where the question began the trip.
  case trip(TripReport, isNew: Bool)
  case list(TripPage)
  case refused(ErrorReply)
  case shares([TripShare])
  case shared(TripShare, of: Identifier)
  /// The share that was meant is no more.
  case unshared
  /// `isNew` where the question began them.
  case offers(OffersReport, isNew: Bool)
  case offersStopped
}
