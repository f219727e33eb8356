// How late a phone's speed is: learnt from its positions, so that it can be taken off.
//
// Receivers smooth the speed they report, and phones more than others: of the drives with known truth one phone's speed
// is 0.25 s behind its positions, another's 0.6 s, a bare receiver's not at all. While the speed changes, a late speed
// is wrong by acceleration × latency, metres by the end of a braking; and no noise model is right about that, for it
// repeats itself. But it shows: each step then leaves the position behind by acceleration × latency × step. So the
// latency is a regression of the along-track innovation on the change of speed (recursive least squares, e.g.
// Bar-Shalom et al. (2001), §3.5).

/// One driver's latency of speed. 20 bytes.
struct SpeedLatency: Sendable {
  /// Seconds, 0…`longest`, and its variance. Of a phone that is not known yet 0 ± 0.3.
  private(set) var seconds: Float = 0
  private var variance: Float = 0.09
  /// m/s², over the last second; and the speed it was taken from, NaN where the fix before had none.
  private var acceleration: Float = 0
  private var lastSpeed = Float.nan

  private static let longest: Float = 1

  init() {}

  /// Of a phone that is known: what was learnt of it, as open to change as at first.
  init(learned seconds: Float) { self.seconds = seconds }

  /// s² a second: a phone may change its mind.
  private static let wander: Float = 25e-6
  /// Harder changes of speed are errors: m/s².
  private static let hardest: Float = 4
  /// Seconds between two speeds, above which their difference says nothing of the acceleration now.
  private static let longestStep: Float = 2.1

  /// The speed now, by a measured one that came `dt` seconds after the last fix.
  @inline(__always) mutating func corrected(_ speed: Float, after dt: Double) -> Double {
    let step = Float(dt)
    if step > 0, step <= SpeedLatency.longestStep, !lastSpeed.isNaN {
      let now = min(max((speed - lastSpeed) / step, -SpeedLatency.hardest), SpeedLatency.hardest)
      acceleration += (now - acceleration) * min(1, step)
    } else {
      acceleration = 0
    }
    lastSpeed = speed
    return Double(max(0, speed + seconds * acceleration))
  }

  /// There was no speed to correct.
  @inline(__always) mutating func skip(speed: Float) {
    acceleration = 0
    lastSpeed = speed
  }

  /// Learns from how far a fix lies ahead of where it was expected, along the track, and the variance of that.
  @inline(__always) mutating func learn(ahead: Double, variance ofAhead: Double, after dt: Double) {
    guard acceleration != 0 else { return }
    let step = Float(dt)
    let h = acceleration * step
    let gain = variance * h / (h * h * variance + Float(ofAhead))
    seconds = min(max(seconds + gain * Float(ahead), 0), SpeedLatency.longest)
    variance = variance * (1 - gain * h) + SpeedLatency.wander * step
  }
}
