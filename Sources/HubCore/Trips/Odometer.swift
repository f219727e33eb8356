// How far a trip has gone: along the published track, not from fix to fix. Raw fixes wander by metres a second, which
// would make kilometres of an hour at the kerb.
//
// The rule. The way is measured from an anchor. It counts, and the anchor moves on, when the driver is moving (at least
// `movingSpeed`) and the anchor is `stepMeters` away. Below that speed nothing counts and the anchor stays, so that who
// drives on from a standstill is counted from where it stood, whatever the position did meanwhile. Where the speed is
// not known, the position must be further from the anchor than it may be wrong. A step that no vehicle makes is a
// correction of the track and no way: the anchor moves without counting. Where fixes are missing the straight line
// counts, which is the least that it can have been.
import HubGeo
import HubMessages

struct Odometer: Sendable, Equatable, BitwiseCopyable {
  /// Metres per second.
  static let movingSpeed = 1.0
  /// Metres. A car turns on circles of 5 m and more: chords of this length are under 5 % short there, and exact on the
  /// rest of the way.
  static let stepMeters = 5.0
  /// Metres; where the speed is unknown, the least that counts as moved.
  static let unknownStepMeters = 15.0
  /// Only steps this long are looked at whether a vehicle could have made them.
  static let suspiciousMeters = 90.0

  private(set) var meters = 0.0
  /// Where the way is measured from.
  private(set) var anchor: Coordinate?
  private var ground = GroundScale(latitude: 0)

  init() {}

  /// One that goes on where another was, to the bit.
  init(meters: Double, anchor: Coordinate?, groundLatitude: Double) {
    self.meters = meters
    self.anchor = anchor
    ground = GroundScale(latitude: groundLatitude)
  }

  /// The latitude for which it knows how long a degree is.
  var groundLatitude: Double { ground.latitude }

  /// Takes the next published position of the driver; `previous` is the one published before it. About 10 ns.
  @inline(__always)
  mutating func follow(_ position: Position, after previous: Position?, maximumSpeed: Double) {
    guard let anchor else {
      self.anchor = position.coordinate
      ground = GroundScale(latitude: position.coordinate.latitude)
      return
    }
    let step: Double
    if let speed = position.speed {
      guard speed >= Odometer.movingSpeed else { return }
      step = Odometer.stepMeters
    } else {
      step = max(Odometer.unknownStepMeters, position.accuracy)
    }
    let off = ground.displacement(from: anchor, to: position.coordinate)
    let way = (off * off).sum().squareRoot()
    guard way >= step else { return }
    self.anchor = position.coordinate
    ground.follow(position.coordinate.latitude)
    if way > Odometer.suspiciousMeters, let previous, !Odometer.isReachable(position, previous, maximumSpeed) { return }
    meters += way
  }

  private static func isReachable(_ position: Position, _ previous: Position, _ maximumSpeed: Double) -> Bool {
    let seconds = position.timestamp.seconds(since: previous.timestamp)
    return previous.coordinate.distance(to: position.coordinate) <= maximumSpeed * max(seconds, 1)
  }
}
