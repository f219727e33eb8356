// Making a token, for `locationhub token` and for tests.
import HubBytes
import HubMessages

/// What a token is to say.
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
  /// - Parameter keyID: goes into the header as `kid`; the key's own where it is nil.
  /// - Throws: `.cannotSign` for a public key.
  public func token(_ request: TokenRequest, keyID: String? = nil) throws(KeyError) -> [UInt8] {
    var header = ByteBuffer(capacity: 64)
    header.append("{\"alg\":")
    header.append(json: algorithm.rawValue)
    header.append(",\"typ\":\"JWT\"")
    if let keyID = keyID ?? self.keyID {
      header.append(",\"kid\":")
      header.append(json: keyID)
    }
    header.append("}")
    return try signed(header: header.array(), payload: request.json())
  }

  /// Any header and payload, signed (RFC 7515 §5.1): for tests of what is refused, and for claims that are not the
  /// hub's.
  public func signed(header: [UInt8], payload: [UInt8]) throws(KeyError) -> [UInt8] {
    let input = Base64URL.encode(header) + [UInt8(ascii: ".")] + Base64URL.encode(payload)
    return input + [UInt8(ascii: ".")] + Base64URL.encode(try sign(input))
  }
}

extension TokenRequest {
  /// The claims as the payload has them.
  func json() -> [UInt8] {
    var text = ByteBuffer(capacity: 256)
    text.append("{\"sub\":")
    text.append(json: claims.subject.text)
    text.append(",\"role\":\"")
    text.append(claims.role.name)
    text.append("\"")
    append("iss", issuer, to: &text)
    append("aud", audience, to: &text)
    append("iat", issuedAt, to: &text)
    append("nbf", notBefore, to: &text)
    append("exp", claims.expires, to: &text)
    if let grants = claims.grants { append(grants, to: &text) }
    text.append("}")
    return text.array()
  }

  private func append(_ grants: Grants, to text: inout ByteBuffer) {
    append("jti", grants.tokenID?.description, to: &text)
    append("trips", grants.trips.map(\.description), to: &text)
    append("channels", grants.channels.map(\.description), to: &text)
    append("vehicleType", grants.vehicle?.vehicleType?.description, to: &text)
    if let tags = grants.vehicle?.tags { append("tags", tags.map(\.description), orEmpty: true, to: &text) }
    guard let limits = grants.limits else { return }
    text.append(",\"limits\":{")
    if let rate = limits.rate {
      text.append("\"rate\":")
      text.append(double: rate)
    }
    if let burst = limits.burst {
      text.append(limits.rate == nil ? "\"burst\":" : ",\"burst\":")
      text.append(double: burst)
    }
    text.append("}")
  }

  private func begin(_ name: StaticString, in text: inout ByteBuffer) {
    text.append(",\"")
    text.append(name)
    text.append("\":")
  }

  private func append(_ name: StaticString, _ value: String?, to text: inout ByteBuffer) {
    guard let value else { return }
    begin(name, in: &text)
    text.append(json: value)
  }

  /// Seconds, with the milliseconds as a fraction where there are any (RFC 7519 §2).
  private func append(_ name: StaticString, _ time: Timestamp?, to text: inout ByteBuffer) {
    guard let time else { return }
    begin(name, in: &text)
    text.append(double: Double(time.milliseconds) / 1000)
  }

  private func append(
    _ name: StaticString, _ list: [String], orEmpty: Bool = false, to text: inout ByteBuffer
  ) {
    guard orEmpty || !list.isEmpty else { return }
    begin(name, in: &text)
    text.append("[")
    for (index, entry) in list.enumerated() {
      if index > 0 { text.append(",") }
      text.append(json: entry)
    }
    text.append("]")
  }
}
