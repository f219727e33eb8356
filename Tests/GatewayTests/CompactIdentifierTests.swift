import HubBytes
import HubMessages
import Testing

@testable import HubGateway

@Suite struct CompactIdentifierTests {
  @Test func anIdentifierOfAnyLengthComesBackAsItWas() throws {
    let letters = Array("aZ09._-xyzABC")
    for length in 1...64 {
      let text = String((0..<length).map { letters[($0 * 7 + length) % letters.count] })
      let identifier = try #require(Identifier(text))
      let back = CompactIdentifier(identifier).identifier
      #expect(back == identifier)
      #expect(back.text.count == length)
      #expect(back.description == text)
    }
  }

  @Test func aShortIdentifierTakesTwoWordsAndASessionAFewBytes() {
    #expect(MemoryLayout<CompactIdentifier?>.size <= 17)
    #expect(MemoryLayout<Session>.stride <= 128)  // one for each connection, idle or not
  }
}
