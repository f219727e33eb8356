// A request while it is read and answered, its caller, and its cost.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTokens
import HubTransport

/// The peer of a connection.
struct HTTPPeer {
  /// The address of the socket's peer.
  let address: SocketAddress
  /// It came through the admin port.
  let isAdmin: Bool
  /// The peer is a trusted proxy: each request states its client.
  let isProxy: Bool
  /// Its certificate; nil where none was requested.
  var certificate: PeerCertificate?
}

final class HTTPRequest {
  let head: RequestHead
  let peer: HTTPPeer
  /// Whether its web page may make the request, by its origin.
  let origin: AllowedOrigins.Verdict
  /// Its path, decoded.
  let path: Result<[String], HTTPError>
  /// Read so far; empty again once the request was handled.
  var body = ByteBuffer()
  /// Whether the connection stays open after the answer.
  var keepsConnection: Bool
  /// How the body and the answer write timestamps.
  var time = TimeFormat.unixMilliseconds
  /// When it was complete (uptime, ns).
  var completed: Int64 = 0
  /// The family in which its time is counted; nil for none.
  var family: HTTPFamily? = .other
  /// The action of its refusal in the audit trail (HubCore/Credentials/Audit.swift); nil for none.
  var audit: AuditAction?
  /// Its endpoint is for phone apps.
  var isOfPhone = false
  /// Set where the body is one message: every answer is a reply, with the message's id if that could be read.
  var postedMessage: PostedMessage?
  /// It changes nothing: its answer may be refused.
  lazy var isReadOnly = head.method == .get
  /// The key by which the request is charged to its address; 0 for none.
  var rateKey: UInt64 = 0
  /// How long its address has to wait (ns), where it was over its rate when the head came.
  var rateWait: Int64?
  /// The credential, once checked, and the keys' generation.
  private var checked: (credential: Result<Credential, CredentialError>, generation: UInt64)?
  private var work = Work()
  /// Bytes around those of the body that were read and not charged: chunks may be of one byte (RFC 9112 §7.1).
  private var framingBytes = 0

  /// The cost of a request beyond its bytes.
  struct Work {
    /// Units for the content of its body.
    var units = 0
    /// Units of work in a later turn, which counts them itself.
    var unitsLater = 0
    /// Checked credentials, and their units.
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

  // MARK: The asker

  /// The credential. It is checked once, when first needed: before a large body is read, and again after it only where
  /// the keys have changed, or it was revoked, meanwhile.
  func credential(by check: CredentialCheck) throws(CredentialError) -> Credential {
    if let checked, checked.generation == check.generation {
      let credential = try checked.credential.get()
      if credential.isRevoked(by: check.access, now: check.now) { throw CredentialError(.revoked) }
      return credential
    }
    work.credentialChecks += 1
    var check = check
    let result = Result { () throws(CredentialError) in
      try isOfPhone ? check.phoneCredential(of: head) : check.credential(of: head, peer.certificate)
    }
    let units = check.signatures * WorkUnits.ofSignatureCheck
    // The address pays for a token that does not hold.
    if case .failure(let error) = result, error.isToken { work.units += units } else { work.checkUnits += units }
    checked = (result, check.generation)
    return try result.get()
  }

  func caller(by check: CredentialCheck) throws(Refusal) -> Credential {
    do throws(CredentialError) { return try credential(by: check) } catch { throw Refusal(error) }
  }

  /// The caller; nil before the credential was checked.
  var caller: Credential? { if case .success(let credential) = checked?.credential { credential } else { nil } }

  /// The asker, on the request's connection.
  ///
  /// - Precondition: a handler has checked the credential.
  func asker(_ connection: SessionRef) -> Asker { Asker(session: connection, credential: caller!, replyTo: nil) }

  /// The address that the request counts for.
  func clientAddress(trusted: [AddressBlock]) -> SocketAddress {
    peer.isProxy ? ClientAddress(of: head.fields, peer: peer.address, trusted: trusted).address : peer.address
  }

  /// A preflight of the CORS protocol (Fetch standard, "CORS-preflight").
  var isPreflight: Bool {
    guard head.method == .options, case .allowed = origin else { return false }
    return head.fields["access-control-request-method"] != nil
  }

  /// The caller and its address for the audit trail.
  func auditSource(_ action: AuditAction, trusted: [AddressBlock]) -> AuditSource {
    AuditSource(
      action, by: caller?.actor, from: InlineText(clientAddress(trusted: trusted).host) ?? InlineText())
  }

  /// Who the memory of its answer counts for: its caller, or its address; nil on loopback without a credential.
  var memoryOwner: MemoryOwner? {
    if let caller { return MemoryOwner(IdentityKey(caller).hash, caller.role) }
    return rateKey == 0 ? nil : MemoryOwner(IdentityKey(address: rateKey).hash, .rider)
  }

  // MARK: What it costs

  /// Charges the request for the content of its body, beyond its bytes.
  func charge(fixes: Int = 0, positions: Int = 0) {
    work.units +=
      WorkUnits.of(bytes: body.count, fixes: fixes, positions: positions) - WorkUnits.of(bytes: body.count)
  }

  /// Charges the request for reading so many bytes around those of its body.
  func charge(framing bytes: Int) {
    framingBytes += bytes
    work.units += framingBytes / WorkUnits.bytes
    framingBytes %= WorkUnits.bytes
  }

  /// Charges the request for more work.
  func charge(units: Int) { work.units += units }

  /// Charges the request's address for work of a later turn.
  func charge(unitsLater units: Int) { work.unitsLater += units }

  /// The work since the last call.
  func takeWork() -> Work {
    defer { work = Work() }
    return work
  }
}
