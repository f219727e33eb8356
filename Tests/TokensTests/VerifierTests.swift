// What is accepted, and every reason to refuse.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubTokens

@Suite struct VerifierTests {
  private let seconds = now.milliseconds / 1000
  private let good = #"{"sub":"r1","role":"rider"}"#

  private func verifier(_ policy: TokenPolicy = TokenPolicy()) throws -> TokenVerifier {
    TokenVerifier(keys: try Example.keySet(), policy: policy)
  }

  private func token(header: String, payload: String, key: SigningKey) throws -> [UInt8] {
    try key.signed(header: Array(header.utf8), payload: Array(payload.utf8))
  }

  @Test("a token of each algorithm says who, what, until when, and what it grants")
  func accepted() throws {
    let grants = Grants(
      trips: [NamePattern("T1")!, NamePattern("zone-*")!], channels: [ChannelPattern("driver:D*")!],
      limits: SessionLimits(rate: 2.5, burst: 100),
      vehicle: VehicleClaims(vehicleType: .init("van"), tags: [.init("xl")!, .init("wheelchair")!]),
      tokenID: .init("j-1"))
    let claims = Claims(
      subject: Identifier("d.1")!, role: .driver, expires: Timestamp(milliseconds: now.milliseconds + 1500),
      grants: grants)
    var request = TokenRequest(claims: claims)
    request.issuer = "https://issuer.example/\"\\"
    request.audience = "hub"
    request.notBefore = now
    request.issuedAt = now
    let verifier = try verifier(TokenPolicy(issuer: request.issuer, audience: "hub"))
    for key in try Example.all() {
      #expect(try verifier.verify(key.token(request), now: now) == claims, "\(key.algorithm)")
    }
  }

  @Test("a token without lists carries no grants, and one without exp does not expire")
  func plain() throws {
    let claims = try verifier().verify(try Example.all()[0].token(good), now: now)
    #expect(claims == Claims(subject: Identifier("r1")!, role: .rider))
  }

  @Test("an empty list of tags is a claim, too: the driver has none")
  func noTags() throws {
    let key = try Example.all()[0]
    let claims = try verifier().verify(key.token(#"{"sub":"d","role":"driver","tags":[]}"#), now: now)
    #expect(claims.grants?.vehicle == VehicleClaims(tags: []))
    #expect(try verifier().verify(key.token(TokenRequest(claims: claims)), now: now) == claims)
  }

  @Test("none, unknown algorithms and other spellings are refused, signed or not")
  func algorithms() throws {
    let key = try Example.all()[0]
    for name in ["none", "None", "HS512", "hs256", "PS256", "ES384", "RS1", ""] {
      let signed = try token(header: #"{"alg":"\#(name)"}"#, payload: good, key: key)
      #expect(try verifier().refusal(of: signed) == .unsupportedAlgorithm, "\(name)")
      let dot = try #require(signed.lastIndex(of: UInt8(ascii: ".")))
      #expect(try verifier().refusal(of: Array(signed[...dot])) == .unsupportedAlgorithm)
    }
    for header in [#"{}"#, #"{"alg":1}"#, #"{"alg":null}"#, "[]", "", #"{"alg":"HS256","alg":"HS256"}"#] {
      let signed = try token(header: header, payload: good, key: key)
      #expect(try verifier().refusal(of: signed) == .badHeader, "\(header)")
    }
  }

  @Test("the public RSA key in any spelling is no HMAC secret")
  func confusion() throws {
    let keys = try KeySet(parsing: Array(Example.rsaPublic(#""kid":"rs","#).utf8))
    let attacker = try SigningKey.secret(Array(repeating: 7, count: 32), keyID: "rs", number: 1)
    #expect(TokenVerifier(keys: keys).refusal(of: try attacker.token(good)) == .algorithmDoesNotFitKey)
    // Nor will a file of it be taken for a secret.
    #expect(throws: KeyError.secretIsAKey(1)) {
      try SigningKey.secret(Array("-----BEGIN PUBLIC KEY-----\nMIIB".utf8), keyID: nil, number: 1)
    }
    #expect(throws: KeyError.secretIsAKey(1)) {
      try SigningKey.secret(Array(Example.rsaPublic().utf8), keyID: nil, number: 1)
    }
    let point = try #require(Base64.url.decode("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU".utf8))
    let other = try #require(Base64.url.decode("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0".utf8))
    let der = DER.sequence([DER.sequence([DER.ecPublicKey, DER.prime256v1]), DER.bitString([4] + point + other)])
    #expect(throws: KeyError.secretIsAKey(1)) { try SigningKey.secret(der, keyID: nil, number: 1) }
    // As consoles of issuers show it: PEM without its first and last line.
    let lines = String(decoding: Base64.padded.encode(der), as: UTF8.self)
    for text in [
      lines, "\u{FEFF}" + lines, "\(lines.prefix(64))\r\n\(lines.dropFirst(64))",
      String(decoding: Base64.url.encode(der), as: UTF8.self), "[\(Example.rsaPublic())]",
      "\u{FEFF}" + Example.rsaPublic(), "issuer.example: " + Example.rsaPublic(),
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINeACy6hhIusLb3xX8bazNCW/94svM0b1jgJM5cIWz2W root@host",
      "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBA root@host",
    ] {
      #expect(throws: KeyError.secretIsAKey(1), "\(text)") {
        try SigningKey.secret(Array(text.utf8), keyID: nil, number: 1)
      }
    }
  }

  @Test("random bytes, and those in base64, are a secret, and so is a text with the characters of pages and JSON")
  func secrets() throws {
    var random = SplitMix64(seed: 2104)
    for count in 32..<320 {
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      for secret in [bytes, Base64.padded.encode(bytes), Base64.url.encode(bytes)] {
        _ = try SigningKey.secret(secret, keyID: nil, number: 1)
      }
    }
    for text in ["<correct horse> battery staple for all", "[x]{y}<z> correct horse battery staple"] {
      _ = try SigningKey.secret(Array(text.utf8), keyID: nil, number: 1)
    }
  }

  @Test("a token signed for one key is not one for another, whatever kid and alg it names")
  func otherKeys() throws {
    let keys = try Example.all()
    for key in keys {
      for other in keys where other.algorithm != key.algorithm {
        let swapped = try token(
          header: #"{"alg":"\#(key.algorithm.rawValue)","kid":"\#(other.keyID!)"}"#, payload: good, key: key)
        #expect(try verifier().refusal(of: swapped) == .algorithmDoesNotFitKey)
        let posing = try token(
          header: #"{"alg":"\#(other.algorithm.rawValue)","kid":"\#(other.keyID!)"}"#, payload: good, key: key)
        #expect(try verifier().refusal(of: posing) == .badSignature)
      }
    }
    let stranger = try token(header: #"{"alg":"HS256","kid":"nobody"}"#, payload: good, key: keys[0])
    #expect(try verifier().refusal(of: stranger) == .unknownKey)
  }

  @Test("crit is refused, whatever it names, and a kid that is no text")
  func headers() throws {
    let key = try Example.all()[0]
    for crit in [#"["b64"]"#, #"["exp"]"#, "[]", "null", #""x""#] {
      let signed = try token(header: #"{"alg":"HS256","crit":\#(crit)}"#, payload: good, key: key)
      #expect(try verifier().refusal(of: signed) == .criticalHeader)
    }
    let signed = try token(header: #"{"alg":"HS256","kid":1}"#, payload: good, key: key)
    #expect(try verifier().refusal(of: signed) == .badHeader)
  }

  @Test("exp and nbf count to the second of their leeway")
  func times() throws {
    let key = try Example.all()[0]
    let verifier = try verifier()
    func refusal(_ claims: String) throws -> TokenError? {
      verifier.refusal(of: try key.token(#"{"sub":"a","role":"ops",\#(claims)}"#))
    }
    #expect(try refusal(#""exp":\#(seconds + 1)"#) == nil)
    #expect(try refusal(#""exp":\#(seconds - 29)"#) == nil)
    #expect(try refusal(#""exp":\#(seconds - 30)"#) == .expired)
    #expect(try refusal(#""exp":0"#) == .expired)
    #expect(try refusal(#""nbf":\#(seconds + 30)"#) == nil)
    #expect(try refusal(#""nbf":\#(seconds + 31)"#) == .notYetValid)
    for bad in ["null", #""soon""#, "-1", "1e300", "true"] {
      #expect(try refusal(#""exp":\#(bad)"#) == .invalid(.exp), "\(bad)")
      #expect(try refusal(#""nbf":\#(bad)"#) == .invalid(.nbf), "\(bad)")
    }
  }

  @Test("iss and aud must be those that are configured")
  func parties() throws {
    let key = try Example.all()[0]
    let verifier = try verifier(TokenPolicy(issuer: "me", audience: "hub"))
    func refusal(_ claims: String) throws -> TokenError? {
      verifier.refusal(of: try key.token(#"{"sub":"a","role":"ops"\#(claims)}"#))
    }
    #expect(try refusal(#","iss":"me","aud":"hub""#) == nil)
    #expect(try refusal(#","iss":"me","aud":["other","hub"]"#) == nil)
    #expect(try refusal(#","aud":"hub""#) == .wrongIssuer)
    #expect(try refusal(#","iss":"Me","aud":"hub""#) == .wrongIssuer)
    #expect(try refusal(#","iss":["me"],"aud":"hub""#) == .wrongIssuer)
    for aud in ["", #","aud":"hubs""#, #","aud":[]"#, #","aud":{"hub":1}"#, #","aud":[["hub"]]"#] {
      #expect(try refusal(#","iss":"me"\#(aud)"#) == .wrongAudience, "\(aud)")
    }
  }

  @Test(
    "claims that are missing or of the wrong form are refused by name",
    arguments: [
      (#"{"role":"ops"}"#, .missing(.sub)), (#"{"sub":null,"role":"ops"}"#, .missing(.sub)),
      (#"{"sub":1,"role":"ops"}"#, .invalid(.sub)), (#"{"sub":"a b","role":"ops"}"#, .invalid(.sub)),
      (#"{"sub":"a"}"#, .missing(.role)), (#"{"sub":"a","role":"admin"}"#, .invalid(.role)),
      (#"{"sub":"a","role":["ops"]}"#, .invalid(.role)), (#"{"sub":"a","role":"ops","trips":"T"}"#, .invalid(.trips)),
      (#"{"sub":"a","role":"ops","trips":["T 1"]}"#, .invalid(.trips)),
      (#"{"sub":"a","role":"ops","trips":["T*1"]}"#, .invalid(.trips)),
      (#"{"sub":"a","role":"ops","channels":["*"]}"#, .invalid(.channels)),
      (#"{"sub":"a","role":"ops","channels":["fleet:*"]}"#, .invalid(.channels)),
      (#"{"sub":"a","role":"ops","limits":{"rate":-1}}"#, .invalid(.limits)),
      (#"{"sub":"a","role":"ops","limits":{"burst":0}}"#, .invalid(.limits)),
      (#"{"sub":"a","role":"ops","jti":""}"#, .invalid(.jti)),
      (#"{"sub":"a","role":"driver","vehicleType":""}"#, .invalid(.vehicleType)),
      (#"{"sub":"a","role":"driver","vehicleType":["van"]}"#, .invalid(.vehicleType)),
      (#"{"sub":"a","role":"driver","tags":"xl"}"#, .invalid(.tags)),
      (#"{"sub":"a","role":"driver","tags":["xl",""]}"#, .invalid(.tags)),
      (#"{"sub":"a","role":"driver","tags":["1","2","3","4","5","6","7","8","9"]}"#, .invalid(.tags)),
      (#"{"sub":"a","sub":"b","role":"ops"}"#, .badClaims), (#"["sub"]"#, .badClaims), ("", .badClaims),
      (#"{"sub":"a","role":"ops"} "x""#, .badClaims), (#"{"sub":"a","role":"ops",}"#, .badClaims),
    ] as [(String, TokenError)])
  func badClaims(claims: String, expected: TokenError) throws {
    #expect(try verifier().refusal(of: try Example.all()[0].token(claims)) == expected)
  }

  @Test("the compact form is strict: three parts, no padding, no bits left over, no more than 8 KiB")
  func compactForm() throws {
    let token = String(decoding: try Example.all()[0].token(good), as: UTF8.self)
    for bad in [
      "", ".", "..", "...", token + ".", "." + token, token + "=", token + " ", " " + token, token + "\n",
      token.replacing(".", with: ".."), String(token.prefix { $0 != "." }), token.replacing("e", with: "é"),
    ] {
      let refusal = try #require(try verifier().refusal(of: Array(bad.utf8)), "\(bad)")
      #expect([.notCompact, .badHeader].contains(refusal), "\(bad): \(refusal)")
    }
    #expect(try verifier().refusal(of: Array(repeating: 0x41, count: TokenLimits.maximumBytes + 1)) == .tooLong)
  }

  @Test("no error repeats what came")
  func silent() throws {
    let key = try Example.all()[0]
    for claims in [#"{"sub":"secret secret","role":"ops"}"#, #"{"sub":"a","role":"secret"}"#] {
      let refusal = try #require(try verifier().refusal(of: try key.token(claims)))
      #expect(!refusal.description.contains("secret"))
    }
  }
}
