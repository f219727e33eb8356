// A client's side of TLS: trust, server name, and the session that it may resume there.

import CHubOpenSSL

/// The certificates that a client trusts. Shared by any number of connections and loops: a store of roots is a
/// megabyte.
public final class TLSClient: Sendable {
  let context: TLSContext

  /// Trusts what this system trusts (its CA store, or what SSL_CERT_FILE and SSL_CERT_DIR name).
  public static let system = TLSClient()

  private init() {
    do throws(TLSError) {
      context = try unsafe TLSContext(TLS_client_method()) { (context) throws(TLSError) in
        unsafe TLSClient.setUp(context)
        // A system without a store trusts nothing, and each certificate is refused with that reason.
        unsafe SSL_CTX_set_default_verify_paths(context)
      }
    } catch {
      preconditionFailure("nothing in it throws")
    }
  }

  /// Trusts only the certificates of a PEM text: roots, or a self-signed certificate of the hub.
  public init(trusting text: [UInt8]) throws(TLSError) {
    context = try unsafe TLSContext(TLS_client_method()) { (context) throws(TLSError) in
      unsafe TLSClient.setUp(context)
      let store = unsafe SSL_CTX_get_cert_store(context)
      let count = try unsafe forEachCertificate(in: text) { (certificate) throws(TLSError) in
        defer { unsafe X509_free(certificate) }
        guard unsafe X509_STORE_add_cert(store, certificate) == 1 else { throw .badCertificate(takeErrorText()) }
      }
      guard count > 0 else { throw .noCertificate }
    }
  }

  private static func setUp(_ context: OpaquePointer) {
    unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    // 0 is success here (SSL_CTX_set_alpn_protos(3)).
    let isRefused = unsafe SSL_CTX_set_alpn_protos(context, TLSContext.protocols, UInt32(TLSContext.protocols.count))
    precondition(isRefused == 0, "OpenSSL has no memory")
    // TLSPeer keeps sessions for resumption.
    unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
  }
}

/// One server for one client: the name that its certificate must have, and the last session's ticket, which saves the
/// next handshake its signature. Only the thread of the client's loop uses it.
@safe
public final class TLSPeer {
  let client: TLSClient
  /// A DNS name without the root's dot, or a numeric address without brackets.
  let name: String
  /// SSL_SESSION; owned.
  private var session: OpaquePointer?

  /// `name` is the host as in the URL: the certificate is checked for this DNS name or this IP address (RFC 9110
  /// §4.3.4).
  public init(_ client: TLSClient, name: String) {
    self.client = client
    // "hub.example." is the complete name of hub.example: neither SNI (RFC 6066 §3) nor certificates have the dot.
    self.name = name.hasSuffix(".") ? String(name.dropLast()) : name
  }

  deinit { if let session = unsafe session { unsafe SSL_SESSION_free(session) } }

  /// Whether there is a session to resume.
  public var hasSession: Bool { unsafe session != nil }

  /// Sets up a connection's SSL: the name, and the session, which is used once (RFC 8446 §C.4). False if OpenSSL fails.
  func prepare(_ ssl: OpaquePointer) -> Bool {
    if let session = unsafe session {
      unsafe SSL_set_session(ssl, session)
      unsafe SSL_SESSION_free(session)
      unsafe self.session = nil
    }
    let parameters = unsafe SSL_get0_param(ssl)
    guard SocketAddress(numeric: name) == nil else {
      return unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1
    }
    // "f*.example" is no acceptable wildcard (RFC 9525 §6.3).
    unsafe X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    guard unsafe X509_VERIFY_PARAM_set1_host(parameters, name, 0) == 1 else { return false }
    // SNI, for names only (RFC 6066 §3).
    return unsafe name.withCString {
      unsafe SSL_ctrl(
        ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), UnsafeMutableRawPointer(mutating: $0)) == 1
    }
  }

  /// Keeps the session of an ending connection: with TLS 1.3 it comes some time after the handshake.
  func keep(_ ssl: OpaquePointer) {
    guard let newest = unsafe SSL_get1_session(ssl) else { return }
    guard unsafe SSL_SESSION_is_resumable(newest) == 1 else { return unsafe SSL_SESSION_free(newest) }
    if let session = unsafe session { unsafe SSL_SESSION_free(session) }
    unsafe session = newest
  }
}
