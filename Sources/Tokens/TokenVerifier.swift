// Verifies tokens: RFC 7515 §5.2 and RFC 7519 §7.2, in their order, with the advice of RFC 8725. Pure: the time is a
// parameter.
import HubBytes
public import HubMessages

/// What a token must claim beside being signed.
public struct TokenPolicy: Sendable, Equatable {
  /// The required `iss`, if any.
  public var issuer: String?
  /// The required `aud`, alone or among others, if any.
  public var audience: String?
  /// How far the clocks of issuer and hub may be apart, for `exp` and `nbf` (RFC 7519 §4.1.4).
  public var leewaySeconds: Int64 = 30

  public init(issuer: String? = nil, audience: String? = nil) {
    self.issuer = issuer
    self.audience = audience
  }
}

/// Checks tokens against keys and a policy.
public struct TokenVerifier: Sendable {
  public let keys: KeySet
  public let policy: TokenPolicy

  public init(keys: KeySet, policy: TokenPolicy = TokenPolicy()) {
    self.keys = keys
    self.policy = policy
  }

  /// The claims of a token in compact form that is signed by one of the keys and valid at `now`.
  ///
  /// - Throws: the first reason for a refusal. Claims are read only after the signature is verified, so that errors
  ///   reveal nothing to an attacker who cannot sign.
  /// - Parameter signatures: increased by the number of public keys that its signature was checked with.
  /// - Complexity: O(length), and a signature for each selected key: about 5 µs for HS256, 30 to 150 µs for the others.
  public func verify(
    _ token: some Collection<UInt8>, now: Timestamp, counting signatures: inout Int
  ) throws(TokenError) -> Claims {
    let token = try CompactToken(token)
    let candidates = try candidates(token.header)
    let isSigned = candidates.contains { key in
      if key.algorithm != .hs256 { signatures += 1 }
      return key.verifies(token.signature, of: token.signed)
    }
    guard isSigned else { throw .badSignature }

    guard let members = JSONValue(parsing: token.payload)?.members else { throw .badClaims }  // RFC 7519 §7.2 step 10
    try check(members, now)
    return try Claims(members: members)
  }

  /// The claims of a valid token, for callers that do not count the signatures.
  public func verify(_ token: some Collection<UInt8>, now: Timestamp) throws(TokenError) -> Claims {
    var signatures = 0
    return try verify(token, now: now, counting: &signatures)
  }

  /// The keys that may have signed, selected by the header: RFC 7515 §5.2 steps 3 to 5.
  private func candidates(_ bytes: [UInt8]) throws(TokenError) -> [SigningKey] {
    guard let header = JSONValue(parsing: bytes)?.members, let name = header["alg"]?.string else { throw .badHeader }
    // RFC 7515 §4.1.11: no critical extension is known. `b64` (RFC 7797) requires `crit`, so it is refused too.
    guard header["crit"] == nil else { throw .criticalHeader }
    guard let algorithm = Algorithm.allCases.first(where: { name.isSpelled($0.rawValue) }) else {
      throw .unsupportedAlgorithm
    }
    guard header["typ"]?.string?.isSpelled(RefreshToken.type) != true else { throw .isRefreshToken }
    let keyID = header["kid"]?.string
    guard header["kid"] == nil || keyID != nil else { throw .badHeader }  // RFC 7515 §4.1.4
    // Keys in or referred to by a token (jwk, jku, x5c, x5u) are ignored (RFC 8725 §3.10).
    return try keys.candidates(keyID: keyID, algorithm: algorithm)
  }

  private func check(_ members: [String: JSONValue], _ now: Timestamp) throws(TokenError) {
    let leeway = policy.leewaySeconds * 1000
    if let issuer = policy.issuer, !says(members["iss"], issuer) { throw .wrongIssuer }  // RFC 7519 §4.1.1
    if let audience = policy.audience {  // RFC 7519 §4.1.3: a string, or an array of them
      let list = members["aud"]?.elements ?? [members["aud"] ?? .null]
      guard list.contains(where: { says($0, audience) }) else { throw .wrongAudience }
    }
    if let begins = try Claims.date(members, "nbf", .nbf) {  // RFC 7519 §4.1.5
      guard now.milliseconds + leeway >= begins.milliseconds else { throw .notYetValid }
    }
    if let ends = try Claims.date(members, "exp", .exp) {  // RFC 7519 §4.1.4: "on or after which"
      guard now.milliseconds - leeway < ends.milliseconds else { throw .expired }
    }
  }

  /// RFC 7515 §5.3: compared by code points, which Swift's `==` for text does not.
  private func says(_ value: JSONValue?, _ text: String) -> Bool {
    value?.string.map { $0.utf8.elementsEqual(text.utf8) } ?? false
  }
}
