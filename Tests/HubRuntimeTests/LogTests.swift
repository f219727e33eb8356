// How a value is written into a log line: a peer's text must not be able to forge a line or a field.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubRuntime

@Suite struct LogTests {
  private func written(_ value: String) -> String {
    var line = ByteBuffer()
    Log.write(value, into: &line)
    return String(decoding: line.array(), as: UTF8.self)
  }

  @Test("one plain word stands as it is")
  func plain() {
    for word in ["a", "127.0.0.1:8080", "/v1/ws", "d-1_x.y", "100%"] { #expect(written(word) == word) }
  }

  @Test("anything else is quoted")
  func quoted() {
    #expect(written("") == "\"\"")
    #expect(written("two words") == "\"two words\"")
    #expect(written("a=b") == "\"a=b\"")
    #expect(written("say \"hi\" \\") == "\"say \\\"hi\\\" \\\\\"")
    #expect(written("größe") == "\"größe\"")
  }

  @Test("control characters become spaces, so that no value makes a second line")
  func control() {
    #expect(written("a\nlevel=error event=forged") == "\"a level=error event=forged\"")
    for byte in 0...0x7F as ClosedRange<UInt8> {
      let text = written(String(UnicodeScalar(byte)))
      #expect(text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
    }
  }

  @Test("a quoted value can be read back: every quote inside it is escaped")
  func unforgeable() {
    var random = SplitMix64(seed: 2)
    let alphabet = Array("ab \"\\=\n")
    for _ in 0..<500 {
      let value = String(
        (0..<Int.random(in: 0...8, using: &random)).map { _ in alphabet.randomElement(using: &random)! })
      let text = written(value)
      guard text.hasPrefix("\"") else {
        #expect(text == value)
        continue
      }
      var read = ""
      var isEscaped = false
      for character in text.dropFirst().dropLast() {
        if !isEscaped, character == "\\" {
          isEscaped = true
          continue
        }
        #expect(isEscaped || character != "\"")
        read.append(character)
        isEscaped = false
      }
      #expect(!isEscaped && read == value.replacing("\n", with: " "))
    }
  }

  @Test("a line in JSON has the same members, and no value can end its string")
  func json() {
    let line = Log.line(
      .json, Timestamp(milliseconds: 0), .warning, "tried", ["file": "/a b", "reason": "\"\\\n}"])
    #expect(
      String(decoding: line.array(), as: UTF8.self)
        == #"{"time":"1970-01-01T00:00:00.000Z","level":"warning","event":"tried","file":"/a b","#
        + #""reason":"\"\\\n}"}"# + "\n")
  }

  @Test("levels are ordered from debug to error")
  func levels() {
    #expect(LogLevel.allCases == LogLevel.allCases.sorted())
    #expect(LogLevel.allCases.map { "\($0.name)" } == ["debug", "info", "warning", "error"])
  }
}
