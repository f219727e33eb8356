// Where a driver is and how it moves, from noisy fixes: a Kalman filter with constant velocity in a local plane.
//
// What makes it better than the textbook one, in the order of what it brings on real drives:
// 1. Speed and bearing of a phone come from Doppler shifts and are far better than its positions, so they are taken
//    as a measurement of velocity, before the position: that sharpens the prediction which the position is judged by.
//    Their latency is learnt and taken off (`SpeedLatency`).
// 2. How noisy a phone's positions are it does not say: the noise is scaled by s, which follows how well the
//    innovations agree with it.
// 3. A fix that does not fit counts less, as if its errors had Student's t-distribution; where the place is far off,
//    its speed is doubted too, for reflected signals spoil both. A place that can't be (NIS > 16) is not used. The gate
//    sees the nominal noise even where s < 1, or a filter that is sure of itself would lock itself out.
// 4. Part of a position's error drifts over minutes (satellites, ionosphere): a bias is carried along and estimated.
// 5. What remains is not white either, so old fixes are forgotten: the position loses `driftPerNoise` of the noise
//    variance a second, or it would trust its own average over minutes and not see that all of it was wrong.
// 6. At a standstill the velocity is 0 and stays so, which stops a parked car from wandering.
//
// NIS: normalised innovation squared, yᵀ S⁻¹ y; chi-square with 2 degrees of freedom when all is well.
// Bar-Shalom, Li, Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), §5.4 and §6; the
// t-weights (ν + NIS) / (ν + 2): Roth, Özkan, Gustafsson, A Student's t filter for heavy tailed process and measurement
// noise (ICASSP 2013). The figures and how they were chosen: protocol/tracking.md.
import HubGeo

struct MotionFilter: Sendable {
  /// White acceleration, m²/s³, on each axis, for steps up to a second. An acceleration lasts for seconds, so over
  /// longer steps it does not average out: the density grows with the step, up to `longestManoeuvre` seconds.
  static let accelerationDensity = 1.0
  static let longestManoeuvre = 10.0
  /// The same for a driver who stood and stands, and the seconds for which two standstills are taken to be one.
  static let standstillDensity = 0.02
  static let longestStandstillStep = 10.0
  /// What the position loses a second: m², for the errors of velocity last longer than one fix; and as a part of the
  /// noise variance, moving and standing.
  static let driftMoving = 0.07
  static let driftPerNoise = 0.002
  static let driftPerNoiseStanding = 0.0008
  /// Metres; what is assumed where the phone gives no accuracy, and the best that is believed.
  static let missingAccuracy = 5.0
  static let bestAccuracy = 1.0
  /// Standard deviation of the bias as a part of the stated one, and the seconds over which it changes.
  static let biasShare = 0.3
  static let biasSeconds = 120.0
  /// How much larger than stated the variance of the first fix is taken to be: its phone is not known yet.
  static let firstFixVariance = 4.0
  /// s: by how much it follows a fix, up to how many times the expected NIS, and its range.
  static let noiseRate = 0.08
  static let noiseMost = 3.0
  static let noiseRange = 0.03...30.0
  /// Degrees of freedom of the t-distributions: of a position's error, and of position and velocity together.
  static let positionFreedom = 6.0
  static let jointFreedom = 4.0
  /// NIS above which a position is rejected (99.97 %).
  static let positionGate = 16.0
  /// How many times the variance of a fix that of the place may be, for the fix to be judged by it.
  static let unknownPlace = 25.0
  /// NIS below which a position says something about the latency of speed.
  static let learningGate = 9.0
  /// Rejections in a row, and seconds since the first of them, after which the next one is believed.
  static let mostRejections: UInt8 = 4
  static let longestHold = 20.0
  /// Milliseconds for which rejected fixes must agree with each other to be believed, moving and standing.
  static let agreement: Int64 = 2000
  static let agreementStanding: Int64 = 8000
  /// How many fixes must agree with a rejected one before them, where the place they show is out of a vehicle's reach.
  static let agreementsWhenTooFast: UInt8 = 3
  /// Seconds after which nothing that was known about the motion is worth keeping, and the variance (m²) of the
  /// position from then on: 10 km.
  static let longestGap = 300.0
  static let lostVariance = 1e8
  /// Metres: a driver who is found farther off than this is followed anew from there.
  static let farthestCorrection = 5000.0
  /// Metres: up to this radius of 68 % a position is published from the motion alone. What the map shows otherwise is
  /// older.
  static let longestCoastRadius = 1000.0
  /// m²/s²: variance of an unknown velocity, on each axis.
  static let unknownVelocity = 100.0

  var latitude: Double
  var longitude: Double
  /// Metres per second, east and north.
  var velocity: SIMD2<Double>
  /// Metres east and north that fixes are off.
  var bias: SIMD2<Double>
  var covariance: Covariance
  /// Degrees, of the last movement; NaN before the first.
  var heading = Float.nan
  /// Degrees a second, to the right, and when the heading was taken (milliseconds; `min` where it stands).
  var turnRate: Float = 0
  var headingTime = Int64.min
  /// s, the square of real to nominal position noise.
  var noiseScale = 1.0
  var latency = SpeedLatency()
  var ground: GroundScale
  /// Of the newest fix seen and of the newest used, milliseconds.
  private(set) var time: Int64
  private(set) var lastUsed: Int64
  /// The last rejected fix and the velocity at it: where the next one must be to agree. And since when they do.
  var candidate: Coordinate
  var candidateVelocity: SIMD2<Float>
  var candidateTime: Int64
  var agreeingSince: Int64
  var rejectedSince: Int64
  var rejections: UInt8 = 0
  var agreements: UInt8 = 0
  /// Fixes since the start, up to 2: s begins to adapt after that.
  private var warmUp: UInt8 = 0
  var isStanding = false
  /// The position that was used last could not be judged, for hardly anything was known when it came: the first after a
  /// gap.
  var isUnconfirmed = false
  /// The driver was found elsewhere though the phone said that it stood: what it says is believed again when it says
  /// that it moves. Some apps send a speed of 0 for one that they don't know.
  var doubtsStandstill = false
  /// Velocities in a row that did not fit.
  var velocityDoubts: UInt8 = 0

  /// Starts at a fix.
  init(_ fix: TrackMeasurement) {
    let nominal = MotionFilter.variance(of: fix)
    let covariance = Covariance(
      position: nominal * MotionFilter.firstFixVariance + 1, velocity: MotionFilter.unknownVelocity,
      bias: nominal * MotionFilter.biasShare * MotionFilter.biasShare)
    self.init(at: fix.coordinate, milliseconds: fix.milliseconds, velocity: .zero, covariance: covariance)
    warmUp = 0
    _ = measureVelocity(fix, after: 0)
    usePosition(innovation: displacement(to: fix.coordinate) - bias, noise: nominal)
  }

  /// Starts where it is known how things stand: nothing is rejected, and s adapts from the next fix on.
  init(at place: Coordinate, milliseconds: Int64, velocity: SIMD2<Double>, covariance: Covariance) {
    latitude = place.latitude
    longitude = place.longitude
    self.velocity = velocity
    bias = .zero
    self.covariance = covariance
    ground = GroundScale(latitude: latitude)
    time = milliseconds
    lastUsed = milliseconds
    candidate = place
    candidateVelocity = .zero
    candidateTime = milliseconds
    agreeingSince = milliseconds
    rejectedSince = milliseconds
    warmUp = 2
  }

  /// Metres, the phone's word where it gave one.
  static func accuracy(of fix: TrackMeasurement) -> Double {
    fix.accuracy.isNaN ? missingAccuracy : max(Double(fix.accuracy), bestAccuracy)
  }

  /// m² on an axis, by the phone's word.
  static func variance(of fix: TrackMeasurement) -> Double {
    let sigma = accuracy(of: fix) / AccuracyRadius.sigmas
    return sigma * sigma
  }
}

// MARK: - One step

extension MotionFilter {
  enum Step {
    case used(Position)
    case refused(FixRefusal)
  }

  /// Takes in a fix that is newer than all before.
  mutating func step(_ fix: TrackMeasurement, _ rules: TrackingRules) -> Step {
    let dt = Double(fix.milliseconds &- time) / 1000
    time = fix.milliseconds
    let hasStood = isStanding
    isStanding = stands(fix)
    predict(
      dt: dt, nominal: MotionFilter.variance(of: fix),
      isStandstill: hasStood && isStanding && dt <= MotionFilter.longestStandstillStep)
    let course = measureVelocity(fix, after: dt)
    let refusal = measurePosition(fix, course: course, after: dt, maximumSpeed: rules.maximumSpeed)
    let speed = self.speed
    if speed > rules.maximumSpeed { velocity *= rules.maximumSpeed / speed }
    if let refusal, !canCoast(past: fix) { return .refused(refusal) }
    return .used(publish(fix, absorbed: refusal))
  }

  private mutating func predict(dt: Double, nominal: Double, isStandstill: Bool) {
    let biasVariance = nominal * MotionFilter.biasShare * MotionFilter.biasShare
    guard dt <= MotionFilter.longestGap else {
      (velocity, bias) = (.zero, .zero)
      covariance = Covariance(
        position: MotionFilter.lostVariance, velocity: MotionFilter.unknownVelocity, bias: biasVariance)
      return
    }
    shift(by: velocity * dt)
    let noise = nominal * noiseScale
    if isStandstill {
      covariance.predict(
        dt: dt, q: MotionFilter.standstillDensity, drift: dt * MotionFilter.driftPerNoiseStanding * noise)
    } else {
      covariance.predict(
        dt: dt, q: MotionFilter.accelerationDensity * min(max(dt, 1), MotionFilter.longestManoeuvre),
        drift: dt * (MotionFilter.driftMoving + MotionFilter.driftPerNoise * noise))
    }
    let kept = MotionFilter.biasSeconds / (MotionFilter.biasSeconds + dt)
    bias *= kept
    covariance.fadeBias(kept: kept, added: biasVariance * (1 - kept * kept))
  }

  private mutating func measurePosition(
    _ fix: TrackMeasurement, course: SIMD2<Double>, after dt: Double, maximumSpeed: Double
  ) -> FixRefusal? {
    let nominal = MotionFilter.variance(of: fix)
    let noise = nominal * noiseScale
    let y = displacement(to: fix.coordinate) - bias
    let distanceSquared = (y * y).sum()
    let expected = covariance.ofFix
    let nis = distanceSquared / (expected + noise)
    let gateNIS = distanceSquared / (expected + max(nominal, noise))
    adapt(nis)
    guard gateNIS <= MotionFilter.positionGate else {
      if let refusal = reject(fix, innovation: y, maximumSpeed: maximumSpeed) { return refusal }
      believe(fix, innovation: y, noise: noise)
      return nil
    }
    if nis < MotionFilter.learningGate {
      latency.learn(ahead: (course * y).sum(), variance: expected + noise, after: dt)
    }
    isUnconfirmed = expected > MotionFilter.unknownPlace * max(nominal, noise)
    let weight = (MotionFilter.positionFreedom + nis) / (MotionFilter.positionFreedom + 2)
    usePosition(innovation: y, noise: noise * max(1, weight))
    return nil
  }

  /// Goes to a place outside the gate.
  private mutating func believe(_ fix: TrackMeasurement, innovation y: SIMD2<Double>, noise: Double) {
    let distanceSquared = (y * y).sum()
    guard distanceSquared <= MotionFilter.farthestCorrection * MotionFilter.farthestCorrection else {
      let (heading, noiseScale, latency) = (heading, noiseScale, latency)
      self = MotionFilter(fix)
      (self.heading, self.noiseScale, self.latency) = (heading, noiseScale, latency)
      return
    }
    if isStanding { doubtStandstill() }
    covariance.p00 += distanceSquared
    usePosition(innovation: y, noise: noise)
  }

  private mutating func usePosition(innovation y: SIMD2<Double>, noise: Double) {
    let p = covariance.withFix
    correct(y, covariance: p, variance: p.x + p.z + noise)
    rejections = 0
    lastUsed = time
  }

  /// Takes in one measurement of both axes: its innovation, the covariance of the state with it, and the innovation's
  /// variance.
  @inline(__always)
  mutating func correct(_ y: SIMD2<Double>, covariance p: SIMD3<Double>, variance s: Double) {
    let gain = p * (1 / s)
    covariance.reduce(p, gain: gain)
    covariance.floor()
    velocity += y * gain.y
    bias += y * gain.z
    shift(by: y * gain.x)
  }

  private mutating func adapt(_ nis: Double) {
    guard warmUp >= 2 else {
      warmUp += 1
      return
    }
    // exp(x) for −0.08 ≤ x ≤ 0.16 by its series: the first term left out is 3e-5.
    let x = MotionFilter.noiseRate * (min(nis / 2, MotionFilter.noiseMost) - 1)
    let scaled = noiseScale * (1 + x * (1 + x * (1.0 / 2 + x * (1.0 / 6))))
    noiseScale = min(max(scaled, MotionFilter.noiseRange.lowerBound), MotionFilter.noiseRange.upperBound)
  }
}
