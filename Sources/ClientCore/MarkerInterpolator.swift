// Where to draw a driver between two positions, so that the marker moves smoothly.
//
// A position is seconds old when it comes, and the next one is seconds away. So the marker is drawn at the driver's
// extrapolated position: at constant speed and turn rate from the newest position, for ten seconds at most. When a new
// position comes, the marker is elsewhere; the difference is reduced to zero over a second, on a curve without jerks at
// its ends (smoothstep). A car that backs up on a straight looks worse than one a few metres off. So a marker that is
// ahead takes as long as the car needs to catch up.
public import HubGeo
public import HubMessages

/// The marker of one driver. Takes positions when they come, and gives coordinates for any time.
public struct MarkerInterpolator: Sendable {
  /// What is drawn.
  public struct Marker: Sendable, Equatable {
    public var coordinate: Coordinate
    /// Degrees clockwise from true north, 0 ≤ heading < 360; nil while unknown.
    public var heading: Double?
    /// Seconds since the newest fix. Beyond `longestPrediction` the marker does not move, and should look like it.
    public var age: Double

    public init(coordinate: Coordinate, heading: Double?, age: Double) {
      self.coordinate = coordinate
      self.heading = heading
      self.age = age
    }
  }

  /// Seconds after a fix for which the driver is extrapolated.
  public static let longestPrediction = 10.0
  /// Seconds over which the difference to a new position is reduced to zero.
  public static let easingSeconds = 1.0
  /// Degrees after which a turn is assumed to be over.
  static let longestTurn = 90.0
  /// Degrees a second: below it a change of heading is noise, above it is no car's.
  static let turnRates = 3.0...60.0
  /// Seconds between two positions beyond which their headings do not show a continuing turn.
  static let longestTurnGap = 6.0
  /// Metres per second: below it the driver is stationary, and its heading shows no turn.
  static let standstillSpeed = 0.3
  static let turningSpeed = 1.0
  /// Seconds that a marker that is ahead waits for the driver, at most; within the position's accuracy, without limit.
  static let longestWait = 10.0
  /// Metres beyond which a difference is not eased: the marker jumps.
  static let farthestEasing = 500.0
  /// The steepest slope of the easing curve: smoothstep's in the middle.
  static let steepestEasing = 1.5

  /// The newest position, when it came (uptime, ns), its age then (s), and the driver's turn rate (degrees/s).
  private var newest: DriverLocation?
  private var arrived: Int64 = 0
  private var ageThen = 0.0
  private var turnRate = 0.0
  /// The marker's difference at that time: metres ahead (negative: behind) and to the right of the position's heading,
  /// that heading, and the time to reduce the first (s; infinite: it stays).
  private var ahead = 0.0
  private var aside = 0.0
  private var frame = 0.0
  private var aheadSeconds = easingSeconds
  /// The marker waits for the driver to catch up.
  private var isWaiting = false

  public init() {}

  /// Takes a position at `uptime` (monotonic nanoseconds, the clock of `marker`). One that is not newer than the last
  /// is ignored; another driver needs another marker. A position whose heading or speed is out of range is drawn
  /// without both.
  public mutating func take(_ location: DriverLocation, at uptime: Int64) {
    if let newest, location.timestamp <= newest.timestamp { return }
    let location = MarkerInterpolator.drawable(location)
    let shown = marker(at: uptime)
    turnRate =
      newest.map { MarkerInterpolator.turnRate(from: $0, to: location, seconds: passed(to: location, at: uptime)) } ?? 0
    newest = location
    arrived = uptime
    ageThen = max(0, location.age)
    (ahead, aside) = (0, 0)
    guard let shown else { return }
    let (place, heading) = predicted(location, after: ageThen)
    let plane = LocalPlane(origin: place)
    let off = SIMD2(plane.east(of: shown.coordinate), plane.north(of: shown.coordinate))
    guard (off * off).sum() < MarkerInterpolator.farthestEasing * MarkerInterpolator.farthestEasing else { return }
    frame = heading ?? 0
    let direction = MarkerInterpolator.direction(frame)
    ahead = (off * direction).sum()
    aside = off.x * direction.y - off.y * direction.x
    wait(for: location)
  }

  /// How long a difference ahead is reduced: so long that the marker never moves backwards. For a stationary or slow
  /// driver it stays, if within the position's error, else the marker moves back.
  private mutating func wait(for location: DriverLocation) {
    aheadSeconds = MarkerInterpolator.easingSeconds
    isWaiting = false
    guard ahead > 0 else { return }
    let speed = drivingSpeed(location) ?? 0
    let needed = MarkerInterpolator.steepestEasing * ahead / max(speed, 1e-9)
    isWaiting = needed <= MarkerInterpolator.longestWait || ahead <= location.accuracy
    if isWaiting {
      aheadSeconds = needed <= MarkerInterpolator.longestWait ? max(needed, aheadSeconds) : .infinity
    }
  }

  /// The marker at `uptime`; nil before the first position. An earlier time counts as the newest position's. About 150
  /// ns.
  public func marker(at uptime: Int64) -> Marker? {
    guard let newest else { return nil }
    let passed = Double(max(0, uptime - arrived)) / 1e9
    let age = ageThen + passed
    let (place, heading) = predicted(newest, after: age)
    // While the driver is not extrapolated, the marker must not move back to it either.
    let going = min(passed, max(0, MarkerInterpolator.longestPrediction - ageThen))
    let aheadLeft = ahead * easing((isWaiting ? going : passed) / aheadSeconds)
    let asideLeft = aside * easing(passed / MarkerInterpolator.easingSeconds)
    guard aheadLeft != 0 || asideLeft != 0 else { return Marker(coordinate: place, heading: heading, age: age) }
    let direction = MarkerInterpolator.direction(frame)
    let off = direction * aheadLeft + SIMD2(direction.y, -direction.x) * asideLeft
    return Marker(
      coordinate: LocalPlane(origin: place).coordinate(eastMeters: off.x, northMeters: off.y), heading: heading,
      age: age)
  }

  // MARK: Extrapolation

  /// Removes heading and speed where one is out of range: the geometry takes finite numbers, and apps make positions.
  private static func drawable(_ location: DriverLocation) -> DriverLocation {
    let (heading, speed) = (location.heading ?? 0, location.speed ?? 0)
    if (0...360).contains(heading), speed <= DriverLocation.maximumSpeed { return location }
    var location = location
    (location.heading, location.speed) = (nil, nil)
    return location
  }

  private func drivingSpeed(_ location: DriverLocation) -> Double? {
    guard let speed = location.speed, location.heading != nil, speed >= MarkerInterpolator.standstillSpeed else {
      return nil
    }
    return speed
  }

  /// The extrapolated coordinate `age` seconds after the fix, and the heading there.
  private func predicted(_ location: DriverLocation, after age: Double) -> (Coordinate, Double?) {
    guard let speed = drivingSpeed(location), let heading = location.heading else {
      return (location.coordinate, location.heading)
    }
    let seconds = min(age, MarkerInterpolator.longestPrediction)
    let turning = turnRate == 0 ? 0 : min(seconds, MarkerInterpolator.longestTurn / abs(turnRate))
    let turned = heading + turnRate * turning
    let curved =
      turning > 0
      ? location.coordinate.arrival(
        bearingDegrees: heading, distanceMeters: speed * turning, turnDegrees: turnRate * turning)
      : location.coordinate
    let rest = seconds - turning
    let place = rest > 0 ? curved.arrival(bearingDegrees: turned, distanceMeters: speed * rest) : curved
    return (place, MarkerInterpolator.heading(turned))
  }

  /// Seconds from the newest position to one that comes at `uptime`, by the times of their fixes; by arrival where the
  /// time is the hub's.
  private func passed(to location: DriverLocation, at uptime: Int64) -> Double {
    guard let newest, newest.timeSource == .fix, location.timeSource == .fix else {
      return Double(uptime - arrived) / 1e9
    }
    return location.timestamp.seconds(since: newest.timestamp)
  }

  /// Degrees a second, positive to the right; 0 without a turn.
  private static func turnRate(from first: DriverLocation, to second: DriverLocation, seconds: Double) -> Double {
    guard seconds > 0.1, seconds <= longestTurnGap, let before = first.heading, let after = second.heading,
      (first.speed ?? 0) >= turningSpeed, (second.speed ?? 0) >= turningSpeed
    else { return 0 }
    // The short way round, −180…180.
    let turn = (after - before) - 360 * ((after - before) / 360).rounded()
    let rate = turn / seconds
    return turnRates.contains(abs(rate)) ? rate : 0
  }

  /// East and north of a heading.
  private static func direction(_ degrees: Double) -> SIMD2<Double> {
    let angle = SineCosine(degrees: degrees)
    return SIMD2(angle.sine, angle.cosine)
  }

  /// Degrees, −360…720, as 0 ≤ heading < 360.
  private static func heading(_ degrees: Double) -> Double {
    if degrees < 0 { return degrees + 360 < 360 ? degrees + 360 : 0 }
    return degrees < 360 ? degrees : degrees - 360
  }

  /// Smoothstep, falling: 1 at 0, 0 from 1 on.
  private func easing(_ part: Double) -> Double {
    let x = min(max(part, 0), 1)
    return 1 - x * x * (3 - 2 * x)
  }
}
