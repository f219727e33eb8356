// A driver's record: what it reported, its position, and when it counts as offline.
import HubGeo
import HubMessages

/// 624 bytes. A million of these are most of a hub's memory, so members are ordered so that small ones fill the padding
/// behind the id, the tracker and optionals, and what few drivers have is in tables of its own (`Drivers`).
struct Driver {
  let compactID: CompactIdentifier
  /// The status that the driver reported; `on_trip` is derived from `activeTrips`.
  private(set) var reported = DriverStatus.available
  /// False exactly while a deadline for staleness is armed.
  private(set) var isStale = false
  /// Its newest session is at another hub of the cluster.
  var isElsewhere = false
  /// In a cluster: how often a session or post of the driver has arrived at this hub. It wraps around.
  private(set) var arrivals: UInt16 = 0
  /// Whether a deadline is armed for forgetting the driver. It stays armed when the driver comes back, so that one that
  /// comes and goes all day does not add an entry each time.
  var isRetentionArmed = false
  /// Whether a deadline is armed for when ops' areas stop showing the offline driver.
  var isAbsenceArmed = false
  var tracker = Tracker()
  /// The number of known trips that it began.
  private(set) var tripsBegun: UInt32 = 0
  /// The index of its vehicle type and tags in the table of profiles; −1 for none.
  var profile: Int32 = -1
  /// The index of the channel of its raw fixes, while that has subscribers; −1 for none.
  var rawChannel: Int32 = -1
  /// The index of the times of its fixes, once it has sent a batch.
  @PackedIndex var fixTimes: Int?
  /// Index of the driver's channel, where it has one.
  @PackedIndex var channel: Int?
  /// The session that may send for this driver; nil when none is connected.
  @Packed private(set) var session: SessionRef?
  private(set) var activeTrips: Int32 = 0
  /// The trip that its fixes named last, to avoid looking the id up again.
  @Packed var lastTrip: Handle?
  /// The number of its inputs that wait in the second lane.
  var waiting: Int32 = 0
  /// The trip that the fix of `position` named.
  @Packed private(set) var positionTrip: Handle?
  var clock = SessionClock()
  /// Decides which drivers of a crowded cell are shown.
  let areaRank: UInt32
  /// The newest published position.
  private(set) var position: Position?
  /// When its last trip ended (ms since 1970, the hub's wall clock), which changes its pseudonym.
  private(set) var lastTripEnded: Int64 = 0
  /// When the newest accepted fix came, and since when it has no session (uptime, ns).
  private(set) var lastFix: Int64
  private(set) var disconnected: Int64
  /// Decides how often it should send; last advised: `samplingInterval` (s), at `samplingAdvised` (uptime, ns).
  private var sampling = SamplingPolicy()
  private(set) var samplingInterval: Float = 0
  /// The interval (seconds) of a driver without a session (`noteSending`); negative before its first message.
  private(set) var sendingInterval: Float = -1
  private(set) var samplingAdvised = Int64.min / 2
  /// The part of its state that is on stable storage.
  var durable = DriverStorage()

  init(id: Identifier, areaRank: UInt32, uptime: Int64) {
    compactID = CompactIdentifier(id)
    self.areaRank = areaRank
    lastFix = uptime
    disconnected = uptime
  }

  var id: Identifier {
    @inline(__always) get { compactID.identifier }
  }

  var status: DriverStatus {
    @inline(__always) get { activeTrips > 0 ? .onTrip : reported }
  }

  var label: DriverLabel {
    @inline(__always) get { DriverLabel(status: status, profile: profile) }
  }

  mutating func report(_ status: DriverStatus) { reported = status }

  /// Notes its arrival at this hub. If another hub had it and published positions of a trip of this hub, fixes that are
  /// not newer are history.
  mutating func arrive() {
    let wasElsewhere = isElsewhere
    isElsewhere = false
    arrivals &+= 1
    guard wasElsewhere, let position, tracker.newest.map({ $0 < position.timestamp }) ?? true else { return }
    tracker.resume(after: position.timestamp, published: position.published, receivedAt: lastFix)
  }

  // MARK: Positions

  /// Stores a published position. For a driver without a session, call `noteSending` first.
  @inline(__always)
  mutating func storePosition(_ position: Position, trip: Handle?, at now: Moment) {
    self.position = position
    positionTrip = trip
    if trip != nil { lastTrip = trip }
    lastFix = now.uptime
  }

  /// Notes the arrival of a fix that is not published.
  mutating func noteUnpublished(at uptime: Int64) { lastFix = uptime }

  /// The extrapolated coordinate of an online driver; nil where it has not moved, or the fix is older than
  /// `Position.longestPrediction`.
  func predicted(at time: Timestamp) -> Coordinate? {
    guard !isStale, let position else { return nil }
    let time = clock.sessionTime(at: time)
    guard time.seconds(since: position.timestamp) <= Position.longestPrediction else { return nil }
    let place = position.predicted(at: time).published
    return place == position.coordinate ? nil : place
  }

  /// Whether nothing of the driver is published because its clock was ahead: its newest fix is in the hub's future by
  /// more than a leap, and this one is not.
  func isBehindClock(_ fix: Fix, at time: Timestamp, _ rules: Tracker.Rules) -> Bool {
    let future = time.milliseconds &+ rules.leapMilliseconds
    guard let newest = tracker.newest else { return false }
    return newest.milliseconds > future && fix.timestamp.milliseconds <= future
  }

  /// Accepts the driver's new clock from the present fix on (Tracking/ClockChange.swift). `sent` is the time of its
  /// envelope.
  mutating func believeClock(sent: Timestamp?, at time: Timestamp) {
    clock = SessionClock()
    if let sent { clock.observe(sent: sent, received: time) }
  }

  /// Seconds from the fix of a position to `time`.
  @inline(__always)
  func age(of position: Position, at time: Timestamp) -> Double { clock.age(of: position.timestamp, at: time) }

  /// Its newest position as of `time`; nil where none is known.
  func location(trip: Identifier?, at time: Timestamp, after: UInt64) -> DriverLocation? {
    guard let position else { return nil }
    var location = position.location(of: id, trip: trip, age: age(of: position, at: time))
    location.after = after
    return location
  }

  // MARK: Trips

  /// Counts trips that it began and that are known.
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

  /// Makes a session, newer or older, the driver's current one.
  mutating func take(_ session: SessionRef) {
    self.session = session
    clock = SessionClock(inheriting: clock.offsetMilliseconds)
  }

  mutating func disconnect(at uptime: Int64) {
    session = nil
    disconnected = max(uptime, lastFix + 1)  // a fix of the same turn came over this session
  }

  // MARK: How often it sends

  /// Estimates how often a driver without a session sends, from the time since its last fix. A burst, as when a phone
  /// empties its queue, does not hide a longer interval, which is kept until shorter ones add up to as much. A gap over
  /// `longestSilenceOfSenders` is an absence and changes nothing. The estimate is capped at the interval that allows
  /// this silence, or it would be kept for hours. `lastStall` is when the hub's last stall ended (uptime, ns).
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

  /// Notes that a phone app sends for it, with this configured interval (seconds) until a longer one is observed.
  mutating func noteDevice(interval: Double) {
    if session == nil { sendingInterval = max(sendingInterval, Float(interval)) }
  }

  /// The interval (whole seconds) of a driver without a session, for the journal; 0 for one with a session.
  @inline(__always)
  var storedSendingInterval: UInt16 {
    guard session == nil else { return 0 }
    let seconds = max(samplingInterval, sendingInterval, 1).rounded(.up)
    return UInt16(min(seconds, Float(UInt16.max)))
  }

  /// The sampling advice to send now; nil where the last one still holds.
  @inline(__always)
  mutating func advise(isWatched: Bool, at uptime: Int64, _ rules: SamplingRules) -> SamplingReason? {
    let speed = position?.speed
    let reason = sampling.decide(status, speed: speed, isWatched: isWatched, at: uptime, rules: rules)
    guard let reason else { return nil }
    noteAdvice(reason, at: uptime, rules)
    return reason
  }

  /// The sampling advice for a session that begins.
  mutating func beginAdvice(isWatched: Bool, at uptime: Int64, _ rules: SamplingRules) -> SamplingReason {
    if isStale { sampling = SamplingPolicy() }
    let reason = sampling.begin(status, isWatched: isWatched, rules: rules)
    let isRepeated = samplingInterval == Float(rules.interval(reason)) && samplingAdvised > lastFix
    // A driver that reconnects without sending a fix must not stay online by that.
    if isStale || !isRepeated { noteAdvice(reason, at: uptime, rules) }
    return reason
  }

  private mutating func noteAdvice(_ reason: SamplingReason, at uptime: Int64, _ rules: SamplingRules) {
    samplingInterval = Float(rules.interval(reason))
    samplingAdvised = uptime
  }

  // MARK: Presence

  /// Whether an offer would reach it: it has a session, or has sent something since the last one ended.
  var isReachable: Bool { session != nil || disconnected <= lastFix }

  /// When the driver becomes stale without further input (uptime, ns): 60 s after its session's end, or without a fix
  /// for longer than expected. Time in which the hub stalled does not count.
  func staleAt(lastStall: Int64, _ timings: HubTimings) -> Int64 {
    let silence = max(
      timings.stale, timings.staleSamplingIntervals * Double(samplingInterval),
      min(timings.staleSamplingIntervals * Double(sendingInterval), timings.longestSilenceOfSenders))
    // After new advice the time for a fix follows the new interval.
    let bySilence = max(lastFix, samplingAdvised, lastStall) + nanoseconds(silence)
    // A driver that posts over HTTP has no session: only silence makes it stale.
    guard session == nil, disconnected > lastFix else { return bySilence }
    return min(bySilence, max(disconnected, lastStall) + nanoseconds(timings.stale))
  }

  mutating func setStale(_ isStale: Bool) { self.isStale = isStale }

  /// Whether this hub has yet to publish that the driver is offline.
  var owesOffline: Bool { isStale && !isElsewhere && !durable.isOffline }

  /// When it is forgotten without further input (uptime, ns).
  func forgetsAt(_ timings: HubTimings) -> Int64 { max(lastFix, disconnected) + nanoseconds(timings.retention) }

  /// Notes that the driver is still in use, so that the next check comes a retention later.
  mutating func putOffForgetting(at uptime: Int64) { disconnected = uptime }

  /// Corrects by the present wall clock since when a restored driver is absent: at the start it may have been wrong.
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

  /// What is stored of it. `trip`: the one that its position named, or else its last fix with a trip.
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
      durable.newest = newest.timestamp
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
    if let newest = stored.newest { durable.newest = newest }
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
    // Whether the position's fix is stored, too.
    let isRecorded = durable.newest.map { position.timestamp <= $0 } ?? false
    tracker.resume(at: position, isRecorded ? tracking.motion : nil)
  }

  /// When its last fix came, in this hub's uptime: converted by the wall clock, which may have been set meanwhile.
  mutating func resumeTime(at now: Moment) {
    let heard = durable.uptimeHeard(at: now)
    lastFix = heard
    disconnected = heard
    if durable.sendingInterval > 0 { sendingInterval = Float(durable.sendingInterval) }
    // The position may be newer than the newest stored fix, where it was published while the disk was full. Its sender
    // sends that fix again, and it must be stored and not count as a duplicate; so it counts as unseen.
    guard let newest = durable.newest else { return }
    tracker.resume(after: newest, published: tracker.publishedApart, receivedAt: heard)
  }
}
