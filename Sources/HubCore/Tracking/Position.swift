// What the tracker makes of fixes: positions that are ready to be published.
public import HubGeo
public import HubMessages

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
  public var absorbed: FixRefusal?
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
    timestamp: Timestamp, turnRate: Double = 0, absorbed: FixRefusal? = nil
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

  /// Metres per second: who is slower stands.
  static let standstillSpeed = 0.3

  /// Degrees a second, positive to the right; 0 where it goes straight, stands, or nothing is known of it. Not on the
  /// wire: for `predicted`.
  public var turnRate: Double { Double(turn) }

  /// Whose clock `published` is by.
  public var timeSource: TimeSource { published == timestamp ? .fix : .hub }
}
