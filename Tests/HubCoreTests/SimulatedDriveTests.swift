import HubGeo
import HubMessages
import Testing

@testable import HubCore

/// Drives that no parameter was chosen by.
@Suite("Simulated drives with known truth")
struct SimulatedDriveTests {
  @Test("A good phone gets no worse, and is smoother to look at", arguments: 1...6 as ClosedRange<UInt64>)
  func goodPhone(seed: UInt64) {
    let judged = TrackJudgement(SimulatedDrive(seed: seed, seconds: 1200).fixes(PhoneErrors(), seed: seed))
    #expect(judged.meanRatio < 1.02, "\(judged.meanRatio)")
    #expect(judged.jitterRatio < 0.8, "\(judged.jitterRatio)")
    #expect(judged.speedError < 0.2, "\(judged.speedError)")
  }

  @Test(
    "Of a bad phone's error more than half goes, and a standstill stays one", arguments: 1...6 as ClosedRange<UInt64>)
  func badPhone(seed: UInt64) {
    let judged = TrackJudgement(SimulatedDrive(seed: seed, seconds: 1200).fixes(.bad, seed: seed))
    #expect(judged.meanRatio < 0.45, "\(judged.meanRatio)")
    #expect(judged.jitterRatio < 0.1, "\(judged.jitterRatio)")
    #expect(judged.phantomPerMinute < 60, "\(judged.phantomPerMinute)")
    #expect(judged.published == judged.shown.count)
  }

  @Test(
    "With outliers and gaps it is hardly worse than clean fixes, and each fix makes a position",
    arguments: [1.0, 4])
  func outliersAndGaps(every: Double) {
    var ratios: [Double] = []
    for seed in 1...5 as ClosedRange<UInt64> {
      let drive = SimulatedDrive(seed: seed, seconds: 2400)
      let clean = TrackJudgement(drive.fixes(PhoneErrors(), every: every, seed: seed))
      let samples = drive.fixes(PhoneErrors(outliers: 0.03, gaps: 0.01), every: every, seed: seed)
      let judged = TrackJudgement(samples)
      #expect(judged.published == samples.count)
      ratios.append(judged.mean / clean.rawMean)
      // The worst are outliers right behind a gap, which nothing speaks against but the fixes that follow.
      #expect(judged.shown.count { $0 > 100 } <= 4)
    }
    ratios.sort()
    #expect(ratios[2] < (every == 1 ? 1.1 : 1.3) && ratios[4] < 3.5, "\(ratios)")
  }

  @Test("A speed that comes late is brought forward", arguments: [0.0, 0.3, 0.6])
  func latency(seconds: Double) {
    let drive = SimulatedDrive(seed: 9, seconds: 1200)
    let judged = TrackJudgement(drive.fixes(PhoneErrors(latency: seconds), seed: 4))
    #expect(abs(Double(judged.tracker.filter!.latency.speed.seconds) - seconds) < 0.25)
    #expect(judged.speedRatio < (seconds == 0 ? 1.5 : 0.8), "\(judged.speedRatio)")
    #expect(judged.meanRatio < 1.03)
  }

  @Test("A bad phone's noise is no latency")
  func noLatency() {
    let judged = TrackJudgement(SimulatedDrive(seed: 3, seconds: 1200).fixes(.bad, seed: 5))
    #expect(judged.tracker.filter!.latency.speed.seconds < 0.2)
  }

  @Test(
    "The stated accuracy holds the truth with about 68 %, whatever the phone", arguments: 1...4 as ClosedRange<UInt64>)
  func honest(seed: UInt64) {
    let drive = SimulatedDrive(seed: seed, seconds: 2400)
    // Phones that state what they have, half of it drifting as slowly as satellites do; and one that overrates itself.
    let fair = PhoneErrors(drift: 2, white: 2, stated: 4.3)
    let inside = TrackJudgement(drive.fixes(fair, seed: seed)).insideShare
    #expect((0.5...0.9).contains(inside), "\(inside)")
    let bad = TrackJudgement(drive.fixes(.bad, seed: seed)).insideShare
    #expect((0.5...0.95).contains(bad), "\(bad)")
  }

  @Test(
    "It works from ten fixes a second to one in two minutes, with and without speed and accuracy",
    arguments: [0.1, 0.5, 2, 10, 30, 120], [true, false])
  func rates(every: Double, hasMotion: Bool) {
    let drive = SimulatedDrive(seed: 21, seconds: 6000)
    for stated in [4, nil] as [Double?] {
      let errors = PhoneErrors(white: 2, stated: stated, hasMotion: hasMotion)
      let judged = TrackJudgement(drive.fixes(errors, every: every, seed: 2))
      #expect(judged.published == judged.shown.count)
      #expect(judged.meanRatio < 1.25, "\(judged.meanRatio), accuracy \(stated ?? -1)")
    }
  }
}
