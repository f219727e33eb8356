// A driver as the hub holds it: what it said last, where it is, and when it counts as offline.
import HubGeo
import HubMessages

/// 870 bytes. A million of these are most of what a hub holds, so members stand in an order in which the small ones
/// fill the gaps that alignment leaves: behind the id, the tracker and optionals.
struct Driver {
  let id: Identifier
  /// What the driver said of itself; `on_trip` is derived from `activeTrips`.
  private(set) var reported = DriverStatus.available
  /// Exactly while this is false an entry of the deadlines watches for staleness.
  private(set) var isStale = false
  /// Its newest session is at another hub of the cluster.
  var isElsewhere = false
  /// How often a session of it has begun here, where hubs are several; it wraps.
  var arrivals: UInt16 = 0
  /// An entry of the deadlines waits to forget the driver. It stays when the driver comes back, so that one that comes
  /// and goes all day has two entries, not one for each time.
  var isRetentionArmed = false
  /// One waits for the end of the time for which ops are shown it offline.
  var isAbsenceArmed = false
  let hash: UInt64
  var tracker = Tracker()
  /// Trips that it began and that are still known.
  private(set) var tripsBegun: UInt32 = 0
  /// Its vehicle type and tags in the table of profiles; −1 for none.
  var profile: Int32 = -1
  /// Index of the channel of its fixes as they were measured, while somebody listens there; −1 for none.
  var rawChannel: Int32 = -1
  /// The session that may send for this driver; nil when none is connected.
  private(set) var session: SessionRef?
  private(set) var activeTrips: Int32 = 0
  /// The trip that its fixes named last, so that the id need not be looked up again.
  var lastTrip: Handle?
  /// Inputs of it that wait in the second lane.
  var waiting: Int32 = 0
  /// The trip that the fix of `position` named.
  private(set) var positionTrip: Handle?
  /// What areas keep of it.
  var area = DriverArea()
  var clock = SessionClock()
  /// Index of the driver's channel, where it has one.
  var channel: Int?
  /// The newest published position, and its age when it was published.
  private(set) var position: Position?
  private(set) var positionAge = 0.0
  /// When its last trip ended, by the hub's wall clock: since then riders know it by another name.
  private(set) var lastTripEnded: Int64 = 0
  /// When the newest accepted fix came, and since when no session is there (uptime, ns).
  private(set) var lastFix: Int64
  private(set) var disconnected: Int64
  /// What decides how often it should send; the seconds between fixes that it was told last, and when (uptime, ns).
  private var sampling = SamplingPolicy()
  private(set) var samplingInterval: Float = 0
  /// The seconds at which a driver without a session sends (`noteSending`); negative before its first message.
  private(set) var sendingInterval: Float = -1
  private(set) var samplingAdvised = Int64.min / 2
  var replacements = ReplacementWindow()
  /// The times of its fixes, kept once it has sent a batch.
  var fixTimes: FixTimes?
  /// What of it is on stable storage.
  var durable = DriverStorage()

  init(id: Identifier, hash: UInt64, uptime: Int64) {
    self.id = id
    self.hash = hash
    lastFix = uptime
    disconnected = uptime
  }

  var status: DriverStatus {
    @inline(__always) get { activeTrips > 0 ? .onTrip : reported }
  }

  var label: DriverLabel {
    @inline(__always) get { DriverLabel(status: status, profile: profile) }
  }

  mutating func report(_ status: DriverStatus) { reported = status }

  // MARK: Positions

  /// A position of the driver counts from now on. Without a session `noteSending` comes before it.
  @inline(__always)
  mutating func accept(_ position: Position, trip: Handle?, at now: Moment) {
    self.position = position
    positionTrip = trip
    if trip != nil { lastTrip = trip }
    lastFix = now.uptime
    refreshAge(at: now.timestamp)
  }

  mutating func refreshAge(at time: Timestamp) {
    if let position { positionAge = clock.age(of: position.timestamp, at: time) }
  }

  /// A fix came that is not published: a sign of life all the same.
  mutating func noteUnpublished(at uptime: Int64) { lastFix = uptime }

  /// Where an online driver should be now; nil where that is where it was, and where the fix is older than
  /// `Position.longestPrediction`.
  func predicted(at time: Timestamp) -> Coordinate? {
    guard !isStale, let position else { return nil }
    let time = clock.sessionTime(at: time)
    guard time.seconds(since: position.timestamp) <= Position.longestPrediction else { return nil }
    let place = position.predicted(at: time).published
    return place == position.coordinate ? nil : place
  }

  /// A fix from this time on (ms since 1970) that memory does not know has not come before.
  var vouchesFrom: Int64 { fixTimes?.vouchesFrom ?? tracker.latest?.milliseconds ?? .min }

  /// Whether a driver with remembered fix times has not sent this one before.
  @inline(__always)
  mutating func isNew(_ time: Timestamp, remembering: Bool) -> Bool {
    remembering ? fixTimes?.insert(time) ?? true : fixTimes?.contains(time) == false
  }

  /// Whether nothing of the driver is published because its clock was ahead: its newest fix is of the hub's future, by
  /// more than a leap, and this one is not.
  func isBehindClock(_ fix: Fix, at time: Timestamp, _ rules: Tracker.Rules) -> Bool {
    let future = time.milliseconds &+ rules.leapMilliseconds
    guard let newest = tracker.newest else { return false }
    return newest.milliseconds > future && fix.timestamp.milliseconds <= future
  }

  /// From the fix on that is being handled the driver's new clock counts (Tracking/ClockChange.swift). `sent` is the
  /// time of its envelope.
  mutating func believeClock(sent: Timestamp?, at time: Timestamp) {
    clock = SessionClock()
    if let sent { clock.observe(sent: sent, received: time) }
  }

  /// A position of the driver as it is written to clients; `after` is set for each channel.
  @inline(__always)
  func location(_ position: Position, trip: Identifier?) -> DriverLocation {
    DriverLocation(
      driverID: id, tripID: trip, coordinate: position.coordinate, heading: position.heading, speed: position.speed,
      accuracy: position.accuracy, confidence: position.confidence, timestamp: position.published,
      timeSource: position.timeSource, age: positionAge, after: 0)
  }

  /// Its newest position as it is shown at `time`; nil where none is known.
  func location(trip: Identifier?, at time: Timestamp, after: UInt64) -> DriverLocation? {
    guard let position else { return nil }
    var location = location(position, trip: trip)
    location.age = clock.age(of: position.timestamp, at: time)
    location.after = after
    return location
  }

  // MARK: Trips

  /// A trip that it began is known, or not any more.
  mutating func count(begunTrips step: Int) { tripsBegun = UInt32(Int(tripsBegun) + step) }

  mutating func beginTrip() { activeTrips += 1 }

  mutating func endTrip(at time: Timestamp) {
    activeTrips -= 1
    lastTripEnded = time.milliseconds
  }

  // MARK: Sessions

  mutating func connect(_ session: SessionRef) {
    take(session)
    sendingInterval = -1
  }

  /// An older session speaks for the driver again, or a newer one does from now on.
  mutating func take(_ session: SessionRef) {
    self.session = session
    clock = SessionClock(inheriting: clock.offsetMilliseconds)
  }

  mutating func disconnect(at uptime: Int64) {
    session = nil
    disconnected = uptime
  }

  // MARK: How often it sends

  /// A fix came without a session: the time since the one before is how often the driver sends. Messages that come in
  /// quick succession, as of a phone that empties its queue, do not hide a longer interval: it holds until as much time
  /// has passed in shorter ones. A gap over `longestSendingSilence` is no interval, for the driver was away: it changes
  /// nothing. An interval counts for no more than leads to that silence, or it would hold for hours.
  /// `lastStall` is when the hub last took up its work again.
  @inline(never)
  mutating func noteSending(at uptime: Int64, lastStall: Int64, _ timings: HubTimings) {
    let known = sendingInterval
    let passed = Float(uptime - max(lastFix, lastStall)) * 1e-9
    let (longestGap, intervals) = (Float(timings.longestSilenceOfSenders), Float(timings.staleSamplingIntervals))
    if known < 0 {
      sendingInterval = 0
    } else if passed <= longestGap {
      sendingInterval = min(max(passed, known - passed), longestGap / intervals)
    }
  }

  /// An app sends for it whose interval is at most this, as its operator says (seconds): where it is not known yet that
  /// the app sends more seldom, this counts.
  mutating func noteDevice(interval: Double) {
    if session == nil { sendingInterval = max(sendingInterval, Float(interval)) }
  }

  /// Whole seconds at which a driver sends that has no session, for the journal; 0 for one with a session.
  @inline(__always)
  var storedSendingInterval: UInt16 {
    guard session == nil else { return 0 }
    let seconds = max(samplingInterval, sendingInterval, 1).rounded(.up)
    return UInt16(min(seconds, Float(UInt16.max)))
  }

  /// What the driver should be told now of how often to send; nil where that is what it was told last.
  @inline(__always)
  mutating func advise(isWatched: Bool, at uptime: Int64, _ rules: SamplingRules) -> SamplingReason? {
    let speed = position?.speed
    let reason = sampling.decide(status, speed: speed, isWatched: isWatched, at: uptime, rules: rules)
    guard let reason else { return nil }
    noteAdvice(reason, at: uptime, rules)
    return reason
  }

  /// What a session that begins now is told.
  mutating func beginAdvice(isWatched: Bool, at uptime: Int64, _ rules: SamplingRules) -> SamplingReason {
    if isStale { sampling = SamplingPolicy() }
    let reason = sampling.begin(status, isWatched: isWatched, rules: rules)
    noteAdvice(reason, at: uptime, rules)
    return reason
  }

  private mutating func noteAdvice(_ reason: SamplingReason, at uptime: Int64, _ rules: SamplingRules) {
    samplingInterval = Float(rules.interval(reason))
    samplingAdvised = uptime
  }

  // MARK: Presence

  /// Whether an offer would reach it: it has a session, or has sent something since the last one ended.
  var isReachable: Bool { session != nil || disconnected <= lastFix }

  /// When the driver is stale if nothing comes: its session gone for 60 s, or no fix for longer than it should take.
  /// Time in which the hub stalled is not the driver's.
  func staleAt(lastStall: Int64, _ timings: HubTimings) -> Int64 {
    let silence = max(
      timings.stale, timings.staleSamplingIntervals * Double(samplingInterval),
      min(timings.staleSamplingIntervals * Double(sendingInterval), timings.longestSilenceOfSenders))
    // Who was told another interval gets the time for a fix by that one.
    let bySilence = max(lastFix, samplingAdvised, lastStall) + nanoseconds(silence)
    // A driver that posts over HTTP has no session: only silence makes it stale.
    guard session == nil, disconnected > lastFix else { return bySilence }
    return min(bySilence, max(disconnected, lastStall) + nanoseconds(timings.stale))
  }

  mutating func setStale(_ isStale: Bool) { self.isStale = isStale }

  /// When it is to be forgotten if nothing comes (uptime, ns).
  func forgetsAt(_ timings: HubTimings) -> Int64 { max(lastFix, disconnected) + nanoseconds(timings.retention) }

  /// The driver is still there, or can't be forgotten now: it is looked at again a retention later.
  mutating func putOffForgetting(at uptime: Int64) { disconnected = uptime }

  /// A start that read a wrong wall clock took the driver for one that is long gone: by the clock of now it may not be.
  mutating func reckonAgain(at now: Moment) {
    if durable.isKnown { disconnected = max(disconnected, durable.uptimeHeard(at: now) - 1_000_000) }
  }

  // MARK: Storing and reading back

  var tracking: StoredTracking {
    @inline(__always) get {
      StoredTracking(
        clockOffset: clock.offsetMilliseconds, sendingInterval: durable.sendingInterval, motion: tracker.storedMotion)
    }
  }

  /// What is stored of it. `trip` is the one that its position, or else its last fix with a trip, named.
  func durable(_ profile: DriverProfile, trip: Identifier?, isPositionOnTrip: Bool) -> DurableDriver {
    DurableDriver(
      id: id, status: reported, profile: profile, newest: durable.newest, published: tracker.publishedApart,
      heard: durable.heard, isOffline: durable.isOffline, lastTripEnded: lastTripEnded,
      tripID: trip, isPositionOnTrip: isPositionOnTrip, position: position, tracking: tracking)
  }

  mutating func load(_ fixes: DurableFixes, trip: Handle?) {
    durable.note(heard: fixes.received, hasPublished: fixes.newest != nil)
    if let trip { lastTrip = trip }
    if let newest = fixes.newest {
      durable.restore(newest: newest.timestamp)
      durable.isOffline = false
      positionTrip = trip
      position = newest
      tracker.restore(published: fixes.published)
    }
    restore(fixes.tracking)
  }

  mutating func load(_ stored: DurableDriver, trip: Handle?) {
    reported = stored.status
    durable.isKnown = true
    durable.heard = stored.heard
    durable.isOffline = stored.isOffline
    if let newest = stored.newest { durable.restore(newest: newest) }
    lastTripEnded = stored.lastTripEnded
    lastTrip = trip
    positionTrip = stored.isPositionOnTrip ? trip : nil
    if let newest = stored.position { position = newest }
    restore(stored.tracking)
    tracker.restore(published: stored.published)
  }

  private mutating func restore(_ tracking: StoredTracking) {
    clock = SessionClock(inheriting: tracking.clockOffset)
    durable.sendingInterval = tracking.sendingInterval
    guard let position else { return }
    // Whether the fix of the position is stored, too.
    let isRecorded = durable.newest.map { position.timestamp <= $0 } ?? false
    tracker.resume(at: position, isRecorded ? tracking.motion : nil)
  }

  /// When its last fix came, by this hub's uptime: reckoned by the wall clock, which may have been set meanwhile.
  mutating func resumeTime(at now: Moment) {
    let heard = durable.uptimeHeard(at: now)
    lastFix = heard
    disconnected = heard
    if durable.sendingInterval > 0 { sendingInterval = Float(durable.sendingInterval) }
    // The position may be newer than the newest fix that is stored, where it was published when the disk was full. Then
    // its sender sends that fix again, and it must be stored, not taken for a duplicate: so it counts as not seen yet.
    guard let newest = durable.newest else { return }
    tracker.resume(after: newest, published: tracker.publishedApart, receivedAt: heard)
  }
}

/// Seconds as nanoseconds of uptime.
@inline(__always) func nanoseconds(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }
