// The identity in a certificate: its alternative names (RFC 5280 §4.2.1.6). The subject's common name does not count
// (RFC 9525 §2).

import CHubOpenSSL

/// A client's verified certificate, as far as it identifies the client.
public struct PeerCertificate: Sendable, Equatable {
  /// As OpenSSL writes them: `DNS:` and a name in lower case, `URI:`, `email:`. Others are left out.
  public var names: [String]
  /// The end of its validity (s since 1970): a session may be resumed later than that.
  public var notAfter: Int64

  public init(names: [String], notAfter: Int64) {
    self.names = names
    self.notAfter = notAfter
  }

  /// The peer's certificate after a completed handshake; nil where it has none that was verified.
  init?(_ ssl: OpaquePointer) {
    guard let certificate = unsafe SSL_get1_peer_certificate(ssl) else { return nil }
    defer { unsafe X509_free(certificate) }
    guard unsafe SSL_get_verify_result(ssl) == X509_V_OK, let end = unsafe endOfTime(of: certificate) else {
      return nil
    }
    self.init(names: unsafe subjectNames(of: certificate), notAfter: end)
  }
}

/// The alternative names of a certificate, in its order, each with its kind before it.
func subjectNames(of certificate: OpaquePointer) -> [String] {
  guard let names = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return [] }
  let stack = OpaquePointer(names)
  defer { unsafe GENERAL_NAMES_free(stack) }
  return unsafe (0..<OPENSSL_sk_num(stack)).compactMap { index -> String? in
    var kind: Int32 = 0
    guard let name = unsafe OPENSSL_sk_value(stack, index)?.assumingMemoryBound(to: GENERAL_NAME.self),
      let value = unsafe GENERAL_NAME_get0_value(name, &kind)
    else { return nil }
    let text = unsafe value.assumingMemoryBound(to: ASN1_STRING.self)
    switch kind {
    case GEN_DNS: return unsafe "DNS:" + string(text).lowercased()
    case GEN_URI: return unsafe "URI:" + string(text)
    case GEN_EMAIL: return unsafe "email:" + string(text)
    case _: return nil
    }
  }
}

private func string(_ text: UnsafePointer<ASN1_STRING>) -> String {
  unsafe String(
    decoding: UnsafeBufferPointer(start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text))),
    as: UTF8.self)
}
