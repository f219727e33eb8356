// The tracker's output: positions that are ready to be published.
public import HubGeo
public import HubMessages

/// A filtered position, rounded when it is made, so that the wire has exactly its values.
public struct Position: Sendable, Equatable {
  /// To 1e-7° (1.1 cm).
  public var coordinate: Coordinate
  /// Metres per second, to 0.01; nil while unknown.
  public var speed: Double?
  // These three fill the padding behind the optional: there is a position in each driver's record.
  public var confidence: Confidence
  /// Why the fix's coordinate was not used, if so: then the position is predicted from the motion. Not on the wire;
  /// the hub counts it.
  public var absorbed: FixRefusal?
  /// `turnRate`, as the filter stores it.
  private var turn: Float
  /// Degrees clockwise from true north, to 0.01, 0 ≤ heading < 360. Kept through a standstill; nil until the driver
  /// has moved or reported one.
  public var heading: Double?
  /// The radius of 68 % in metres, to 0.01.
  public var accuracy: Double
  /// The fix's own timestamp: ages, and differences of time, are computed with it.
  public var timestamp: Timestamp
  /// The published time: `timestamp`, except for a driver whose clock was set back (`ClockChange`). It rises with every
  /// position of a driver.
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

  /// Metres per second: slower is standing.
  static let standstillSpeed = 0.3

  /// Degrees a second, positive to the right; 0 if the driver goes straight or stands, or if unknown. Not on the wire:
  /// for `predicted`.
  public var turnRate: Double { Double(turn) }

  /// The clock of `published`.
  public var timeSource: TimeSource { published == timestamp ? .fix : .hub }
}

extension Position {
  /// The position of a driver, `age` seconds old, as clients get it; `after` is set for each channel.
  @inline(__always)
  func location(of driver: Identifier, trip: Identifier?, age: Double) -> DriverLocation {
    DriverLocation(
      driverID: driver, tripID: trip, coordinate: coordinate, heading: heading, speed: speed, accuracy: accuracy,
      confidence: confidence, timestamp: published, timeSource: timeSource, age: age, after: 0)
  }
}
