// One simulated drive for each way in which a filter came out worse than the fixes themselves: seeded, with its truth.
import Foundation
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite("Phones that lie, and drives that a filter leaves the road on")
struct LyingPhoneTests {
  private static let town = SimulatedDrive(seed: 31, seconds: 1500)

  private static func good(_ seed: UInt64, _ change: (inout Fix, inout SplitMix64) -> Void) -> TrackJudgement {
    var random = SplitMix64(seed: seed)
    var samples = town.fixes(PhoneErrors(), seed: seed)
    for index in samples.indices { change(&samples[index].fix, &random) }
    return TrackJudgement(samples)
  }

  // 1. Innovations that go together are the model's error.

  @Test("A long bend without a speed: 30 m/s, r = 300 m", arguments: [0.3, 1, 3])
  func bendByPlaces(white: Double) {
    let bend = Way(speed: 30, [.init(seconds: 30), .init(seconds: 120, turn: 30 / 300.0 * 180 / .pi)])
    let ratios = (1...20 as ClosedRange<UInt64>).map {
      TrackJudgement(bend.fixes(seed: $0, late: nil, white: white)).meanRatio
    }
    // How far a phone drifts in these two minutes is chance, and no filter sees it.
    let most = white < 1 ? 1.0 : white > 1 ? 0.9 : 0.97
    #expect(ratios.reduce(0, +) / 20 <= most && ratios.max()! <= 1.02, "\(ratios)")
  }

  @Test("A turn is not carried on past its end, nor made of scatter on a straight road", arguments: [0.3, 1, 3])
  func turnsThatEnd(white: Double) {
    let curves = [Way.Stretch](
      repeating: .init(seconds: 8, turn: 6), count: 6
    ).flatMap { [$0, .init(seconds: 8, turn: -$0.turn)] }
    for way in [Way(speed: 25, [.init(seconds: 20)] + curves), Way(speed: 22, [.init(seconds: 150)])] {
      let ratios = (1...20 as ClosedRange<UInt64>).map {
        TrackJudgement(way.fixes(seed: $0, late: nil, white: white)).meanRatio
      }
      #expect(ratios.reduce(0, +) / 20 <= 1.015, "\(ratios)")
    }
  }

  // 2. Bearings are late, too.

  @Test("A long bend with a speed and a bearing that are half a second late", arguments: 1...4 as ClosedRange<UInt64>)
  func lateBend(seed: UInt64) {
    let bend = Way(speed: 30, [.init(seconds: 30), .init(seconds: 120, turn: 30 / 300.0 * 180 / .pi)])
    let judged = TrackJudgement(bend.fixes(seed: seed, late: 0.5))
    #expect(judged.meanRatio <= 1.1, "\(judged.meanRatio)")
  }

  // 3. Velocities that contradict the places.

  @Test("A bearing that is always 0", arguments: 1...3 as ClosedRange<UInt64>)
  func bearingZero(seed: UInt64) {
    let ratio = LyingPhoneTests.good(seed) { fix, _ in fix.heading = 0 }.meanRatio
    #expect(ratio < 1.1, "\(ratio)")
  }

  @Test("A compass that is 15° off", arguments: 1...3 as ClosedRange<UInt64>)
  func compass(seed: UInt64) {
    let ratio = LyingPhoneTests.good(seed) { fix, _ in
      fix.heading = fix.heading.map { ($0 + 15).truncatingRemainder(dividingBy: 360) }
    }.meanRatio
    #expect(ratio < 1.1, "\(ratio)")
  }

  @Test("Kilometres an hour for metres a second", arguments: 1...3 as ClosedRange<UInt64>)
  func kilometres(seed: UInt64) {
    let ratio = LyingPhoneTests.good(seed) { fix, _ in fix.speed = fix.speed.map { $0 * 3.6 } }.meanRatio
    #expect(ratio < 1.1, "\(ratio)")
  }

  @Test("Bearings with 10° of white noise", arguments: 1...3 as ClosedRange<UInt64>)
  func whiteBearing(seed: UInt64) {
    let ratio = LyingPhoneTests.good(seed) { fix, random in
      fix.heading = fix.heading.map { ($0 + random.normals().x * 10 + 720).truncatingRemainder(dividingBy: 360) }
    }.meanRatio
    #expect(ratio < 1.1, "\(ratio)")
  }

  @Test("A velocity in thirty that is wild, with a fix every 5 s", arguments: 1...6 as ClosedRange<UInt64>)
  func wildVelocities(seed: UInt64) {
    let errors = PhoneErrors(drift: 1.5, white: 1, velocity: 0.2, stated: 5, wild: 0.03)
    let ratio = TrackJudgement(LyingPhoneTests.town.fixes(errors, every: 5, seed: seed)).meanRatio
    #expect(ratio < 1.2, "\(ratio)")
  }

  @Test("A compass that is 15° off, and one with 10° of noise, with a fix every 5 s", arguments: [15.0, 0])
  func sparseCompass(offset: Double) {
    for seed in 1...4 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      var samples = LyingPhoneTests.town.fixes(PhoneErrors(), every: 5, seed: seed)
      for index in samples.indices {
        let noise = offset == 0 ? random.normals().x * 10 : offset
        samples[index].fix.heading = samples[index].fix.heading.map {
          ($0 + noise + 720).truncatingRemainder(dividingBy: 360)
        }
      }
      let ratio = TrackJudgement(samples).meanRatio
      #expect(ratio < 2, "\(seed): \(ratio)")
    }
  }

  @Test("A phone that states 20 m and is right to one", arguments: [true, false])
  func overstated(hasMotion: Bool) {
    for seed in 1...6 as ClosedRange<UInt64> {
      let errors = PhoneErrors(white: 0.5, stated: 20, hasMotion: hasMotion)
      let ratio = TrackJudgement(SimulatedDrive(seed: seed, seconds: 1500).fixes(errors, seed: seed + 17)).meanRatio
      #expect(ratio <= 1.02, "\(seed): \(ratio)")
    }
  }

  // 4. Stale fixes and reflections; outliers and gaps: `TrackGapTests`.

  /// On a straight road, from second 80 on, places are off to the right by so many metres: the largest error from then
  /// on.
  private func reflected(_ meters: [Double], white: Double, stated: Double, seed: UInt64) -> Double {
    var samples = Way(speed: 8, [.init(seconds: 120)]).fixes(seed: seed, white: white, stated: stated)
    for (index, off) in zip(80..., meters) {
      samples[index].fix.coordinate = Globe.place(from: samples[index].truth, bearing: 130, meters: off).place
    }
    return TrackJudgement(samples).shown[80...].max()!
  }

  @Test("Twelve places in a row that are off to the same side, of a phone that is 5 m off, are one reflection")
  func reflections() {
    let errors = (1...20 as ClosedRange<UInt64>)
      .map { reflected([Double](repeating: 18, count: 12), white: 5, stated: 4.7, seed: $0) }.sorted()
    #expect(errors[10] < 8.7, "\(errors)")
  }

  @Test("Refused places that creep away do not agree, where Doppler tells of the motion")
  func creeping() {
    for seed in 1...4 as ClosedRange<UInt64> {
      let error = reflected([40, 53, 66], white: 0.3, stated: 4, seed: seed)
      #expect(error < 5, "\(error)")
    }
  }

  @Test("By places only, of a phone that is 10 m off and says nothing of it, the track is not left for long")
  func noisyPlaces() {
    let errors = PhoneErrors(drift: 5, driftSeconds: 20, white: 10, stated: nil, hasMotion: false)
    let judged = (1...8 as ClosedRange<UInt64>).map {
      TrackJudgement(SimulatedDrive(seed: $0, seconds: 1200).fixes(errors, seed: $0))
    }
    let worst = judged.map { zip($0.shown, $0.raw).map { $0 - $1 }.max()! }
    #expect(judged.map(\.meanRatio).max()! < 0.9 && worst.max()! < 80, "\(judged.map(\.meanRatio)), \(worst)")
  }

  @Test("What a phone's noise is shows within half a minute", arguments: [true, false])
  func noiseLearned(hasSpeed: Bool) {
    let road = Way(speed: 14, [.init(seconds: 30)])
    for seed in 1...4 as ClosedRange<UInt64> {
      let judged = TrackJudgement(road.fixes(seed: seed, late: hasSpeed ? 0 : nil))
      #expect(judged.tracker.filter!.noiseScale < 0.09, "\(judged.tracker.filter!.noiseScale)")
    }
  }

  @Test("Places that stand still in a tunnel of 40 s", arguments: [true, false])
  func frozen(hasSpeed: Bool) {
    let road = Way(speed: 22, [.init(seconds: 140)])
    for seed in 1...4 as ClosedRange<UInt64> {
      var samples = road.fixes(seed: seed, late: hasSpeed ? 0 : nil)
      for index in 61..<100 { samples[index].fix.coordinate = samples[60].fix.coordinate }
      let shown = TrackJudgement(samples).shown
      #expect(shown[99] <= 60 && shown[105] < 10, "\(shown[99]), \(shown[105])")
    }
  }

  @Test("Two fixes in a hundred are a second stale", arguments: 1...4 as ClosedRange<UInt64>)
  func stale(seed: UInt64) {
    let clean = LyingPhoneTests.town.fixes(PhoneErrors(), seed: seed)
    var random = SplitMix64(seed: seed)
    var samples = clean
    for index in 1..<samples.count where random.chance(0.02) {
      samples[index].fix.coordinate = clean[index - 1].fix.coordinate
    }
    let judged = TrackJudgement(samples)
    #expect(judged.meanRatio <= 1, "\(judged.meanRatio)")
    #expect(judged.shown.max()! < 8)
  }

  // 5. Braking, trains, jumps.

  @Test("Hard braking: 6 m/s² from 30 m/s", arguments: [0, 0.3, nil] as [Double?])
  func braking(late: Double?) throws {
    let stop = Way(speed: 30, [.init(seconds: 30), .init(seconds: 25, acceleration: -6)])
    for seed in 1...4 as ClosedRange<UInt64> {
      let judged = TrackJudgement(stop.fixes(seed: seed, late: late))
      #expect(judged.shown[28...].max()! <= 4, "\(judged.shown[28...].max()!)")
    }
  }

  @Test("Hard braking by places only of a phone that states 0.8 m and is a metre or two off")
  func brakingOverrated() {
    let stop = Way(speed: 30, [.init(seconds: 30), .init(seconds: 25, acceleration: -6)])
    for seed in 1...9 as ClosedRange<UInt64> {
      let judged = TrackJudgement(stop.fixes(seed: seed, late: nil, stated: 0.8))
      #expect(judged.shown[28...].max()! <= 4, "\(seed): \(judged.shown[28...].max()!)")
    }
  }

  @Test("A train: 83 m/s with a place every 5 s is found by the third", arguments: 1...4 as ClosedRange<UInt64>)
  func train(seed: UInt64) {
    let line = Way(speed: 83, [.init(seconds: 150)])
    let judged = TrackJudgement(line.fixes(every: 5, seed: seed, late: nil))
    #expect(judged.shown[2...].max()! < 10, "\(judged.shown[2...].max()!)")
  }

  @Test(
    "Scattered places in a tunnel of 40 s, with and without a speed", arguments: 1...12 as ClosedRange<UInt64>,
    [true, false])
  func tunnel(seed: UInt64, hasSpeed: Bool) {
    let road = Way(speed: 22, [.init(seconds: 140)])
    var (samples, random) = (road.fixes(seed: seed, late: hasSpeed ? 0 : nil), SplitMix64(seed: seed + 50))
    for index in 60..<100 {
      let off = random.normals() * 200
      samples[index].fix.coordinate =
        Globe.place(
          from: samples[index].truth, bearing: atan2(off.x, off.y) * 180 / .pi, meters: (off * off).sum().squareRoot()
        ).place
    }
    let shown = TrackJudgement(samples).shown
    #expect(shown[99] <= 60 && shown[103] < 10, "\(shown[99]), \(shown[103])")
  }

  // 6. Parked, and the radius.

  @Test("A parked car is shown in one place while its fixes drift", arguments: 1...4 as ClosedRange<UInt64>)
  func parked(seed: UInt64) {
    let stop = Way(speed: 10, [.init(seconds: 30), .init(seconds: 10, acceleration: -2), .init(seconds: 600)])
    let judged = TrackJudgement(stop.fixes(seed: seed, white: 3, stated: 6))
    #expect(judged.phantomPerMinute < 6, "\(judged.phantomPerMinute)")
  }

  @Test(
    "Between houses, a phone that states no accuracy is not taken for one under open sky",
    arguments: [PhoneErrors.bad, PhoneErrors(drift: 6, driftSeconds: 30, white: 4), PhoneErrors(drift: 15, white: 9)],
    [true, false])
  func unstated(errors: PhoneErrors, hasMotion: Bool) {
    var errors = errors
    (errors.stated, errors.hasMotion) = (nil, hasMotion)
    let shares = (1...6 as ClosedRange<UInt64>).map {
      TrackJudgement(SimulatedDrive(seed: $0, seconds: 1200).fixes(errors, seed: $0)).insideShare
    }
    #expect(shares.reduce(0, +) / 6 >= 0.65, "\(shares)")
  }

  @Test("Under open sky, a phone that states no accuracy keeps its radius")
  func unstatedUnderOpenSky() throws {
    var tracker = Tracker()
    var last: Position?
    for second in 0..<60 { last = tracker.update(.at(Double(second), at(48, 11), accuracy: nil)).position }
    #expect(try #require(last).accuracy < 3.5)
  }

  @Test("An accuracy below a metre is believed, and no radius is below 0.55 of what is stated")
  func radius() throws {
    for stated in [0.3, 4, 20] {
      var tracker = Tracker()
      var last: Position?
      for second in 0..<60 { last = tracker.update(.at(Double(second), at(48, 11), accuracy: stated)).position }
      let accuracy = try #require(last).accuracy
      #expect(accuracy >= 0.55 * stated - 0.01 && accuracy < 1.2 * stated, "\(accuracy)")
    }
  }
}
