// Tokens that the hub makes: a back end requests those of a driver or rider, who gets new ones for the refresh token
// until the family ends. The hub stores the families, but not the tokens that it signs.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTokens

enum TokenEndpoints {
  /// Answered, like all others that change something, when it is on stable storage.
  static func begin(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let signer = try call.context.requireSigner()
    call.request.charge(unitsLater: WorkUnits.ofSigning(signer.algorithm) * 2)
    let ofTheHub = ["exp", "iat", "nbf", "iss", "aud", "jti"]
    let members = try call.object(atMost: HubLimits.claimBytes, of: Claims.requested, shown: ofTheHub)
    for name in ofTheHub where members[name] != nil { throw Refusal(.badMessage, "\(name) is set by the hub") }
    let claims: Claims
    do throws(TokenError) { claims = try Claims(members: members) } catch { throw Refusal(.badMessage, "\(error)") }
    if let tier = claims.grants?.tier, call.context.credentials.access?.tiers[tier] == nil {
      throw Refusal(.badMessage, "this hub has no tier \(tier)")
    }
    guard claims.role != .ops else { throw Refusal(.forbidden, "the hub makes tokens for drivers and riders only") }
    guard !TripShare.isHolder(claims.subject) else {
      throw Refusal(.badMessage, "ids that begin with \(TripShare.prefix) are those of shared links")
    }
    let (actor, key) = (try call.caller().actor, try call.idempotencyKey())
    let word = key.map { Identifier(ofTokensAskedBy: actor, key: $0) } ?? .random()
    let id = TokenFamily.id(word.text, at: call.context.configuration.hubName)
    let now = call.context.now.timestamp
    guard call.context.credentials.access?.hasRevoked(claims.subject, id, now: now) != true else {
      throw Refusal(.forbidden, "tokens of this sub, or of this Idempotency-Key, are revoked")
    }
    let family = TokenFamily(
      id: id, subject: claims.subject, role: claims.role, claims: TokenRequest(claims: claims).payload(),
      created: now)
    return try call.ask(.begin(family, isKeyed: key != nil))
  }

  /// For whoever has a refresh token: it is the credential.
  static func refresh(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let signer = try call.context.requireSigner()
    call.request.time = try TimeFormat(call.query)
    if let fault = call.query.fault(knowing: HTTPRoute.commonParameters) { throw Refusal(.badMessage, "\(fault)") }
    // Apps send this body and may be newer than the hub, so unknown members are ignored.
    let members = try call.object(atMost: call.context.limits.unwantedBodyBytes, of: nil)
    guard let text = members["refreshToken"]?.string else { throw Refusal(.badMessage, "give refreshToken, a text") }
    if signer.algorithm != .hs256 { call.request.charge(units: WorkUnits.ofSignatureCheck) }
    call.request.charge(unitsLater: WorkUnits.ofSigning(signer.algorithm) * 2)
    let token: RefreshToken
    do throws(TokenError) {
      token = try RefreshToken(checking: Array(text.utf8), by: signer, now: call.context.now.timestamp)
    } catch {
      throw Refusal(CredentialError(error))
    }
    // This check does not use the token up: the file and the settings may allow later what they refuse now.
    if let fault = call.context.credentials.access?.fault(of: token) { throw Refusal(CredentialError(fault)) }
    return try call.ask(.refresh(family: token.family, subject: token.subject, serial: token.serial))
  }

  /// The families of a `sub`, without tokens.
  static func list(_ call: HTTPCall) throws(Refusal) -> Outcome {
    _ = try call.context.requireSigner()
    return try call.ask(.families(of: try call.query.subject()))
  }

  /// Ends all families of a `sub`, and the sessions that were opened with their tokens.
  static func end(_ call: HTTPCall) throws(Refusal) -> Outcome {
    _ = try call.context.requireSigner()
    return try call.ask(.end(of: try call.query.subject()))
  }

  // MARK: Answers

  static func answer(
    _ answer: CredentialAnswer, _ request: HTTPRequest, _ context: HTTPContext
  ) throws(Refusal) -> Outcome {
    let time = request.time
    switch answer {
    case .family(let family, let isNew): return .respond(try pair(of: family, isNew: isNew, time: time, context))
    case .families(let families, let isComplete):
      return .respond(
        .json { body in
          body.append("{\"tokens\":")
          body.append(list: families) { body, family in
            body.append("{\"jti\":", family.id)
            body.append(",\"role\":", family.role.name)
            body.append(",\"created\":", family.created, as: time)
            body.append(",\"refreshed\":", family.rotated, as: time)
            body.append(",\"refreshExpires\":", family.refreshEnds, as: time)
            body.append("}")
          }
          body.append(isComplete ? "}" : ",\"incomplete\":true}")
        })
    case .sessions(let counts, let isComplete):
      return .respond(
        SessionEndpoint.response(try request.head.query.subject(), counts, isComplete: isComplete))
    case .ended(let count, _):
      return .respond(
        .json { body in
          body.append("{\"ended\":", count)
          body.append("}")
        })
    case .revoked(let revocation, let isNew):
      return .respond(
        .json(isNew ? .created : .ok) { body in
          body.append("{")
          RevocationEndpoints.write(revocation, time: time, into: &body)
          body.append("}")
        })
    case .revocations(let page, let next):
      return .respond(RevocationEndpoints.answer(page, next: next, time: time))
    case .unrevoked: return .respond(Response(.noContent))
    case .refused(let error) where error.code == .unauthorized:
      throw Refusal(CredentialError(text: error.message, isToken: true))
    case .refused(let error): throw Refusal(error)
    }
  }

  /// Signs the newest tokens of a family. A repeated request gets tokens that expire at the same time.
  private static func pair(
    of family: TokenFamily, isNew: Bool, time: TimeFormat, _ context: HTTPContext
  ) throws(Refusal) -> Response {
    let (access, refresh) = try sign(family, context)
    // RFC 6749 §5.1.
    return .json(isNew ? .created : .ok, fields: [OutgoingField("Cache-Control", "no-store")]) { body in
      body.append("{\"jti\":", family.id)
      body.append(",\"sub\":", family.subject)
      body.append(",\"role\":", family.role.name)
      body.append(",\"accessToken\":", String(decoding: access, as: UTF8.self))
      body.append(",\"accessExpires\":", family.accessEnds, as: time)
      body.append(",\"refreshToken\":", String(decoding: refresh, as: UTF8.self))
      body.append(",\"refreshExpires\":", family.refreshEnds, as: time)
      body.append("}")
    }
  }

  private static func sign(
    _ family: TokenFamily, _ context: HTTPContext
  ) throws(Refusal) -> (access: [UInt8], refresh: [UInt8]) {
    let signer = try context.requireSigner()
    do {
      guard let members = JSONValue(parsing: family.claims)?.members else { throw TokenError.badClaims }
      var claims = try Claims(members: members)
      let refresh = RefreshToken(
        subject: family.subject, family: family.id, serial: family.serial, expires: family.refreshEnds,
        tier: claims.grants?.tier)
      claims.expires = family.accessEnds
      claims.grants = (claims.grants ?? Grants()).named(family.id)
      var request = TokenRequest(claims: claims)
      request.issuer = context.credentials.access?.verifier.policy.issuer
      request.audience = context.credentials.access?.verifier.policy.audience
      request.issuedAt = family.rotated
      return (try signer.token(request), try refresh.signed(by: signer))
    } catch {
      throw Refusal(.internalError, "the hub could not sign the tokens")
    }
  }
}

extension HTTPContext {
  /// The key that the hub signs with. Without one there are none of the endpoints of tokens.
  fileprivate func requireSigner() throws(Refusal) -> SigningKey {
    guard let signer = configuration.tokenSigner else {
      throw Refusal(.notFound, "this hub signs no tokens (--token-sign-key)")
    }
    return signer
  }
}

extension HTTPCall {
  /// Asks the hub, which audits its own decisions (HubCore/Credentials); HTTPService audits earlier refusals.
  fileprivate func ask(_ question: CredentialQuestion) throws(Refusal) -> Outcome {
    guard let source = auditSource else { throw Refusal(.internalError, "this endpoint is not audited") }
    request.audit = nil
    return .ask([.credentials(context.session, question, source)])
  }
}

extension WorkUnits {
  /// What a signature of a token counts for: one of RSA takes most of a millisecond, others up to 60 µs.
  static func ofSigning(_ algorithm: Algorithm) -> Int {
    switch algorithm {
    case .hs256: 0
    case .es256, .edDSA: 2
    case .rs256: 25
    }
  }

  /// What the check of a token's signature by one public key counts for: up to 150 µs.
  static let ofSignatureCheck = 5
}

/// The endpoints of revocations that back ends make, besides those in the file `--revoked`.
enum RevocationEndpoints {
  static func begin(_ call: HTTPCall) throws(Refusal) -> Outcome {
    try requireTokens(call.context)
    let members = try call.object(atMost: call.context.limits.unwantedBodyBytes, of: ["sub", "jti", "until"])
    let revocation: Revocation
    do throws(ErrorReply) {
      revocation = try Revocation(members: members, time: call.time, now: call.context.now.timestamp)
    } catch {
      throw Refusal(error)
    }
    let isInCluster = call.context.configuration.cluster != nil
    return try call.ask(isInCluster ? .extend([revocation], isOfPeers: false) : .revoke(revocation))
  }

  static func list(_ call: HTTPCall) throws(Refusal) -> Outcome {
    try requireTokens(call.context)
    let limit = try call.query.pageLimit(HubLimits.revocationsPerPage) ?? 100
    var start = 0
    if let cursor = try call.query.parameter("cursor") {
      guard let position = ListCursor(cursor, of: .revocations), position.hub == nil else {
        throw Refusal(.badMessage, "cursor must be the value of next in an earlier answer")
      }
      start = Int(position.number)
    }
    return try call.ask(.revocations(from: start, limit: limit))
  }

  static func end(_ call: HTTPCall) throws(Refusal) -> Outcome {
    try requireTokens(call.context)
    guard call.context.configuration.cluster == nil else {
      throw Refusal(.forbidden, "in a cluster a revocation cannot be withdrawn: revoke with until")
    }
    let (sub, jti) = (try call.query.parameter("sub"), try call.query.parameter("jti"))
    let name: RevokedName
    do throws(ErrorReply) { name = try RevokedName(sub: sub, jti: jti) } catch { throw Refusal(error) }
    return try call.ask(.unrevoke(name))
  }

  private static func requireTokens(_ context: HTTPContext) throws(Refusal) {
    guard context.credentials.access != nil else {
      throw Refusal(.notFound, "this hub takes no tokens (--token-keys)")
    }
  }

  // MARK: Answers

  static func write(_ revocation: Revocation, time: TimeFormat, into body: inout ByteBuffer) {
    switch revocation.name {
    case .subject(let id): body.append("\"sub\":", id)
    case .tokenID(let id): body.append("\"jti\":", id)
    case .families(let id): body.append("\"familiesOf\":", id)
    }
    if let until = revocation.until { body.append(",\"until\":", until, as: time) }
  }

  static func answer(_ page: [Revocation], next: Int?, time: TimeFormat) -> Response {
    .json { body in
      body.append("{\"revocations\":")
      body.append(list: page) { body, revocation in
        body.append("{")
        write(revocation, time: time, into: &body)
        body.append("}")
      }
      body.append(",\"next\":", next.map { ListCursor(UInt64($0)).text(of: .revocations) })
      body.append("}")
    }
  }
}
