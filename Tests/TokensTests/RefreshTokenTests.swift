// Refresh tokens: only what the hub's own key has signed is one, and it is no other token.
import Foundation
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubTokens

@Suite struct RefreshTokenTests {
  private static let rounds = ProcessInfo.processInfo.environment["HUB_TESTS"] == "brief" ? 10_000 : 100_000

  private let token = RefreshToken(
    subject: Identifier("r1")!, family: InlineText("f1")!, serial: 7,
    expires: Timestamp(milliseconds: now.milliseconds + 60_000))

  @Test("each kind of key signs them, and reads its own alone")
  func keys() throws {
    let keys = try Example.all()
    for key in keys {
      let signed = try token.signed(by: key)
      #expect(try RefreshToken(checking: signed, by: key, now: now) == token)
      for other in keys where other.algorithm != key.algorithm {
        #expect(throws: TokenError.algorithmDoesNotFitKey) { try RefreshToken(checking: signed, by: other, now: now) }
      }
    }
  }

  @Test("it is no access token, and an access token is none of these")
  func others() throws {
    let key = try Example.all()[0]
    let verifier = TokenVerifier(keys: KeySet(keys: [key]))
    #expect(throws: TokenError.isRefreshToken) { try verifier.verify(try token.signed(by: key), now: now) }
    let claims = Claims(subject: Identifier("r1")!, role: .rider, grants: Grants(tokenID: InlineText("f1")))
    let access = try key.token(TokenRequest(claims: claims))
    #expect(throws: TokenError.isNoRefreshToken) { try RefreshToken(checking: access, by: key, now: now) }
    #expect(throws: TokenError.expired) {
      try RefreshToken(checking: try token.signed(by: key), by: key, now: token.expires)
    }
  }

  @Test("of so many that are damaged none passes")
  func damage() throws {
    let key = try Example.all()[0]
    let signed = try token.signed(by: key)
    var random = SplitMix64(seed: 25)
    for _ in 0..<RefreshTokenTests.rounds {
      var damaged = signed
      let index = Int.random(in: damaged.indices, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: damaged[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 1: damaged.remove(at: index)
      case 2: damaged.insert(UInt8.random(in: 0...255, using: &random), at: index)
      case _: damaged.replaceSubrange(index..., with: damaged[index...].shuffled(using: &random))
      }
      if damaged == signed { continue }
      do throws(TokenError) {
        let passed = try RefreshToken(checking: damaged, by: key, now: now)
        Issue.record("\(String(decoding: damaged, as: UTF8.self)): \(passed)")
      } catch {}
    }
  }
}
