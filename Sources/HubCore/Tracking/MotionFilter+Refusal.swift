// What follows where a position does not pass the gate (`measurePosition`): it is refused, or accepted after all.
import HubGeo

extension MotionFilter {
  /// After a gap on a straight road the gate is narrower across the road: full up to the lower of these speeds (m/s),
  /// and `sidewaysShare` of its width from the higher one on. The more the course has changed, the less it narrows;
  /// from 37° on (`straightCosine`) it does not.
  static let sidewaysShare = 0.4
  static let straightSpeeds: (from: Double, to: Double) = (8, 16)
  static let straightCosine = 0.8

  /// m²: what is added to the square of an innovation `y` after a gap, where the driver goes fast in the same direction
  /// as before it (at velocity `before`). It may have braked, or been faster, but to be far off sideways it had to turn
  /// off and back. 99 % of such ways on the recorded motorway end within 3.8 m/s times the gap of a straight line, and
  /// all within 5.3; the gate is 6.4 m/s times the gap there, and 16 m/s times the gap along the road.
  @inline(never) func sideways(_ y: SIMD2<Double>, before: SIMD2<Double>) -> Double {
    guard hasVelocity, !isStanding, !isOfOneFix, dopplerShare > 0.5 else { return 0 }
    let mean = (before + velocity) / 2
    let (speedSquared, squares) = ((mean * mean).sum(), (before * before).sum() * (velocity * velocity).sum())
    let speeds = MotionFilter.straightSpeeds
    guard speedSquared > speeds.from * speeds.from, squares > 0 else { return 0 }
    let straight = 1 - (1 - (before * velocity).sum() / squares.squareRoot()) / (1 - MotionFilter.straightCosine)
    let fast = (speedSquared.squareRoot() - speeds.from) / (speeds.to - speeds.from)
    let width = 1 - (1 - MotionFilter.sidewaysShare) * max(0, straight) * min(fast, 1)
    let across = y.x * mean.y - y.y * mean.x
    return across * across / speedSquared * (1 / (width * width) - 1)
  }

  /// Decides on a position that does not fit, `dt` seconds after the last fix. Returns nil if it is accepted after all.
  ///
  /// Wrong fixes disagree with each other; if the filter is wrong, the fixes agree. So fixes that agree are accepted,
  /// the sooner the less is known of the motion; so is any after `longestHold`.
  /// Reflections agree for seconds, too. Where Doppler shows that the driver stands, it can't have moved there, so they
  /// must agree for longer; half as long where its place is known from one fix only. A place that no vehicle could have
  /// reached needs more agreement: otherwise the first fix after a tunnel may throw the driver across the city.
  mutating func reject(
    _ fix: TrackMeasurement, innovation y: SIMD2<Double>, agrees: Bool, after dt: Double, maximumSpeed: Double
  ) -> FixRefusal? {
    if agrees {
      agreements = agreements == .max ? .max : agreements + 1
      agreedSeconds += Float(dt)
    } else {
      (agreements, agreedSeconds) = (0, 0)
    }
    if rejections == 0 { refusedSeconds = 0 }
    if !isStale { expectNext(fix, after: dt, maximumSpeed: maximumSpeed) }
    let isTooFast = (y * y).sum().squareRoot() > maximumSpeed * max(Double(unusedSeconds), 1)
    if isTooFast ? isBelievedThoughTooFast : isBelieved { return nil }
    rejections = rejections == .max ? .max : rejections + 1
    return isTooFast ? .tooFast : .gated
  }

  /// Whether the fix has the coordinate of the one before though the driver moves: receivers without signal repeat the
  /// last coordinate, and phones send it again when the new one is late.
  ///
  /// The driver moves if Doppler shows more than walking speed or, without Doppler, if it can't have stopped since.
  /// Once a coordinate is stale it stays so: a driver who was moving there does not stand there afterwards.
  @inline(__always) func repeats(_ fix: TrackMeasurement, after dt: Double) -> Bool {
    guard lastPlace == fix.coordinate, !isStanding else { return false }
    return isStale
      || dopplerShare > 0.5 && Double(fix.speed) > MotionFilter.walkingSpeed
      || speed > MotionFilter.hardestBraking * max(dt, 1) && speed > 3 * covariance.p11.squareRoot()
  }

  /// Sets the velocity that the next fix is tested with: the track's, or from the second refused fix on that between
  /// the last two refused ones.
  private mutating func expectNext(_ fix: TrackMeasurement, after dt: Double, maximumSpeed: Double) {
    candidateVelocity = SIMD2<Float>(velocity)
    guard rejections > 0, dt > 0 else { return }
    let between = ground.displacement(from: lastPlace, to: fix.coordinate) / dt
    if (between * between).sum() <= maximumSpeed * maximumSpeed { candidateVelocity = SIMD2<Float>(between) }
  }

  /// m/s; nil where the phone stated none. A filter with a wrong position may have a wrong velocity, too.
  private func measuredVelocity(of fix: TrackMeasurement) -> SIMD2<Double>? {
    guard fix.speed >= 0 else { return nil }  // NaN fails, too
    guard Double(fix.speed) > MotionFilter.bearingSpeed else { return doubtsStandstill ? nil : .zero }
    guard !fix.heading.isNaN else { return nil }
    let direction = SineCosine(degrees: Double(fix.heading))
    return SIMD2(direction.sine, direction.cosine) * Double(fix.speed)
  }

  private var isBelieved: Bool {
    if Double(unusedSeconds) > MotionFilter.longestGap { return true }
    if rejections > 0, Double(refusedSeconds) >= MotionFilter.longestHold { return true }
    if isStanding {
      let needed = MotionFilter.agreementStanding
      return agreedSeconds >= (isOfOneFix ? needed.oneFix : needed.known)
    }
    let needed = MotionFilter.agreementsMoving
    return agreements >= (dopplerShare > 0.5 && !isOfOneFix ? needed.doppler : needed.placesOnly)
  }

  /// Whether a position may be published from the motion alone, without its fix: if the motion is known well enough,
  /// and the fix is not in another town.
  func canCoast(past fix: TrackMeasurement) -> Bool {
    let off = displacement(to: fix.coordinate)
    return radiusSquared <= MotionFilter.longestCoastRadius * MotionFilter.longestCoastRadius
      && (off * off).sum() <= MotionFilter.farthestCorrection * MotionFilter.farthestCorrection
  }

  /// Four fixes that agree; or two, where only one fix was ever accepted, or where fixes are so rare that none was for
  /// 20 s.
  private var isBelievedThoughTooFast: Bool {
    agreements >= (isOfOneFix ? MotionFilter.agreementsMoving.placesOnly : MotionFilter.agreementsWhenTooFast)
      || agreements > 0 && rejections > 0 && refusedSeconds >= MotionFilter.holdWhenTooFast
  }

  /// Whether a fix lies where the refused one before it leads: by the expected velocity (`candidateVelocity`), by the
  /// one that the phone states, or, after one refused fix, by the mean of the two, since a car that speeds up follows
  /// neither. With Doppler, they must agree within the stated accuracy, since reflections creep along. With positions
  /// only, within the noise observed so far.
  func agreesWithRefused(_ fix: TrackMeasurement, after dt: Double) -> Bool {
    guard !isStale else { return false }
    let way = ground.displacement(from: lastPlace, to: fix.coordinate)
    let step = min(dt, 2)
    let share = dopplerShare
    let bare = 1 - share
    let noise = MotionFilter.accuracy(of: fix) * (share + bare * max(1, noiseScale))
    let tolerance = 2 * noise + share * dt + bare * (3 * dt + MotionFilter.hardestBraking / 2 * step * step)
    func isReached(by velocity: SIMD2<Double>) -> Bool {
      let off = way - velocity * dt
      return (off * off).sum() < tolerance * tolerance
    }
    let candidate = SIMD2<Double>(candidateVelocity)
    if isReached(by: candidate) { return true }
    guard let measured = measuredVelocity(of: fix) else { return false }
    return isReached(by: measured) || rejections == 1 && isReached(by: (measured + candidate) / 2)
  }
}
