// Every limit of a hub, in one place: what it bounds, its default, and what happens at it. Those that operators change
// have a row among the settings of `serve`.
import HubMessages

/// Bounds of the hub's tables and of the work of a turn.
public struct HubLimits: Sendable, Equatable {
  // MARK: Drivers and trips

  /// Drivers known at once. At it a newcomer's upgrade is refused with HTTP 503.
  public var drivers = 1 << 20
  /// Trips known at once, ended ones included until they expire. At it `requested` is refused with `storage_full`.
  public var trips = 1 << 20
  /// Trips that one driver began (by naming them in a fix, or by `requested`) and that the hub still knows, ended ones
  /// included; and such that one rider began. At it what this driver or rider would begin is refused with
  /// `rate_limited`.
  public var tripsPerDriver = 1000
  public var tripsPerRider = 100
  /// Messages that moved a trip, of which it knows a repeated one. Past it the oldest is forgotten, and its repetition
  /// is judged like a new move.
  static let movesPerTrip = 16
  /// Cells whose roads' circuity is learnt. Where two meet in one entry the newer one has it.
  static let circuityCells = 4096
  /// Places on the routes of trips that are under way, 24 bytes each. Where a route of 5,000 has no room, its trip has
  /// ETAs without it.
  public var routePoints = 4_000_000
  /// Combinations of vehicle type and tags that drivers have, at most 700 bytes each. At it a `driver_status` with
  /// another one is refused with `storage_full`.
  public var profiles = 1 << 17
  /// What is believed of a fix. Past it: `implausible_location`.
  public var tracking = Tracker.Rules.standard

  /// Entries of `Deadlines` looked at in one turn; the others wait for the next. All drivers of a network that fails
  /// become stale in one second, and each publishes.
  public var deadlinesPerTurn = 128

  // MARK: Channels and events

  /// Channels with subscribers or events. At it `subscribe` is refused with `rate_limited`.
  public var channels = 1 << 21
  /// Events kept for each channel. Older ones are forgotten: resuming from before them is not `recovered`.
  public var eventsPerChannel = 256
  /// Events kept in all channels together; the oldest of all is forgotten first.
  public var events = 1 << 20
  /// Bytes of routes and of notifications' texts and data in all kept events. Past it a `trip_change` with a route, and
  /// a notification that is posted, is refused with `storage_full`.
  public var eventContentBytes = 256 << 20
  /// Such bytes of one channel. Past it its oldest events are forgotten, so that a subscriber that resumes is sent no
  /// more at once.
  public var eventContentBytesPerChannel = 256 << 10
  /// Fixes as they were measured that wait for a subscriber to read. Past it a newer one takes the place of another.
  public static let unreadRawFixes: UInt64 = 64
  /// Subscriptions with `since` that wait for their turn. Past it one is refused with `rate_limited`.
  public var waitingResumes = 100_000

  // MARK: Questions

  /// Drivers of one answer. Who asks for more: `bad_message`.
  public var queryHits = DriverSearch.maximumLimit
  /// Index cells and drivers that the queries of one turn look at: what a hub thread does in 200 µs. What is left goes
  /// on in the next turn, behind what has come meanwhile.
  public var queryBudget = SearchBudget.standard
  /// Queries under way, of all sessions and of one. Past it: `rate_limited`.
  public var queries = 256
  public var queriesPerSession = 4
  /// Queries of one identity under way, over all its sessions and requests. Past it: `rate_limited`, over HTTP 429.
  public var queriesPerIdentity = RoleLimits(driver: 4, rider: 8, ops: 64)
  /// Pages of trips that are put together at once. Past it a further one is refused with `rate_limited`, over HTTP 503
  /// with `Retry-After`.
  public var tripLists = 64
  /// Trips that all of them together look at in one turn, 100 µs; they go on in the next.
  public var tripsListedPerTurn = 2_000

  /// Pages of drivers that are put together at once. Past it a further one is refused as one of trips is.
  public var driverLists = 64
  /// Drivers that all of them together look at in one turn; they go on in the next.
  public var driversListedPerTurn = 2_000

  /// Shares of one trip, which are stored with it; a rider, who begins `tripsPerRider` trips a day, has at most so many
  /// times as many. Past it: 429.
  public static let sharesPerTrip = 16
  /// How often a trip is shared, ended shares included: each writes the trip to the journal, its route of up to 15 KB
  /// with it. Past it: 429.
  public static let sharesMadePerTrip = 64

  // MARK: Offers

  /// Trips of which offers are made at once, and such whose offers have ended as far as there is room. At it, where all
  /// go on, offers are refused with `storage_full`.
  public var offers = 10_000
  /// Trips for which one identity has offers made at once. Past it: `rate_limited`, over HTTP 429. How many drivers are
  /// asked for one trip: `OfferCriteria.maximumLimit`.
  public var offersPerIdentity = RoleLimits(driver: 1, rider: 4, ops: 1000)
  /// Index cells and drivers that the looks for drivers of one turn pass; they go on in the next.
  public var offerBudget = SearchBudget(cells: 400, candidates: 1000)

  // MARK: Areas and fences

  /// Cells of one view, whatever it shows: as many as a session may have subscriptions. A view that needs more is
  /// refused with `bad_message`. A circle of 500 km takes some 60 cells of 156 km at 45° of latitude, and 230 at 80°,
  /// where cells are 27 km wide.
  static let cellsPerView = 256
  /// Blocks of cells of one view of counts. A view that needs more is refused with `bad_message`.
  static let blocksPerView = 64
  /// Cells watched at once, counted for each audience. At it `subscribe` is refused with `rate_limited`.
  public var areas = 65_536
  /// Drivers of other hubs of the cluster in cells that are watched here, some 400 bytes each. At it a further one is
  /// not shown here until there is room and it moves.
  public var guests = 250_000
  /// Parts of the map that are being gone through for guests that are to go. Past it the oldest is done at once.
  static let guestSweeps = 1024
  /// Drivers that a cell shows ops. Of more, `more` says how many there are besides.
  public static let opsDriversPerCell = 5000
  /// Drivers that one turn looks at, names or lets go for areas: some 100 µs where all of them are far from each other
  /// in memory. What is left of a tick goes on in the next turn.
  public var areaDriversPerTurn = 128
  /// Fences, positions that all of them are drawn with (some 60 bytes each), and such that are about two drivers. At
  /// each a new one is refused with `storage_full`, until others are deleted. What one fence may have:
  /// `DriverSearch.maximumPositions`.
  public var fences = 50_000
  public var fencePositions = 2_000_000
  public var roamingFences = 16
  /// Cells of the index that one fence lies in. A wide one lies in as few, which are larger.
  static let cellsPerFence = 48
  /// Fences of one cell of their index, with which the cost of a fix there grows. At it a fence there is refused with
  /// `storage_full`.
  public var fencesPerCell = 256
  /// Fences that one driver is in, and all drivers together, 64 bytes each. At it an enter is not told before the
  /// driver has left another one.
  public var fencesPerDriver = 128
  public var fenceStays = 4_000_000
  /// Pairs of drivers in roaming fences that one driver is in, and all. At it no further one begins.
  public var pairsPerDriver = 16
  public var fencePairs = 1_000_000

  // MARK: Fixes that came late

  /// Credit that the second lane keeps, in fixes: two full batches. What is earned beyond is lost.
  static let backlogCredit = 1000
  /// Fixes of batches that wait for their turn, and as many in batches that wait for the journal: some 90 MB each. Past
  /// it a batch is refused with `rate_limited`.
  public var waitingFixes = 600_000
  /// Fix times remembered for each driver that sends batches, to recognise repeated fixes.
  public var fixTimesPerDriver = 512
  /// Drivers for which fix times are remembered. Past it a repeated old fix of a further driver counts as history.
  public var driversWithFixTimes = 100_000
  /// Fixes that were taken in while nothing could be stored and have not come again, whose times are kept, 8 bytes
  /// each: of one driver (as many as this project's client keeps to send again), and of all. Past it a driver's
  /// `storedThrough` stays before the first that has no place for as long as the hub runs, and the driver sends again
  /// what is newer, needed or not.
  public var missedFixesPerDriver = 4096
  public var missedFixes = 1 << 20

  // MARK: Tokens

  /// Families of tokens (`POST /v1/tokens`), ended ones included as long as their access tokens would hold; some 700
  /// bytes each, and up to `claimBytes` more. At it a further one is refused with `storage_full`.
  public var tokenFamilies = 100_000
  /// Those of one `sub`: past it the one that was refreshed least recently ends.
  static let tokenFamiliesPerSubject = 16
  /// Bytes of a family's claims beyond `sub` and `role`. Past it: `too_large`.
  public static let claimBytes = 2048
  /// Revoked names, some 300 bytes each. At it a further one is refused with `storage_full`.
  public var revocations = 100_000
  public static let revocationsPerPage = 1000
  /// Entries of the audit trail in one second: of one identity or address, of how many of these, and of all who have no
  /// credential together, some 80 bytes each. Past it they are counted.
  static let auditEntriesPerSecond = 10
  static let auditedPerSecond = 1000
  static let auditedStrangersPerSecond = 100
  /// How long access and refresh tokens hold; how long the refresh token before the newest is answered as that was, in
  /// ns; how much longer than a token its revocation stays, for clocks that differ; and after what time at the latest
  /// it is looked at whether something has ended.
  static let accessTokenMilliseconds: Int64 = 900_000
  static let refreshTokenMilliseconds: Int64 = 30 * 86_400_000
  static let refreshGrace: Int64 = 10_000_000_000
  static let revocationMarginMilliseconds: Int64 = 60_000
  static let longestLookMilliseconds: Int64 = 3_600_000
  /// For how long at least a back end's revocation is kept behind a start of the hub, in ms, though its time is over by
  /// the wall clock: that may have been set wrong, and be set right again.
  static let revocationHoldMilliseconds: Int64 = 86_400_000

  /// Seconds of the hub's own figures that are kept, some 500 bytes each. Past it the oldest are forgotten.
  public var figures = 600

  public init() {}

  /// The hub of a test or a measurement: tables of these sizes.
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

  /// Relations that the code relies on.
  public func validate() {
    precondition(drivers > 0 && trips > 0 && channels > 0 && eventsPerChannel > 0 && events >= eventsPerChannel)
    precondition(profiles >= 0 && tracking.maximumAccuracyMeters > 0)
    precondition(tripsPerDriver >= 1 && tripsPerRider >= 1 && tripLists >= 1 && tripsListedPerTurn >= 1)
    precondition(driverLists >= 1 && driversListedPerTurn >= 1)
    precondition(deadlinesPerTurn >= 1)
    precondition((1...DriverSearch.maximumLimit).contains(queryHits) && queryBudget.candidates >= queryHits)
    precondition(queries >= 1 && queriesPerSession >= 1 && queriesPerIdentity.isValid)
    precondition(offers >= 1 && offersPerIdentity.isValid && offerBudget.cells > 0 && offerBudget.candidates > 0)
    precondition(areas >= 1 && areaDriversPerTurn >= 1 && guests >= 1)
    precondition(fences >= 1 && fencesPerCell >= 1 && fencesPerDriver >= 1 && pairsPerDriver >= 1)
    precondition(fencePositions >= DriverSearch.maximumPositions, "one fence must fit")
    precondition(waitingFixes >= LocationBatch.maximumCount && waitingResumes >= 0, "one batch must fit")
    precondition(fixTimesPerDriver > 0 && driversWithFixTimes >= 0)
    precondition(tokenFamilies >= 1 && revocations >= 1)
  }
}

/// The hub's times, in seconds; the contract's values by default.
public struct HubTimings: Sendable, Equatable {
  /// A driver without a session, or without a fix, for this long is stale.
  public var stale = 60.0
  /// … but not before this many of its sampling intervals, or, without a session, of the intervals at which it sends.
  /// The latter count for up to `longestSendingSilence`.
  public var staleSamplingIntervals = 2.5
  public var longestSendingSilence = 900.0
  /// How often a phone app sends that posts in its own format, as long as it has not sent more seldom.
  public var deviceInterval = 300.0
  /// The longer of `longestSendingSilence` and what a phone app may take.
  var longestSilenceOfSenders: Double { max(longestSendingSilence, staleSamplingIntervals * deviceInterval) }
  /// Ops' areas go on showing a driver that is offline for so long after its last fix.
  public var offlineShown = 3600.0
  /// Areas go on showing a driver that has gone to another hub of the cluster for so long, or until that tells of it.
  public var handover = 3.0
  /// Live positions of an ended trip go on for this long.
  public var tripGrace = 60.0
  /// An ended trip's events may be recovered for this long; a driver that is gone is forgotten after it. A trip without
  /// a move and without a position for this long is cancelled by the hub, so that trips nobody ends do not fill the
  /// table.
  public var retention = 86_400.0
  /// More than `replacements` replacements of one driver's session in `replacementWindow` …
  public var replacements = 3
  public var replacementWindow = 60.0
  /// … refuse newcomers for this long.
  public var conflict = 30.0
  /// The older of two sessions of one client is told after this, and at most two seconds later, that it was replaced.
  public var takeover = 2.0
  /// What could not be stored when it was due is looked at again after this.
  public var storageRetry = 60.0

  /// What holds on trips: when the driver is near, what is a gap, how often an ETA is told.
  public var trips = TripRules()
  /// What holds at fences: how sure a position must be, and how far outside is outside.
  public var fences = FenceRules()

  public init() {}
}

extension PublicAudience {
  /// Metres: how far around a place riders may look.
  public static let maximumRadiusMeters = 5_000.0
  /// Drivers that one answer to a rider, or one cell, may have.
  public static let maximumDrivers = 100
}
