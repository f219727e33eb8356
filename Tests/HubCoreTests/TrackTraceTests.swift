import Foundation
import HubGeo
import HubMessages
import Testing

@testable import HubCore

@Suite("Real drives")
struct TrackTraceTests {
  /// Errors in metres against the truth, of all fixes, and of what a passenger's map shows at their times: the newest
  /// published position.
  private struct Errors {
    var raw: [Double] = []
    var shown: [Double] = []
    var insideStated = 0
    var published = 0

    var meanRatio: Double { (shown.reduce(0, +) / Double(shown.count)) / (raw.reduce(0, +) / Double(raw.count)) }

    func percentileRatio(_ part: Double) -> Double {
      func percentile(_ values: [Double]) -> Double { values.sorted()[Int(Double(values.count - 1) * part)] }
      return percentile(shown) / percentile(raw)
    }
  }

  private func errors(of trace: TruthTrace) -> Errors {
    var errors = Errors()
    var tracker = Tracker()
    var shown: Coordinate?
    for (fix, truth) in zip(trace.fixes, trace.truth) {
      if let position = tracker.update(fix).position {
        shown = position.coordinate
        errors.published += 1
        errors.insideStated += Globe.distance(position.coordinate, truth) <= position.accuracy ? 1 : 0
      }
      errors.raw.append(Globe.distance(fix.coordinate, truth))
      if let shown { errors.shown.append(Globe.distance(shown, truth)) }
    }
    return errors
  }

  // The bounds are what the filter reaches now, rounded up: they catch what makes it worse.
  @Test(
    "The error against the truth does not grow",
    arguments: [
      ("spp_mixed_20210428_pixel5_a", 0.36, 0.35),
      ("phone_hwy_20200514_pixel4", 1.0, 0.98),
      ("phone_hwy_20200514_pixel4xl", 0.98, 0.99),
      ("ubx_10hz_hwy_20180802_comma", 1.0, 1.01),
      ("wls_urban_sjc_20210429", 1.0, 0.93),
    ])
  func ratios(name: String, mean: Double, p95: Double) throws {
    guard let trace = TruthTrace(name) else {
      print("skipped: ../shared/data/traces/\(name).csv is not there")
      return
    }
    let errors = errors(of: trace)
    #expect(errors.meanRatio <= mean, "mean: \(errors.meanRatio) of raw")
    #expect(errors.percentileRatio(0.95) <= p95, "p95: \(errors.percentileRatio(0.95)) of raw")
    #expect(errors.published == trace.fixes.count)
  }

  @Test("The bad phone's stated accuracy is honest: near 68 % of its positions lie within it")
  func honest() throws {
    guard let trace = TruthTrace("spp_mixed_20210428_pixel5_a") else {
      print("skipped: ../shared/data/traces/spp_mixed_20210428_pixel5_a.csv is not there")
      return
    }
    let errors = errors(of: trace)
    let part = Double(errors.insideStated) / Double(errors.published)
    #expect((0.55...0.8).contains(part), "\(part)")
  }
}
