// What happens to a position that does not fit: when it is refused, and when the driver is believed to be there.
import HubGeo

extension MotionFilter {
  /// Decides on a position that does not fit, `dt` seconds after the last fix. Returns nil when it is to be believed
  /// after all.
  ///
  /// One wrong fix comes alone, or in a place of its own; a filter that is wrong sees fixes that agree with each other.
  /// So fixes that agree are believed, the sooner the less is known of the motion; so is any after `longestHold`.
  /// Reflections agree with each other for seconds, too; where the Doppler shifts say that the driver stands, it can't
  /// have got there, and agreement must last longer. A place that no vehicle could have reached needs more agreement:
  /// otherwise the first fix after a tunnel may throw the driver across the city.
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

  /// Whether the fix has the very place of the one before though the driver moves: receivers that lose their signals
  /// repeat the last place, and a phone sends the last one once more where the new one is late.
  ///
  /// By Doppler it moves above walking speed. By the track alone, where it can't have stopped since. When this has
  /// begun it goes on: who was in motion at a place does not stand there afterwards.
  @inline(__always) func repeats(_ fix: TrackMeasurement, after dt: Double) -> Bool {
    guard lastPlace == fix.coordinate, !isStanding else { return false }
    return isStale
      || dopplerShare > 0.5 && Double(fix.speed) > MotionFilter.walkingSpeed
      || speed > MotionFilter.hardestBraking * max(dt, 1) && speed > 3 * covariance.p11.squareRoot()
  }

  /// Keeps the velocity by which the next fix will be judged: at first the track's, and as soon as two are refused,
  /// theirs.
  private mutating func expectNext(_ fix: TrackMeasurement, after dt: Double, maximumSpeed: Double) {
    candidateVelocity = SIMD2<Float>(velocity)
    guard rejections > 0, dt > 0 else { return }
    let between = ground.displacement(from: lastPlace, to: fix.coordinate) / dt
    if (between * between).sum() <= maximumSpeed * maximumSpeed { candidateVelocity = SIMD2<Float>(between) }
  }

  /// m/s; nil where the phone gave none. Where the filter is wrong about the place, it may be about the velocity.
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
    if isStanding { return agreedSeconds >= MotionFilter.agreementStanding }
    let needed = MotionFilter.agreementsMoving
    return agreements >= (dopplerShare > 0.5 && !isOfOneFix ? needed.doppler : needed.placesOnly)
  }

  /// Whether a position may be published without the place of its fix: from the motion alone, as long as that is known
  /// well enough, and the fix is not in another town.
  func canCoast(past fix: TrackMeasurement) -> Bool {
    let off = displacement(to: fix.coordinate)
    return radius <= MotionFilter.longestCoastRadius
      && (off * off).sum() <= MotionFilter.farthestCorrection * MotionFilter.farthestCorrection
  }

  /// Four fixes that agree; or two, where the fixes come so seldom that nothing was believed for long meanwhile.
  private var isBelievedThoughTooFast: Bool {
    agreements >= (isOfOneFix ? MotionFilter.agreementsMoving.placesOnly : MotionFilter.agreementsWhenTooFast)
      || agreements > 0 && rejections > 0 && refusedSeconds >= MotionFilter.holdWhenTooFast
  }

  /// Whether a fix lies where the refused one before it leads, by the velocity that the phone states or by that of the
  /// fixes. Where Doppler tells of the motion, they have to agree as places do that are as good as stated: reflections
  /// creep along. Where only places do, they may be as far apart as they have been so far.
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
    if let measured = measuredVelocity(of: fix), isReached(by: measured) { return true }
    return isReached(by: SIMD2<Double>(candidateVelocity))
  }
}
