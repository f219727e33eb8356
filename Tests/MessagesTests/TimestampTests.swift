// The three time formats: RFC 3339's grammar and calendar, with Foundation as the judge of dates.
import Foundation
import HubBytes
import HubMessages
import HubTestSupport
import Testing

private func parsed(_ text: String) -> Int64? {
  Array(text.utf8).withUnsafeBytes { Timestamp(rfc3339: $0)?.milliseconds }
}

private func printed(_ milliseconds: Int64, _ format: TimeFormat) -> String {
  var buffer = ByteBuffer()
  buffer.append(Timestamp(milliseconds: milliseconds), as: format)
  return String(decoding: buffer.array(), as: UTF8.self)
}

@Suite struct Timestamps {
  @Test("RFC 3339 texts are read with any offset, fraction and case, and rounded to milliseconds")
  func rfc3339() {
    let cases: [(String, Int64)] = [
      ("1970-01-01T00:00:00Z", 0), ("1985-04-12T23:20:50.52Z", 482_196_050_520),
      ("1996-12-19T16:39:57-08:00", 851_042_397_000), ("1937-01-01T12:00:27.87+00:20", -1),
      ("1990-12-31T23:59:60Z", 662_688_000_000), ("1990-12-31T15:59:60-08:00", 662_688_000_000),
      ("2016-12-31T23:59:60.5Z", 1_483_228_800_500), ("2024-02-29T12:00:00z", 1_709_208_000_000),
      ("2025-11-20t23:06:40.1235Z", 1_763_680_000_124),
      ("2025-11-20T23:06:40.12349999999999999999Z", 1_763_680_000_123),
      ("2025-11-20T23:06:40.9995Z", 1_763_680_001_000), ("2025-11-21T04:36:40+05:30", 1_763_680_000_000),
      ("2025-11-20T23:06:40-00:00", 1_763_680_000_000), ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
      ("2000-02-29T00:00:00Z", 951_782_400_000),
    ]
    for (text, expected) in cases { #expect(parsed(text) == (expected < 0 ? nil : expected), "\(text)") }
  }

  @Test(
    "what is not RFC 3339, not in the calendar or out of range is refused",
    arguments: [
      "", "2025-11-20", "2025-11-20T23:06:40", "2025-11-20 23:06:40Z", "2025-11-20T23:06Z", "2025-11-20T23:06:40.Z",
      "2025-11-20T23:06:40,5Z", "2025-11-20T24:00:00Z", "2025-11-20T23:60:00Z", "2025-11-20T23:06:61Z",
      "2025-11-20T23:06:60Z", "2025-11-20T23:59:60Z", "2025-13-01T00:00:00Z", "2025-00-01T00:00:00Z",
      "2025-11-31T00:00:00Z",
      "2025-11-00T00:00:00Z", "2025-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2025-11-20T23:06:40+0530",
      "2025-11-20T23:06:40+05", "2025-11-20T23:06:40+24:00", "2025-11-20T23:06:40+05:60", "2025-11-20T23:06:40ZZ",
      "2025-11-20T23:06:40Z ", " 2025-11-20T23:06:40Z", "25-11-20T23:06:40Z", "+2025-11-20T23:06:40Z",
      "2025-11-20T23:06:4:Z", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00+00:01", "9999-12-31T23:59:59.9995Z",
      "9999-12-31T23:59:00-01:00", "2025/11/20T23:06:40Z", "2025-11-20T23-06-40Z", "20251120T230640Z0000000",
    ])
  func refused(_ text: String) {
    #expect(parsed(text) == nil)
  }

  @Test("dates agree with Foundation's calendar on 5,000 random days")
  func calendar() {
    var random = SplitMix64(seed: 6)
    for _ in 0..<5000 {
      let milliseconds = Int64.random(in: 0...253_402_300_799_999, using: &random)
      let date = Date(timeIntervalSince1970: Double(milliseconds / 1000))
      let seconds = date.formatted(.iso8601).dropLast()
      let fraction = String("\(1000 + milliseconds % 1000)".dropFirst())
      let text = "\(seconds).\(fraction)Z"
      #expect(printed(milliseconds, .rfc3339) == "\"\(text)\"")
      #expect(parsed(text) == milliseconds)
    }
  }

  @Test("what is written is read as the same time in every format")
  func roundTrip() {
    var random = SplitMix64(seed: 7)
    for _ in 0..<5000 {
      let milliseconds = Int64.random(in: 0...253_402_300_799_999, using: &random)
      for format in [TimeFormat.unixMilliseconds, .apple] {
        let number = Double(printed(milliseconds, format)) ?? .nan
        #expect(Timestamp(number: number, format: format) == Timestamp(milliseconds: milliseconds))
      }
    }
    #expect(printed(0, .apple) == "-978307200")
    #expect(printed(978_307_200_050, .apple) == "0.05")
    #expect(printed(1_763_680_000_123, .unixMilliseconds) == "1763680000123")
    #expect(printed(1_763_680_000_123, .apple) == "785372800.123")
  }

  @Test("numbers outside the years 1970 to 9999 are no timestamps, and neither is the wrong type")
  func range() {
    for number in [-1, -0.6, 253_402_300_799_999.5, 1e300, -.infinity, .infinity, .nan] {
      #expect(Timestamp(number: number, format: .unixMilliseconds) == nil)
    }
    #expect(Timestamp(number: -0.4, format: .unixMilliseconds) == Timestamp(milliseconds: 0))
    #expect(Timestamp(number: 1.5, format: .unixMilliseconds) == Timestamp(milliseconds: 2))
    #expect(Timestamp(number: -978_307_200.001, format: .apple) == nil)
    func code(_ timestamp: String, _ time: TimeFormat) -> ErrorCode? {
      errorCode(#"{"type":"ping","payload":{},"timestamp":\#(timestamp),"messageId":"m1"}"#, time: time)
    }
    #expect(code("1763680000123.4", .unixMilliseconds) == nil)
    #expect(code("\"2025-11-20T23:06:40Z\"", .unixMilliseconds) == .badMessage)
    #expect(code("\"2025-11-20T23:06:40Z\"", .apple) == .badMessage)
    #expect(code("1763680000123", .rfc3339) == .badMessage)
    #expect(code("1e999", .unixMilliseconds) == .badMessage)
    #expect(code("-1", .unixMilliseconds) == .badMessage)
  }
}
