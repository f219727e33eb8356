// The way of one fix through a driver's tracker: checked, put in order, filtered, rounded.
//
// One value for each driver, held by the hub in a slab. It reads no clock, and allocates nothing but for leaps in time:
// the time of receipt is a parameter, and only differences of fix times are used, since phones' clocks are wrong.
//
// `update` is always inlined: as a call, its outcome would go through memory, which takes 200 instructions more for
// each fix (measured by `make bench`).
import HubGeo
public import HubMessages

/// One driver's track: turns fixes into positions that are ready to be published. O(1).
public struct Tracker: Sendable {
  // The filter is first, since it is aligned to 16 bytes: behind `order` there would be padding.
  var filter: MotionFilter?
  private var order = FixOrder()

  public init() {}

  /// Processes a fix of this driver that reached the hub at `uptime` (monotonic nanoseconds).
  ///
  /// An implausible fix changes nothing. One that is refused for its position advances the filter's time, and its speed
  /// and heading are used, since they are measured independently.
  /// `sent` is the time of a live fix's envelope; nil for a fix of a batch, or without an envelope.
  /// `hubClock` is the hub's wall clock, if any: a driver's very first fix is held if it is far ahead of it.
  @inline(__always)
  public mutating func update(
    _ fix: Fix, sent: Timestamp? = nil, receivedAt uptime: Int64, hubClock: Timestamp? = nil, rules: Rules = .standard
  ) -> Outcome {
    if let refusal = Tracker.implausible(fix, rules) { return .refused(refusal) }
    let measurement = TrackMeasurement(fix, maximumSpeed: rules.maximumSpeed)
    switch order.decide(
      measurement, sent: sent?.milliseconds, receivedAt: uptime, hubClock: hubClock?.milliseconds,
      leapMilliseconds: rules.leapMilliseconds)
    {
    case .duplicate: return .duplicate
    case .history: return .history
    case .held: return .held
    case .next:
      switch filterInOrder(measurement, receivedAt: uptime, rules) {
      case .used(let position): return .accepted(position)
      case .refused(let refusal): return .refused(refusal)
      }
    case .confirms(let held):
      return filterBoth(held, then: measurement, receivedAt: uptime, rules)
    case .clockDoubted(let behind):
      return .clockDoubted(secondsBehind: Double(behind) / 1000)
    case .clockBelieved(let back):
      // The filter's state is by the old clock, and a minute old.
      filter = nil
      switch filterInOrder(measurement, receivedAt: uptime, rules) {
      case .used(let position): return .clockBelieved(position, back: back)
      case .refused: preconditionFailure("a filter takes its first fix")
      }
    }
  }

  /// Continues after a fix that an earlier process of the hub received at `uptime` (in nanoseconds of this process, so
  /// it may be negative): fixes that are not newer are history. Where `published` is later than `newest`, published
  /// times continue from it.
  mutating func resume(after newest: Timestamp, published: Timestamp?, receivedAt uptime: Int64) {
    order = FixOrder(newest: newest.milliseconds, receivedAt: uptime, published: published?.milliseconds)
  }

  /// Restores the stored published time of the newest position; nil where it was its fix's own. `resume` continues
  /// from there.
  mutating func restore(published: Timestamp?) {
    order.change = published.map { .believed(PublishedClock(milliseconds: $0.milliseconds, received: 0)) }
  }

  /// Restores the filter of an earlier process of the hub. Without `motion` a new filter starts with the next fix.
  mutating func resume(at position: Position, _ motion: StoredMotion?) {
    filter = motion.map { MotionFilter(resuming: position, $0) }
  }

  /// The filter's stored state; nil before the first fix.
  @inline(__always) var storedMotion: StoredMotion? { filter?.stored }

  /// The timestamp of the newest fix that is in order, or nil before the first.
  public var newest: Timestamp? { order.newest.map { Timestamp(milliseconds: $0) } }

  /// The latest time of any fix of the driver, by whichever of its clocks; nil before the first.
  var latest: Timestamp? { order.latest.map { Timestamp(milliseconds: $0) } }

  /// The published time of the newest position, where it is not the fix's own.
  var publishedApart: Timestamp? { order.change?.published.map { Timestamp(milliseconds: $0.milliseconds) } }
}

// MARK: - Steps

extension Tracker {
  /// Why a fix is refused without regard to the track.
  @inline(__always) private static func implausible(_ fix: Fix, _ rules: Rules) -> Refusal? {
    if let accuracy = fix.accuracy, accuracy > rules.maximumAccuracyMeters { return .inaccurate }
    if abs(fix.coordinate.latitude) <= Rules.nullIslandDegrees, abs(fix.coordinate.longitude) <= Rules.nullIslandDegrees
    {
      return .nullIsland
    }
    return nil
  }

  /// Filters one fix that is in order, and sets its position's published time.
  @inline(__always)
  private mutating func filterInOrder(
    _ fix: TrackMeasurement, receivedAt uptime: Int64, _ rules: Rules
  ) -> MotionFilter.Step {
    let step = stepFilter(fix, rules)
    guard order.change != nil, case .used(var position) = step else { return step }
    position.published.milliseconds = order.slewedTime(of: fix.milliseconds, receivedAt: uptime)
    return .used(position)
  }

  private mutating func stepFilter(_ fix: TrackMeasurement, _ rules: Rules) -> MotionFilter.Step {
    // Optional chaining works in place; binding the filter to a name would copy its 200 bytes back and forth.
    if let step = filter?.step(fix, rules) { return step }
    var first = MotionFilter(fix)
    let position = first.publish(fix)
    filter = first
    return .used(position)
  }

  /// Filters the two fixes that a confirmed leap releases.
  private mutating func filterBoth(
    _ held: TrackMeasurement, then fix: TrackMeasurement, receivedAt uptime: Int64, _ rules: Rules
  ) -> Outcome {
    switch (filterInOrder(held, receivedAt: uptime, rules), filterInOrder(fix, receivedAt: uptime, rules)) {
    case (.used(let first), .used(let second)): return .acceptedTwo(held: first, second)
    case (.used(let first), .refused(let refusal)): return .acceptedHeld(first, refused: refusal)
    case (.refused, .used(let second)): return .accepted(second)
    case (.refused, .refused(let refusal)): return .refused(refusal)
    }
  }
}
