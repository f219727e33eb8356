import HubTestSupport
import Testing

@testable import HubCore

@Suite("The latency of a phone's speed")
struct SpeedLatencyTests {
  /// Accelerates and brakes, a second a step, with a speed that is `late` seconds late, and says how far ahead each fix
  /// lies of what the reported speeds lead to.
  private func drive(late: Double, steps: Int, every dt: Double = 1, noise: Double = 0) -> SpeedLatency {
    var random = SplitMix64(seed: 7)
    var latency = SpeedLatency()
    func speed(_ time: Double) -> Double {
      let phase = (time / 20).truncatingRemainder(dividingBy: 1)
      return 10 + (phase < 0.5 ? phase : 1 - phase) * 30
    }
    for step in 1...steps {
      let time = Double(step) * dt
      let measured = latency.corrected(Float(speed(time - late)), after: dt)
      let ahead = (speed(time) - measured) * dt + random.normals().x * noise
      latency.learn(ahead: ahead, variance: noise * noise + 0.1, after: dt)
    }
    return latency
  }

  @Test("It is found in minutes, also where positions are noisy", arguments: [0, 0.2, 0.5, 0.9])
  func found(late: Double) {
    #expect(abs(Double(drive(late: late, steps: 300).seconds) - late) < 0.15)
    #expect(abs(Double(drive(late: late, steps: 1200, noise: 0.5).seconds) - late) < 0.2)
  }

  @Test("It is never negative and never more than a second", arguments: [-2.0, 5])
  func bounds(late: Double) {
    #expect(drive(late: late, steps: 200).seconds == (late < 0 ? 0 : 1))
  }

  @Test("Fixes that are far between say nothing of it, and a gap in the speeds nothing of the acceleration")
  func sparse() {
    #expect(drive(late: 0.5, steps: 200, every: 5).seconds == 0)
    var latency = drive(late: 0.5, steps: 120)
    latency.skip(speed: .nan)
    #expect(latency.corrected(20, after: 1) == 20)
    #expect(latency.corrected(21, after: 1) > 21.3)
    #expect(latency.corrected(22, after: 60) == 22)
  }
}
