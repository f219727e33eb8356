// Where a driver is and how it moves, from noisy fixes: a Kalman filter with constant velocity in a local plane.
//
// Improvements over the textbook filter, in the order of their effect on real drives:
// 1. Speed and bearing of a phone come from Doppler shifts and are far better than its positions, so they are used as a
//    measurement of velocity, before the position: this sharpens the prediction that the position is compared with.
//    Their latencies are estimated and corrected (`VelocityLatency`), and they are checked against the positions
//    (`VelocityTrust`).
// 2. Phones do not state their real noise: the nominal one is scaled by s, which adapts to the innovations. The common
//    part of successive innovations is model error instead (`ModelError`).
// 3. A fix that does not fit gets less weight, as if its errors had Student's t-distribution; where its position is far
//    off, its speed gets less too, since reflected signals degrade both. Successive fixes that are off to the same side
//    although Doppler shows the motion are one reflection, and each gets less weight. An impossible position (NIS > 16,
//    more in the cases of `measurePosition`) is not used. The gate uses the nominal noise even where s < 1, or an
//    overconfident filter would reject everything.
//    A position that was used but barely fits is undone if the next fix contradicts it (`Doubt`).
// 4. Part of a position's error drifts over minutes (satellites, ionosphere): a bias is part of the state.
// 5. The rest is not white either, so old fixes are forgotten: the position's variance grows by `driftPerNoise` of the
//    noise's a second, or the filter would trust an average over minutes that may be wrong as a whole.
// 6. At a standstill the velocity is 0, which stops a parked car from wandering.
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
  /// m²/s²: over a gap in a track manoeuvres average out, and the density is this over the gap's seconds. With Doppler
  /// at both ends, the mean velocity in between is then known to 4 m/s on an axis (q T³ / 12). This does not apply to
  /// an estimate from one fix (`isOfOneFix`): where fixes are rare, a wrong refusal is corrected late.
  static let gapDensity = 12 * 4.0 * 4.0
  /// The density for a driver who keeps standing, and the seconds up to which two standstills count as one.
  static let standstillDensity = 0.02
  static let longestStandstillStep = 10.0
  /// Growth of the position's variance a second: m², since errors of velocity outlast one fix; and as a fraction of the
  /// noise variance, moving and standing.
  static let driftMoving = 0.07
  static let driftPerNoise = 0.002
  static let driftPerNoiseStanding = 0.0008
  /// Metres: the accuracy of a phone that states none, and the best that is accepted: a receiver with corrections (RTK)
  /// has some centimetres.
  static let missingAccuracy = 5.0
  static let bestAccuracy = 0.1
  /// Standard deviation of the bias as a fraction of the stated one, and the seconds over which it changes. Where s is
  /// below `usualNoise`, the bias is reduced, too.
  static let biasShare = 0.3
  static let biasSeconds = 30.0
  /// The factor on the stated variance of the first fix, whose phone is not known yet.
  static let firstFixVariance = 4.0
  /// For s (`noiseScale`): its rate of adaptation, the largest multiple of the expected NIS that counts, and its range.
  /// It falls below `usualNoise` only where the noise stays above `noiseFloor` (m²): for phones that state 20 m and are
  /// right to one. For the first `earlyFixes` of an unknown phone the rate is higher: 3 / (n + 10) for the n-th.
  static let noiseRate = 0.05
  static let earlyFixes: UInt8 = 50
  static let nisClip = 3.0
  static let noiseRange = 0.003...30.0
  static let usualNoise = 0.03
  static let noiseFloor = 0.2
  /// Degrees of freedom of the t-distributions: of a position's error, and of position and velocity together.
  static let positionFreedom = 6.0
  static let jointFreedom = 4.0
  /// NIS above which a position is rejected (99.97 %).
  static let positionGate = 16.0
  /// The largest ratio of the estimate's variance to a fix's at which the fix can be tested by it.
  static let unknownPlace = 25.0
  /// NIS below which a position is used to estimate latencies.
  static let learningGate = 9.0
  /// After a refused fix, where the estimate's variance is more than this many times the noise's, the next fix is
  /// accepted only with another that agrees with it. It needs none where only one was refused, and it lies where
  /// Doppler leads, within the gate of its noise alone.
  static let vaguePlace = 4.0
  /// Seconds of refused fixes after which any is accepted.
  static let longestHold = 60.0
  /// The number of previous fixes that must agree with one outside the gate for it to be accepted: with Doppler, and
  /// without, where the filter goes wrong sooner. The seconds for which they must agree at a standstill: of a known
  /// place, and of one that was known from one fix only.
  static let agreementsMoving: (doppler: UInt8, placesOnly: UInt8) = (2, 1)
  static let agreementStanding: (known: Float, oneFix: Float) = (8, 4)
  /// The number of fixes that must agree where no vehicle could have got to; after so many seconds one is enough.
  static let agreementsWhenTooFast: UInt8 = 3
  static let holdWhenTooFast: Float = 20
  /// m/s²: no car brakes harder. It is three standard deviations of a change of velocity.
  static let hardestBraking = 8.0
  /// Seconds after which the motion is unknown, and the variance (m²) of the position from then on: 10 km.
  static let longestGap = 300.0
  static let lostVariance = 1e8
  /// Metres: beyond this a new track starts.
  static let farthestCorrection = 5000.0
  /// Metres: up to this radius of 68 % a position is published from the motion alone; without it the map would show an
  /// older one.
  static let longestCoastRadius = 1000.0
  /// m²/s²: variance of an unknown velocity on each axis; no vehicle exceeds three standard deviations.
  static let unknownVelocity = 900.0

  var latitude: Double
  var longitude: Double
  /// Metres per second, east and north.
  var velocity: SIMD2<Double>
  /// The fixes' bias, metres east and north.
  var bias: SIMD2<Double>
  var covariance: Covariance
  var ground: GroundScale
  /// s, the square of real to nominal position noise.
  var noiseScale = 1.0
  /// The newest fix's time, milliseconds.
  private(set) var time: Int64
  var latency = VelocityLatency()
  var trust = VelocityTrust()
  var modelError = ModelError()
  /// Degrees: the heading of the last movement, before that the one that the phone stated; NaN where there is neither.
  var heading = Float.nan
  var doubt = Doubt.none
  /// Degrees a second, to the right, and the heading's age in seconds (infinite at a standstill).
  var turnRate: Float = 0
  var headingAge = Float.infinity
  /// The newest fix's coordinate, whether it was used or not.
  var lastPlace: Coordinate
  /// The coordinate that is published during a standstill: see `parked`.
  var parkedPlace: PackedCoordinate
  /// m/s: the velocity from the last fix, which was refused, to a next one that agrees with it.
  var candidateVelocity = SIMD2<Float>.zero
  /// Seconds since a position was used; since the first refused one; and for which refused ones agree.
  var unusedSeconds: Float = 0
  var refusedSeconds: Float = 0
  var agreedSeconds: Float = 0
  var rejections: UInt8 = 0
  var agreements: UInt8 = 0
  /// Fixes since the start, up to `earlyFixes`.
  private var warmUp: UInt8 = 0
  var isStanding = false
  /// The newest fix had a usable velocity.
  var hasVelocity = false
  /// `parkedPlace` is published.
  var isParked = false
  /// The newest fix had the coordinate of the one before, though the driver moves.
  var isStale = false
  /// The estimate is that of one fix that could not be tested: the first, or one after a long gap. Another place is as
  /// likely as soon as two fixes agree on it.
  var isOfOneFix = false
  /// The driver moved although the phone stated that it stands; some apps send a speed of 0 for an unknown one. This is
  /// ignored until the phone states movement.
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
    isOfOneFix = true
    _ = measureVelocity(fix, after: 0, isComparable: false)
    usePosition(innovation: displacement(to: fix.coordinate) - bias, noise: nominal)
  }

  /// Starts with a known state: nothing is rejected, and s adapts from the next fix on.
  init(at place: Coordinate, milliseconds: Int64, velocity: SIMD2<Double>, covariance: Covariance) {
    latitude = place.latitude
    longitude = place.longitude
    self.velocity = velocity
    bias = .zero
    self.covariance = covariance
    ground = GroundScale(latitude: latitude)
    time = milliseconds
    lastPlace = place
    parkedPlace = PackedCoordinate(place)
    warmUp = MotionFilter.earlyFixes
  }

  /// Metres, as the phone states it, if it does.
  static func accuracy(of fix: TrackMeasurement) -> Double {
    fix.accuracy.isNaN ? missingAccuracy : max(Double(fix.accuracy), bestAccuracy)
  }

  /// m² on an axis, by the stated accuracy.
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

  /// Processes a fix that is newer than all before.
  mutating func step(_ fix: TrackMeasurement, _ rules: TrackingRules) -> Step {
    let dt = Double(fix.milliseconds &- time) / 1000
    time = fix.milliseconds
    headingAge += Float(dt)
    unusedSeconds += Float(dt)
    refusedSeconds += Float(dt)
    let hasStood = isStanding
    isStanding = stands(fix)
    predict(
      dt: dt, nominal: MotionFilter.variance(of: fix),
      isStandstill: hasStood && isStanding && dt <= MotionFilter.longestStandstillStep)
    settleDoubt(fix, after: dt)
    let wasStale = isStale
    isStale = repeats(fix, after: dt)
    let before = velocity
    let course = measureVelocity(fix, after: dt, isComparable: !isStale && !wasStale)
    let refusal = measurePosition(
      fix, course: course, before: before, after: dt, maximumSpeed: rules.maximumSpeed)
    lastPlace = fix.coordinate
    let speed = self.speed
    if speed > rules.maximumSpeed { velocity *= rules.maximumSpeed / speed }
    if let refusal, !canCoast(past: fix) { return .refused(refusal) }
    return .used(publish(fix, absorbed: refusal))
  }

  /// The gate: uses the position where it fits the motion. Where it does not, `reject` (MotionFilter+Refusal.swift)
  /// decides; returns its refusal, nil where the position is accepted.
  private mutating func measurePosition(
    _ fix: TrackMeasurement, course: SIMD2<Double>, before: SIMD2<Double>, after dt: Double, maximumSpeed: Double
  ) -> FixRefusal? {
    let nominal = MotionFilter.variance(of: fix)
    let noise = nominal * noiseScale
    let innovation = displacement(to: fix.coordinate) - bias
    let distanceSquared = (innovation * innovation).sum()
    let dopplerShare = dopplerShare
    let gateNoise = max(nominal, noise)
    let lagProduct = isStale ? 0 : modelError.add(innovation, noise: gateNoise)
    let explained = addModelError(lagProduct, of: distanceSquared, dopplerShare: dopplerShare, after: dt)
    let predicted = covariance.ofFix
    let nis = distanceSquared / (predicted + noise)
    var gateVariance = predicted + gateNoise
    if dopplerShare < 1 {
      // How much braking shortens a step, as three standard deviations: Doppler would have shown it.
      let braked = MotionFilter.hardestBraking / 6 * min(dt * dt, 4)
      gateVariance += (1 - dopplerShare) * braked * braked
    }
    if !isStale { adapt((distanceSquared - explained) / (predicted + noise), nominal: nominal) }
    let agrees = rejections > 0 && agreesWithRefused(fix, after: dt)
    // After a refused fix a vague estimate says little: another fix must agree with this one.
    let needsAgreement =
      rejections > 0 && !agrees
      // One refused fix before a gap says nothing about those after it.
      && (rejections > 1 || dt <= MotionFilter.longestManoeuvre)
      // Fixes refused while the position was unknown, after a gap, say nothing either.
      && Double(unusedSeconds - refusedSeconds) <= MotionFilter.longestManoeuvre
      && predicted > MotionFilter.vaguePlace * gateNoise
      // Where one was refused and Doppler leads to this one, within the gate of its noise alone, it needs no other.
      && (rejections > 1 || dopplerShare < 0.5 || distanceSquared > MotionFilter.positionGate * gateNoise)
    let gatedSquared =
      distanceSquared + (dt > MotionFilter.longestManoeuvre ? sideways(innovation, before: before) : 0)
    guard gatedSquared <= MotionFilter.positionGate * gateVariance, !needsAgreement, !isStale else {
      if let refusal = reject(fix, innovation: innovation, agrees: agrees, after: dt, maximumSpeed: maximumSpeed) {
        leaveDoubt(after: dt)
        return refusal
      }
      acceptAfterRefusals(fix, innovation: innovation, noise: gateNoise, after: dt)
      return nil
    }
    if nis < MotionFilter.learningGate {
      latency.learn(innovation, course: course, variance: predicted + noise, after: dt)
    }
    let isUntested = predicted > MotionFilter.unknownPlace * gateNoise
    let weight = (MotionFilter.positionFreedom + nis) / (MotionFilter.positionFreedom + 2)
    // With Doppler, the positions' common part beyond their noise is one reflection; of a phone that is better than it
    // states it is drift, or the filter's error after a wrong velocity.
    let reflected = dopplerShare * min(1, noiseScale) * max(0, lagProduct / (2 * gateNoise) - 1)
    usePosition(
      innovation: innovation, noise: noise * (max(1, weight) + reflected),
      isDoubtful: nis > Doubt.threshold || isUntested || rejections > 0)
    isOfOneFix = isUntested
    return nil
  }

  /// Adds the common part of this and the last innovation, whose product is `lagProduct`, to the process noise, as far
  /// as Doppler does not show the motion. Returns what of the innovation it explains, m², at most `square`.
  @inline(__always)
  private mutating func addModelError(
    _ lagProduct: Double, of square: Double, dopplerShare share: Double, after dt: Double
  ) -> Double {
    guard share < 1 else { return 0 }
    if rejections == 0 { covariance.widen(dt: dt, q: (1 - share) * modelError.density(product: lagProduct, after: dt)) }
    return (1 - share) * min(max(lagProduct, 0), square)
  }

  /// Uses a position outside the gate that `reject` accepted.
  private mutating func acceptAfterRefusals(
    _ fix: TrackMeasurement, innovation y: SIMD2<Double>, noise: Double, after dt: Double
  ) {
    let distanceSquared = (y * y).sum()
    guard distanceSquared <= MotionFilter.farthestCorrection * MotionFilter.farthestCorrection else {
      let (heading, noiseScale, latency, trust) = (heading, noiseScale, latency, trust)
      self = MotionFilter(fix)
      (self.heading, self.noiseScale, self.latency, self.trust) = (heading, noiseScale, latency, trust)
      return
    }
    if isStanding { doubtStandstill() }
    if dopplerShare < 0.5, agreedSeconds > 0, dt > 0 {
      // The track lagged, so its velocity was wrong; the refused fixes show another.
      velocity = SIMD2<Double>(candidateVelocity)
      let change = MotionFilter.hardestBraking / 3 * dt
      let variance = min(2 * noise / (dt * dt) + change * change, MotionFilter.unknownVelocity)
      (covariance.p01, covariance.p11, covariance.p12) = (0, variance, 0)
    }
    covariance.p00 += distanceSquared
    usePosition(innovation: y, noise: noise)
  }

  private mutating func usePosition(innovation y: SIMD2<Double>, noise: Double, isDoubtful: Bool = false) {
    let p = covariance.withFix
    let variance = p.x + p.z + noise
    if isDoubtful {
      doubt = Doubt(innovation: y, gain: p * (1 / variance), variance: variance)
    } else {
      doubt.variance = 0
    }
    correct(y, covariance: p, variance: variance)
    covariance.floor()
    rejections = 0
    unusedSeconds = 0
  }

  /// Updates by a measurement of both axes: its innovation, the covariance of the state with it, and the innovation's
  /// variance.
  @inline(__always)
  mutating func correct(_ y: SIMD2<Double>, covariance p: SIMD3<Double>, variance s: Double) {
    let gain = p * (1 / s)
    covariance.reduce(p, gain: gain)
    velocity += y * gain.y
    bias += y * gain.z
    shift(by: y * gain.x)
  }

  @inline(__always) var showsNoise: Bool { warmUp > 2 }

  private mutating func adapt(_ nis: Double, nominal: Double) {
    var rate = MotionFilter.noiseRate
    if warmUp < MotionFilter.earlyFixes {
      warmUp += 1
      guard showsNoise else { return }
      rate = 3 / (Double(warmUp) + 10)
    }
    // exp(x) for −0.25 ≤ x ≤ 0.5 by its series: the first term left out is 3e-3, of a known phone 4e-6.
    let x = rate * (min(nis / 2, MotionFilter.nisClip) - 1)
    let scaled = noiseScale * (1 + x * (1 + x * (1.0 / 2 + x * (1.0 / 6))))
    let range = MotionFilter.noiseRange
    var least = MotionFilter.usualNoise
    if scaled < least { least = min(least, max(range.lowerBound, MotionFilter.noiseFloor / nominal)) }
    noiseScale = min(max(scaled, least), range.upperBound)
  }
}
