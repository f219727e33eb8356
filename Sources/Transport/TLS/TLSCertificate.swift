// A server's certificate with its chain and its private key, read and checked; and its OCSP response, if the operator
// provides one.

import CHubOpenSSL
import Glibc
import HubSystem

/// One certificate of a server.
public final class TLSCertificate: Sendable {
  let context: TLSContext
  /// Its DNS names, in lower case.
  let names: [String]
  /// The end of validity of it or its chain, whichever is first (s since 1970).
  let notAfter: Int64
  private let status: OCSPResponse?

  /// - Parameters:
  ///   - certificate: PEM, followed by its chain.
  ///   - key: PEM; the certificate's private key.
  ///   - status: an OCSP response for it alone (RFC 6960 §4.2.1, DER). Clients that ask get it with the certificate
  ///     (RFC 8446 §4.4.2.1) while it is valid.
  public init(certificate: [UInt8], key: [UInt8], status: [UInt8]? = nil) throws(TLSError) {
    var (names, notAfter): ([String], Int64) = ([], .max)
    _ = try unsafe forEachCertificate(in: certificate) { (certificate) throws(TLSError) in
      defer { unsafe X509_free(certificate) }
      if notAfter == .max { names = unsafe subjectNames(of: certificate) }
      notAfter = unsafe min(notAfter, endOfTime(of: certificate) ?? .max)
    }
    self.names = names.filter { $0.hasPrefix("DNS:") }.map { String($0.dropFirst(4)) }
    self.notAfter = notAfter
    let context = try unsafe TLSContext(TLS_server_method()) { (context) throws(TLSError) in
      try unsafe useChain(certificate, context)
      try unsafe useKey(key, context)
      guard unsafe SSL_CTX_check_private_key(context) == 1 else { throw .keyDoesNotFit }
      unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
      // One suffices, since a client has one connection. The default is two.
      unsafe SSL_CTX_set_num_tickets(context, 1)
      unsafe SSL_CTX_set_alpn_select_cb(context, chooseProtocol, nil)
    }
    self.context = context
    self.status = try status.map { (bytes) throws(TLSError) in
      try unsafe OCSPResponse(bytes, of: SSL_CTX_get0_certificate(context.raw))
    }
    if status != nil {
      unsafe hub_ssl_staple(context.raw, stapleStatus, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  /// The OCSP response while it is valid; nil without one, and after its end.
  fileprivate var currentStatus: [UInt8]? {
    status.flatMap { $0.until > ClockReading.read().unixMilliseconds / 1000 ? $0.bytes : nil }
  }
}

/// An authority's statement about a certificate, and its validity.
private struct OCSPResponse {
  let bytes: [UInt8]
  /// The end of its validity (s since 1970); `.max` where it has none.
  let until: Int64

  /// Throws where it is not of `certificate`: after a renewal there may be the response of the one before.
  init(_ bytes: [UInt8], of certificate: OpaquePointer?) throws(TLSError) {
    self.bytes = bytes
    until = try unsafe bytes.withUnsafeBufferPointer { (buffer) throws(TLSError) -> Int64 in
      var next = buffer.baseAddress
      guard let response = unsafe d2i_OCSP_RESPONSE(nil, &next, buffer.count) else {
        throw .badStatus(takeErrorText())
      }
      defer { unsafe OCSP_RESPONSE_free(response) }
      guard unsafe OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL,
        let basic = unsafe OCSP_response_get1_basic(response)
      else { throw .badStatus("it is no answer to the question") }
      defer { unsafe OCSP_BASICRESP_free(basic) }
      guard let single = unsafe OCSP_resp_get0(basic, 0) else { throw .badStatus("it is of no certificate") }
      var serial: UnsafeMutablePointer<ASN1_INTEGER>?
      unsafe OCSP_id_get0_info(nil, nil, nil, &serial, OCSP_SINGLERESP_get0_id(single))
      guard unsafe ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(certificate)) == 0 else {
        throw .badStatus("it is of another certificate")
      }
      var until: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
      let status = unsafe OCSP_single_get0_status(single, nil, nil, nil, &until)
      guard status == V_OCSP_CERTSTATUS_GOOD else { throw .badStatus("it does not say that the certificate is good") }
      return unsafe until.flatMap { unsafe seconds($0) } ?? .max
    }
  }
}

private let stapleStatus: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, certificate in
  guard let ssl = unsafe ssl, let certificate = unsafe certificate,
    let status = unsafe Unmanaged<TLSCertificate>.fromOpaque(certificate).takeUnretainedValue().currentStatus,
    unsafe hub_ssl_set_status(ssl, status, status.count) == 1
  else { return SSL_TLSEXT_ERR_NOACK }
  return SSL_TLSEXT_ERR_OK
}

/// An ASN.1 time in seconds since 1970; nil where it is malformed.
private func seconds(_ time: UnsafePointer<ASN1_TIME>) -> Int64? {
  var parts = unsafe tm()
  guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
  return unsafe Int64(timegm(&parts))
}

/// The end of a certificate's validity (s since 1970).
func endOfTime(of certificate: OpaquePointer) -> Int64? {
  unsafe X509_get0_notAfter(certificate).flatMap { unsafe seconds($0) }
}

/// The first certificate is the server's own, the others form its chain to a root (RFC 8446 §4.4.2).
private func useChain(_ text: [UInt8], _ context: OpaquePointer) throws(TLSError) {
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

/// Refuses a certificate that no client would accept.
private func checkDates(_ certificate: OpaquePointer) throws(TLSError) {
  if let end = unsafe X509_get0_notAfter(certificate), unsafe X509_cmp_current_time(end) < 0 {
    throw unsafe .expired(text(of: end))
  }
  if let start = unsafe X509_get0_notBefore(certificate), unsafe X509_cmp_current_time(start) > 0 {
    throw unsafe .notYetValid(text(of: start))
  }
}

private func text(of time: UnsafePointer<ASN1_TIME>) -> String {
  guard let target = unsafe BIO_new(BIO_s_mem()) else { return "an unreadable date" }
  defer { unsafe BIO_free(target) }
  guard unsafe ASN1_TIME_print(target, time) == 1 else { return "an unreadable date" }
  return unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
    let count = unsafe BIO_read(target, buffer.baseAddress, Int32(buffer.count))
    return unsafe String(decoding: buffer.prefix(Int(max(0, count))), as: UTF8.self)
  }
}

private func useKey(_ text: [UInt8], _ context: OpaquePointer) throws(TLSError) {
  try unsafe withPEM(text) { (source) throws(TLSError) in
    // Without a callback OpenSSL would ask the terminal for a password.
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
      // OpenSSL reports "unsupported" both for a text without a key and for an unknown kind of key.
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
      // It points into the client's list, which outlives the handshake's use of it.
      unsafe chosen.pointee = offered + at + 1
      unsafe chosenLength.pointee = UInt8(length)
      return SSL_TLSEXT_ERR_OK
    }
    at += 1 + length
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL
}
