// How often a driver should send: a decision of a few comparisons, made with each of its fixes.
//
// On a trip the interval depends on speed, without one on whether the driver moves; in the background it is long; and
// while somebody follows the driver or its trip it is short enough for a smooth marker. Each fix costs battery.
//
// Advice must not flap at a threshold or at each red light. So a band is left downwards only a tenth below the speed at
// which it was entered, and a longer interval is sent only after it has been right for `holdSeconds`. A shorter one is
// sent at once, and so is one that follows from the driver's state (trip, no trip, background), which is no noise.
public import HubMessages

/// The intervals for each state: the same for all drivers, so passed in and not stored.
public struct SamplingRules: Sendable, Equatable {
  /// Seconds between fixes on a trip: over 50 km/h, over 20 km/h, slower.
  public var tripFast = 2.0
  public var tripMedium = 4.0
  public var tripSlow = 8.0
  /// Without a trip, moving and standing.
  public var moving = 30.0
  public var standing = 120.0
  public var background = 300.0
  /// While somebody follows the driver or its trip, unless the interval is shorter anyway.
  public var watched = 2.0
  /// How long a longer interval must have been right before it is sent, in seconds.
  public var holdSeconds = 20.0
  /// Metres: sent with intervals shorter than `distanceCounts` seconds; with a longer one each fix counts.
  public var minDistance = 10.0
  public var distanceCounts = 30.0

  public init() {}

  /// One interval for every driver, whatever it does.
  public static func fixed(seconds: Double, minDistance: Double = 10) -> SamplingRules {
    var rules = SamplingRules()
    (rules.tripFast, rules.tripMedium, rules.tripSlow) = (seconds, seconds, seconds)
    (rules.moving, rules.standing, rules.background, rules.watched) = (seconds, seconds, seconds, seconds)
    rules.minDistance = minDistance
    return rules
  }

  /// The interval in seconds.
  @inline(__always)
  public func interval(_ reason: SamplingReason) -> Double {
    switch reason {
    case .tripFast: tripFast
    case .tripMedium: tripMedium
    case .tripSlow: tripSlow
    case .moving: moving
    case .standing: standing
    case .background: background
    case .watched: watched
    }
  }

  @inline(never)
  func advice(_ reason: SamplingReason, counting counters: inout HubCounters) -> SamplingAdvice {
    counters.samplingAdvised[Int(reason.rawValue)] += 1
    return advice(reason)
  }

  /// The advice for a reason: its interval in seconds, and a distance in metres where the interval is below
  /// `distanceCounts`.
  public func advice(_ reason: SamplingReason) -> SamplingAdvice {
    let interval = interval(reason)
    return SamplingAdvice(
      interval: interval, minDistance: interval < distanceCounts ? minDistance : 0, reason: reason)
  }
}

/// The last advice to one driver, and the state for the next. 24 bytes.
struct SamplingPolicy: Equatable {
  /// Bands of speed, ascending.
  enum Band: UInt8, Comparable {
    case standing, slow, medium, fast

    /// Metres per second above which a band begins: 4, 20 and 50 km/h.
    static let slowSpeed = 4 / 3.6
    static let mediumSpeed = 20 / 3.6
    static let fastSpeed = 50 / 3.6
    /// A band ends at this fraction of the speed at which it begins.
    static let leavingFraction = 0.9

    init(speed: Double) {
      self =
        speed > Band.mediumSpeed
        ? (speed > Band.fastSpeed ? .fast : .medium) : (speed > Band.slowSpeed ? .slow : .standing)
    }

    /// The speed above which it begins.
    var start: Double {
      switch self {
      case .standing: -.infinity
      case .slow: Band.slowSpeed
      case .medium: Band.mediumSpeed
      case .fast: Band.fastSpeed
      }
    }

    static func < (a: Band, b: Band) -> Bool { a.rawValue < b.rawValue }
  }

  /// Speeds above `slowest`, up to `fastest`, stay in the band: two comparisons suffice for most fixes.
  private var slowest = Float(Band.slowSpeed * Band.leavingFraction)
  private var fastest = Float(Band.mediumSpeed)
  /// Since when a longer interval has been right (uptime, ns).
  private var longerSince = Int64.max
  /// A driver without data counts as moving slowly.
  private(set) var band = Band.slow
  /// The last advice: its reason and status, and whether somebody followed.
  private(set) var reason = SamplingReason.moving
  private var status = DriverStatus.available
  private var isWatched = false
  /// The band has changed, or a longer interval is pending.
  private var isOpen = false

  init() {}

  /// The advice to send now; nil where the last one still holds. `speed` is the published one in m/s; nil for unknown,
  /// which leaves the band. O(1), some 3 ns without a change.
  @inline(__always)
  mutating func decide(
    _ status: DriverStatus, speed: Double?, isWatched: Bool, at uptime: Int64, rules: SamplingRules
  ) -> SamplingReason? {
    if let speed, !(speed > Double(slowest) && speed <= Double(fastest)) { leaveBand(speed) }
    if status == self.status, isWatched == self.isWatched, !isOpen { return nil }
    return reconsider(status, isWatched: isWatched, at: uptime, rules)
  }

  /// The advice for a session that begins; earlier advice is void.
  mutating func begin(_ status: DriverStatus, isWatched: Bool, rules: SamplingRules) -> SamplingReason {
    take(wanted(status, isWatched: isWatched, rules), status, isWatched: isWatched)
    return reason
  }

  private mutating func leaveBand(_ speed: Double) {
    // Whether the speed, a tenth higher, is still in its band.
    let lenient = Band(speed: speed / Band.leavingFraction)
    let strict = Band(speed: speed)
    band = strict >= band ? strict : min(band, lenient)
    slowest = Float(band.start * Band.leavingFraction)
    fastest = Float(Band(rawValue: band.rawValue + 1)?.start ?? .infinity)
    isOpen = true
  }

  private func wanted(_ status: DriverStatus, isWatched: Bool, _ rules: SamplingRules) -> SamplingReason {
    let tree: SamplingReason =
      switch status {
      case .onTrip: band == .fast ? .tripFast : band == .medium ? .tripMedium : .tripSlow
      case .available, .unavailable: band == .standing ? .standing : .moving
      case .background: .background
      }
    return isWatched && rules.watched < rules.interval(tree) ? .watched : tree
  }

  private mutating func take(_ wanted: SamplingReason, _ status: DriverStatus, isWatched: Bool) {
    reason = wanted
    self.status = status
    self.isWatched = isWatched
    longerSince = .max
    isOpen = false
  }

  @inline(never)
  private mutating func reconsider(
    _ status: DriverStatus, isWatched: Bool, at uptime: Int64, _ rules: SamplingRules
  ) -> SamplingReason? {
    let wanted = wanted(status, isWatched: isWatched, rules)
    let (old, new) = (rules.interval(reason), rules.interval(wanted))
    if new > old, status == self.status {
      if longerSince == .max { longerSince = uptime }
      isOpen = true
      guard uptime - longerSince >= nanoseconds(rules.holdSeconds) else { return nil }
    }
    take(wanted, status, isWatched: isWatched)
    return new == old ? nil : wanted
  }
}
