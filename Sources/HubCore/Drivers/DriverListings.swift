// Pages of all known drivers, for ops: selected by the beginning of the id and by state. They are built over as many
// turns as it takes, a limited number of drivers each (like TripListings): a search for a rare name among a million
// takes some hundred turns and delays nobody else.
//
// The order is that of the drivers' records, which is stable while the hub runs: each driver appears once, except for
// those forgotten or added between two pages.
public import HubBytes
import HubMessages

/// What is asked of all drivers.
public struct DriverListQuery: Sendable, Equatable {
  /// A status, or offline.
  public enum State: UInt8, Sendable, CaseIterable {
    case available, onTrip, unavailable, background, offline

    /// The word of `status=` in `GET /v1/drivers`.
    public var name: StaticString {
      switch self {
      case .available: "available"
      case .onTrip: "on_trip"
      case .unavailable: "unavailable"
      case .background: "background"
      case .offline: "offline"
      }
    }

    init(_ status: DriverStatus) {
      switch status {
      case .available: self = .available
      case .onTrip: self = .onTrip
      case .unavailable: self = .unavailable
      case .background: self = .background
      }
    }
  }

  /// The case-sensitive beginning of the ids.
  public var prefix: InlineText
  public var states: Set<State>
  public var limit: Int
  /// Where the page begins; with the hub of a cluster that had the last listed driver (ListCursor.swift).
  public var from: Int
  public var lastHub: String?

  public init(prefix: InlineText = InlineText(), states: Set<State> = Set(State.allCases), limit: Int, from: Int = 0) {
    self.prefix = prefix
    self.states = states
    self.limit = limit
    self.from = from
  }

  fileprivate func matches(_ driver: borrowing Driver) -> Bool {
    if driver.isElsewhere { return false }  // that hub lists it
    let isFound = unsafe driver.id.text.withBytes { id in
      unsafe prefix.withBytes { unsafe id.starts(with: $0) }
    }
    guard isFound else { return false }
    return states.contains(driver.isStale ? .offline : State(driver.status))
  }
}

/// A page while it is built.
struct DriverListing {
  let session: SessionRef
  fileprivate(set) var query: DriverListQuery
  fileprivate(set) var found: [Int] = []
  fileprivate var isAtEnd = false

  init(_ query: DriverListQuery, for session: SessionRef) { (self.query, self.session) = (query, session) }

  /// The cursor of the next page; nil at the end.
  var cursor: String? { isAtEnd ? nil : ListCursor(UInt64(query.from)).text(of: .drivers) }
}

struct DriverListings {
  private var listings = FirstInFirstOut<DriverListing>()

  var count: Int { listings.count }
  var isEmpty: Bool { listings.isEmpty }

  /// Begins a page. Throws at the limit of unfinished pages.
  mutating func begin(
    _ query: DriverListQuery, for session: SessionRef, _ limits: HubLimits, counting counters: inout HubCounters
  ) throws(ErrorReply) {
    guard count < limits.driverLists else {
      counters.count(full: .driverLists)
      throw ErrorReply(
        code: .rateLimited, message: "too many driver lists are being built (\(limits.driverLists))",
        retryAfter: 1)
    }
    listings.append(DriverListing(query, for: session))
  }

  /// Continues the pages, `limit` drivers in all. Gives those that are done.
  mutating func advance(over drivers: borrowing Drivers, limit: Int) -> [DriverListing] {
    listings.advance(limit) { $0.advance(over: drivers, &$1) }
  }
}

extension DriverListing {
  /// True where the page is done.
  fileprivate mutating func advance(over drivers: borrowing Drivers, _ budget: inout Int) -> Bool {
    while budget > 0, query.from < drivers.endIndex, found.count < query.limit {
      budget -= 1
      if query.matches(drivers[query.from]), drivers.isInUse(query.from) { found.append(query.from) }
      query.from += 1
    }
    isAtEnd = query.from >= drivers.endIndex
    return isAtEnd || found.count >= query.limit
  }
}
