// Families of refresh tokens, and questions and answers about them and about revocations.
public import HubBytes
public import HubMessages

/// The refresh tokens of one `POST /v1/tokens`, one after the other: each is used once and gives the next. A second use
/// shows theft: then the whole family ends (RFC 9700 §4.14.2).
///
/// A token is signed and has its family and serial number, so the hub keeps the family and no tokens.
public struct TokenFamily: Sendable, Equatable {
  /// The `jti` of all its access tokens.
  public let id: InlineText
  public let subject: Identifier
  public let role: Role
  /// The other claims of its access tokens, as a JSON object.
  public let claims: [UInt8]
  /// By the hub's wall clock, as `rotated`.
  public let created: Timestamp
  /// The serial number of the newest refresh token, from 1.
  public internal(set) var serial: UInt64 = 1
  /// When the newest tokens were made; their lifetimes count from it.
  public internal(set) var rotated: Timestamp
  /// Until this uptime (ns) the previous refresh token gets the newest one's answer, which may have been lost.
  var graceEnds = Int64.min
  /// The end of the grace is still to be recorded; a deadline checks it.
  var hasGrace = false
  /// When the last of its access tokens ends, even if the clock was set back since.
  var lastAccessEnds: Timestamp
  /// The record of the newest rotation (`HubStorage.ticket`).
  var ticket: UInt64 = 0

  /// The id of a new family, from a random word without a dot. In a cluster it begins with the name of its `hub`.
  public static func id(_ word: InlineText, at hub: String?) -> InlineText {
    hub.flatMap { InlineText("\($0).\(word)") } ?? word
  }

  /// The hub of a cluster that made a family; nil for a single hub's.
  public static func hub(of id: InlineText) -> String? {
    let text = "\(id)"
    return text.lastIndex(of: ".").map { String(text[..<$0]) }
  }

  public init(id: InlineText, subject: Identifier, role: Role, claims: [UInt8], created: Timestamp) {
    self.id = id
    self.subject = subject
    self.role = role
    self.claims = claims
    self.created = created
    rotated = created
    lastAccessEnds = created + HubLimits.accessTokenMilliseconds
  }

  /// The word that the id was made from, the same at all hubs.
  public var word: InlineText { InlineText("\(id)".split(separator: ".").last.map(String.init) ?? "") ?? id }

  /// This family under the id that the hub of this name gives it. None of its tokens may have been handed out.
  public func begun(at hub: String) -> TokenFamily {
    TokenFamily(
      id: TokenFamily.id(word, at: hub), subject: subject, role: role, claims: claims, created: created)
  }

  /// When the newest access token ends.
  public var accessEnds: Timestamp { rotated + HubLimits.accessTokenMilliseconds }
  /// When the newest refresh token ends, and with it the family.
  public var refreshEnds: Timestamp { rotated + HubLimits.refreshTokenMilliseconds }
}

/// What a revocation names.
public enum RevokedName: Sendable, Hashable {
  /// All present and future tokens of a `sub`.
  case subject(Identifier)
  /// The token with this `jti`, which all access tokens of a family share.
  case tokenID(InlineText)
  /// The families of a `sub` that were made before the revocation, also at hubs that could not be asked.
  case families(of: Identifier)
}

/// Tokens that are invalid although signed and unexpired.
public struct Revocation: Sendable, Equatable {
  public let name: RevokedName
  /// By the hub's wall clock, as it was given; nil for ever.
  public let until: Timestamp?
  public let cause: RevocationCause

  public init(_ name: RevokedName, until: Timestamp?, cause: RevocationCause = .backEnd) {
    self.name = name
    self.until = until
    self.cause = cause
  }

  /// Until when it is in force; nil for ever. A back end gives its token's expiry, after which the token is still
  /// accepted for some time (`TokenPolicy.leewaySeconds`).
  public var inForceUntil: Timestamp? {
    switch cause {
    case .backEnd: until.map { $0 + HubLimits.revocationMarginMilliseconds }
    case .endedFamily, .endedElsewhere: until
    }
  }

  /// Whether it is in force for longer than another one.
  func outlasts(_ other: Revocation) -> Bool {
    guard let end = other.inForceUntil else { return false }
    return inForceUntil.map { $0 > end } ?? true
  }

  /// The end of all families of a `sub`, also at hubs that are away.
  init(endOfFamiliesOf subject: Identifier, at time: Timestamp) {
    self.init(.families(of: subject), until: time + HubLimits.refreshTokenMilliseconds)
  }

  /// Whether it ends a family that was made before this hub heard of it. The clock of the hub that made the family may
  /// be ahead.
  func ends(_ family: TokenFamily) -> Bool {
    guard case .families(family.subject) = name, let until else { return false }
    return family.created + HubLimits.refreshTokenMilliseconds <= until + HubLimits.revocationMarginMilliseconds
  }
}

/// The cause of a revocation. Raw values are in journals.
public enum RevocationCause: UInt8, Sendable {
  /// A back end asked for it.
  case backEnd = 0
  /// The tokens' family has ended, here or at another hub (`endedElsewhere`); they expire soon.
  case endedFamily = 1
  case endedElsewhere = 2
}

/// A revocation in its table.
struct KeptRevocation {
  var revocation: Revocation
  /// Kept until this uptime (ns) at least, whatever the wall clock does: a token that seemed expired by a clock that
  /// ran ahead becomes valid again when the clock is set right.
  var holdsUntil = Int64.min
  /// A deadline at its end, or earlier, is armed.
  var isArmed = false
}

/// Changes of the revocations, for all components that check tokens.
public struct RevocationChange: Sendable, Equatable {
  /// One more than that of the change before.
  public let number: UInt64
  /// It came from another hub of the cluster, which has sent it to all.
  public internal(set) var isOfPeers = false
  public var added: [Revocation] = []
  public var removed: [RevokedName] = []
}

/// Questions over HTTP about tokens and sessions: of back ends, of ops, and of the holders of refresh tokens.
public enum CredentialQuestion: Sendable {
  /// Begins a family; with the id of one that is there, asks for its first tokens again. `isKeyed`: the id is made of
  /// an idempotency key, so that a cluster makes one family however many of its hubs are asked.
  case begin(TokenFamily, isKeyed: Bool = false)
  /// Uses a refresh token, of which these are the claims.
  case refresh(family: InlineText, subject: Identifier, serial: UInt64)
  case families(of: Identifier)
  /// Ends all families of a `sub`.
  case end(of: Identifier)
  /// How many sessions an id has open at the hubs of a cluster. A hub by itself is not asked: its loops know.
  case sessions(of: Identifier)
  case revoke(Revocation)
  /// A page, from a `next` of an earlier answer, or 0.
  case revocations(from: Int, limit: Int)
  case unrevoke(RevokedName)
  /// Revocations shared between hubs: each is valid until the latest end given anywhere.
  case extend([Revocation], isOfPeers: Bool)
}

/// The answer to a `CredentialQuestion`.
public enum CredentialAnswer: Sendable {
  /// The newest tokens of the family, to be signed.
  case family(TokenFamily, isNew: Bool)
  /// The most recently refreshed first. Incomplete where a hub of the cluster did not answer.
  case families([TokenFamily], isComplete: Bool)
  /// The number of ended families. Incomplete where a hub of the cluster did not answer.
  case ended(Int, isComplete: Bool = true)
  /// Open sessions in each role that has any. Not complete where a hub of the cluster has not answered.
  case sessions([Role: Int], isComplete: Bool)
  case revoked(Revocation, isNew: Bool)
  /// `next` continues the list; nil at its end.
  case revocations([Revocation], next: Int?)
  case unrevoked
  case refused(ErrorReply)
}

extension CredentialQuestion {
  /// The `sub` or `jti` concerned.
  var target: InlineText? {
    switch self {
    case .begin(let family, _): family.subject.text
    case .refresh(_, let subject, _), .families(let subject), .end(let subject), .sessions(let subject): subject.text
    case .revoke(let revocation): revocation.name.text
    case .revocations: nil
    case .extend(let revocations, _): revocations.first?.name.text
    case .unrevoke(let name): name.text
    }
  }
}

extension RevokedName {
  /// The `sub` or the `jti`.
  public var text: InlineText {
    switch self {
    case .subject(let id), .families(let id): id.text
    case .tokenID(let id): id
    }
  }
}

extension CredentialAnswer {
  /// Whether an answer of other hubs is given at once, since nothing has to be stored here before.
  var isStoredElsewhere: Bool {
    switch self {
    case .family, .sessions: true
    case .families, .ended, .revoked, .revocations, .unrevoked, .refused: false
    }
  }

  /// Whether it only lists what is in force here: it changed nothing that would have to be stored.
  var isList: Bool {
    switch self {
    case .families, .sessions, .revocations: true
    case .family, .ended, .revoked, .unrevoked, .refused: false
    }
  }

  /// The status that it is answered with over HTTP.
  public var status: Int {
    switch self {
    case .family(_, let isNew), .revoked(_, let isNew): isNew ? 201 : 200
    case .families, .ended, .sessions, .revocations: 200
    case .unrevoked: 204
    case .refused(let error): Int(error.code.facts.status)
    }
  }
}
