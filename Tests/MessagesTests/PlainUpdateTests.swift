// The short way of a location_update against the long one. A space before a message sends it the long way, over the
// tape, and means nothing: so whatever the text, both must give the same.
import Foundation
import HubBytes
import HubGeo
import HubTestSupport
import Testing

@testable import HubMessages

private enum Outcome: Equatable {
  case read(ClientEnvelope)
  // The text of an error names a byte, which the space moves.
  case refused(ErrorCode, MessageID?)
}

private func outcome(_ text: [UInt8], _ time: TimeFormat, _ reader: MessageReader) -> Outcome {
  do throws(MessageError) {
    return .read(try readClient(text, time: time, reader: reader))
  } catch {
    return .refused(error.code, error.messageID)
  }
}

/// Where both ways differ, the text.
private func difference(_ text: [UInt8], _ time: TimeFormat, _ reader: MessageReader) -> String? {
  outcome(text, time, reader) == outcome([0x20] + text, time, reader) ? nil : String(decoding: text, as: UTF8.self)
}

private func isPlain(_ text: String, _ time: TimeFormat = .unixMilliseconds) -> Bool {
  let keys = JSONKeyTable()
  let bytes = Array(text.utf8)
  var envelope = UpdateEnvelope()
  return PlainUpdate.read(bytes.span, time, keys, into: &envelope)
}

@Suite struct PlainUpdates {
  private let full = #"""
    {"type":"location_update","payload":{"tripId":"T17","latitude":48.1234567,"longitude":11.5,"accuracy":5.2,"heading"\#
    :0.5,"speed":10.01,"altitude":-3,"headingAccuracy":1,"speedAccuracy":0.5,"batteryLevel":0.75,"source":"gps",\#
    "timestamp":1700000123000},"timestamp":1763680000123,"messageId":"d17-123"}
    """#

  @Test("nothing of one message is left in the next that is read into the same envelope, whether it was taken or not")
  func reused() throws {
    let reader = MessageReader()
    var envelope = UpdateEnvelope()
    func read(_ text: String) -> Bool {
      Array(text.utf8).withUnsafeBytes { reader.readUpdate($0, time: .unixMilliseconds, into: &envelope) }
    }
    #expect(read(full))
    #expect(envelope.update.fix.altitude == -3 && envelope.update.tripID != nil)
    #expect(!read(full.replacing("1700000123000", with: "x")))
    #expect(
      read(
        #"{"messageId":"m","timestamp":1763680000001,"payload":{"timestamp":1763680000005,"longitude":2,"latitude":1},"#
          + #""type":"location_update"}"#))
    let place = try #require(Coordinate(latitude: 1, longitude: 2))
    let id = try #require(MessageID("m"))
    let fix = Fix(coordinate: place, timestamp: Timestamp(milliseconds: 1_763_680_000_005))
    #expect(
      envelope
        == UpdateEnvelope(
          messageID: id, timestamp: Timestamp(milliseconds: 1_763_680_000_001), update: LocationUpdate(fix: fix)))
  }

  @Test("what a phone sends takes the short way, in any order and with nulls, and what is written otherwise does not")
  func taken() {
    #expect(isPlain(full))
    #expect(isPlain(full.replacing("5.2", with: "null").replacing("10.01", with: "-1")))
    #expect(
      isPlain(
        #"{"messageId":"m","timestamp":1763680000001,"payload":{"timestamp":1763680000005,"longitude":2,"latitude":1},"#
          + #""type":"location_update"}"#))
    #expect(!isPlain(" " + full))
    #expect(!isPlain(full.replacing(":0.5", with: ": 0.5")))
    #expect(!isPlain(full.replacing("altitude", with: "unknown")))
    #expect(!isPlain(full.replacing("location_update", with: "location_updates")))
    #expect(!isPlain(full + "}"))
    #expect(!isPlain(full.replacing(#""speed""#, with: #""heading""#)), "two of one name")
  }

  @Test("every example of a location_update, cut at, without, and changed at every byte, is read the same both ways")
  func mutations() throws {
    let reader = MessageReader()
    let replacements = Array("\"\\{}[]:,.0-e n9z/~\u{1F}".utf8)
    let examples = try Example.all.filter { example in
      example.isFromClient && String(decoding: example.message, as: UTF8.self).contains("location_update")
    }
    #expect(!examples.isEmpty)
    var texts = examples.map { ($0.message, $0.time) }
    texts.append((Array(full.utf8), .unixMilliseconds))
    for (text, time) in texts {
      // The examples are spelled with white space; what encoders write has none.
      let compact = text.filter { $0 != 0x20 }
      #expect(difference(compact, time, reader) == nil)
      for index in compact.indices {
        #expect(difference(Array(compact[..<index]), time, reader) == nil)
        var changed = compact
        changed.remove(at: index)
        #expect(difference(changed, time, reader) == nil)
        changed = compact
        for byte in replacements {
          changed[index] = byte
          if let difference = difference(changed, time, reader) { Issue.record("\(difference)") }
        }
      }
    }
  }

  @Test("30,000 random updates, right and wrong, in any order of their members, are read the same both ways")
  func random() {
    var random = SplitMix64(seed: 11)
    let reader = MessageReader()
    var plain = 0
    for _ in 0..<30_000 {
      let time = TimeFormat.allCases[Int.random(in: 0..<3, using: &random)]
      let text = randomUpdate(time, &random)
      if let difference = difference(Array(text.utf8), time, reader) { Issue.record("\(difference)") }
      if isPlain(text, time) { plain += 1 }
    }
    #expect(plain > 4000, "the short way is taken often enough to be tested: \(plain)")
  }

  private func randomUpdate(_ time: TimeFormat, _ random: inout SplitMix64) -> String {
    let names = [
      "accuracy", "heading", "speed", "altitude", "headingAccuracy", "speedAccuracy", "batteryLevel", "latitude",
    ]
    var members = [
      "\"latitude\":\(number(-90...90, &random))", "\"longitude\":\(number(-180...180, &random))",
      "\"timestamp\":\(timestamp(time, &random))",
    ]
    for name in names.dropLast(Int.random(in: 0..<40, using: &random) == 0 ? 0 : 1) where Bool.random(using: &random) {
      let range = name == "batteryLevel" ? -0.1...1.05 : -10...400
      members.append("\"\(name)\":\(number(range, &random))")
    }
    if Bool.random(using: &random) {
      members.append(
        "\"tripId\":\"\(pick(["t", "", "a.b_c-D", "ä", "x y", String(repeating: "i", count: 64)], &random))\"")
    }
    if Bool.random(using: &random) {
      members.append("\"source\":\(pick(["\"gps\"", "\"wifi\"", "\"gpz\"", "null", "\"cached\"", "1"], &random))")
    }
    if Int.random(in: 0..<20, using: &random) == 0 { members.append(#""other":[1]"#) }
    members.shuffle(using: &random)
    var envelope = [
      "\"type\":\"\(pick(["location_update", "location_update", "location_update", "ping"], &random))\"",
      "\"payload\":{\(members.joined(separator: ","))}", "\"timestamp\":\(timestamp(time, &random))",
      "\"messageId\":\"\(pick(["m", "a longer one: 🚗 é", String(repeating: "i", count: 64), "\\n"], &random))\"",
    ]
    if Int.random(in: 0..<20, using: &random) == 0 { envelope.removeLast() }
    envelope.shuffle(using: &random)
    return "{" + envelope.joined(separator: ",") + "}"
  }

  private func number(_ range: ClosedRange<Double>, _ random: inout SplitMix64) -> String {
    let value = Double.random(in: range, using: &random)
    switch Int.random(in: 0..<24, using: &random) {
    case 0: return pick(["null", "1e1", "1E-2", "1e999", "360", "360.5", "-0.0", "\"1\"", "01", "1."], &random)
    case 1...8: return "\(value)"
    case 9...16: return "\((value * 1e7).rounded() / 1e7)"
    default: return "\(Int(value))"
    }
  }

  private func timestamp(_ time: TimeFormat, _ random: inout SplitMix64) -> String {
    let number = UInt64.random(in: 0...300_000_000_000_000, using: &random)
    let right =
      switch time {
      case .unixMilliseconds: pick(["\(number)", "\(number).5", "\(number % 100_000)", "17636800001230000"], &random)
      case .apple: "\(Double(number % 1_000_000_000_000) / 1000)"
      case .rfc3339: "\"2025-11-21T10:15:30.\(number % 1000)Z\""
      }
    return Int.random(in: 0..<30, using: &random) == 0
      ? pick(["-1", "0", "1e12", "1e15", "null", "\"x\"", "00000000001"], &random) : right
  }

  private func pick(_ words: [String], _ random: inout SplitMix64) -> String {
    words[Int.random(in: 0..<words.count, using: &random)]
  }
}
