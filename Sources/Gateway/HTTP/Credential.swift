// The identity and rights of a peer: by a token (`Authorization: Bearer`, `access_token=`, or a subprotocol that is
// offered), else by its certificate, else with `--dev-auth` by its query.
import HubCore
import HubHTTP
import HubMessages
import HubTokens
import HubTransport

/// A peer's identity, after its check.
struct Credential: Sendable, Equatable {
  /// The source of its rights.
  enum Authority: Sendable, Equatable {
    /// Development: every trip.
    case development
    /// A token with these lists; nil for none, as for a device's key and a certificate.
    case token(Grants?)
  }

  var role: Role
  var id: Identifier
  var authority = Authority.development
  /// When the token or certificate expires; nil for never.
  var expires: Timestamp?

  /// The identity for the hub.
  var actor: Actor { Actor(role: role, id: id) }

  /// Whether the credential's `trips` include the trip: then a driver may drive it, and a rider request it.
  func names(trip: Identifier) -> Bool {
    switch authority {
    case .development: true
    case .token(let grants): grants?.names(trip: trip) ?? false
    }
  }

  /// A driver's vehicle claims as an input of the hub; nil without any.
  var vehicleInput: HubInput? {
    guard role == .driver, case .token(let grants) = authority, let vehicle = grants?.vehicle else { return nil }
    return .vehicle(id, vehicle)
  }

  /// Whether it may read all vehicles: ops, and a token whose `channels` include `fleet`.
  var opensVehicleFeed: Bool {
    if case .token(let grants?) = authority, grants.opensVehicleFeed { return true }
    return role == .ops
  }

  /// Whether it belongs to the holder of a share, who may see that trip alone.
  var isShare: Bool { role == .rider && TripShare.isHolder(id) }

  /// Whether it opens a trip's channel, or another that its role does not open by itself.
  private func opens(_ channel: Channel) -> Bool {
    switch authority {
    case .development: if case .trip = channel { true } else { false }
    case .token(let grants): grants?.opens(channel) ?? false
    }
  }

  /// Its rights on a channel; nil for none. A rider has trips that its credential names, and its own. A driver has its
  /// own channel and such trips. Ops have all. Areas and places are open to every rider, and the fleet's channels only
  /// to ops, whatever a token says.
  func grant(for channel: Channel) -> ChannelGrant? {
    if isShare { if case .trip = channel, opens(channel) { return .granted } else { return nil } }
    return switch (role, channel) {
    case (.ops, _), (.rider, .area), (.rider, .nearby): .granted
    case (_, .fleet), (_, .trips), (_, .raw), (_, .stats), (_, .box), (_, .counts), (_, .countsBlock): nil
    case (_, .driver(let driver)): role == .driver && driver == id || opens(channel) ? .granted : nil
    case (_, .trip):
      if !opens(channel) {
        .onlyForParties
      } else {
        role == .driver && authority == .development ? .whileUnclaimed : .granted
      }
    case (_, .fence), (_, .area), (_, .nearby): opens(channel) ? .granted : nil
    }
  }
}

extension Credential {
  init(_ claims: Claims) {
    self.init(role: claims.role, id: claims.subject, authority: .token(claims.grants), expires: claims.expires)
  }
}

/// The present rules for checking credentials.
struct CredentialCheck {
  let access: TokenAccess?
  /// Identifies the value of `access`.
  let generation: UInt64
  /// Host names under which development credentials are accepted; nil where they are not.
  let developmentHosts: AllowedHosts?
  let certificates: ClientCertificates
  let now: Timestamp
  /// The number of public keys that signatures of tokens were checked with.
  var signatures = 0

  /// A token decides where one is given and accepted, then the peer's certificate, then the query's `role` and `id`.
  mutating func credential(
    of head: RequestHead, _ certificate: PeerCertificate?
  ) throws(CredentialError) -> Credential {
    if let access, let token = try Credential.token(of: head) { return try credential(of: token, by: access) }
    if let certificate { return try credential(of: certificate, head) }
    guard access == nil || developmentHosts != nil else {
      throw CredentialError(text: "no credential: send Authorization: Bearer <token>, or ?access_token=<token>")
    }
    return try Credential(development: head, developmentHosts)
  }

  mutating func credential(of token: [UInt8], by access: TokenAccess) throws(CredentialError) -> Credential {
    do throws(TokenError) { return Credential(try access.check(token, now: now, counting: &signatures)) } catch {
      throw CredentialError(error)
    }
  }

  private func credential(
    of certificate: PeerCertificate, _ head: RequestHead
  ) throws(CredentialError) -> Credential {
    // This certificate is the proxy's own and says nothing about its clients.
    guard !ClientAddress.wasForwarded(head.fields) else {
      throw CredentialError(text: "a client certificate does not stand for requests that come through a proxy")
    }
    let credential = try certificates.credential(of: certificate, now: now)
    guard access?.hasRevoked(credential.id, nil, now: now) != true else {
      throw CredentialError(text: "the identity of the client certificate was revoked")
    }
    return credential
  }
}

/// Why no credential was accepted; the text is sent to the peer with HTTP 401.
struct CredentialError: Error, Equatable {
  var code = ErrorCode.unauthorized
  var text: String
  /// Whether it was a token that was refused (RFC 6750 §3.1: `invalid_token`).
  var isToken = false
}

extension CredentialError {
  init(_ error: TokenError) {
    self.init(code: error == .expired ? .tokenExpired : .unauthorized, text: error.description, isToken: true)
  }

  /// A description of the hosts of `AllowedHosts`, for refusals.
  static let hosts = "Host is a loopback address, localhost, or a name that the operator gave with --allow-host"

  /// RFC 9110 §11.6.1: a 401 names what would be accepted.
  var challenge: OutgoingField {
    OutgoingField("WWW-Authenticate", isToken ? "Bearer error=\"invalid_token\"" : "Bearer")
  }
}

extension Query {
  /// The decoded value of a parameter; nil where it is absent or badly encoded.
  func text(_ name: StaticString) -> String? {
    do throws(HTTPError) { return try string(name) } catch { return nil }
  }
}

extension Credential {
  /// The token of a request, which must be given once, in one way (RFC 6750 §2); nil where there is none.
  static func token(of request: RequestHead) throws(CredentialError) -> [UInt8]? {
    let inQuery: [UInt8]?
    do throws(HTTPError) {
      inQuery = try request.query.bytes("access_token")
    } catch {
      throw CredentialError(text: "access_token is not well encoded")
    }
    // RFC 6750 §2: one token, in one way. With two, another reader of the request may use the other one.
    if case .repeated = request.query.fault(knowing: ["access_token"], passingOthers: true) {
      throw CredentialError(text: "give access_token once")
    }
    let offered = try offeredToken(of: request)
    guard offered == nil || inQuery == nil else { throw CredentialError(text: once) }
    switch request.fields.single("authorization") {
    case .absent: return offered ?? inQuery
    case .repeated: throw CredentialError(text: "send Authorization once")  // RFC 9110 §5.3: it is no list
    case .value(let value):
      guard inQuery == nil, offered == nil else { throw CredentialError(text: once) }
      // RFC 9110 §11.1: the scheme is case-insensitive.
      let scheme = value.prefix { $0 != 0x20 }
      guard ASCII.equals(scheme, "bearer") else {
        throw CredentialError(text: "Authorization must be Bearer <token>")
      }
      return Array(value.dropFirst(scheme.count).drop { $0 == 0x20 })
    }
  }

  private static let once = "give the token in Authorization, in the query or as a subprotocol, in one of them only"
  private static let tokenProtocol = "access_token."

  /// The token that a browser offers as a subprotocol, since it can set no header of an upgrade, and URLs are logged by
  /// proxies. A token's characters are allowed in a subprotocol (RFC 7515 §7.1, RFC 6455 §4.1). The hub never selects
  /// it.
  private static func offeredToken(of request: RequestHead) throws(CredentialError) -> [UInt8]? {
    let offered = request.fields.elements("sec-websocket-protocol").filter { $0.starts(with: tokenProtocol.utf8) }
    guard offered.count <= 1 else { throw CredentialError(text: "offer access_token.<token> once") }
    return offered.first.map { Array($0.dropFirst(tokenProtocol.utf8.count)) }
  }

  /// The development credential: only for programs of this machine and pages that it serves. Requests through a proxy
  /// look like these, and so do those of a web page whose name is made to point here (AllowedHosts.swift), and what a
  /// page of any origin links to.
  ///
  /// - Parameter hosts: host names under which development credentials are accepted; nil where they are not.
  fileprivate init(development request: RequestHead, _ hosts: AllowedHosts?) throws(CredentialError) {
    if let hosts {
      guard !ClientAddress.wasForwarded(request.fields) else {
        throw CredentialError(
          text: "this request came through a proxy (Forwarded, Via, X-Forwarded-* or X-Real-IP): development "
            + "credentials are not taken from there, since everybody could have them")
      }
      // A browser sends no `Origin` for a page's images, frames and links to other origins, but this (Fetch Metadata).
      let site = request.fields.string("sec-fetch-site")
      guard site != "cross-site" && site != "same-site" || request.fields["origin"] != nil else {
        throw CredentialError(text: "development credentials are not taken from a page of another origin")
      }
      guard hosts.allows(request.fields) else {
        throw CredentialError(text: "development credentials are taken only where \(CredentialError.hosts)")
      }
    }
    try self.init(query: request.query, allowsDevelopmentCredentials: hosts != nil)
  }

  /// Reads `role` and `id` of the query; only where `--dev-auth` allows it.
  init(query: Query, allowsDevelopmentCredentials: Bool) throws(CredentialError) {
    guard allowsDevelopmentCredentials else {
      throw CredentialError(text: "no credential: this hub was started with neither --token-keys nor --dev-auth")
    }
    guard let roleText = query.text("role"), let idText = query.text("id") else {
      throw CredentialError(text: "no credential: give ?role=driver|rider|ops&id=<id> (development credentials)")
    }
    guard let role = Role(claim: roleText) else { throw CredentialError(text: "role must be driver, rider or ops") }
    guard let id = Identifier(idText) else {
      throw CredentialError(text: "id must be 1-64 of A-Z a-z 0-9 . _ -")
    }
    self.init(role: role, id: id)
  }
}
