import HubTestSupport
import Testing

@testable import HubCore

@Suite("The latencies of a phone's speed and bearing")
struct VelocityLatencyTests {
  private static let east = SIMD2(1.0, 0)

  /// Accelerates and brakes along the course, or to its right, a second a step, with a velocity that is `late` seconds
  /// late, and says how far off each fix lies from where the reported velocities lead.
  private func drive(
    late: Double, isAcross: Bool = false, steps: Int, every dt: Double = 1, noise: Double = 0
  ) -> VelocityLatency {
    var random = SplitMix64(seed: 7)
    var latency = VelocityLatency()
    func velocity(_ time: Double) -> SIMD2<Double> {
      let phase = (time / 20).truncatingRemainder(dividingBy: 1)
      let change = (phase < 0.5 ? phase : 1 - phase) * 30
      return isAcross ? SIMD2(10, -change) : SIMD2(10 + change, 0)
    }
    for step in 1...steps {
      let time = Double(step) * dt
      let measured = SIMD2<Float>(velocity(time - late))
      let corrected = latency.corrected(measured, course: VelocityLatencyTests.east, after: dt)
      // The correction takes the direction of the course for granted: what it adds is compared by itself.
      let added = corrected - latency.uncorrected(course: VelocityLatencyTests.east)
      let off = (velocity(time) - SIMD2<Double>(measured) - added) * dt + random.normals() * noise
      latency.learn(off, course: VelocityLatencyTests.east, variance: noise * noise + 0.1, after: dt)
    }
    return latency
  }

  @Test("They are found in minutes, also where positions are noisy", arguments: [0, 0.2, 0.5, 0.9], [false, true])
  func found(late: Double, isAcross: Bool) {
    func learned(_ latency: VelocityLatency) -> Double {
      Double(isAcross ? latency.bearing.seconds : latency.speed.seconds)
    }
    #expect(abs(learned(drive(late: late, isAcross: isAcross, steps: 300)) - late) < 0.15)
    #expect(abs(learned(drive(late: late, isAcross: isAcross, steps: 1200, noise: 0.5)) - late) < 0.2)
  }

  @Test("They are never negative and never more than a second", arguments: [-2.0, 5])
  func bounds(late: Double) {
    #expect(drive(late: late, steps: 200).speed.seconds == (late < 0 ? 0 : 1))
    #expect(drive(late: late, isAcross: true, steps: 200).bearing.seconds == (late < 0 ? 0 : 1))
  }

  @Test("Fixes that are far between say nothing of it, and a gap in the speeds nothing of the acceleration")
  func sparse() {
    #expect(drive(late: 0.5, steps: 200, every: 5).speed.seconds == 0)
    var latency = drive(late: 0.5, steps: 120)
    func corrected(_ speed: Float, after dt: Double) -> Double {
      latency.corrected(SIMD2(speed, 0), course: VelocityLatencyTests.east, after: dt).x
    }
    latency.skip()
    #expect(corrected(20, after: 1) == 20)
    #expect(corrected(21, after: 1) > 21.3)
    #expect(corrected(22, after: 60) == 22)
  }
}

extension VelocityLatency {
  /// The last measured velocity as if it went in the direction of `course`.
  fileprivate func uncorrected(course: SIMD2<Double>) -> SIMD2<Double> {
    course * Double((last * last).sum().squareRoot())
  }
}
