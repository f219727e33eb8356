// Known answers: the examples of RFC 7515 §A and RFC 8037 §A.4.
import HubBytes
import HubMessages
import Testing

@testable import HubTokens

@Suite struct VectorTests {
  struct Vector: Sendable {
    var name: String
    var privateKey: String
    var publicKey: String
    var token: String
    /// Whether signing gives the same bytes each time; ECDSA draws a number.
    var isDeterministic = true
  }

  static let claims = """
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ
    """

  static let vectors = [
    Vector(
      name: "RFC 7515 §A.1", privateKey: Example.secret(), publicKey: Example.secret(),
      token: "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(claims).dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
    Vector(
      name: "RFC 7515 §A.2", privateKey: Example.rsa(), publicKey: Example.rsaPublic(),
      token: """
        eyJhbGciOiJSUzI1NiJ9.\(claims).cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_l\
        F5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Q\
        e7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98r\
        qVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw
        """),
    Vector(
      name: "RFC 7515 §A.3", privateKey: Example.p256(), publicKey: Example.p256Public(),
      token: """
        eyJhbGciOiJFUzI1NiJ9.\(claims).\
        DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q
        """, isDeterministic: false),
    Vector(
      name: "RFC 8037 §A.4", privateKey: Example.ed25519(), publicKey: Example.ed25519Public(),
      token: """
        eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
        hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg
        """),
  ]

  private func split(_ vector: Vector) throws -> (input: [UInt8], signature: [UInt8]) {
    let bytes = Array(vector.token.utf8)
    let dot = try #require(bytes.lastIndex(of: UInt8(ascii: ".")))
    return (Array(bytes[..<dot]), try #require(Base64.url.decode(bytes[(dot + 1)...])))
  }

  @Test("the RFCs' examples verify with their public keys", arguments: vectors)
  func verifies(vector: Vector) throws {
    let (input, signature) = try split(vector)
    #expect(try key(vector.publicKey).verifies(signature, of: input[...]))
    #expect(try key(vector.privateKey).verifies(signature, of: input[...]))
    var wrong = signature
    wrong[wrong.count / 2] ^= 1
    #expect(try !key(vector.publicKey).verifies(wrong, of: input[...]))
    #expect(try !key(vector.publicKey).verifies(signature + [0], of: input[...]))
    #expect(try !key(vector.publicKey).verifies([], of: input[...]))
  }

  @Test("signing what the RFCs sign gives their signatures, and for ECDSA one that verifies", arguments: vectors)
  func signs(vector: Vector) throws {
    let (input, signature) = try split(vector)
    let made = try key(vector.privateKey).sign(input)
    if vector.isDeterministic { #expect(made == signature) }
    #expect(try key(vector.publicKey).verifies(made, of: input[...]))
  }

  @Test("the RFCs' tokens pass the signature and are refused for what they say", arguments: vectors)
  func wholeTokens(vector: Vector) throws {
    let verifier = TokenVerifier(keys: try KeySet(parsing: Array(vector.publicKey.utf8)))
    let atTheTime = Timestamp(milliseconds: 1_300_819_379_000)
    let isJSON = vector.token.contains(VectorTests.claims)
    #expect(verifier.refusal(of: Array(vector.token.utf8), at: atTheTime) == (isJSON ? .missing(.sub) : .badClaims))
    if isJSON { #expect(verifier.refusal(of: Array(vector.token.utf8)) == .expired) }
  }
}
