import HubBytes
import HubMessages
import Testing

@Suite struct CompactIdentifierTests {
  private func identifier(_ length: Int) throws -> Identifier {
    let letters = Array("aZ09._-xyzABC")
    return try #require(Identifier(String((0..<length).map { letters[($0 * 7 + length) % letters.count] })))
  }

  @Test func anIdentifierOfAnyLengthComesBackAsItWas() throws {
    for length in 1...64 {
      let identifier = try identifier(length)
      let back = CompactIdentifier(identifier).identifier
      #expect(back == identifier)
      #expect(back.text.count == length)
      #expect(back.description == identifier.description)
    }
  }

  @Test func itMatchesItselfAndNoOther() throws {
    let all = try (1...64).map { try identifier($0) } + ["aZ09._-xyzABCaZ0", "b"].map { try #require(Identifier($0)) }
    for a in all {
      for b in all {
        #expect(CompactIdentifier(a).matches(b) == (a == b))
        #expect(CompactIdentifier(a).matches(CompactIdentifier(b)) == (a == b))
      }
    }
  }

  @Test func aShortIdentifierTakesTwoWords() {
    #expect(MemoryLayout<CompactIdentifier?>.size <= 17)
  }
}
