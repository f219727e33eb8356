// The hub's tables by name, for operators: entries, limit, and how often each was full. The share of one party has a
// limit of its own (`ShareLimit`), at which others are not affected.
public import HubMessages

/// A table of the hub with a limit (`HubLimits`).
public enum HubTable: UInt8, Sendable, CaseIterable {
  case drivers, trips, channels, events, eventContents, profiles, areas, guests, queries, tripLists, driverLists,
    routePoints, routeBytes
  case offers
  case fences, fencePositions, roamingFences, fenceStays, fencePairs
  case fixTimes, missedFixes, waitingFixes, waitingResumes
  case tokenFamilies, revocations

  /// The name in metrics.
  public var name: StaticString {
    switch self {
    case .drivers: "drivers"
    case .trips: "trips"
    case .channels: "channels"
    case .events: "events"
    case .eventContents: "event_contents_bytes"
    case .profiles: "profiles"
    case .areas: "areas"
    case .guests: "guests"
    case .queries: "queries"
    case .tripLists: "trip_lists"
    case .driverLists: "driver_lists"
    case .routePoints: "route_points"
    case .routeBytes: "route_bytes"
    case .offers: "offers"
    case .fences: "fences"
    case .fencePositions: "fence_positions"
    case .roamingFences: "roaming_fences"
    case .fenceStays: "fence_stays"
    case .fencePairs: "fence_pairs"
    case .fixTimes: "fix_times"
    case .missedFixes: "missed_fixes"
    case .waitingFixes: "waiting_fixes"
    case .waitingResumes: "waiting_resumes"
    case .tokenFamilies: "token_families"
    case .revocations: "revocations"
    }
  }
}

/// The limit of one driver, rider, session or cell in a table.
public enum ShareLimit: UInt8, Sendable, CaseIterable {
  case tripsPerDriver, tripsPerRider, routeBytesPerIdentity, queriesPerSession, queriesPerIdentity, offersPerIdentity
  case fencesPerCell, fencesPerDriver, pairsPerDriver, missedFixesPerDriver, tokenFamiliesPerSubject

  /// The name in metrics.
  public var name: StaticString {
    switch self {
    case .tripsPerDriver: "trips_per_driver"
    case .tripsPerRider: "trips_per_rider"
    case .routeBytesPerIdentity: "route_bytes_per_identity"
    case .queriesPerSession: "queries_per_session"
    case .queriesPerIdentity: "queries_per_identity"
    case .offersPerIdentity: "offers_per_identity"
    case .fencesPerCell: "fences_per_cell"
    case .fencesPerDriver: "fences_per_driver"
    case .pairsPerDriver: "pairs_per_driver"
    case .missedFixesPerDriver: "missed_fixes_per_driver"
    case .tokenFamiliesPerSubject: "token_families_per_sub"
    }
  }
}

/// A number for each role: the limit of one identity (`sub` and role).
public struct RoleLimits: Sendable, Equatable {
  public var driver: Int
  public var rider: Int
  public var ops: Int

  public init(driver: Int, rider: Int, ops: Int) {
    self.driver = driver
    self.rider = rider
    self.ops = ops
  }

  /// The number for one role.
  public subscript(role: Role) -> Int {
    get {
      switch role {
      case .driver: driver
      case .rider: rider
      case .ops: ops
      }
    }
    set {
      switch role {
      case .driver: driver = newValue
      case .rider: rider = newValue
      case .ops: ops = newValue
      }
    }
  }

  /// Each is at least 1.
  public var isValid: Bool { driver >= 1 && rider >= 1 && ops >= 1 }
}

extension Role {
  /// The entries of a table of `limit` that a role may fill: a tenth is kept for ops, rounded down, so that others
  /// cannot lock out those who have to inspect it.
  public func share(of limit: Int) -> Int { self == .ops ? limit : limit - limit / 10 }

  /// The text of a refusal at the role's limit of running queries.
  public func queriesLimit(_ limits: RoleLimits) -> String {
    "one \(name) has at most \(limits[self]) queries under way, over all its sessions (max-queries-per-\(name))"
  }
}

extension HubLimits {
  /// The limit of a table.
  public func capacity(of table: HubTable) -> Int {
    switch table {
    case .drivers: drivers
    case .trips: trips
    case .channels: channels
    case .events: events
    case .eventContents: eventContentBytes
    case .profiles: profiles
    case .areas: areas
    case .guests: guests
    case .queries: queries
    case .tripLists: tripLists
    case .driverLists: driverLists
    case .routePoints: routePoints
    case .routeBytes: routeBytes
    case .offers: offers
    case .fences: fences
    case .fencePositions: fencePositions
    case .roamingFences: roamingFences
    case .fenceStays: fenceStays
    case .fencePairs: fencePairs
    case .fixTimes: driversWithFixTimes
    case .missedFixes: missedFixes
    case .waitingFixes: waitingFixes
    case .waitingResumes: waitingResumes
    case .tokenFamilies: tokenFamilies
    case .revocations: revocations
    }
  }
}
