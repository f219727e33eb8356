// All limits of a hub: what each bounds, its default, and what happens at it. Those that operators change have a row
// among the settings of `serve`.
import HubMessages

/// Limits of the hub's tables and of the work of a turn.
public struct HubLimits: Sendable, Equatable {
  // MARK: Drivers and trips

  /// Known drivers. At it a new driver's upgrade is refused with HTTP 503.
  public var drivers = 1 << 20
  /// Known trips, ended ones included until they expire. At it `requested` is refused with `storage_full`.
  public var trips = 1 << 20
  /// Known trips that one driver began (by naming them in a fix, or by `requested`), ended ones included; and that one
  /// rider began. At it this driver or rider can begin no other: `rate_limited`.
  public var tripsPerDriver = 1000
  public var tripsPerRider = 100
  /// Bytes of the routes of known trips (encoded polylines, up to 60 KB each). At it a trip with a route is refused
  /// with `storage_full`; and of the trips that one driver or rider began, with `rate_limited`.
  public var routeBytes = 1 << 30
  public var routeBytesPerIdentity = 4 << 20
  /// Messages that moved a trip and are remembered to recognise repetitions, and keys of a driver's statuses. Past it
  /// the oldest is forgotten, and its repetition is judged like a new one.
  static let movesPerTrip = 16
  /// Cells with a learnt circuity. Of two with the same hash the newer one is kept.
  static let circuityCells = 4096
  /// Vertices of routes of active trips, 24 bytes each. Without room for its route a trip has ETAs without it.
  public var routePoints = 4_000_000
  /// Combinations of vehicle type and tags that drivers have, at most 700 bytes each. At it a `driver_status` with
  /// another one is refused with `storage_full`.
  public var profiles = 1 << 17
  /// Plausibility of fixes. Past it: `implausible_location`.
  public var tracking = Tracker.Rules.standard

  /// Entries of `Deadlines` handled in one turn; the others wait for the next. All drivers of a failed network become
  /// stale in one second, and each publishes.
  public var deadlinesPerTurn = 128

  // MARK: Channels and events

  /// Channels with subscribers or events. At it `subscribe` is refused with `rate_limited`.
  public var channels = 1 << 21
  /// Events kept for each channel. Older ones are dropped: a resume from before them is not `recovered`.
  public var eventsPerChannel = 256
  /// Events kept in all channels together; the oldest of all is dropped first.
  public var events = 1 << 20
  /// Bytes of routes and of notifications' texts and data in all kept events. Past it the oldest of all are dropped:
  /// with a refusal one driver's routes, on its trips of a day, would leave no room for anybody else's.
  public var eventContentBytes = 256 << 20
  /// Such bytes of one channel. Past it its oldest events are dropped, which bounds what a resume sends at once.
  public var eventContentBytesPerChannel = 256 << 10
  /// Unread raw fixes of a subscriber. Past it a newer one replaces another.
  public static let unreadRawFixes: UInt64 = 64
  /// Subscriptions with `since` that wait for their turn. Past it: `rate_limited`.
  public var waitingResumes = 100_000

  // MARK: Questions

  /// Drivers of one answer. A request for more: `bad_message`.
  public var queryHits = DriverSearch.maximumLimit
  /// Index cells and drivers that the queries of one turn look at: 200 µs of a hub's thread. The rest continues in the
  /// next turn, behind its inputs.
  public var queryBudget = SearchBudget.standard
  /// Running queries, of all sessions and of one. Past it: `rate_limited`.
  public var queries = 256
  public var queriesPerSession = 4
  /// Running queries of one identity, over all its sessions and requests. Past it: `rate_limited`, over HTTP 429.
  public var queriesPerIdentity = RoleLimits(driver: 4, rider: 8, ops: 64)
  /// Unfinished pages of trips. Past it a further one is refused with `rate_limited`, over HTTP 503 with `Retry-After`.
  public var tripLists = 64
  /// Trips that one turn looks at for all pages together, 100 µs; the rest follows in the next turn.
  public var tripsListedPerTurn = 2_000

  /// Unfinished pages of drivers. Past it a further one is refused like one of trips.
  public var driverLists = 64
  /// Drivers that one turn looks at for all pages together; the rest follows in the next turn.
  public var driversListedPerTurn = 2_000

  /// Shares of one trip, which are stored with it. A rider has at most `tripsPerRider` times as many. Past it: 429.
  public static let sharesPerTrip = 16
  /// Shares made of a trip, ended ones included, which are stored with it as well: each writes the trip to the journal
  /// with its route of up to 60 KB. Past it: 429.
  public static let sharesMadePerTrip = 64

  // MARK: Offers

  /// Trips with running offers, and with ended ones while there is room. Where all are running: `storage_full`.
  public var offers = 10_000
  /// Trips with running offers of one identity. Past it: `rate_limited`, over HTTP 429. Drivers asked for one trip:
  /// `OfferCriteria.maximumLimit`.
  public var offersPerIdentity = RoleLimits(driver: 1, rider: 4, ops: 1000)
  /// Drivers who refused that one offer passes over; further ones count as asked.
  static let passedDriversPerOffer = 128
  /// Index cells and drivers that the offers' searches of one turn look at; the rest follows in the next.
  public var offerBudget = SearchBudget(cells: 400, candidates: 1000)
  /// Questions of offers to all hubs of a cluster that are not answered yet, each a query at every hub. At it further
  /// trips wait in their order.
  public var offerGathers = 64

  // MARK: Areas and fences

  /// Cells of one view, whatever it shows: as many as a session may have subscriptions. A larger view is refused with
  /// `bad_message`. A circle of 500 km takes some 60 cells of 156 km at 45° of latitude, and 230 at 80°, where cells
  /// are 27 km wide.
  static let cellsPerView = 256
  /// Blocks of cells of one view of counts. A larger view is refused with `bad_message`.
  static let blocksPerView = 64
  /// Watched cells, counted for each audience. At it `subscribe` is refused with `rate_limited`.
  public var areas = 65_536
  /// Drivers of other hubs in cells that are watched here, some 400 bytes each. At it a further one is not shown here
  /// until there is room and it moves.
  public var guests = 250_000
  /// Searches under way for other hubs' drivers to be removed from a part of the map. Past it the oldest is finished at
  /// once.
  static let guestSweeps = 1024
  /// Drivers of a cell that ops see. `more` has the number of the others.
  public static let opsDriversPerCell = 5000
  /// Drivers that one turn looks at, names or removes for areas: some 100 µs where all of them are far from each other
  /// in memory. The rest of a tick follows in the next turn.
  public var areaDriversPerTurn = 128
  /// Fences, all their vertices (some 60 bytes each), and fences about two drivers. At each a new one is refused with
  /// `storage_full`, until others are deleted. Vertices of one fence: `DriverSearch.maximumPositions`.
  public var fences = 50_000
  public var fencePositions = 2_000_000
  public var roamingFences = 16
  /// What a fence costs in a page of a list beside its vertices, in vertices.
  static let positionsPerListedFence = 20
  /// Index cells of one fence, at most. A large fence has larger cells, not more.
  static let cellsPerFence = 48
  /// Fences of one index cell, with which the cost of a fix there grows. At it a fence there is refused with
  /// `storage_full`.
  public var fencesPerCell = 256
  /// Fences that one driver is in, and all drivers together, 64 bytes each. At it an enter is not published before the
  /// driver has left another fence.
  public var fencesPerDriver = 128
  public var fenceStays = 4_000_000
  /// Pairs in roaming fences of one driver, and of all. At it no further one begins.
  public var pairsPerDriver = 16
  public var fencePairs = 1_000_000

  // MARK: Fixes that came late

  /// Credit that the second lane keeps, in fixes: two full batches. Credit beyond it is lost.
  static let backlogCredit = 1000
  /// Fixes of batches that wait for their turn, and as many in batches that wait for the journal: some 90 MB each. Past
  /// it a batch is refused with `rate_limited`.
  public var waitingFixes = 600_000
  /// Messages of one driver that wait behind its batches, and its batches that wait for the journal. Past it its next
  /// batch is refused with `rate_limited`.
  public var waitingPerDriver = 32
  /// Fix times remembered for each driver that sends batches, to recognise duplicates.
  public var fixTimesPerDriver = 512
  /// Drivers with remembered fix times. Past it a repeated old fix of another driver counts as history.
  public var driversWithFixTimes = 100_000
  /// Times of fixes that were accepted while nothing could be stored and have not come again, 8 bytes each: of one
  /// driver (as many as this project's client keeps to send again), and of all. Past it a driver's `storedThrough`
  /// stays before the first one left out while the hub runs, and the driver sends again what is newer, needed or not.
  public var missedFixesPerDriver = 4096
  public var missedFixes = 1 << 20

  // MARK: Tokens

  /// Families of tokens (`POST /v1/tokens`), ended ones included while their access tokens would be valid; some 700
  /// bytes each, and up to `claimBytes` more. At it a further one is refused with `storage_full`.
  public var tokenFamilies = 100_000
  /// Families of one `sub`: past it the least recently refreshed one ends.
  static let tokenFamiliesPerSubject = 16
  /// Bytes of a family's claims beyond `sub` and `role`. Past it: `too_large`.
  public static let claimBytes = 2048
  /// Revoked names, some 300 bytes each. At it a further one is refused with `storage_full`.
  public var revocations = 100_000
  public static let revocationsPerPage = 1000
  /// The audit trail's limits for one second: entries of one identity or address, identities and addresses that have
  /// entries, and entries of all without a credential. Past each, further ones (some 80 bytes) are only counted.
  static let auditEntriesPerSecond = 10
  static let auditedPerSecond = 1000
  static let auditedStrangersPerSecond = 100
  /// The lifetimes of access and refresh tokens; the grace (ns) in which the previous refresh token gets the newest
  /// one's answer; how much longer than a token its revocation is kept, for clocks that differ; and the longest time
  /// between checks for an end.
  static let accessTokenMilliseconds: Int64 = 900_000
  static let refreshTokenMilliseconds: Int64 = 30 * 86_400_000
  static let refreshGrace: Int64 = 10_000_000_000
  static let revocationMarginMilliseconds: Int64 = 60_000
  static let longestLookMilliseconds: Int64 = 3_600_000
  /// How long (ms) a back end's revocation is kept at least after a start of the hub, though expired by the wall clock,
  /// which may be wrong and be corrected.
  static let revocationHoldMilliseconds: Int64 = 86_400_000

  /// Seconds of the hub's figures that are kept, some 500 bytes each. Past it the oldest are dropped.
  public var figures = 600

  public init() {}

  /// For a test or a measurement, with tables of these sizes.
  public init(
    drivers: Int, trips: Int, channels: Int, eventsPerChannel: Int, events: Int, queryHits: Int,
    queryBudget: SearchBudget,
    fixTimesPerDriver: Int, driversWithFixTimes: Int, profiles: Int, tracking: Tracker.Rules = .standard
  ) {
    self.drivers = drivers
    self.trips = trips
    self.channels = channels
    self.eventsPerChannel = eventsPerChannel
    self.events = events
    self.queryHits = queryHits
    self.queryBudget = queryBudget
    self.fixTimesPerDriver = fixTimesPerDriver
    self.driversWithFixTimes = driversWithFixTimes
    self.profiles = profiles
    self.tracking = tracking
    validate()
  }

  /// Checks relations that the code relies on.
  public func validate() {
    precondition(drivers > 0 && trips > 0 && channels > 0 && eventsPerChannel > 0 && events >= eventsPerChannel)
    precondition(profiles >= 0 && tracking.maximumAccuracyMeters > 0)
    precondition(tripsPerDriver >= 1 && tripsPerRider >= 1 && tripLists >= 1 && tripsListedPerTurn >= 1)
    precondition(routeBytes >= 0 && routeBytesPerIdentity >= 0)
    precondition(driverLists >= 1 && driversListedPerTurn >= 1)
    precondition(deadlinesPerTurn >= 1)
    precondition((1...DriverSearch.maximumLimit).contains(queryHits) && queryBudget.candidates >= queryHits)
    precondition(queries >= 1 && queriesPerSession >= 1 && queriesPerIdentity.isValid)
    precondition(offers >= 1 && offersPerIdentity.isValid && offerBudget.cells > 0 && offerBudget.candidates > 0)
    precondition(offerGathers >= 1)
    precondition(areas >= 1 && areaDriversPerTurn >= 1 && guests >= 1)
    precondition(fences >= 1 && fencesPerCell >= 1 && fencesPerDriver >= 1 && pairsPerDriver >= 1)
    precondition(fencePositions >= DriverSearch.maximumPositions, "one fence must fit")
    precondition(waitingFixes >= LocationBatch.maximumCount && waitingResumes >= 0, "one batch must fit")
    precondition(waitingPerDriver >= 1)
    precondition(fixTimesPerDriver > 0 && driversWithFixTimes >= 0)
    precondition(tokenFamilies >= 1 && revocations >= 1)
  }
}

/// The hub's times, in seconds; by default the protocol's.
public struct HubTimings: Sendable, Equatable {
  /// A driver without a session, or without a fix, for this long is stale.
  public var stale = 60.0
  /// … but not before this many of its sampling intervals, or, without a session, of the intervals at which it sends.
  /// The latter count for up to `longestSilenceOfSenders`.
  public var staleSamplingIntervals = 2.5
  public var longestSendingSilence = 900.0
  /// The assumed interval of a phone app that posts in its own format, until it has sent less often.
  public var deviceInterval = 300.0
  /// The longer of `longestSendingSilence` and the silence allowed for a phone app.
  var longestSilenceOfSenders: Double { max(longestSendingSilence, staleSamplingIntervals * deviceInterval) }
  /// How long after its last fix ops' areas show an offline driver.
  public var offlineShown = 3600.0
  /// How long areas show a driver that moved to another hub of the cluster, unless that publishes it first.
  public var handover = 3.0
  /// How long after a trip's end live positions are published.
  public var tripGrace = 60.0
  /// How long an ended trip's events can be recovered, and after which an absent driver is forgotten. A trip without a
  /// move or position for this long is cancelled by the hub, so that abandoned trips do not fill the table.
  public var retention = 86_400.0
  /// A trip that a restarted hub has read is not cancelled or forgotten for this long: its people may have been cut
  /// off, and the machine's clock may be wrong.
  public var returning = 600.0
  /// More than `replacements` replacements of one driver's session in `replacementWindow` …
  public var replacements = 3
  public var replacementWindow = 60.0
  /// … refuse new sessions for this long.
  public var conflict = 30.0
  /// The older of two sessions of one client is closed as replaced after this, and at most two seconds later.
  public var takeover = 2.0
  /// What could not be stored when it was due is tried again after this.
  public var storageRetry = 60.0
  /// Where a hub refuses a search for offers without saying when to ask again, all hubs are asked again after this.
  public var offersRetry = 2.0

  /// The thresholds of trips: when the driver is near, what is a gap, how often an ETA is published.
  public var trips = TripRules()
  /// The thresholds of fences: accuracy of positions, hysteresis at the border.
  public var fences = FenceRules()

  public init() {}
}

extension PublicAudience {
  /// Metres: the largest radius of a rider's search.
  public static let maximumRadiusMeters = 5_000.0
  /// Drivers that one answer to a rider, or one cell, may have.
  public static let maximumDrivers = 100
}
