// Refresh tokens, each of which is exchanged for new tokens once. One is signed as an access token is, but has no
// `role`, and its `typ` says what it is (RFC 8725 §3.11).
public import HubBytes
public import HubMessages

/// The claims of a refresh token.
public struct RefreshToken: Sendable, Equatable {
  public let subject: Identifier
  /// The `jti` of all tokens that descend from one exchange.
  public let family: InlineText
  /// Its number in the family, from 1.
  public let serial: UInt64
  public let expires: Timestamp
  /// The claim `tier` of its family's access tokens.
  public let tier: InlineText?

  static let type = "refresh+jwt"

  public init(
    subject: Identifier, family: InlineText, serial: UInt64, expires: Timestamp, tier: InlineText? = nil
  ) {
    self.subject = subject
    self.family = family
    self.serial = serial
    self.expires = expires
    self.tier = tier
  }

  /// The token in compact form (RFC 7515 §7.1). Throws `.cannotSign` for a public key.
  public func signed(by key: SigningKey) throws(KeyError) -> [UInt8] {
    var header = ByteBuffer(capacity: 64)
    var payload = ByteBuffer(capacity: 128)
    header.append("{\"alg\":", key.algorithm.rawValue)
    header.append(",\"typ\":", RefreshToken.type)
    header.append("}")
    payload.append("{\"sub\":", subject)
    payload.append(",\"jti\":", family)
    payload.append(",\"n\":", serial)
    payload.append(",\"exp\":", Int(expires.milliseconds / 1000))
    if let tier { payload.append(",\"tier\":", tier) }
    payload.append("}")
    return try key.signed(header: header.array(), payload: payload.array())
  }

  /// Reads one that is signed by this `key`, whatever its header says, and valid at `now`. The hub checks whether it
  /// was used before.
  ///
  /// - Complexity: O(length), and one signature.
  public init(checking token: [UInt8], by key: SigningKey, now: Timestamp) throws(TokenError) {
    let token = try CompactToken(token)
    guard let head = JSONValue(parsing: token.header)?.members, head["crit"] == nil else { throw .badHeader }
    guard head["typ"]?.string?.isSpelled(RefreshToken.type) == true else { throw .isNoRefreshToken }
    guard head["alg"]?.string?.isSpelled(key.algorithm.rawValue) == true else { throw .algorithmDoesNotFitKey }
    guard key.verifies(token.signature, of: token.signed) else { throw .badSignature }
    guard let members = JSONValue(parsing: token.payload)?.members else { throw .badClaims }
    guard let subject = members["sub"]?.string.flatMap({ Identifier($0) }) else { throw .invalid(.sub) }
    guard let family = members["jti"]?.string.flatMap({ InlineText($0) }) else { throw .invalid(.jti) }
    guard let serial = members["n"]?.number, (1...1e15).contains(serial) else { throw .badClaims }
    guard let expires = try Claims.date(members, "exp", .exp) else { throw .missing(.exp) }
    guard now < expires else { throw .expired }
    let tier = members["tier"]?.string.flatMap { InlineText($0) }
    self.init(subject: subject, family: family, serial: UInt64(serial), expires: expires, tier: tier)
  }
}
