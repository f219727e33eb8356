import HubBytes
import HubMessages
import HubTestSupport
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

  @Test("a UUID comes back as it was, and is kept without an allocation") func uuid() throws {
    var random = SplitMix64(seed: 36)
    for _ in 0..<1000 {
      let text = String(
        (0..<36).map { [8, 13, 18, 23].contains($0) ? "-" : "0123456789abcdef".randomElement(using: &random) ?? "0" })
      let identifier = try #require(Identifier(text))
      let compact = CompactIdentifier(identifier)
      #expect(compact.identifier == identifier && compact.matches(identifier), "\(text)")
      guard case .uuid = compact else {
        Issue.record("\(text)")
        return
      }
      // All but a UUID's own form comes back as it was, too.
      for other in [text.uppercased(), "g" + text.dropFirst(), "-" + text.dropFirst(), text + "0"] {
        let identifier = try #require(Identifier(other))
        let compact = CompactIdentifier(identifier)
        #expect(compact.identifier == identifier && compact.matches(CompactIdentifier(identifier)), "\(other)")
        #expect(!compact.matches(CompactIdentifier(try #require(Identifier(text)))), "\(other)")
      }
    }
  }

  @Test func aShortIdentifierTakesTwoWords() {
    #expect(MemoryLayout<CompactIdentifier?>.size <= 17)
  }
}
