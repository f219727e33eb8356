// What the tracker says: a position that is ready to be published, or why there is none.
import HubGeo
import HubMessages

/// A filtered position, rounded where it is made, so that what is written on the wire is exactly what it holds.
public struct Position: Sendable, Equatable {
  /// To 1e-7° (1.1 cm).
  public var coordinate: Coordinate
  /// Metres per second, to 0.01; nil until the track shows one.
  public var speed: Double?
  // These three stand here because the optional before them leaves room: there is a position in each driver's record.
  public var confidence: Confidence
  /// Why the place of the fix was not used, where it was not: then the position is where the motion leads. Not on the
  /// wire; the hub counts it.
  public var absorbed: Tracker.Refusal?
  /// `turnRate`, as the filter has it.
  private var turn: Float
  /// Degrees clockwise from true north, to 0.01, 0 ≤ heading < 360. Kept through a standstill; nil until the driver
  /// has moved or reported one.
  public var heading: Double?
  /// The radius in metres, to 0.01, that holds the truth with 68 %.
  public var accuracy: Double
  /// Of the fix, unchanged: what differences of time, and ages, are computed with.
  public var timestamp: Timestamp
  /// What is published as its time: `timestamp`, but for a driver whose clock was set back (`ClockChange`). Each one of
  /// a driver is later than the one before.
  public var published: Timestamp

  public init(
    coordinate: Coordinate, speed: Double?, heading: Double?, accuracy: Double, confidence: Confidence,
    timestamp: Timestamp, turnRate: Double = 0, absorbed: Tracker.Refusal? = nil
  ) {
    self.coordinate = coordinate
    self.speed = speed
    self.heading = heading
    self.accuracy = accuracy
    self.confidence = confidence
    self.timestamp = timestamp
    published = timestamp
    turn = Float(turnRate)
    self.absorbed = absorbed
  }

  /// Degrees a second, positive to the right; 0 where it goes straight, stands, or nothing is known of it. Not on the
  /// wire: for `predicted`.
  public var turnRate: Double { Double(turn) }

  /// Whose clock `published` is by.
  public var timeSource: TimeSource { published == timestamp ? .fix : .hub }
}

extension Tracker {
  /// What became of a fix. The contract's rule: each accepted fix makes exactly one publication, a refused one none.
  public enum Outcome: Sendable, Equatable {
    /// Publish this.
    case accepted(Position)
    /// This fix confirmed a leap in time: publish the fix that was held back, then this one.
    case acceptedTwo(held: Position, Position)
    /// This fix confirmed a leap in time, but not its place: publish the one that was held back, refuse this one.
    case acceptedHeld(Position, refused: Refusal)
    /// Not newer than the driver's newest: it belongs into the track, and is never published. No error.
    case history
    /// The same millisecond as the driver's newest (or held) fix: seen before.
    case duplicate
    /// A leap ahead in time: nothing is published until the next fix says whether it is true.
    case held
    /// As `history`, of a live fix: the driver's clock was set back by so many seconds, and is not believed yet. The
    /// sender is told.
    case clockDoubted(secondsBehind: Double)
    /// The clock that was set back is believed from this fix on: publish this, whose `published` goes on from before.
    /// Times by the old clock become times by the new one when `back` milliseconds are taken off.
    case clockBelieved(Position, back: Int64)
    /// Published never; the sender is told.
    case refused(Refusal)
  }

  /// Why a fix was refused. Raw values are dense, so that counters can be an array.
  public enum Refusal: UInt8, Error, CaseIterable {
    /// The phone itself says that it hardly knows: accuracy over `Rules.maximumAccuracyMeters`.
    case inaccurate
    /// At 0°, 0°, or within `Rules.nullIslandDegrees`: what broken software sends for "no position".
    case nullIsland
    /// Too far from where the driver must be, by the statistics of the track (see `MotionFilter`).
    case gated
    /// So far that the driver would have moved faster than `Rules.maximumSpeed`.
    case tooFast

    /// The wire's code for it.
    public var code: ErrorCode {
      switch self {
      case .inaccurate, .nullIsland, .gated, .tooFast: .implausibleLocation
      }
    }

    /// The label of its counter.
    public var name: StaticString {
      switch self {
      case .inaccurate: "inaccurate"
      case .nullIsland: "null_island"
      case .gated: "gated"
      case .tooFast: "too_fast"
      }
    }
  }

  /// The limits that an operator may set; the same for all drivers, so they are passed in and not stored.
  public struct Rules: Sendable, Equatable {
    /// Fixes with a larger reported accuracy (metres, 68 %) are refused.
    public var maximumAccuracyMeters: Double
    /// Metres per second. No vehicle is faster; a place that implies more needs four fixes that agree, or 20 s.
    public var maximumSpeed: Double
    /// How much further ahead than the hub's own clock a fix may step before it is held back, in milliseconds.
    public var leapMilliseconds: Int64

    public init(
      maximumAccuracyMeters: Double = 100, maximumSpeed: Double = 90, leapMilliseconds: Int64 = 600_000
    ) {
      self.maximumAccuracyMeters = maximumAccuracyMeters
      self.maximumSpeed = maximumSpeed
      self.leapMilliseconds = leapMilliseconds
    }

    public static let standard = Rules()

    /// 5.6 m around 0°, 0°: what is 0.0000 to four digits, for some software makes its "no position" of sums.
    public static let nullIslandDegrees = 0.000_05
  }
}
