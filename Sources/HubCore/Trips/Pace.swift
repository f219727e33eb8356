// How fast a driver gets on: its published speed, standstills included, smoothed over time.
//
// A running mean while little is known, an exponential one with a fixed time constant from then on: the weight that
// the past has grows with the time it stands for, up to the constant. A step is the implicit Euler step of
// τ · dp/dt = v − p, which never overshoots however long it is, and needs no exponential.
//
// What is assumed of a driver that nothing is known of is kept apart from the mean, and fades while that fills up: what
// remained of it in an exponential mean, 12 % after two minutes, was most of the error of an ETA then.

struct Pace: Sendable, Equatable, BitwiseCopyable {
  /// The mean in metres per second; nil before the first speed.
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
    let past = speed ?? new
    speed = past + (new - past) * seconds / (weightSeconds + seconds)
    weightSeconds = min(weightSeconds + seconds, rules.paceSeconds)
  }

  /// Metres per second to reckon with: never 0.
  @inline(__always)
  func expected(_ rules: TripRules) -> Double {
    guard let speed else { return max(rules.firstPace, rules.slowestPace) }
    let assumedSeconds = rules.firstPaceSeconds * max(0, 1 - weightSeconds / rules.paceSeconds)
    let mean = (rules.firstPace * assumedSeconds + speed * weightSeconds) / (assumedSeconds + weightSeconds)
    return max(mean, rules.slowestPace)
  }
}
