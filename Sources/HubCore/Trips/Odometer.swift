// A trip's distance along the published track, not from fix to fix: raw fixes wander by metres a second, which adds up
// to kilometres an hour at the kerb.
//
// The distance is measured from an anchor. It counts, and the anchor moves, when the driver is moving (at least
// `movingSpeed`) and `stepMeters` away from the anchor. Below that speed nothing counts and the anchor stays, so that a
// driver that moves off is counted from where it stopped. Where the speed is unknown, the distance must exceed the
// position's error. A step that no vehicle makes is a correction of the track: the anchor moves without counting. Over
// missing fixes the straight line counts, a lower bound.
import HubGeo
import HubMessages

struct Odometer: Sendable, Equatable, BitwiseCopyable {
  /// Metres per second.
  static let movingSpeed = 1.0
  /// Metres. A car turns on circles of 5 m and more: chords of this length are at most 5 % short there, and exact
  /// elsewhere.
  static let stepMeters = 5.0
  /// Metres; where the speed is unknown, the least that counts as moved.
  static let unknownStepMeters = 15.0
  /// Only longer steps are checked for plausibility.
  static let suspiciousMeters = 90.0
  /// Metres, at which counting stops: the journal's reader refuses 1e9, and only made-up fixes come near it.
  static let capMeters = 9e8

  private(set) var meters = 0.0
  /// Where the distance is measured from.
  @PackedPlace private(set) var anchor: Coordinate?
  private var ground = GroundScale(latitude: 0)

  init() {}

  /// Continues an earlier one, bit for bit.
  init(meters: Double, anchor: Coordinate?, groundLatitude: Double) {
    self.meters = meters
    self.anchor = anchor
    ground = GroundScale(latitude: groundLatitude)
  }

  /// The latitude of its scale of degrees.
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
    meters = min(meters + way, Odometer.capMeters)
  }

  private static func isReachable(_ position: Position, _ previous: Position, _ maximumSpeed: Double) -> Bool {
    // A clock that was set back is believed after a time in which nothing is published.
    let isClockSetBack = position.timestamp < previous.timestamp
    let seconds =
      isClockSetBack
      ? Double(DoubtedClock.agreement) * 1e-9 : position.timestamp.seconds(since: previous.timestamp)
    return previous.coordinate.distance(to: position.coordinate) <= maximumSpeed * max(seconds, 1)
  }
}
