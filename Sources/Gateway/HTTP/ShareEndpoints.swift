// Links by which others follow a trip: its rider, or ops, make and end them; the hub keeps them with the trip and signs
// their tokens. A token opens the trip only while its share exists, so ending one needs no list of revoked tokens.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTokens

enum ShareEndpoints {
  static func list(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.list, call) }

  /// Answered, like `end`, when it is on stable storage.
  static func begin(_ call: HTTPCall) throws(Refusal) -> Outcome {
    guard let signer = call.context.configuration.tokenSigner else {
      throw Refusal(.notFound, "this hub signs no tokens (--token-sign-key)")
    }
    call.request.charge(unitsLater: WorkUnits.ofSigning(signer.algorithm))
    let now = call.context.now.timestamp
    var expires: Timestamp?
    if !call.request.body.isEmpty {
      expires = try unsafe call.read { (reader, bytes) throws(MessageError) in
        try unsafe reader.readShareExpiry(bytes, time: call.time)
      }
    }
    guard expires.map({ $0 > now }) ?? true else { throw Refusal(.badMessage, "expires has passed") }
    return try ask(.begin(TripShare(id: try id(for: call), created: now, expires: expires)), call)
  }

  static func end(_ call: HTTPCall) throws(Refusal) -> Outcome {
    guard let id = Identifier(call.parameters[1]) else { throw Refusal(.notFound, "this trip has no such share") }
    return try ask(.end(id), call)
  }

  /// A new share's id. The ids of one rider's shares begin alike, since the sessions of their holders are counted
  /// together (`IdentityKey`); those that ops make for one trip do so, too. Without `--pseudonym-key` those of another
  /// run, or another hub of a cluster, begin otherwise and are counted apart. Hashed, so that holders do not learn who
  /// the maker is.
  private static func id(for call: HTTPCall) throws(Refusal) -> Identifier {
    let caller = try call.caller()
    let maker = caller.role == .rider ? caller.id : try call.id(of: "trip")
    let start =
      call.context.configuration.pseudonymKey.map { maker.hash(as: caller.role, by: $0) }
      ?? IdentityKey(caller.role, maker).hash
    return .random(beginning: start, characters: TripShare.makerLength)
  }

  private static func ask(_ question: TripShareQuestion, _ call: HTTPCall) throws(Refusal) -> Outcome {
    .ask([.trips(call.context.session, .shares(try call.id(of: "trip"), question, try call.caller().actor))])
  }

  // MARK: Answers

  static func answer(_ shares: [TripShare], time: TimeFormat) -> Response {
    .json { body in
      body.append("{\"shares\":")
      body.append(list: shares) { body, share in
        body.append("{")
        JSONWriter.writeMembers(share, time: time, into: &body)
        body.append("}")
      }
      body.append("}")
    }
  }

  /// Shows a new share with its token, which is not shown again.
  static func answer(
    _ share: TripShare, of trip: Identifier, _ request: HTTPRequest, _ context: HTTPContext
  ) throws(Refusal) -> Response {
    let token = try token(share, of: trip, context)
    let configuration = context.configuration
    let host = request.head.fields.string("host") ?? ""
    let base = configuration.publicURL ?? "\(configuration.tls == nil ? "http" : "https")://\(host)"
    return .json(.created) { body in
      body.append("{")
      JSONWriter.writeMembers(share, time: request.time, into: &body)
      body.append(",\"url\":", "\(base)/track/\(trip)#token=\(token)")
      body.append(",\"token\":", token)
      body.append("}")
    }
  }

  private static func token(
    _ share: TripShare, of trip: Identifier, _ context: HTTPContext
  ) throws(Refusal) -> String {
    let grants = Grants(channels: ChannelPattern("trip:\(trip)").map { [$0] } ?? [])
    let claims = Claims(subject: share.holder, role: .rider, expires: share.expires, grants: grants)
    var request = TokenRequest(claims: claims)
    request.issuer = context.credentials.access?.verifier.policy.issuer
    request.audience = context.credentials.access?.verifier.policy.audience
    do throws(KeyError) {
      guard let signer = context.configuration.tokenSigner else { throw .cannotSign }
      return String(decoding: try signer.token(request), as: UTF8.self)
    } catch {
      throw Refusal(.internalError, "the hub could not sign the share's token")
    }
  }
}
