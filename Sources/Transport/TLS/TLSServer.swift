// A listener's TLS: certificates and their keys, which may be replaced while connections are open, the authorities of
// clients' certificates, and the keys of session tickets, which do not depend on these, so that clients can resume
// after a reload.
//
// Each certificate has a context of its own, all set up alike; a handshake begins with the first one and changes to the
// one with the client's server name (SNI, RFC 6066 §3).
//
// Sessions are resumed by tickets alone (RFC 8446 §2.2, RFC 5077): the client keeps the state, encrypted with a key
// that all loops and all hubs of a cluster share, and the server keeps nothing. With TLS 1.3 a stolen ticket key opens
// no recorded traffic, because a new key exchange is always part of it; with TLS 1.2 it opens that of resumed sessions,
// so keys change (TicketKeys).

import CHubOpenSSL
import HubSystem

/// A server's side of TLS. Shared by all loops; a handshake uses the newest certificates as of its first bytes.
public final class TLSServer: Sendable {
  private let certificates: Locked<TLSCertificates>
  let ticketKeys: TicketKeys

  /// - Parameters:
  ///   - certificates: one or more, each given to no other server. The first is for clients without a host name, or one
  ///     that none is for; where two have one name, the first counts.
  ///   - clientAuthorities: a PEM text. Clients are asked for a certificate signed by these, and may have none; a
  ///     certificate of others ends the handshake. Nil: they are not asked.
  ///   - ticketSecrets: secrets of 32 random bytes that several servers share, so that each resumes the sessions of the
  ///     others: tickets are sealed with keys from the first, and opened with those from any. Without them the keys are
  ///     random.
  public init(
    _ certificates: [TLSCertificate], clientAuthorities: [UInt8]? = nil, ticketSecrets: [[UInt8]] = []
  ) throws(TLSError) {
    ticketKeys = TicketKeys(from: ticketSecrets)
    self.certificates = Locked(try TLSCertificates(certificates, clientAuthorities, ticketKeys))
  }

  /// Replaces the certificates for new connections, and random keys of new tickets; open connections stay, and sessions
  /// can be resumed, unless the clients' authorities changed. Throws, without a change, where they can't be used.
  public func replace(_ certificates: [TLSCertificate], clientAuthorities: [UInt8]? = nil) throws(TLSError) {
    let new = try TLSCertificates(certificates, clientAuthorities, ticketKeys)
    self.certificates.withLock { $0 = new }
    ticketKeys.change()
  }

  /// The newest certificates. A mutex for each handshake is negligible beside its hundreds of microseconds.
  var current: TLSCertificates { certificates.withLock { $0 } }

  /// The end of validity of the certificates or their chains, whichever is first (s since 1970).
  public var notAfter: Int64 { current.notAfter }
}

/// The certificates of one server, ready for handshakes. A handshake in progress holds them, since OpenSSL has pointers
/// to them.
final class TLSCertificates: Sendable {
  private let all: [TLSCertificate]
  private let byName: [String: TLSCertificate]

  fileprivate init(
    _ certificates: [TLSCertificate], _ clientAuthorities: [UInt8]?, _ ticketKeys: TicketKeys
  ) throws(TLSError) {
    precondition(!certificates.isEmpty, "a server of TLS has a certificate")
    all = certificates
    byName = Dictionary(
      certificates.flatMap { certificate in certificate.names.map { ($0, certificate) } },
      uniquingKeysWith: { first, _ in first })
    for certificate in certificates {
      unsafe ticketKeys.serve(certificate.context.raw)
      if let clientAuthorities { try unsafe askClients(clientAuthorities, certificate.context.raw) }
    }
    unsafe hub_ssl_choose_by_name(first.raw, chooseCertificate, Unmanaged.passUnretained(self).toOpaque())
  }

  /// The context that a handshake begins with.
  var first: TLSContext { all[0].context }

  var notAfter: Int64 { all.map(\.notAfter).min() ?? .max }

  /// The context for a host: with its own name, or a wildcard for its left-most label (RFC 9525 §6.3). Nil without one.
  fileprivate func context(for host: String) -> TLSContext? {
    let host = host.lowercased()
    if let exact = byName[host] { return exact.context }
    guard let dot = host.firstIndex(of: ".") else { return nil }
    return byName["*" + host[dot...]]?.context
  }
}

private let chooseCertificate:
  @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?) -> Int32 = {
    ssl, _, certificates in
    guard let ssl = unsafe ssl, let certificates = unsafe certificates,
      let host = unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name),
      let context = unsafe Unmanaged<TLSCertificates>.fromOpaque(certificates).takeUnretainedValue()
        .context(for: String(cString: host))
    else { return SSL_TLSEXT_ERR_NOACK }
    // Only the certificate differs: the connection keeps the options that it began with.
    return unsafe SSL_set_SSL_CTX(ssl, context.raw) == nil ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_OK
  }

/// Makes a context ask clients for a certificate (RFC 8446 §4.3.2). Strangers can cause that work, so the length of a
/// chain is limited, in bytes and in signatures.
private func askClients(_ authorities: [UInt8], _ context: OpaquePointer) throws(TLSError) {
  let store = unsafe SSL_CTX_get_cert_store(context)
  let count = try unsafe forEachCertificate(in: authorities) { (certificate) throws(TLSError) in
    defer { unsafe X509_free(certificate) }
    guard unsafe X509_STORE_add_cert(store, certificate) == 1, unsafe SSL_CTX_add_client_CA(context, certificate) == 1
    else { throw .badCertificate(takeErrorText()) }
  }
  guard count > 0 else { throw .noCertificate }
  unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
  unsafe SSL_CTX_set_verify_depth(context, EventLoopLimits.clientChainLength)
  unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_CERT_LIST, EventLoopLimits.clientChainBytes, nil)
  // A session under other authorities is not resumed: they had checked its client.
  var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
  _ = unsafe SHA256(authorities, authorities.count, &digest)
  let isSet = unsafe SSL_CTX_set_session_id_context(context, digest, UInt32(digest.count))
  precondition(isSet == 1, "a session's context is at most 32 bytes long")
}
