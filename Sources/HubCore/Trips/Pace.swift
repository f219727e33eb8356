// A driver's average speed: its published speed, stops included, smoothed over time.
//
// A running mean at first, an exponential one with a fixed time constant later: the weight of the past grows with its
// duration, up to the constant. A step is the implicit Euler step of τ · dp/dt = v − p, which never overshoots and
// needs no exponential.
//
// The assumption for an unknown driver is kept apart from the mean, and fades as that fills up: its remainder in an
// exponential mean, 12 % after two minutes, was most of an ETA's error then.

struct Pace: Sendable, Equatable, BitwiseCopyable {
  /// The mean in metres per second; nil before the first speed.
  @Packed private(set) var speed: Double?
  /// The weight of the past, in seconds.
  private(set) var weightSeconds = 0.0

  init() {}

  init(speed: Double?, weightSeconds: Double) {
    self.speed = speed
    self.weightSeconds = weightSeconds
  }

  /// The driver went at this speed (m/s) for so many seconds.
  @inline(__always)
  mutating func follow(speed new: Double, seconds: Double, rules: TripRules) {
    let past = speed ?? new
    speed = past + (new - past) * seconds / (weightSeconds + seconds)
    weightSeconds = min(weightSeconds + seconds, rules.paceSeconds)
  }

  /// The speed for estimates in m/s: never 0.
  @inline(__always)
  func expected(_ rules: TripRules) -> Double {
    guard let speed else { return max(rules.firstPace, rules.slowestPace) }
    let assumedSeconds = rules.firstPaceSeconds * max(0, 1 - weightSeconds / rules.paceSeconds)
    let mean = (rules.firstPace * assumedSeconds + speed * weightSeconds) / (assumedSeconds + weightSeconds)
    return max(mean, rules.slowestPace)
  }
}
