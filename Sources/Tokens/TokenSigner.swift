// Signs tokens, for `locationhub token` and for tests.
import HubBytes
public import HubMessages

/// The claims of a token to be signed.
public struct TokenRequest: Sendable {
  public var claims: Claims
  public var issuer: String?
  public var audience: String?
  public var notBefore: Timestamp?
  public var issuedAt: Timestamp?

  public init(claims: Claims) { self.claims = claims }
}

extension SigningKey {
  /// A token in compact form (RFC 7515 §7.1), signed with this key.
  ///
  /// - Parameter keyID: the header's `kid`; nil for the key's own.
  /// - Throws: `.cannotSign` for a public key.
  public func token(_ request: TokenRequest, keyID: String? = nil) throws(KeyError) -> [UInt8] {
    var header = ByteBuffer(capacity: 64)
    header.append("{\"alg\":", algorithm.rawValue)
    header.append(",\"typ\":\"JWT\"")
    header.append(",\"kid\":", keyID ?? self.keyID)
    header.append("}")
    return try signed(header: header.array(), payload: request.payload())
  }

  /// Any header and payload, signed (RFC 7515 §5.1): for tests of refusals, and for claims that are not the hub's.
  public func signed(header: [UInt8], payload: [UInt8]) throws(KeyError) -> [UInt8] {
    let input = Base64.url.encode(header) + [UInt8(ascii: ".")] + Base64.url.encode(payload)
    return input + [UInt8(ascii: ".")] + Base64.url.encode(try sign(input))
  }
}

extension TokenRequest {
  /// The claims as a token's payload has them.
  public func payload() -> [UInt8] {
    var text = ByteBuffer(capacity: 256)
    text.append("{\"sub\":", claims.subject)
    text.append(",\"role\":", claims.role.name)
    text.append(",\"iss\":", issuer)
    text.append(",\"aud\":", audience)
    text.append(",\"iat\":", issuedAt.map(numericDate))
    text.append(",\"nbf\":", notBefore.map(numericDate))
    text.append(",\"exp\":", claims.expires.map(numericDate))
    if let grants = claims.grants { append(grants, to: &text) }
    text.append("}")
    return text.array()
  }

  private func append(_ grants: Grants, to text: inout ByteBuffer) {
    text.append(",\"jti\":", grants.tokenID)
    if !grants.trips.isEmpty { text.append(",\"trips\":", grants.trips.map(\.description)) }
    if !grants.channels.isEmpty { text.append(",\"channels\":", grants.channels.map(\.description)) }
    text.append(",\"vehicleType\":", grants.vehicle?.vehicleType)
    text.append(",\"tags\":", grants.vehicle?.tags)
    text.append(",\"tier\":", grants.tier)
    guard let limits = grants.limits else { return }
    text.append(",\"limits\":{")
    text.append("\"rate\":", limits.rate)
    text.append(limits.rate == nil ? "\"burst\":" : ",\"burst\":", limits.burst)
    text.append("}")
  }

  /// Seconds, with the milliseconds as a fraction where there are any (RFC 7519 §2).
  private func numericDate(_ time: Timestamp) -> Double { Double(time.milliseconds) / 1000 }
}
