// Where a driver is and how it moves, from noisy fixes: a Kalman filter with constant velocity in a local plane.
//
// What makes it better than the textbook one, in the order of what it brings on real drives:
// 1. Speed and bearing of a phone come from Doppler shifts and are far better than its positions, so they are taken
//    as a measurement of velocity, before the position: that sharpens the prediction which the position is judged by.
// 2. A phone's position error is mostly a slow drift; what is white in it is much smaller than its stated accuracy, or
//    larger where it lies. So the noise is scaled by s, which follows how well the innovations agree with it.
// 3. A position that can't be (NIS > 16) is not used; one that is unlikely is used with less weight (Huber).
//    The gate sees the nominal noise even where s < 1, or a filter that is sure of itself would lock itself out.
// 4. At a standstill the velocity is measured as 0, which stops a parked car from wandering.
//
// NIS: normalised innovation squared, yᵀ S⁻¹ y; chi-square with 2 degrees of freedom when all is well.
// Bar-Shalom, Li, Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), §5.4 and §6.
import Geo

struct MotionFilter: Sendable {
  /// White acceleration, m²/s³, on each axis.
  static let accelerationDensity = 1.0
  /// 68 % radius of a circular normal distribution, in standard deviations of an axis: √(−2 ln 0.32) = 1.51.
  static let sigmasPerAccuracy = 1.515
  /// Metres; what is assumed where the phone gives no accuracy, and the best that is believed.
  static let missingAccuracy = 5.0
  static let bestAccuracy = 1.0
  /// Metres per second: standard deviation of a Doppler speed along the heading, and the least across it.
  static let speedSigma = 0.6
  /// Standard deviation of a bearing, in radians: 3°.
  static let bearingSigma = 3 * TrackMath.radiansPerDegree
  /// Below this the velocity is measured as 0 ± `standstillSigma`; a bearing counts above `bearingSpeed`. All m/s.
  static let standstillSpeed = 0.3
  static let standstillSigma = 0.05
  static let bearingSpeed = 0.5
  /// NIS above which a velocity counts less (99.9 % of a chi-square with 2 degrees of freedom).
  static let velocityGate = 13.8
  /// NIS above which a position is rejected (99.97 %), and standard deviations above which it counts less.
  static let positionGate = 16.0
  static let huberSigmas = 3.0
  /// Rejections in a row, and seconds since the last position that was used, after which the next one is believed.
  static let mostRejections: UInt8 = 4
  static let longestHold = 20.0
  /// How many fixes must agree with a rejected one before them, where the place they show is out of a vehicle's reach.
  static let agreementsWhenTooFast: UInt8 = 3
  /// Seconds after which nothing that was known about the motion is worth keeping, and the variance (m²) of the
  /// position from then on: 10 km.
  static let longestGap = 300.0
  static let lostVariance = 1e8
  /// Metres: a driver who is found farther off than this is followed anew from there.
  static let farthestCorrection = 5000.0
  /// m²/s²: variance of an unknown velocity, on each axis.
  static let unknownVelocity = 100.0

  var latitude: Double
  var longitude: Double
  /// Metres per second.
  var velocity: SIMD2<Double>
  var covariance: Covariance
  /// Degrees, of the last movement; NaN before the first.
  var heading = Float.nan
  /// Degrees a second, to the right, and when the heading was taken (milliseconds; `min` where it stands).
  var turnRate: Float = 0
  var headingTime = Int64.min
  /// s, the square of real to nominal position noise.
  private(set) var noiseScale = 1.0
  var ground: GroundScale
  /// Of the newest fix seen and of the newest used, milliseconds.
  private(set) var time: Int64
  var lastUsed: Int64
  /// The last rejected fix and the velocity at it: where a second one must be to agree.
  var candidate: Coordinate
  var candidateVelocity: SIMD2<Float>
  var candidateTime: Int64
  var rejections: UInt8 = 0
  var agreements: UInt8 = 0
  /// Fixes since the start, up to 3: s begins to adapt with the fourth.
  private var warmUp: UInt8 = 0

  /// Starts at a fix.
  init(_ fix: TrackMeasurement) {
    latitude = fix.coordinate.latitude
    longitude = fix.coordinate.longitude
    velocity = .zero
    let sigma = MotionFilter.accuracy(of: fix) / MotionFilter.sigmasPerAccuracy
    covariance = Covariance(position: sigma * sigma + 1, velocity: MotionFilter.unknownVelocity)
    ground = GroundScale(latitude: latitude)
    time = fix.milliseconds
    lastUsed = time
    candidate = fix.coordinate
    candidateVelocity = .zero
    candidateTime = time
    measureVelocity(fix)
    usePosition(innovation: displacement(to: fix.coordinate), noise: sigma * sigma)
  }

  /// Metres, the phone's word where it gave one.
  static func accuracy(of fix: TrackMeasurement) -> Double {
    fix.accuracy.isNaN ? missingAccuracy : max(Double(fix.accuracy), bestAccuracy)
  }
}

// MARK: - One step

extension MotionFilter {
  enum Step {
    case used(Position)
    case refused(Tracker.Refusal)
  }

  /// Takes in a fix that is newer than all before.
  mutating func step(_ fix: TrackMeasurement, maximumSpeed: Double) -> Step {
    let dt = Double(fix.milliseconds &- time) / 1000
    time = fix.milliseconds
    predict(dt: dt)
    measureVelocity(fix)
    let refusal = measurePosition(fix, maximumSpeed: maximumSpeed)
    let speed = self.speed
    if speed > maximumSpeed { velocity *= maximumSpeed / speed }
    if let refusal { return .refused(refusal) }
    return .used(publish(fix))
  }

  private mutating func predict(dt: Double) {
    guard dt <= MotionFilter.longestGap else {
      velocity = .zero
      covariance = Covariance(position: MotionFilter.lostVariance, velocity: MotionFilter.unknownVelocity)
      return
    }
    shift(by: velocity * dt)
    covariance.predict(dt: dt, q: MotionFilter.accelerationDensity)
  }

  private mutating func measureVelocity(_ fix: TrackMeasurement) {
    guard !fix.speed.isNaN else { return }
    let speed = Double(fix.speed)
    if speed < MotionFilter.standstillSpeed {
      let variance = MotionFilter.standstillSigma * MotionFilter.standstillSigma
      measureVelocity(0, along: SIMD2(0, 1), variance: variance, varianceAcross: variance)
    } else if speed > MotionFilter.bearingSpeed, !fix.heading.isNaN {
      let heading = Double(fix.heading)
      let along = SIMD2(TrackMath.sine(degrees: heading), TrackMath.cosine(degrees: heading))
      let across = max(MotionFilter.bearingSigma * speed, MotionFilter.speedSigma)
      measureVelocity(
        speed, along: along, variance: MotionFilter.speedSigma * MotionFilter.speedSigma,
        varianceAcross: across * across)
    }
  }

  /// A velocity of `speed` in the direction of the unit vector `u`, with different noise along and across it.
  private mutating func measureVelocity(
    _ speed: Double, along u: SIMD2<Double>, variance: Double, varianceAcross: Double
  ) {
    let w = SIMD2(u.y, -u.x)
    let (p, q) = (covariance.withVelocity(along: u), covariance.withVelocity(along: w))
    // The innovation and its covariance in the frame of the heading.
    let y = SIMD2(speed - (u * velocity).sum(), -(w * velocity).sum())
    let along = u.x * p[2] + u.y * p[3]
    let nis = MotionFilter.nis(
      y, along + variance, w.x * p[2] + w.y * p[3], w.x * q[2] + w.y * q[3] + varianceAcross)
    let inflation = max(1, nis / MotionFilter.velocityGate)
    let first = correct(y.x, covariance: p, variance: along + variance * inflation)
    // The first correction has moved velocity and covariance: the second is taken against what they are now.
    let rest = covariance.withVelocity(along: w)
    let second = correct(
      -(w * velocity).sum(), covariance: rest,
      variance: w.x * rest[2] + w.y * rest[3] + varianceAcross * inflation)
    covariance.floor()
    shift(by: first + second)
  }

  private mutating func measurePosition(_ fix: TrackMeasurement, maximumSpeed: Double) -> Tracker.Refusal? {
    let sigma = MotionFilter.accuracy(of: fix) / MotionFilter.sigmasPerAccuracy
    let nominal = sigma * sigma
    var noise = nominal * noiseScale
    let y = displacement(to: fix.coordinate)
    let p = covariance
    let nis = MotionFilter.nis(y, p.p00 + noise, p.p01, p.p11 + noise)
    adapt(nis)
    let gateNoise = noiseScale < 1 ? nominal : noise
    let gateNIS = MotionFilter.nis(y, p.p00 + gateNoise, p.p01, p.p11 + gateNoise)
    if gateNIS > MotionFilter.positionGate {
      if let refusal = reject(fix, innovation: y, maximumSpeed: maximumSpeed) { return refusal }
      believe(fix, innovation: y, noise: noise)
      return nil
    } else if nis > MotionFilter.huberSigmas * MotionFilter.huberSigmas {
      noise *= nis / (MotionFilter.huberSigmas * MotionFilter.huberSigmas)
    }
    usePosition(innovation: y, noise: noise)
    return nil
  }

  /// Goes to a place outside the gate.
  private mutating func believe(_ fix: TrackMeasurement, innovation y: SIMD2<Double>, noise: Double) {
    let distanceSquared = (y * y).sum()
    guard distanceSquared <= MotionFilter.farthestCorrection * MotionFilter.farthestCorrection else {
      let (heading, noiseScale) = (heading, noiseScale)
      self = MotionFilter(fix)
      (self.heading, self.noiseScale) = (heading, noiseScale)
      return
    }
    covariance.p00 += distanceSquared
    covariance.p11 += distanceSquared
    usePosition(innovation: y, noise: noise)
  }

  private mutating func usePosition(innovation y: SIMD2<Double>, noise: Double) {
    let east = correct(y.x, covariance: covariance.withEast, variance: covariance.p00 + noise)
    let north = correct(y.y - east.y, covariance: covariance.withNorth, variance: covariance.p11 + noise)
    covariance.floor()
    shift(by: east + north)
    rejections = 0
    lastUsed = time
  }

  /// Takes in one scalar: its innovation, the covariance of the state with it, and the innovation's variance. Corrects
  /// velocity and covariance; returns the correction of the position, which the caller applies.
  @inline(__always)
  private mutating func correct(
    _ innovation: Double, covariance p: SIMD4<Double>, variance s: Double
  ) -> SIMD2<Double> {
    let gain = p / s
    covariance.reduce(p, gain: gain)
    velocity += SIMD2(gain[2], gain[3]) * innovation
    return SIMD2(gain[0], gain[1]) * innovation
  }

  private mutating func adapt(_ nis: Double) {
    guard warmUp >= 2 else {
      warmUp += 1
      return
    }
    noiseScale = min(max(noiseScale * TrackMath.exponential(0.08 * (min(nis / 2, 4) - 1)), 0.02), 30)
  }

  /// yᵀ S⁻¹ y for S = [a b; b d].
  @inline(__always) static func nis(_ y: SIMD2<Double>, _ a: Double, _ b: Double, _ d: Double) -> Double {
    (d * y.x * y.x - 2 * b * y.x * y.y + a * y.y * y.y) / (a * d - b * b)
  }
}
