// What back ends revoke: the body of a request, read into values.
import HubBytes
import HubMessages
import Testing

@testable import HubCore

@Suite struct RevocationRequestTests {
  private let now = Timestamp(milliseconds: 1_763_680_000_000)

  private func revocation(_ text: String, _ time: TimeFormat = .unixMilliseconds) throws -> Revocation {
    try Revocation(members: try #require(JSONValue(parsing: Array(text.utf8))?.members), time: time, now: now)
  }

  @Test("a sub or a jti, with or without its end, which is in the request's form of time")
  func read() throws {
    let driver = RevokedName.subject(Identifier("driver-12")!)
    #expect(try revocation(#"{"sub":"driver-12"}"#) == Revocation(driver, until: nil))
    #expect(try revocation(#"{"sub":"driver-12","jti":null,"until":null,"x":1}"#) == Revocation(driver, until: nil))
    #expect(try revocation(#"{"jti":"a b"}"#) == Revocation(.tokenID(InlineText("a b")!), until: nil))
    // The `exp` of a token that is accepted for some time behind it.
    let passed = Revocation(driver, until: now + -59_999)
    #expect(try revocation(#"{"sub":"driver-12","until":1763679940001}"#) == passed)
    let later = Revocation(driver, until: now + 60_000)
    #expect(try revocation(#"{"sub":"driver-12","until":1763680060000}"#) == later)
    #expect(try revocation(#"{"sub":"driver-12","until":785372860}"#, .apple) == later)
    #expect(try revocation(#"{"sub":"driver-12","until":"2025-11-20T23:07:40Z"}"#, .rfc3339) == later)
  }

  @Test(
    "what names nothing, or not one thing, or has ended is refused",
    arguments: [
      "{}", #"{"sub":"a","jti":"b"}"#, #"{"sub":1}"#, #"{"sub":""}"#, #"{"sub":"a b"}"#, #"{"jti":""}"#,
      #"{"sub":"a","until":1763679940000}"#, #"{"sub":"a","until":true}"#, #"{"sub":"a","until":"soon"}"#,
      #"{"sub":"a","until":1e300}"#,
    ])
  func refused(text: String) throws {
    let error = #expect(throws: ErrorReply.self) { try revocation(text) }
    #expect(error?.code == .badMessage && error?.message.isEmpty == false)
  }

  @Test("a list's cursor is what the hub gave, and nothing else")
  func cursor() {
    #expect(ListCursor("v2s", of: .revocations) == ListCursor(100))
    #expect(ListCursor(100).text(of: .revocations) == "v2s")
    for text in ["", "v", "2s", "d2s", "v02s", "v2S", "v-1", "v+1", "v9zzzzzzzzzzzzzzzz"] {
      #expect(ListCursor(text, of: .revocations) == nil, "\(text)")
    }
  }
}
