// How fast a driver gets on: its published speed, standstills included, smoothed over time.
//
// A running mean while little is known, an exponential one with a fixed time constant from then on: the weight that
// the past has grows with the time it stands for, up to the constant. A step is the implicit Euler step of
// τ · dp/dt = v − p, which never overshoots however long it is, and needs no exponential.

struct Pace: Sendable, Equatable, BitwiseCopyable {
  /// Metres per second; nil before the first speed.
  private(set) var speed: Double?
  /// Seconds that the past counts for.
  private(set) var weightSeconds = 0.0

  init() {}

  init(speed: Double?, weightSeconds: Double) {
    self.speed = speed
    self.weightSeconds = weightSeconds
  }

  /// The driver went at this speed (m/s) for so many seconds.
  @inline(__always)
  mutating func follow(speed new: Double, seconds: Double, rules: TripRules) {
    let past = speed ?? rules.firstPace
    let weight = speed == nil ? rules.firstPaceSeconds : weightSeconds
    speed = past + (new - past) * seconds / (weight + seconds)
    weightSeconds = min(weight + seconds, rules.paceSeconds)
  }

  /// Metres per second to reckon with: never 0.
  @inline(__always)
  func expected(_ rules: TripRules) -> Double { max(speed ?? rules.firstPace, rules.slowestPace) }
}
