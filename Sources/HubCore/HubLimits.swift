// The hub's limits as a type. The numbers stand in Gateway's Limits.swift, with all others.

/// Bounds of the hub's tables; what happens at each is said beside it.
public struct HubLimits: Sendable, Equatable {
  /// Drivers known at once. At it a newcomer's upgrade is refused with HTTP 503.
  public var drivers: Int
  /// Trips known at once, ended ones included until they expire. At it `requested` is refused with `storage_full`.
  public var trips: Int
  /// Trips that one driver began and that the hub still knows, and such that one rider began: at
  /// it what this driver or rider would begin is refused with `rate_limited`.
  public var tripsPerDriver = 1000
  public var tripsPerRider = 100
  /// Fixes in batches that wait for their turn, and as many in batches that wait for the journal. Past it a batch is
  /// refused with `rate_limited`.
  public var waitingFixes = 600_000
  /// Subscriptions with `since` that wait for their turn. Past it one is refused with `rate_limited`.
  public var waitingResumes = 100_000
  /// Channels with subscribers or events. At it `subscribe` is refused with `rate_limited`.
  public var channels: Int
  /// Events kept for each channel. Older ones are forgotten: resuming from before them is not `recovered`.
  public var eventsPerChannel: Int
  /// Events kept in all channels together; the oldest of all is forgotten first.
  public var events: Int
  /// Bytes of routes and of notifications' texts in all kept events. Past it a `trip_change` with a route, and a
  /// notification that is posted, is refused with `storage_full`.
  public var eventContentBytes = 256 << 20
  /// The same of one channel. Past it: its oldest events are forgotten. So a subscriber that resumes is sent no more at
  /// once.
  public var eventContentBytesPerChannel = 256 << 10
  /// Cells watched at once, counted for each audience. At it `subscribe` is refused with `rate_limited`.
  public var areas = 65_536
  /// Drivers that one turn looks at, names or lets go for areas: some 100 µs where all of them are far from each other
  /// in memory. What is left of a tick goes on in the next turn.
  public var areaDriversPerTurn = 128
  /// Fences, positions of all of them, and such that are about two drivers. At each a new one is refused with
  /// `storage_full`.
  public var fences = 50_000
  public var fencePositions = 2_000_000
  public var roamingFences = 16
  /// Fences of one cell of their index: what a fix looks at grows with it. At it a fence there is refused with
  /// `storage_full`.
  public var fencesPerCell = 256
  /// Fences that one driver is in, and all drivers together. At it an enter is not told before another has been left.
  public var fencesPerDriver = 128
  public var fenceStays = 4_000_000
  /// Pairs of roaming fences that one driver is in, and that there are. At it no further one begins.
  public var pairsPerDriver = 16
  public var fencePairs = 1_000_000
  /// Combinations of vehicle type and tags in use. At it a `driver_status` with another one is refused with
  /// `storage_full`.
  public var profiles: Int
  /// Vertices of the routes that are being followed. Where another route of the longest kind has no room, its trip has
  /// ETAs without it.
  public var routePoints = 4_000_000
  /// What is believed of a fix. Past it: `implausible_location`.
  public var tracking: Tracker.Rules
  /// Hits of one nearby query.
  public var queryHits: Int
  /// What queries may look at in one turn; past it they go on in the next.
  public var queryBudget: SearchBudget
  /// Queries under way, of all and of one session. Past it: `rate_limited`.
  public var queries = 256
  public var queriesPerSession = 4
  /// Those of one identity, over all its sessions and requests. Past it: `rate_limited`, over HTTP 429.
  public var queriesPerIdentity = RoleLimits(driver: 4, rider: 8, ops: 64)
  /// Lists of trips that are put together at once. Past it a further one is refused with `rate_limited`.
  public var tripLists = 64
  /// Trips that all of them together look at in one turn; they go on in the next.
  public var tripsListedPerTurn = 2_000
  /// Fix times remembered for each driver that sends batches, to recognise repeated fixes.
  public var fixTimesPerDriver: Int
  /// Drivers for which fix times are remembered. Past it a repeated old fix of a further driver counts as history.
  public var driversWithFixTimes: Int
  /// Fixes that were taken in while nothing could be stored and have not come again, whose times are kept: of one
  /// driver (as many as this project's client keeps to send again), and of all. Past it a driver's `storedThrough`
  /// stays before the first that has no place for as long as the hub runs, and the driver sends again what is newer,
  /// needed or not.
  public var missedFixesPerDriver = 4096
  public var missedFixes = 1 << 20

  public init(
    drivers: Int, trips: Int, channels: Int, eventsPerChannel: Int, events: Int, queryHits: Int,
    queryBudget: SearchBudget,
    fixTimesPerDriver: Int, driversWithFixTimes: Int, profiles: Int, tracking: Tracker.Rules = .standard
  ) {
    precondition(drivers > 0 && trips > 0 && channels > 0 && eventsPerChannel > 0 && events >= eventsPerChannel)
    precondition(
      queryHits > 0 && queryBudget.candidates >= queryHits && fixTimesPerDriver > 0 && driversWithFixTimes >= 0)
    precondition(profiles >= 0 && tracking.maximumAccuracyMeters > 0)
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
  /// The older of two sessions of one client is told after this, and at most a second later, that it was replaced.
  public var takeover = 2.0
  /// What could not be stored when it was due is looked at again after this.
  public var storageRetry = 60.0

  /// What holds on trips: when the driver is near, what is a gap, how often an ETA is told.
  public var trips = TripRules()
  /// What holds at fences: how sure a position must be, and how far outside is outside.
  public var fences = FenceRules()

  public init() {}
}
