// Questions about trips, and the answers.
public import HubMessages

extension Trip {
  /// Its state for subscribers and in answers to requests.
  var state: TripState { TripState(tripID: id, status: status, driverID: driverID, timestamp: changed) }

  /// The full report for queries.
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

/// One trip, for an actor that may follow it.
public struct TripQuery: Sendable, Equatable {
  public var id: Identifier
  public var actor: Actor
  /// The credential's rights on the trip's channel.
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

  /// Whether the state is in the set.
  public func contains(_ status: TripStatus) -> Bool { bits & 1 << status.rawValue != 0 }
}

/// A page of trips, newest first.
public struct TripListQuery: Sendable, Equatable {
  public var statuses: TripStatusSet
  public var driverID: Identifier?
  /// Only trips moved at or after this, by the hub's wall clock.
  public var since: Timestamp?
  public var limit: Int
  /// Only trips with a smaller number are listed. `lastHub`: in a cluster, the last listed trip's (ListCursor.swift).
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

  /// Whether a trip belongs to the list, at any number.
  public func matches(_ trip: TripReport) -> Bool {
    matches(status: trip.status, driverID: trip.driverID, updated: trip.updated)
  }

  func matches(status: TripStatus, driverID: Identifier?, updated: Timestamp) -> Bool {
    if let since, updated < since { return false }
    if let wanted = self.driverID, driverID != wanted { return false }
    return statuses.contains(status)
  }
}

/// Questions about trips.
public enum TripQuestion: Sendable {
  case show(TripQuery)
  case list(TripListQuery)
  /// A request of ops for a trip: its status is `requested`.
  case begin(TripStatusReport, by: Actor? = nil)
  /// A change of pickup, dropoff or route. By its `key` a repetition is recognised.
  case change(TripChange, Actor, key: MessageID? = nil)
  /// A question about a trip's shares.
  case shares(Identifier, TripShareQuestion, Actor)
  /// A question about a trip's offers.
  case offers(Identifier, OffersQuestion, Actor)
}

/// Questions about the shares of a trip.
public enum TripShareQuestion: Sendable {
  case list
  case begin(TripShare)
  case end(Identifier)

  /// Whether it changes the trip's shares.
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
  /// The next page; nil at the end.
  public var next: ListCursor?
  /// The trips' numbers, by which hubs merge their pages.
  public var numbers: [UInt64]

  public init(trips: [TripReport] = [], next: ListCursor? = nil, numbers: [UInt64] = []) {
    self.trips = trips
    self.next = next
    self.numbers = numbers
  }
}

/// The answer to a `TripQuestion`.
public enum TripAnswer: Sendable {
  /// `isNew` where the request began the trip.
  case trip(TripReport, isNew: Bool)
  case list(TripPage)
  case refused(ErrorReply)
  case shares([TripShare])
  case shared(TripShare, of: Identifier)
  /// The share has ended.
  case unshared
  /// `isNew` where the request began them.
  case offers(OffersReport, isNew: Bool)
  case offersStopped
}
