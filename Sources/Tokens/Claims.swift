// A verified token's claims (RFC 7519 §4, and the hub's own: protocol/tokens.md).
package import HubBytes
public import HubMessages

/// The claims of a token that was accepted.
public struct Claims: Sendable, Equatable {
  /// `sub`: the driver's, rider's or operator's id.
  public var subject: Identifier
  public var role: Role
  /// `exp`, to the millisecond; nil where the token does not expire.
  public var expires: Timestamp?
  /// Nil where the token has none of `trips`, `channels`, `limits`, `vehicleType`, `tags`, `jti` and `tier`.
  public var grants: Grants?

  public init(subject: Identifier, role: Role, expires: Timestamp? = nil, grants: Grants? = nil) {
    self.subject = subject
    self.role = role
    self.expires = expires
    self.grants = grants
  }
}

extension Claims {
  /// The claims that a back end names for the hub to sign.
  package static let requested = ["sub", "role", "trips", "channels", "limits", "vehicleType", "tags", "tier"]

  /// Reads the claims; the verifier checks signature and times.
  package init(members: [String: JSONValue]) throws(TokenError) {
    guard let sub = present(members, "sub") else { throw .missing(.sub) }
    guard let subject = sub.string.flatMap({ Identifier($0) }) else { throw .invalid(.sub) }
    guard let roleValue = present(members, "role") else { throw .missing(.role) }
    guard let role = roleValue.string.flatMap({ Role(claim: $0) }) else { throw .invalid(.role) }
    self.init(
      subject: subject, role: role, expires: try Claims.date(members, "exp", .exp),
      grants: try Claims.grants(members))
  }

  /// NumericDate (RFC 7519 §2): seconds, perhaps with a fraction, kept to the millisecond.
  static func date(
    _ members: [String: JSONValue], _ name: String, _ claim: TokenError.Claim
  ) throws(TokenError) -> Timestamp? {
    guard let value = members[name] else { return nil }  // null must not mean "never expires"
    // Up to the year 9999, so that no arithmetic on it can overflow.
    guard let seconds = value.number, (0...253_402_300_799).contains(seconds) else { throw .invalid(claim) }
    return Timestamp(milliseconds: Int64((seconds * 1000).rounded(.down)))
  }

  private static func grants(_ members: [String: JSONValue]) throws(TokenError) -> Grants? {
    let trips = try list(members, "trips", .trips) { NamePattern($0) }
    let channels = try list(members, "channels", .channels) { ChannelPattern($0) }
    let limits = try limits(members)
    var tokenID: InlineText?
    if let value = present(members, "jti") {
      guard let text = value.string, let id = InlineText(text), !id.isEmpty else { throw .invalid(.jti) }
      tokenID = id
    }
    let vehicle = try vehicle(members)
    var tier: InlineText?
    if let value = present(members, "tier") {
      guard let text = value.string, let name = InlineText(text), !name.isEmpty else { throw .invalid(.tier) }
      tier = name
    }
    if trips.isEmpty, channels.isEmpty, limits == nil, vehicle == nil, tokenID == nil, tier == nil { return nil }
    return Grants(
      trips: trips, channels: channels, limits: limits, vehicle: vehicle, tokenID: tokenID, tier: tier)
  }

  /// Bounded as in `driver_status`.
  private static func vehicle(_ members: [String: JSONValue]) throws(TokenError) -> VehicleClaims? {
    var vehicle = VehicleClaims()
    if let value = present(members, "vehicleType") {
      guard let text = value.string.flatMap({ InlineText($0) }), !text.isEmpty else { throw .invalid(.vehicleType) }
      vehicle.vehicleType = text
    }
    if let value = present(members, "tags") {
      guard let elements = value.elements, elements.count <= DriverStatusReport.maximumTags else {
        throw .invalid(.tags)
      }
      var tags: [InlineText] = []
      for element in elements {
        guard let tag = element.string.flatMap({ InlineText($0) }), !tag.isEmpty else { throw .invalid(.tags) }
        tags.append(tag)
      }
      vehicle.tags = tags
    }
    return vehicle.isEmpty ? nil : vehicle
  }

  private static func list<Element>(
    _ members: [String: JSONValue], _ name: String, _ claim: TokenError.Claim, _ read: (String) -> Element?
  ) throws(TokenError) -> [Element] {
    guard let value = present(members, name) else { return [] }
    guard let elements = value.elements, elements.count <= Grants.maximumEntries else { throw .invalid(claim) }
    var list: [Element] = []
    for element in elements {
      guard let entry = element.string.flatMap(read) else { throw .invalid(claim) }
      list.append(entry)
    }
    return list
  }

  private static func limits(_ members: [String: JSONValue]) throws(TokenError) -> SessionLimits? {
    guard let value = present(members, "limits") else { return nil }
    guard let limits = value.members else { throw .invalid(.limits) }
    let read = SessionLimits(
      rate: try limit(limits, "rate", in: SessionLimits.rates),
      burst: try limit(limits, "burst", in: SessionLimits.bursts))
    return read.rate == nil && read.burst == nil ? nil : read
  }

  private static func limit(
    _ members: [String: JSONValue], _ name: String, in range: ClosedRange<Double>
  ) throws(TokenError) -> Double? {
    guard let value = present(members, name) else { return nil }
    guard let number = value.number, range.contains(number) else { throw .invalid(.limits) }
    return number
  }
}

/// A member's value; nil if it is absent or `null`. Only for members whose absence grants nothing, so not for `exp`.
func present(_ members: [String: JSONValue], _ name: String) -> JSONValue? {
  members[name].flatMap { $0 == .null ? nil : $0 }
}

extension Role {
  /// The role of that name.
  public init?(claim name: String) {
    guard let role = Role.allCases.first(where: { name.isSpelled("\($0.name)") }) else { return nil }
    self = role
  }
}
