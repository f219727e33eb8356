// Who a peer is and what it may see: by a token (`Authorization: Bearer`, `access_token=`, or a subprotocol that is
// offered), else by its certificate, else with `--dev-auth` by what its query says.
import HubCore
import HubHTTP
import HubMessages
import HubTokens
import HubTransport

/// A peer's identity, after it was checked.
struct Credential: Sendable, Equatable {
  /// What it rests on.
  enum Authority: Sendable, Equatable {
    /// Development: whoever it is names every trip.
    case development
    /// A token with these lists; nil where it has none. A device's key and a certificate are like a token without.
    case token(Grants?)
  }

  var role: Role
  var id: Identifier
  var authority = Authority.development
  /// When the token's, or the certificate's, time is over; nil for never.
  var expires: Timestamp?

  /// As the hub knows it.
  var actor: Actor { Actor(role: role, id: id) }

  /// Whether the credential's `trips` have the trip: a driver may then drive it, and a rider request it.
  func names(trip: Identifier) -> Bool {
    switch authority {
    case .development: true
    case .token(let grants): grants?.names(trip: trip) ?? false
    }
  }

  /// What a driver's token says of its vehicle, for the hub; nil where it says nothing.
  var vehicleInput: HubInput? {
    guard role == .driver, case .token(let grants) = authority, let vehicle = grants?.vehicle else { return nil }
    return .vehicle(id, vehicle)
  }

  /// Whether it may read all vehicles: ops may, and a token whose `channels` have `fleet`.
  var opensVehicleFeed: Bool {
    if case .token(let grants?) = authority, grants.opensVehicleFeed { return true }
    return role == .ops
  }

  /// Whether it is that of whoever has a link to a trip, and may see that and nothing else.
  var isShare: Bool { role == .rider && TripShare.isHolder(id) }

  /// Whether it opens a trip's channel, or one beside those of its role.
  private func opens(_ channel: Channel) -> Bool {
    switch authority {
    case .development: if case .trip = channel { true } else { false }
    case .token(let grants): grants?.opens(channel) ?? false
    }
  }

  /// How far it opens a channel, nil for not at all. A rider: trips that its credential names, and its own. A driver:
  /// its own channel, and likewise. Ops: all. Areas and places are open to every rider, and what is about the whole
  /// fleet to ops only, whatever a token says.
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

/// By what credentials are checked now.
struct CredentialCheck {
  let access: TokenAccess?
  /// Counts the values of `access`.
  let generation: UInt64
  /// Under which names the hub takes development credentials; nil where it takes none.
  let developmentHosts: AllowedHosts?
  let certificates: ClientCertificates
  let now: Timestamp

  init(_ access: TokenAccess?, _ generation: UInt64, _ configuration: ServerConfiguration, now: Timestamp) {
    self.access = access
    self.generation = generation
    developmentHosts = configuration.allowsDevelopmentCredentials ? configuration.hosts : nil
    certificates = configuration.clientCertificates
    self.now = now
  }

  /// A token decides where one is given and taken, then the certificate that the peer has shown, and the query's `role`
  /// and `id` otherwise.
  func credential(of head: RequestHead, _ certificate: PeerCertificate?) throws(CredentialError) -> Credential {
    if let access, let token = try Credential.token(of: head) {
      do throws(TokenError) { return Credential(try access.check(token, now: now)) } catch {
        throw CredentialError(error)
      }
    }
    if let certificate { return try credential(of: certificate, head) }
    guard access == nil || developmentHosts != nil else {
      throw CredentialError(text: "no credential: send Authorization: Bearer <token>, or ?access_token=<token>")
    }
    return try Credential(development: head, developmentHosts)
  }

  private func credential(
    of certificate: PeerCertificate, _ head: RequestHead
  ) throws(CredentialError) -> Credential {
    // It is the proxy's own, and would make everybody who comes through it the proxy.
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

/// Why no credential was accepted; the text goes to the peer with HTTP 401.
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

  /// Which hosts `AllowedHosts` has, for those who are told that theirs is not one of them.
  static let hosts = "Host is a loopback address, localhost, or a name that the operator gave with --allow-host"

  /// RFC 9110 §11.6.1: a 401 says what would be accepted.
  var challenge: OutgoingField {
    OutgoingField("WWW-Authenticate", isToken ? "Bearer error=\"invalid_token\"" : "Bearer")
  }
}

extension Query {
  /// The decoded value of a parameter; nil where it is absent or not well encoded.
  func text(_ name: StaticString) -> String? {
    do throws(HTTPError) { return try string(name) } catch { return nil }
  }
}

extension Credential {
  /// The token of a request: one, in one place (RFC 6750 §2); nil where there is none.
  static func token(of request: RequestHead) throws(CredentialError) -> [UInt8]? {
    let inQuery: [UInt8]?
    do throws(HTTPError) {
      inQuery = try request.query.bytes("access_token")
    } catch {
      throw CredentialError(text: "access_token is not well encoded")
    }
    // RFC 6750 §2: one token, in one way. Of two, who reads the request elsewhere may take the other one.
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
      // RFC 9110 §11.1: the scheme is written in any case.
      let scheme = value.prefix { $0 != 0x20 }
      guard String(decoding: scheme, as: UTF8.self).lowercased() == "bearer" else {
        throw CredentialError(text: "Authorization must be Bearer <token>")
      }
      return Array(value.dropFirst(scheme.count).drop { $0 == 0x20 })
    }
  }

  private static let once = "give the token in Authorization, in the query or as a subprotocol, in one of them only"
  private static let tokenProtocol = "access_token."

  /// The token that a browser offers as a subprotocol: it can set no header of an upgrade, and an address stands in
  /// proxies' logs. A token's characters are those of a subprotocol (RFC 7515 §7.1, RFC 6455 §4.1). The hub never
  /// chooses it, for it chooses among its own.
  private static func offeredToken(of request: RequestHead) throws(CredentialError) -> [UInt8]? {
    let offered = request.fields.elements("sec-websocket-protocol").filter { $0.starts(with: tokenProtocol.utf8) }
    guard offered.count <= 1 else { throw CredentialError(text: "offer access_token.<token> once") }
    return offered.first.map { Array($0.dropFirst(tokenProtocol.utf8.count)) }
  }

  /// Development's credential: only for programs of this machine and for pages that it serves. A proxy makes everybody
  /// look like one of these, and so does a web page whose name is made to point here (AllowedHosts.swift).
  ///
  /// - Parameter hosts: under which names the hub takes development credentials; nil where it takes none.
  fileprivate init(development request: RequestHead, _ hosts: AllowedHosts?) throws(CredentialError) {
    if let hosts {
      guard !ClientAddress.wasForwarded(request.fields) else {
        throw CredentialError(
          text: "this request came through a proxy (Forwarded, Via, X-Forwarded-* or X-Real-IP): development "
            + "credentials are not taken from there, since everybody could have them")
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
