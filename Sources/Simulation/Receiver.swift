// A phone's receiver: the errors of satellite navigation in a city.
//
// A position error has a slow part (reflections and the atmosphere: a Gauss–Markov process of some tens of seconds) and
// a white part; both vary with the surroundings, and so does the stated accuracy: 68 % of the fixes are within it,
// except outliers. Speed and bearing are from Doppler shifts and have small white errors. Parkinson, Spilker: GPS:
// Theory and Applications I (1996), ch. 11, for the sizes.
import Glibc  // exponential: a pure function
import HubGeo
import HubMessages

/// The receiver of one simulated phone.
struct Receiver: Sendable {
  private var random: SplitMix64
  /// Metres: the stated accuracy under an open sky.
  private let openAccuracy: Double
  /// Both in units of their own standard deviation.
  private var drift: SIMD2<Double>
  private var surroundings: Double
  private var lastMeasured: Double?
  private var missing = 0

  /// Seconds: correlation times of the drift, and of the surroundings.
  static let driftTime = 40.0
  static let surroundingsTime = 60.0
  /// How much the surroundings change the error: one standard deviation is a factor of e^0.35.
  static let surroundingsSpread = 0.35
  /// The slow and the white part of the error: their squares add up to 1.
  static let driftFraction = 0.85
  static let whiteFraction = (1 - driftFraction * driftFraction).squareRoot()
  /// Probabilities for each fix: an outlier; the start of a gap; no speed and bearing.
  static let outlierChance = 0.003
  static let gapChance = 0.002
  static let noVelocityChance = 0.02
  /// Standard deviations of the speed (m/s) and of the bearing (degrees, at 10 m/s and more).
  static let speedSigma = 0.25
  static let bearingSigma = 1.5

  init(seed: UInt64, index: Int) {
    random = SplitMix64(seed: seed, index: index, purpose: 0x6B5)
    openAccuracy = random.uniform(3, 10)
    drift = random.normals()
    surroundings = random.normals().x
  }

  /// The fix of the truth at `seconds`, or nil in a gap.
  mutating func measure(_ truth: SimulatedDriver.Truth, in city: City, at seconds: Double, _ time: Timestamp) -> Fix? {
    let elapsed = seconds - (lastMeasured ?? seconds)
    lastMeasured = seconds
    age(by: elapsed)
    let white = random.normals()
    let noise = random.normals()
    let isOutlier = random.chance(Receiver.outlierChance)
    let hasNoVelocity = random.chance(Receiver.noVelocityChance)
    if isGap() { return nil }
    let accuracy = openAccuracy * exp(Receiver.surroundingsSpread * surroundings)
    var error = (drift * Receiver.driftFraction + white * Receiver.whiteFraction) * (accuracy / AccuracyRadius.sigmas)
    if isOutlier {
      let far = random.uniform(40, 800)
      let length = max((white * white).sum().squareRoot(), 1e-6)
      error += white / length * far
    }
    let speed = max(0, truth.speed + noise.x * Receiver.speedSigma * min(1, 0.2 + truth.speed / 3))
    let bearing = truth.heading + noise.y * Receiver.bearingSigma * max(1, 10 / max(speed, 1))
    let coordinate = city.coordinate(city.place(truth.coordinate) + error)
    return Fix(
      coordinate: coordinate, timestamp: time, accuracy: Receiver.rounded(accuracy, to: 100),
      heading: hasNoVelocity || speed < 0.5 ? nil : Receiver.heading(bearing),
      speed: hasNoVelocity ? nil : Receiver.rounded(speed, to: 100), source: .gps)
  }

  /// First-order Gauss–Markov steps: x ← φ x + √(1 − φ²) n with φ = e^(−Δt/τ).
  private mutating func age(by elapsed: Double) {
    let normals = random.normals()
    let other = random.normals().x
    let slow = exp(-elapsed / Receiver.driftTime)
    drift = drift * slow + normals * (1 - slow * slow).squareRoot()
    let slower = exp(-elapsed / Receiver.surroundingsTime)
    surroundings = surroundings * slower + other * (1 - slower * slower).squareRoot()
  }

  private mutating func isGap() -> Bool {
    if missing > 0 {
      missing -= 1
      return true
    }
    if random.chance(Receiver.gapChance) { missing = 2 + random.below(13) }
    return false
  }

  private static func rounded(_ value: Double, to unit: Double) -> Double { (value * unit).rounded() / unit }

  /// Any angle as 0 ≤ result < 360, to 0.1°.
  private static func heading(_ degrees: Double) -> Double {
    let turned = degrees - (degrees / 360).rounded(.down) * 360
    let rounded = rounded(turned, to: 10)
    return rounded < 360 ? rounded : 0
  }
}
