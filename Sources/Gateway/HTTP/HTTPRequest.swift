// A request while it is read and answered: what it asks, who makes it, and what it has cost.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTokens
import HubTransport

/// Where a connection comes from.
struct HTTPPeer {
  /// Whom the socket goes to.
  let address: SocketAddress
  /// It came in by the admin port.
  let isAdmin: Bool
  /// The peer is a proxy that is believed: who the client is, each request says.
  let isProxy: Bool
  /// What it has shown; nil where it was not asked.
  var certificate: PeerCertificate?
}

final class HTTPRequest {
  let head: RequestHead
  let peer: HTTPPeer
  /// Whether the web page that asks may: by its origin.
  let origin: AllowedOrigins.Verdict
  /// Its path, decoded.
  let path: Result<[String], HTTPError>
  /// As far as it was read; empty again once the request was handled.
  var body = ByteBuffer()
  /// Whether the connection goes on behind the answer.
  var keepsConnection: Bool
  /// How the body, and the answer's, write timestamps.
  var time = TimeFormat.unixMilliseconds
  /// When all of it had come (uptime, ns).
  var completed: Int64 = 0
  /// What its time counts for; nil for none.
  var family: HTTPFamily? = .other
  /// What its refusal is written down as (HubCore/Credentials/Audit.swift); nil for nothing.
  var audit: AuditAction?
  /// Its endpoint is one of phone apps.
  var isOfPhone = false
  /// Set where the body is one message: whatever is said to it is a reply, with the message's id where that was read.
  var postedMessage: PostedMessage?
  /// By what the request's address is charged; 0 where it is not.
  var rateKey: UInt64 = 0
  /// The credential, once it was looked at, and by which keys.
  private var checked: (credential: Result<Credential, CredentialError>, generation: UInt64)?
  private var work = Work()

  /// What looking at a request has cost beyond its bytes.
  struct Work {
    /// Units for what its body holds.
    var units = 0
    /// Units of what is done for it in a later turn, which counts them itself.
    var unitsLater = 0
    /// Credentials that were checked, and the units of it.
    var credentialChecks: UInt64 = 0
    var checkUnits = 0
  }

  init(_ head: RequestHead, from peer: HTTPPeer, origins: AllowedOrigins) {
    self.head = head
    self.peer = peer
    origin = origins.verdict(on: head.fields)
    path = Result { () throws(HTTPError) in try head.pathSegments() }
    keepsConnection = head.keepsAlive
  }

  // MARK: Who asks

  /// The credential. It is checked once, when it is first asked for: before a large body is taken, and again behind
  /// that only where the keys have changed, or it was revoked, meanwhile.
  func credential(by check: CredentialCheck) throws(CredentialError) -> Credential {
    if let checked, checked.generation == check.generation {
      let credential = try checked.credential.get()
      if credential.isRevoked(by: check.access, now: check.now) { throw CredentialError(.revoked) }
      return credential
    }
    work.credentialChecks += 1
    work.checkUnits += check.access?.unitsOfCheck ?? 0
    let result = Result { () throws(CredentialError) in
      try isOfPhone ? check.phoneCredential(of: head) : check.credential(of: head, peer.certificate)
    }
    checked = (result, check.generation)
    return try result.get()
  }

  func caller(by check: CredentialCheck) throws(Refusal) -> Credential {
    do throws(CredentialError) { return try credential(by: check) } catch { throw Refusal(error) }
  }

  /// Who has made the request; nil before its credential was looked at.
  var caller: Credential? { if case .success(let credential) = checked?.credential { credential } else { nil } }

  /// Who gets what the hub says, on the request's connection.
  ///
  /// - Precondition: a handler has asked who makes the request.
  func asker(_ connection: SessionRef) -> Asker { Asker(session: connection, credential: caller!, replyTo: nil) }

  /// The address that the request counts for.
  func clientAddress(trusted: [AddressBlock]) -> SocketAddress {
    peer.isProxy ? ClientAddress(of: head.fields, peer: peer.address, trusted: trusted).address : peer.address
  }

  /// The CORS protocol's question before a request that a page may not send unasked (Fetch standard, "CORS-preflight").
  var isPreflight: Bool {
    guard head.method == .options, case .allowed = origin else { return false }
    return head.fields["access-control-request-method"] != nil
  }

  /// Who does it, and from where.
  func auditSource(_ action: AuditAction, trusted: [AddressBlock]) -> AuditSource {
    AuditSource(
      action, by: caller?.actor, from: InlineText(clientAddress(trusted: trusted).host) ?? InlineText())
  }

  // MARK: What it costs

  /// Charges the request for what was found in its body, beyond what its bytes are charged for.
  func charge(fixes: Int = 0, positions: Int = 0) {
    work.units +=
      WorkUnits.of(bytes: body.count, fixes: fixes, positions: positions) - WorkUnits.of(bytes: body.count)
  }

  /// Charges the request for so much more work.
  func charge(units: Int) { work.units += units }

  /// Charges the request's address for work of a later turn.
  func charge(unitsLater units: Int) { work.unitsLater += units }

  /// What came on top since the last call.
  func takeWork() -> Work {
    defer { work = Work() }
    return work
  }
}
