// What a listener needs to speak TLS: a certificate and its key, which may be replaced while connections stand, and the
// keys of session tickets, which do not depend on them, so that clients resume whatever was reloaded.
//
// Sessions are resumed by tickets alone (RFC 8446 §2.2, RFC 5077): the client keeps the state, encrypted with a key
// that all loops share, and the server keeps nothing. With TLS 1.3 a stolen ticket key opens no recorded traffic,
// because a new key exchange is always part of it; with TLS 1.2 it opens that of resumed sessions, so keys change
// (TicketKeys).

import CHubOpenSSL
import HubSystem

/// A server's side of TLS. Shared by all loops; a handshake uses what was newest when its first bytes came.
public final class TLSServer: Sendable {
  private let context: Locked<(newest: TLSContext, notAfter: Int64)>
  let ticketKeys = TicketKeys()

  /// From PEM texts: the certificate with its chain behind it, and its private key.
  public init(certificate: [UInt8], key: [UInt8]) throws(TLSError) {
    context = Locked((try TLSServer.makeContext(certificate, key, ticketKeys), try TLSServer.notAfter(certificate)))
  }

  /// New connections get this certificate, and tickets new keys; those that stand go on as they are, and sessions are
  /// resumed over it. Throws, and nothing changes, where it can't be used.
  public func replace(certificate: [UInt8], key: [UInt8]) throws(TLSError) {
    let new = (try TLSServer.makeContext(certificate, key, ticketKeys), try TLSServer.notAfter(certificate))
    context.withLock { $0 = new }
    ticketKeys.change()
  }

  /// A mutex for each handshake, which takes some hundred microseconds, is nothing.
  var current: TLSContext { context.withLock { $0.newest } }

  /// When the newest certificate, or the one of its chain that ends first, is no longer valid (s since 1970).
  public var notAfter: Int64 { context.withLock { $0.notAfter } }

  private static func notAfter(_ certificates: [UInt8]) throws(TLSError) -> Int64 {
    var first = Int64.max
    _ = try unsafe forEachCertificate(in: certificates) { (certificate) throws(TLSError) in
      defer { unsafe X509_free(certificate) }
      var time = unsafe tm()
      guard let end = unsafe X509_get0_notAfter(certificate), unsafe ASN1_TIME_to_tm(end, &time) == 1 else { return }
      first = unsafe min(first, Int64(timegm(&time)))
    }
    return first
  }

  private static func makeContext(
    _ certificate: [UInt8], _ key: [UInt8], _ ticketKeys: TicketKeys
  ) throws(TLSError) -> TLSContext {
    try unsafe TLSContext(TLS_server_method()) { (context) throws(TLSError) in
      try unsafe useChain(certificate, context)
      try unsafe useKey(key, context)
      guard unsafe SSL_CTX_check_private_key(context) == 1 else { throw .keyDoesNotFit }
      unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
      unsafe ticketKeys.serve(context)
      // One is enough: a client has one connection. The default is two.
      unsafe SSL_CTX_set_num_tickets(context, 1)
      unsafe SSL_CTX_set_alpn_select_cb(context, chooseProtocol, nil)
    }
  }

  /// The first certificate is the server's own, the others lead from it to a root (RFC 8446 §4.4.2).
  private static func useChain(_ text: [UInt8], _ context: OpaquePointer) throws(TLSError) {
    var isFirst = true
    let count = try unsafe forEachCertificate(in: text) { (certificate) throws(TLSError) in
      if isFirst {
        isFirst = false
        defer { unsafe X509_free(certificate) }
        try unsafe checkDates(certificate)
        guard unsafe SSL_CTX_use_certificate(context, certificate) == 1 else { throw .badCertificate(takeErrorText()) }
      } else if unsafe SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 0, UnsafeMutableRawPointer(certificate)) != 1 {
        unsafe X509_free(certificate)
        throw .badCertificate("its chain: \(takeErrorText())")
      }
    }
    guard count > 0 else { throw .noCertificate }
  }

  /// A certificate that no client would take is a mistake to be told at once.
  private static func checkDates(_ certificate: OpaquePointer) throws(TLSError) {
    if let end = unsafe X509_get0_notAfter(certificate), unsafe X509_cmp_current_time(end) < 0 {
      throw unsafe .expired(text(of: end))
    }
    if let start = unsafe X509_get0_notBefore(certificate), unsafe X509_cmp_current_time(start) > 0 {
      throw unsafe .notYetValid(text(of: start))
    }
  }

  private static func text(of time: UnsafePointer<ASN1_TIME>) -> String {
    guard let target = unsafe BIO_new(BIO_s_mem()) else { return "an unreadable date" }
    defer { unsafe BIO_free(target) }
    guard unsafe ASN1_TIME_print(target, time) == 1 else { return "an unreadable date" }
    return unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
      let count = unsafe BIO_read(target, buffer.baseAddress, Int32(buffer.count))
      return unsafe String(decoding: buffer.prefix(Int(max(0, count))), as: UTF8.self)
    }
  }

  private static func useKey(_ text: [UInt8], _ context: OpaquePointer) throws(TLSError) {
    try unsafe withPEM(text) { (source) throws(TLSError) in
      // Without a callback of our own OpenSSL would ask the terminal for a password.
      var wasAsked = false
      let key = unsafe withUnsafeMutablePointer(to: &wasAsked) {
        unsafe PEM_read_bio_PrivateKey(
          source, nil,
          { _, _, _, wasAsked in
            unsafe wasAsked?.assumingMemoryBound(to: Bool.self).pointee = true
            return -1
          }, unsafe $0)
      }
      guard let key = unsafe key else {
        if wasAsked { throw .encryptedKey }
        // OpenSSL's word for a text without a key is "unsupported", and the same for a kind of key that it does not
        // know.
        throw hasPrivateKey(text) ? .badKey(takeErrorText()) : .noKey
      }
      defer { unsafe EVP_PKEY_free(key) }
      guard unsafe SSL_CTX_use_PrivateKey(context, key) == 1 else {
        let error = ERR_peek_error()
        let fits = hub_err_library(error) != ERR_LIB_X509
        throw fits ? .badKey(takeErrorText()) : .keyDoesNotFit
      }
    }
  }
}

/// Whether a PEM text has a line that begins a private key of some kind (RFC 7468 §10, §11 and older forms).
private func hasPrivateKey(_ text: [UInt8]) -> Bool {
  let mark = Array("PRIVATE KEY-----".utf8)
  return text.indices.contains { text[$0...].starts(with: mark) }
}

/// ALPN (RFC 7301 §3.2): http/1.1 where it is offered, and a fatal no_application_protocol where only others are. A
/// client without ALPN is served.
private let chooseProtocol: SSL_CTX_alpn_select_cb_func = { _, chosen, chosenLength, offered, offeredLength, _ in
  guard let chosen = unsafe chosen, let chosenLength = unsafe chosenLength, let offered = unsafe offered else {
    return SSL_TLSEXT_ERR_ALERT_FATAL
  }
  let wanted = TLSContext.protocols
  var at = 0
  // OpenSSL has checked that the lengths in the list add up.
  while at < Int(offeredLength) {
    let length = unsafe Int(offered[at])
    if length + 1 == wanted.count, (0...length).allSatisfy({ unsafe offered[at + $0] == wanted[$0] }) {
      // It points into the client's list, which outlives the handshake's need of it.
      unsafe chosen.pointee = offered + at + 1
      unsafe chosenLength.pointee = UInt8(length)
      return SSL_TLSEXT_ERR_OK
    }
    at += 1 + length
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL
}
