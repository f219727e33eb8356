// Places that are far off where little or nothing is known of the motion: behind gaps, and at a drive's start.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite("Outliers behind gaps, and at the start of a drive")
struct TrackGapTests {
  @Test("A first fix that is an outlier is left as soon as two others agree", arguments: [0, nil] as [Double?])
  func firstOutlier(late: Double?) {
    let road = Way(speed: 14, [.init(seconds: 60)])
    for seed in 1...4 as ClosedRange<UInt64> {
      var samples = road.fixes(seed: seed, late: late)
      samples[0].fix.coordinate = Globe.place(from: samples[0].truth, bearing: 200, meters: 400).place
      let shown = TrackJudgement(samples).shown
      #expect(shown[3] < 10, "\(shown[...4])")
    }
  }

  @Test("A first fix that is an outlier is left 4 s after the next, parked or driving off", arguments: [1, 4.0])
  func firstOutlierAtRest(every: Double) {
    let parked = Way(speed: 0, [.init(seconds: 60)])
    let start = Way(speed: 0, [.init(seconds: 1), .init(seconds: 10, acceleration: 2), .init(seconds: 20)])
    for seed in 1...4 as ClosedRange<UInt64> {
      for way in [parked, start] {
        var samples = way.fixes(every: every, seed: seed)
        samples[0].fix.coordinate = Globe.place(from: samples[0].truth, bearing: 200, meters: 300).place
        let shown = TrackJudgement(samples).shown
        #expect(shown[1 + Int(4 / every)] < 10, "\(shown[...6])")
      }
    }
  }

  @Test("An outlier right behind a gap says nothing of the fix behind it: where it was is not known anyway")
  func outlierBehindGap() {
    let way = Way(speed: 22, [.init(seconds: 60), .init(seconds: 20, turn: 3), .init(seconds: 100)])
    for seed in 1...4 as ClosedRange<UInt64> {
      var samples = way.fixes(every: 4, seed: seed)
      samples[29].fix.coordinate = Globe.place(from: samples[29].truth, bearing: 0, meters: 3000).place
      samples.removeSubrange(14..<29)
      let shown = TrackJudgement(samples).shown
      #expect(shown[15] < 10, "\(shown[13...16])")
    }
  }

  @Test("An outlier right behind a gap is taken back when the next fix comes")
  func doubt() throws {
    let road = Way(speed: 14, [.init(seconds: 120)])
    for seed in 1...4 as ClosedRange<UInt64> {
      var samples = road.fixes(seed: seed)
      let (place, bearing) = (samples[90].truth, 130.0)
      samples[90].fix.coordinate = Globe.place(from: place, bearing: bearing, meters: 45).place
      samples.removeSubrange(60..<90)
      let shown = TrackJudgement(samples).shown
      #expect(shown[61] < 10 && shown[62] < 8, "\(shown[60...63])")
    }
  }

  @Test("A place behind a gap that no usual driving leads to is refused, and one that usual driving leads to is not")
  func outlierBeyondReach() {
    // A gap of 56 s, in which it turns off, or waits at a light.
    let turn = Way(speed: 20, [.init(seconds: 60), .init(seconds: 10, turn: 4.5), .init(seconds: 110)])
    let light = Way(
      speed: 14,
      [
        .init(seconds: 62), .init(seconds: 7, acceleration: -2), .init(seconds: 15), .init(seconds: 7, acceleration: 2),
        .init(seconds: 89),
      ])
    for seed in 1...4 as ClosedRange<UInt64> {
      for (way, bearing) in [(turn, 130.0), (light, 130), (light, 310)] {
        var samples = way.fixes(every: 4, seed: seed)
        samples.removeSubrange(16..<29)
        #expect(TrackJudgement(samples).shown[16...].max()! < 10)
        samples[16].fix.coordinate = Globe.place(from: samples[16].truth, bearing: bearing, meters: 1200).place
        let shown = TrackJudgement(samples).shown
        #expect(shown[16] < 500 && shown[17] < 10, "\(shown[15...18])")
      }
    }
  }

  @Test("Behind a gap on a fast, straight road, a place far to the side is refused, and where a motorway leads is not")
  func outlierAside() {
    // Gaps of 40 s: straight; with a bend to the right and back; braking to 10 m/s and on; turning off for good.
    let ways = [
      Way(speed: 28, [.init(seconds: 180)]),
      Way(
        speed: 28,
        [.init(seconds: 64), .init(seconds: 8, turn: 2), .init(seconds: 8, turn: -2), .init(seconds: 100)]),
      Way(
        speed: 28,
        [
          .init(seconds: 64), .init(seconds: 9, acceleration: -2), .init(seconds: 9, acceleration: 2),
          .init(seconds: 98),
        ]),
      Way(speed: 28, [.init(seconds: 64), .init(seconds: 20, turn: 2), .init(seconds: 96)]),
    ]
    for seed in 1...4 as ClosedRange<UInt64> {
      for (number, way) in ways.enumerated() {
        var samples = way.fixes(every: 4, seed: seed)
        samples.removeSubrange(16..<25)
        #expect(TrackJudgement(samples).shown[16...].max()! < 10, "\(number)")
        guard number == 0 else { continue }
        // The road leads to 40°.
        samples[16].fix.coordinate = Globe.place(from: samples[16].truth, bearing: 130, meters: 300).place
        let shown = TrackJudgement(samples).shown
        #expect(shown[16] < 40 && shown[17] < 10, "\(shown[15...18])")
      }
    }
  }

  @Test("An outlier right before a gap says nothing of the fix behind it")
  func outlierBeforeGap() {
    let way = Way(speed: 22, [.init(seconds: 60), .init(seconds: 10, acceleration: -2.2), .init(seconds: 50)])
    for seed in 1...4 as ClosedRange<UInt64> {
      var samples = way.fixes(every: 4, seed: seed)
      samples[14].fix.coordinate = Globe.place(from: samples[14].truth, bearing: 60, meters: 500).place
      samples.removeSubrange(15..<27)
      let shown = TrackJudgement(samples).shown
      #expect(shown[14] < 10 && shown[15] < 10, "\(shown[13...16])")
    }
  }

  @Test("Where fixes are rare, none behind a hard turn or a stop is taken for an outlier", arguments: [30.0, 60, 120])
  func rareFixes(every: Double) {
    for seed in 1...4 as ClosedRange<UInt64> {
      let drive = SimulatedDrive(seed: seed, seconds: 6000)
      let ratio = TrackJudgement(drive.fixes(PhoneErrors(white: 2), every: every, seed: seed)).meanRatio
      #expect(ratio < 1.01, "\(seed): \(ratio)")
    }
  }
}
