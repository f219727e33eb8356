// RFC 8259 to the letter, seen through messages: what is JSON is read, what is not is `bad_json`.
import Foundation
import HubBytes
import HubMessages
import HubTestSupport
import Testing

/// A ping whose payload has the given JSON text as the value of a member: all of it must be checked, though none is
/// used.
private func ping(_ value: String) -> String { envelope("ping", #"{"a":\#(value)}"#) }

@Suite struct JSONGrammar {
  @Test(
    "values that are JSON are passed over",
    arguments: [
      "null", "true", "false", "0", "-0", "-0.0e-0", "1E+2", "1e5", "123456789.123456789e-5", "\"\"", "\"a\"", "[]",
      "{}",
      " [ ] ", "\t{\r\n} ", "[1,2,[3]]", #"{"a":{"a":{"a":1}}}"#, #""\"\\\/\b\f\n\r\t\u0000\uFFFF\u00e9""#,
      #""\uD83D\uDE97""#, "\"\u{7F}\u{2028}\u{10FFFF}🚗\"", #"{"":1," ":2}"#, "1e999", "[[],{},\"\",0]",
    ])
  func accepts(_ value: String) throws {
    #expect(throws: Never.self) { try readClient(ping(value), isValidUTF8: false) }
  }

  @Test(
    "values that are not JSON are bad_json",
    arguments: [
      "", "nul", "nulll", "True", "NaN", "Infinity", "-", "+1", "01", "-01", "1.", ".5", "1.e1", "1e", "1e+", "0x1",
      "1_0",
      "'a'", "\"", "\"a", "\"\n\"", "\"\t\"", "\"\u{0}\"", "\"\u{1F}\"", #""\x""#, #""\u12""#, #""\u12G4""#, #""\""#,
      #""\uD83D""#, #""\uDE97""#, #""\uD83D\u0041""#, #""\uD83D\n""#, #""\uD83Dx""#, #""\uDE97\uD83D""#, "[", "]", "[1",
      "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "{]", "{a:1}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}",
      "{\"a\" 1}",
      "{1:2}", "{\"a\":1 \"b\":2}", "\u{FEFF}1", "\u{A0}1", "1\u{0C}", "/**/1", "1//", "undefined",
    ])
  func refuses(_ value: String) {
    #expect(throws: MessageError.self) { try readClient(ping(value), isValidUTF8: false) }
    let code = errorCode(ping(value))
    #expect(code == .badJSON)
  }

  @Test("what surrounds the message must be white space")
  func surroundings() throws {
    let message = ping("1")
    #expect(throws: Never.self) { try readClient(" \t\r\n" + message + "\n ") }
    for wrong in ["\u{FEFF}" + message, message + "1", message + "}", message + message, message + "\0", "," + message]
    {
      #expect(errorCode(wrong) == .badJSON)
    }
    for wrong in ["", " ", "\n"] { #expect(errorCode(wrong) == .badJSON) }
  }

  @Test("text that is not UTF-8 is bad_json where nobody checked it before")
  func encoding() {
    let wrongs: [[UInt8]] = [
      [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xE0, 0x80, 0x80], [0xE2, 0x82], [0xED, 0xA0, 0x80],
      [0xF0, 0x80, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF],
    ]
    for wrong in wrongs {
      let text =
        Array(#"{"type":"ping","payload":{"a":""#.utf8) + wrong + Array(#""},"timestamp":1,"messageId":"m"}"#.utf8)
      #expect(throws: MessageError.self) { try readClient(text, isValidUTF8: false) }
    }
  }

  @Test("an object with two members of one name is refused, however it is spelled, known or not, and at any depth")
  func duplicates() {
    let wrongs = [
      #"{"type":"ping","\u0074ype":"ping","payload":{},"timestamp":1,"messageId":"m1"}"#,
      #"{"type":"ping","payload":{},"timestamp":1,"messageId":"m1","x":1,"y":2,"x":3}"#,
      #"{"type":"ping","payload":{},"timestamp":1,"messageId":"m1","x":1,"\u0078":3}"#,
      #"{"type":"ping","payload":{"a":{"b":[1,{"c":1,"c":1}]}},"timestamp":1,"messageId":"m1"}"#,
      #"{"type":"ping","payload":{"":1,"":1},"timestamp":1,"messageId":"m1"}"#,
      #"{"type":"ping","payload":{"latitude":null,"latitude":1},"timestamp":1,"messageId":"m1"}"#,
    ]
    for wrong in wrongs {
      #expect(errorCode(wrong) == .badMessage)
      #expect(errorID(wrong) == MessageID("m1"), "the answer names the message all the same")
    }
  }

  @Test("names that differ, if only in a NUL or in length, are no duplicates")
  func notDuplicates() {
    let long = String(repeating: "x", count: 40)
    for right in [
      #"{"type":1,"type\u0000":2}"#, #"{"a":1,"A":2}"#, #"{"\#(long)":1,"\#(long)y":2,"\#(long)z":3}"#,
      #"{"e\u0301":1,"\u00e9":2}"#,
    ] {
      #expect(throws: Never.self) { try readClient(envelope("ping", right)) }
    }
  }

  @Test("nesting, members, values and bytes have limits, and one less is fine")
  func limits() {
    func nested(_ depth: Int) -> String {  // the envelope and the payload are two
      ping(String(repeating: "[", count: depth - 2) + String(repeating: "]", count: depth - 2))
    }
    func members(_ count: Int) -> String {
      envelope("ping", "{" + (0..<count).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}")
    }
    func values(_ count: Int) -> String {
      envelope("ping", "[" + Array(repeating: "0", count: count).joined(separator: ",") + "]")
    }
    func bytes(_ count: Int) -> String {
      let empty = envelope("ping", "\"\"")
      return envelope("ping", "\"" + String(repeating: "x", count: count - empty.utf8.count) + "\"")
    }
    #expect(errorCode(nested(32)) == nil)
    #expect(errorCode(nested(33)) == .tooLarge)
    #expect(errorCode(members(128)) == nil)
    #expect(errorCode(members(129)) == .tooLarge)
    #expect(errorCode(values(64_900)) == nil)
    #expect(errorCode(values(65_001)) == .tooLarge)
    #expect(errorCode(bytes(262_144)) == nil)
    #expect(errorCode(bytes(262_145)) == .tooLarge)
    #expect(errorCode(String(repeating: "[", count: 200_000)) == .tooLarge)
  }

  @Test("escapes in names and values mean what they spell")
  func escapes() throws {
    let read = try readClient(
      #"{"\u0074ype":"p\u0069ng","pay\u006coad":{},"timestamp":1,"messageId":"\ud83d\ude97\u00e9\n\"\\\/"}"#)
    #expect(read.messageID == MessageID("🚗é\n\"\\/"))
  }

  @Test("random bytes and random rows of JSON's own tokens never crash the reader")
  func randomText() {
    let reader = MessageReader()
    var random = SplitMix64(seed: 5)
    let words = [
      "{", "}", "[", "]", ",", ":", "\"type\"", "\"ping\"", "\"payload\"", "\"timestamp\"", "\"messageId\"", "1",
      "null",
      "\"\\u0061\"", "\"\\ud800\"", " ", "true", "-1.5e3", "\"latitude\"", "\"location_update\"", "\"a\"",
    ]
    for round in 0..<20_000 {
      var text: [UInt8] = []
      for _ in 0..<Int.random(in: 0...40, using: &random) {
        if round % 2 == 0 {
          text += Array(words[Int.random(in: 0..<words.count, using: &random)].utf8)
        } else {
          text.append(UInt8(truncatingIfNeeded: random.next()))
        }
      }
      #expect(throws: MessageError.self) { try readClient(text, isValidUTF8: false, reader: reader) }
    }
  }
}

func errorCode(_ text: String, time: TimeFormat = .unixMilliseconds) -> ErrorCode? {
  do {
    _ = try readClient(text, time: time, isValidUTF8: false)
    return nil
  } catch {
    return error.code
  }
}

func errorID(_ text: String) -> MessageID? {
  do {
    _ = try readClient(text)
    return nil
  } catch {
    return error.messageID
  }
}
