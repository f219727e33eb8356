// What the reader does for messages that are made to cost it as much as may be, in steps, and what it finds in them.
import HubHostileMessages
import HubTestSupport
import Testing

@testable import HubMessages

#if DEBUG
  @Suite struct HostileMessageWork {
    /// Steps of the parser for each byte.
    private func stepsPerByte(_ message: [UInt8], _ reader: MessageReader) throws -> Double {
      let before = reader.steps
      _ = try message.span.withUnsafeBytes { (bytes) throws(MessageError) in
        try reader.readAny(bytes, time: .unixMilliseconds, isValidUTF8: true)
      }
      return Double(reader.steps - before) / Double(message.count)
    }

    private func ordinary(_ reader: MessageReader) throws -> Double {
      var (steps, bytes) = (0.0, 0)
      for message in OrdinaryMessage.allCases {
        steps += try stepsPerByte(message.text, reader) * Double(message.text.count)
        bytes += message.text.count
      }
      return steps / Double(bytes)
    }

    @Test(
      "A byte of any message takes at most four times the work of an ordinary one's", arguments: HostileMessage.allCases
    )
    func bound(_ shape: HostileMessage) throws {
      let reader = MessageReader()
      let most = try 4 * ordinary(reader)
      var random = SplitMix64(seed: 41)
      for bytes in [4096, 20_000, 65_536, 262_144] {
        for _ in 0..<3 {
          let message = shape.text(bytes: bytes, &random)
          #expect(message.count <= bytes)
          #expect(try stepsPerByte(message, reader) <= most, "of \(message.count) bytes")
        }
      }
    }

    @Test("Four times the bytes of a shape take at most some five times the work", arguments: HostileMessage.allCases)
    func growth(_ shape: HostileMessage) throws {
      let reader = MessageReader()
      var random = SplitMix64(seed: 43)
      let small = try stepsPerByte(shape.text(bytes: 16_384, &random), reader)
      let large = try stepsPerByte(shape.text(bytes: 65_536, &random), reader)
      #expect(large <= 1.25 * small)
    }
  }
#endif

@Suite struct DuplicateNameTests {
  /// Names that are hard to distinguish, and some that are spelled with escapes: the name, and how it may stand in a
  /// message.
  private static func name(_ random: inout SplitMix64) -> (name: String, spelled: String) {
    let stem = ["", "x", "timesta", "abcdef", "abcdefgh", String(repeating: "q", count: 23), "\u{0}", "é", "🚗"]
    let tail = ["", "a", "b", "mp", "\u{0}", "\u{0}\u{0}", String(repeating: "\u{0}", count: 256), "\"", "ab", "ba"]
    let name = stem.randomElement(using: &random)! + tail.randomElement(using: &random)!
    var spelled = ""
    for unit in name.utf16 {
      let isPlain = unit >= 0x20 && unit < 0x80 && unit != 0x22 && Int.random(in: 0..<8, using: &random) > 0
      if isPlain {
        spelled.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
      } else {
        let digits = String(unit, radix: 16)
        spelled += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
    return (name, spelled)
  }

  @Test("Two members of one name are found wherever they are and however they are spelled, and nothing else is")
  func oracle() {
    var random = SplitMix64(seed: 47)
    var duplicates = 0
    for _ in 0..<4_000 {
      var names: [(name: String, spelled: String)] = []
      for _ in 0..<Int.random(in: 0...40, using: &random) {
        let next = Self.name(&random)
        // By bytes: Swift's own == takes é for e and an accent.
        let isNew = !names.contains { Array($0.name.utf8) == Array(next.name.utf8) }
        if isNew || Int.random(in: 0..<60, using: &random) == 0 { names.append(next) }
      }
      let distinct = Set(names.map { Array($0.name.utf8) }).count
      let members = names.map { #""\#($0.spelled)":{"a":[1,{"a":2}]}"# }.joined(separator: ",")
      let depth = Int.random(in: 0...12, using: &random)  // two levels each, of 32
      let payload =
        String(repeating: #"{"n":["#, count: depth) + "{\(members)}" + String(repeating: "]}", count: depth)
      let code = errorCode(unread(payload))
      #expect(code == (distinct == names.count ? nil : .badMessage), "\(names)")
      if code != nil { duplicates += 1 }
    }
    #expect(duplicates > 100)
  }

  @Test("Of 128 names that differ in their last bytes only, one that comes twice is found, at every index")
  func longCommonBeginnings() {
    for length in [5, 6, 7, 12, 13, 100, 1500] {
      for index in stride(from: 0, to: 127, by: 21) {
        var names = (0..<128).map { String(repeating: "x", count: length) + String($0 + 1000) }
        #expect(errorCode(object(names)) == nil)
        names[127 - index / 2] = names[index / 2]
        #expect(errorCode(object(names)) == .badMessage)
      }
    }
  }

  @Test("Names that are the same but for zeros behind them, or 256 bytes more, are different")
  func zerosBehind() {
    let zeros = { (count: Int) in String(repeating: #"\u0000"#, count: count) }
    #expect(errorCode(object(["a", "a" + zeros(1), "a" + zeros(256), "a" + zeros(512)])) == nil)
    #expect(errorCode(object(["a" + zeros(256), "a", "a" + zeros(256)])) == .badMessage)
    #expect(errorCode(object(["", zeros(1), zeros(6), zeros(256)])) == nil)
  }

  private func object(_ names: [String]) -> String {
    unread("{" + names.map { #""\#($0)":0"# }.joined(separator: ",") + "}")
  }

  /// A ping with a member that nobody reads.
  private func unread(_ value: String) -> String {
    #"{"type":"ping","payload":{},"timestamp":1763680000123,"messageId":"m1","unread":\#(value)}"#
  }
}

@Suite struct HostileMessageReading {
  @Test("What is hostile only in its cost is read like any other message", arguments: HostileMessage.allCases)
  func isRead(_ shape: HostileMessage) throws {
    var random = SplitMix64(seed: 53)
    let message = shape.text(bytes: 262_144, &random)
    let read = try readClient(message)
    switch shape {
    case .fixes, .nestedFixes, .exponentFixes, .crowdedFixes:
      guard case .locationBatch(let batch) = read.message else { throw Unexpected() }
      #expect(batch.fixes.allSatisfy { if case .success = $0 { true } else { false } })
    case .route:
      guard case .tripStatus(let report) = read.message else { throw Unexpected() }
      #expect(report.route != nil)
    case .deepArrays, .deepObjects, .wideNumbers, .wideEmpties, .manyNames, .knownNames, .nearlyKnownNames,
      .equalPrefixes, .longPrefixes, .escapedNames, .exponents, .manyDigits, .longDigits, .halfways, .escapes,
      .surrogates, .whiteSpace, .shortStrings:
      guard case .ping(let ping) = read.message else { throw Unexpected() }
      #expect(ping.members == nil)
    }
  }

  @Test("Polygons and rings without a position count, too: as many as there may be positions are refused")
  func emptyPolygons() {
    func polygons(_ coordinates: String) -> String {
      envelope(
        "query", #"{"kind":"within","polygon":{"type":"MultiPolygon","coordinates":[\#(coordinates)]}}"#)
    }
    func many(_ part: String) -> String { Array(repeating: part, count: 1001).joined(separator: ",") }
    #expect(errorCode(polygons("[],[]")) == .badMessage)
    #expect(errorCode(polygons(many("[]"))) == .tooLarge)
    #expect(errorCode(polygons("[\(many("[]"))]")) == .tooLarge)
    // A query for an area of 2,000 polygons without a ring, in binary.
    let binary: [UInt8] = [8, 3, 0, 0, 0, 0, 0, 1, 1, 0x01, 0xD0, 0x0F] + [UInt8](repeating: 0, count: 2000)
    var code: ErrorCode?
    do throws(MessageError) {
      _ = try binary.span.withUnsafeBytes { (bytes) throws(MessageError) in
        try BinaryReader.read(bytes, tripBefore: nil)
      }
    } catch { code = error.code }
    #expect(code == .tooLarge)
  }
}
