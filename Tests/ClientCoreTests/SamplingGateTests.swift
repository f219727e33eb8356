// Which fixes are sent by the hub's advice, in the gate by itself and in a client.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubClientCore

private func fix(_ seconds: Double, meters: Double = 0) -> Fix {
  Fix(
    coordinate: LocalPlane(origin: Coordinate(latitude: 48, longitude: 11)!).coordinate(
      eastMeters: meters, northMeters: 0),
    timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(seconds * 1000)), accuracy: 5)
}

private let advice = Connected.Sampling(interval: 4, minDistance: 10)

@Suite struct SamplingGateTests {
  /// The seconds at which fixes go out, of one a second.
  private func sent(_ advice: Connected.Sampling?, speed: Double, seconds: Int = 130) -> [Int] {
    var gate = SamplingGate()
    return (0...seconds).filter { gate.takes(fix(Double($0), meters: speed * Double($0)), by: advice) }
  }

  @Test("a driver that drives sends at the interval")
  func driving() {
    #expect(sent(advice, speed: 10, seconds: 20) == [0, 4, 8, 12, 16, 20])
    #expect(sent(Connected.Sampling(interval: 30, minDistance: 0), speed: 10) == [0, 27, 54, 81, 108], "a tenth early")
  }

  @Test("without advice everything is sent")
  func none() {
    #expect(sent(nil, speed: 0, seconds: 5) == [0, 1, 2, 3, 4, 5])
  }

  @Test("a slow driver sends when it has moved far enough, one that stands every 30 s or 2 intervals")
  func standing() {
    #expect(sent(advice, speed: 1.01, seconds: 30) == [0, 10, 20, 30])
    #expect(sent(advice, speed: 0) == [0, 27, 54, 81, 108])
    #expect(sent(Connected.Sampling(interval: 60, minDistance: 10), speed: 0, seconds: 300) == [0, 108, 216])
    #expect(
      sent(Connected.Sampling(interval: 60, minDistance: 0), speed: 0, seconds: 300) == [0, 54, 108, 162, 216, 270])
  }

  @Test(
    "no driver that follows the advice is silent for as long as makes it offline", arguments: [2.0, 4, 8, 30, 120, 300])
  func neverStale(interval: Double) {
    for minDistance in [0, 10.0] {
      let times = sent(Connected.Sampling(interval: interval, minDistance: minDistance), speed: 0, seconds: 4000)
      let longest = zip(times.dropFirst(), times).map { $0 - $1 }.max() ?? .max
      #expect(Double(longest) < max(60, 2.5 * interval))
    }
  }

  @Test("phones that do not measure on the beat send as often as others")
  func jitter() {
    var gate = SamplingGate()
    var chance = SplitMix64(seed: 3)
    var count = 0
    for second in 0..<400 {
      let late = Double.random(in: -0.15...0.15, using: &chance)
      if gate.takes(fix(Double(second) + late, meters: Double(second) * 15), by: advice) { count += 1 }
    }
    #expect(count == 100)
  }

  @Test("a clock that is set back does not silence it")
  func clockSetBack() {
    var gate = SamplingGate()
    let first = gate.takes(fix(10_000), by: advice)
    let second = gate.takes(fix(5), by: advice)
    let third = gate.takes(fix(6), by: advice)
    #expect(first && second && !third)
  }

  @Test("a client follows the advice where configured, as it changes, and sends the first fix of a trip at once")
  func client() throws {
    let stage = try Stage { $0.followsSampling = true }
    try stage.open(rate: 0)
    #expect(stage.session.sampling == Connected.Sampling(interval: 4, minDistance: 10))
    for second in 0..<9 { stage.session.send(fix(Double(second), meters: Double(second) * 10)) }
    try stage.flush()
    #expect(stage.fixTimes.count == 3 && stage.session.counters.fixesLeftOut == 6)
    stage.say(.sampling(SamplingAdvice(interval: 2, minDistance: 0, reason: .watched)))
    #expect(stage.session.sampling == Connected.Sampling(interval: 2, minDistance: 0))
    for second in 9..<13 { stage.session.send(fix(Double(second), meters: 80)) }
    try stage.flush()
    #expect(stage.fixTimes.count == 5)
    let isSent = stage.session.send(fix(12.5), trip: Identifier("T1"))
    let isNext = stage.session.send(fix(13), trip: Identifier("T1"))
    #expect(isSent && !isNext)
  }

  @Test("a client that does not follow advice sends everything")
  func unconditional() throws {
    let stage = try Stage()
    try stage.open(rate: 0)
    for second in 0..<9 { stage.session.send(fix(Double(second))) }
    try stage.flush()
    #expect(stage.fixTimes.count == 9 && stage.session.counters.fixesLeftOut == 0)
  }
}
