// What the holder of a token reads of it.
import HubBytes
import HubMessages
import Testing

@testable import HubClientCore

@Suite struct UnverifiedTokenTests {
  @Test(
    "the end of a token is read without its key, and nothing of what is none",
    arguments: [
      (#"{"exp":1763683600}"#, 1_763_683_600_000), (#"{"sub":"a","exp":1763683600.5,"x":[]}"#, 1_763_683_600_500),
      (#"{"sub":"a"}"#, nil), (#"{"exp":null}"#, nil), (#"{"exp":"1763683600"}"#, nil), (#"{"exp":-1}"#, nil),
      (#"{"exp":1e300}"#, nil), (#"{"exp":1,"exp":2}"#, nil), (#"[1]"#, nil), ("", nil), (#"{"exp":1"#, nil),
    ] as [(String, Int64?)])
  func expires(claims: String, milliseconds: Int64?) {
    let payload = String(decoding: Base64.url.encode(Array(claims.utf8)), as: UTF8.self)
    #expect(UnverifiedToken.expires("e30.\(payload).AA") == milliseconds.map { Timestamp(milliseconds: $0) })
    for other in [payload, "e30.\(payload)", "e30.\(payload).AA.AA", "e30.\(payload)=.AA"] {
      #expect(UnverifiedToken.expires(other) == nil)
    }
  }
}
