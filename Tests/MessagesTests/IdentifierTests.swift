// What an id may be, each byte of it against the protocol's list.
import HubTestSupport
import Testing

@testable import HubMessages

@Suite struct Identifiers {
  private let characters = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-".utf8)

  @Test("a byte that is no character of ids makes none of a text, wherever it stands, and any other does")
  func everyByte() {
    var wrong = 0
    for length in [1, 2, 7, 8, 9, 16, 17, 63, 64] {
      for index in 0..<length {
        for byte in UInt8.min...UInt8.max {
          var text = [UInt8](repeating: UInt8(ascii: "z"), count: length)
          text[index] = byte
          if (text.withUnsafeBytes { Identifier($0) } != nil) != characters.contains(byte) { wrong += 1 }
        }
      }
    }
    #expect(wrong == 0)
    for length in [0, 65] {
      let text = [UInt8](repeating: UInt8(ascii: "a"), count: length)
      #expect(text.withUnsafeBytes { Identifier($0) } == nil)
    }
  }
}
