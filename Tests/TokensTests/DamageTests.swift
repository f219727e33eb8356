// Damaged tokens: none may pass, and all intact ones beside them must.
import Foundation
import HubMessages
import HubTestSupport
import Testing

@testable import HubTokens

// One part after the other: all four at once would leave no thread to other tests on a machine with two.
@Suite(.serialized) struct DamageTests {
  /// A quarter of a million; a tenth of that where a sanitizer looks at every access (`make sanitize`).
  private static let rounds = ProcessInfo.processInfo.environment["HUB_TESTS"] == "brief" ? 25_000 : 250_000

  /// A hundred tokens, most of them of the cheap algorithm, with what they say.
  private func tokens(_ random: inout SplitMix64) throws -> [[UInt8]] {
    let keys = try Example.all()
    return try (0..<100).map { number in
      let claims = Claims(
        subject: Identifier("d\(UInt32.random(in: 0...9999, using: &random))")!, role: .driver,
        expires: Timestamp(milliseconds: now.milliseconds + 60_000), grants: Grants(trips: [NamePattern("T\(number)")!])
      )
      return try keys[number % 10 == 0 ? number / 10 % 4 : 0].token(TokenRequest(claims: claims))
    }
  }

  private func swapParts(_ token: [UInt8], _ other: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    var parts = token.split(separator: 0x2E)
    let index = Int.random(in: 0..<3, using: &random)
    if Bool.random(using: &random) {
      parts[index] = other.split(separator: 0x2E)[index]
    } else {
      parts.swapAt(index, (index + 1) % 3)
    }
    return Array(parts.joined(separator: [0x2E]))
  }

  /// Another last character of a part, of those that stand for the same bytes where readers are careless.
  private func setTrailingBits(_ token: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    var token = token
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    let value = alphabet.firstIndex(of: token.last!)!
    token[token.count - 1] = alphabet[value ^ Int.random(in: 1...3, using: &random)]
    return token
  }

  private func damage(_ token: [UInt8], _ all: [[UInt8]], _ random: inout SplitMix64) -> [UInt8] {
    var damaged = token
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<5:  // one bit
      let index = Int.random(in: damaged.indices, using: &random)
      damaged[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 5: damaged = swapParts(token, all.randomElement(using: &random)!, &random)
    case 6: damaged = setTrailingBits(token, &random)
    case 7: damaged.remove(at: Int.random(in: damaged.indices, using: &random))
    case 8:
      damaged.insert(UInt8.random(in: 0...255, using: &random), at: Int.random(in: damaged.indices, using: &random))
    default:
      damaged = (0..<Int.random(in: 0..<300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
    return damaged
  }

  /// Four parts, so that each ends soon.
  @Test("of a million damaged tokens none is accepted, and the valid ones between them all are", arguments: 0..<4)
  func damaged(part: Int) throws {
    var random = SplitMix64(seed: 7515 + UInt64(part))
    let verifier = TokenVerifier(keys: try Example.keySet())
    let tokens = try tokens(&random)
    let valid = Set(tokens)
    var accepted = 0
    var refused = 0
    for round in 0..<DamageTests.rounds {
      let token = tokens[round % tokens.count]
      let damaged = damage(token, tokens, &random)
      guard !valid.contains(damaged) else { continue }  // two parts that were the same
      if verifier.refusal(of: damaged) == nil { accepted += 1 }
      refused += 1
      if round % 100 == 0 { #expect(verifier.refusal(of: tokens[round / 100 % tokens.count]) == nil) }
    }
    #expect(accepted == 0)
    #expect(refused > DamageTests.rounds * 95 / 100)
  }

  @Test("every single bit of a token of each algorithm counts")
  func everyBit() throws {
    let verifier = TokenVerifier(keys: try Example.keySet())
    for key in try Example.all() {
      let token = try key.token(#"{"sub":"r1","role":"rider"}"#)
      #expect(verifier.refusal(of: token) == nil)
      for index in token.indices {
        for bit in 0..<8 {
          var damaged = token
          damaged[index] ^= 1 << UInt8(bit)
          #expect(verifier.refusal(of: damaged) != nil)
        }
      }
    }
  }
}
