// The owner of one SSL_CTX: what all connections of one server or client have in common. TLS 1.2 and 1.3, nothing older
// (RFC 8996), with the options of both ends.

import CHubOpenSSL

/// The OpenSSL that this process has loaded, which may differ from the one it was built with.
public enum TLSLibrary {
  /// Its own version text: "OpenSSL 3.0.17 1 Jul 2025" (OpenSSL_version(3)).
  public static var version: String { unsafe String(cString: OpenSSL_version(OPENSSL_VERSION)) }
}

/// An immutable SSL_CTX.
@safe
final class TLSContext: Sendable {
  // After init nothing changes it, except for OpenSSL's own counts, which it locks: SSL_new may be called on several
  // threads at once (openssl-threads(7)). It is freed once, here; connections that still use it hold it themselves.
  nonisolated(unsafe) let raw: OpaquePointer

  /// The only protocol inside (RFC 7301 §3.1): its length, and "http/1.1".
  static let protocols: [UInt8] = [8] + Array("http/1.1".utf8)

  /// A context that `configure` sets up before anything else uses it.
  ///
  /// - Precondition: `method` is TLS_server_method() or TLS_client_method().
  init(_ method: OpaquePointer, _ configure: (OpaquePointer) throws(TLSError) -> Void) throws(TLSError) {
    ERR_clear_error()
    guard let context = unsafe SSL_CTX_new(method) else { preconditionFailure("OpenSSL has no memory for a context") }
    unsafe raw = context
    unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    // RSA and DH from 2,048 bits, no SHA-1, no RC4 (SSL_CTX_set_security_level(3)); older systems' default is 1.
    unsafe SSL_CTX_set_security_level(context, 2)
    unsafe SSL_CTX_set_options(context, hub_ssl_options)
    // Forward secrecy and authenticated encryption only, for TLS 1.2 (RFC 9325 §4.2); all of TLS 1.3's are like that.
    let isKnown = unsafe SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20")
    precondition(isKnown == 1, "OpenSSL without AES-GCM")
    // Likewise for TLS 1.3, the cheapest first; a client without AES hardware gets ChaCha20 (the options).
    let suites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    let areKnown = unsafe SSL_CTX_set_ciphersuites(context, suites)
    precondition(areKnown == 1, "OpenSSL without the suites of TLS 1.3")
    // An idle connection keeps no record buffers, which are 34 KiB. Partial writes stay off: one write then seals all
    // its bytes, in several records for a peer with short ones (RFC 6066 §4), and the buffers take everything.
    let mode = SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
    unsafe SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(mode), nil)
    unsafe SSL_CTX_set_msg_callback(context, countKeyUpdates)
    defer { ERR_clear_error() }
    try unsafe configure(context)
  }

  deinit { unsafe SSL_CTX_free(raw) }
}

/// Reads a PEM text. OpenSSL copies what `body` finds: the BIO has only a pointer into the array, for this call.
func withPEM<R>(_ text: [UInt8], _ body: (OpaquePointer) throws(TLSError) -> R) throws(TLSError) -> R {
  ERR_clear_error()
  defer { ERR_clear_error() }
  // OpenSSL refuses empty memory; a line end has nothing in it either.
  let text = text.isEmpty ? [10] : text
  return try unsafe text.withUnsafeBufferPointer { (bytes) throws(TLSError) -> R in
    guard let source = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
      preconditionFailure("OpenSSL has no memory for a BIO")
    }
    defer { unsafe BIO_free(source) }
    return try unsafe body(source)
  }
}

/// Calls `body` with each certificate of a PEM text, in order; `body` owns it. Gives how many there were.
func forEachCertificate(
  in text: [UInt8], _ body: (OpaquePointer) throws(TLSError) -> Void
) throws(TLSError) -> Int {
  try unsafe withPEM(text) { (source) throws(TLSError) -> Int in
    var count = 0
    while let certificate = unsafe PEM_read_bio_X509(source, nil, nil, nil) {
      count += 1
      try unsafe body(certificate)
    }
    let error = ERR_peek_last_error()
    // The end of the text is reported as an error: no further start line.
    guard hub_err_library(error) == ERR_LIB_PEM, hub_err_reason(error) == PEM_R_NO_START_LINE else {
      throw .badCertificate(takeErrorText())
    }
    return count
  }
}
