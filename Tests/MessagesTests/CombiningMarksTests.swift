// Texts that would cost the square of their length, were they compared as Swift compares texts.
import HubTestSupport
import Testing

@testable import HubMessages

// With that they would take minutes.
@Suite struct CombiningMarksTests {
  @Test("A channel that is none: the answer says what was expected", arguments: ["", ":", ":1"])
  func channel(end: String) {
    let name = combiningMarks(bytes: 200_000) + end
    let other = Array("stats.".utf8).withUnsafeBytes { "\(Channel.expectation(of: $0))" }
    let seconds = processorSeconds {
      let found = Array(name.utf8).withUnsafeBytes { "\(Channel.expectation(of: $0))" }
      #expect(found == other)
    }
    #expect(seconds < 30)
  }

  @Test("A phone's parameters")
  func parameters() {
    let long = combiningMarks(bytes: 200_000)
    let seconds = processorSeconds {
      let report = PhoneReport(
        osmAnd: [
          (long, "1"), ("id", long), ("device_id", long), ("lat", "1"), ("lon", "2"), ("location", long),
          ("speed", "1"), ("speed_unit", long), ("timestamp", long), (long, long),
        ], now: Timestamp(milliseconds: 0))
      #expect(report.deviceIDs.count == 1 && report.fixes.count == 1)
    }
    #expect(seconds < 30)
  }
}
