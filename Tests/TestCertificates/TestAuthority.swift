// Certificates for tests and measurements, made while they run: an authority that nobody else knows, and what it signs.
// None of them lies in a file of the repository, so none can expire there or be trusted by mistake.

import CHubOpenSSL
import Glibc

/// A certificate authority of one run.
public final class TestAuthority: Sendable {
  /// What a key is made of.
  public enum KeyKind: Sendable {
    case p256
    case rsa(bits: Int32)
  }

  // Made in init, only read afterwards, and never freed before deinit.
  nonisolated(unsafe) private let certificate: OpaquePointer
  nonisolated(unsafe) private let key: OpaquePointer

  /// Its own certificate, in PEM: what a client trusts.
  public let pem: [UInt8]

  /// `parent`: the authority that signs this one's certificate, instead of itself.
  public init(name: String = "Tests of the location hub", signedBy parent: TestAuthority? = nil) {
    key = makeKey(.p256)
    certificate = makeCertificate(name: name, key: key, seconds: -86_400...86_400 * 30)
    addExtension(certificate, issuer: certificate, NID_basic_constraints, "critical,CA:TRUE")
    addExtension(certificate, issuer: certificate, NID_key_usage, "critical,keyCertSign")
    setIssuer(certificate, parent?.certificate ?? certificate)
    sign(certificate, parent?.key ?? key)
    pem = text(certificate)
  }

  deinit {
    X509_free(certificate)
    EVP_PKEY_free(key)
  }

  /// A certificate, signed by this authority, and its key, both in PEM. It is for these DNS names, numeric addresses
  /// and URIs, and valid in a span of seconds from now.
  public func issue(
    for hosts: [String] = ["localhost", "127.0.0.1", "::1"], seconds: ClosedRange<Int> = -3600...86_400,
    kind: KeyKind = .p256, usage: String = "serverAuth"
  ) -> (certificate: [UInt8], key: [UInt8]) {
    let own = makeKey(kind)
    defer { EVP_PKEY_free(own) }
    let issued = makeCertificate(name: hosts[0], key: own, seconds: seconds)
    defer { X509_free(issued) }
    addExtension(issued, issuer: certificate, NID_basic_constraints, "critical,CA:FALSE")
    addExtension(issued, issuer: certificate, NID_ext_key_usage, usage)
    let names = hosts.map { host in
      if host.contains("://") { return "URI:" + host }
      let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
      return (isAddress ? "IP:" : "DNS:") + host
    }
    addExtension(issued, issuer: certificate, NID_subject_alt_name, names.joined(separator: ","))
    setIssuer(issued, certificate)
    sign(issued, key)
    return (text(issued), text(key: own))
  }
}

extension TestAuthority {
  /// What this authority says of a certificate of its own (RFC 6960 §4.2.1), in DER; valid in a span of seconds from
  /// now. `isGood`: false says that it was revoked.
  public func status(of certificate: [UInt8], isGood: Bool = true, seconds: ClosedRange<Int>) -> [UInt8] {
    let source = certificate.withUnsafeBufferPointer { BIO_new_mem_buf($0.baseAddress, Int32($0.count))! }
    defer { BIO_free(source) }
    let subject = PEM_read_bio_X509(source, nil, nil, nil)
    defer { X509_free(subject) }
    guard let basic = OCSP_BASICRESP_new(), let id = OCSP_cert_to_id(EVP_sha1(), subject, self.certificate) else {
      preconditionFailure("no memory")
    }
    defer { OCSP_BASICRESP_free(basic) }
    defer { OCSP_CERTID_free(id) }
    let times = [seconds.lowerBound, seconds.upperBound].map { ASN1_TIME_adj(nil, time(nil), 0, $0) }
    defer { for time in times { ASN1_TIME_free(time) } }
    let status = isGood ? V_OCSP_CERTSTATUS_GOOD : V_OCSP_CERTSTATUS_REVOKED
    let single = OCSP_basic_add1_status(basic, id, status, 0, isGood ? nil : times[0], times[0], times[1])
    check(single != nil, "status")
    check(OCSP_basic_sign(basic, self.certificate, key, EVP_sha256(), nil, 0) == 1, "signature of a status")
    let response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
    defer { OCSP_RESPONSE_free(response) }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = i2d_OCSP_RESPONSE(response, &bytes)
    check(count > 0, "DER")
    defer { CRYPTO_free(bytes, nil, 0) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }
}

/// OpenSSL refused something that cannot be wrong here.
private func check(_ isDone: Bool, _ what: StaticString) {
  precondition(isDone, "OpenSSL could not make a certificate: \(what)")
}

private func makeKey(_ kind: TestAuthority.KeyKind) -> OpaquePointer {
  let name: String
  switch kind {
  case .p256: name = "EC"
  case .rsa: name = "RSA"
  }
  guard let context = EVP_PKEY_CTX_new_from_name(nil, name, nil) else { preconditionFailure("OpenSSL has no \(name)") }
  defer { EVP_PKEY_CTX_free(context) }
  check(EVP_PKEY_keygen_init(context) == 1, "keygen_init")
  switch kind {
  case .p256: check(EVP_PKEY_CTX_set_group_name(context, "P-256") == 1, "group")
  case .rsa(let bits): check(EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits) == 1, "bits")
  }
  var key: OpaquePointer?
  check(EVP_PKEY_generate(context, &key) == 1, "generate")
  return key!
}

private func makeCertificate(name: String, key: OpaquePointer, seconds: ClosedRange<Int>) -> OpaquePointer {
  guard let certificate = X509_new() else { preconditionFailure("no memory") }
  check(X509_set_version(certificate, 2) == 1, "version")  // 2 means 3
  let serial = UInt64.random(in: 1...UInt64(Int64.max))
  check(ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1, "serial")
  X509_gmtime_adj(X509_getm_notBefore(certificate), seconds.lowerBound)
  X509_gmtime_adj(X509_getm_notAfter(certificate), seconds.upperBound)
  check(X509_set_pubkey(certificate, key) == 1, "key")
  let subject = X509_get_subject_name(certificate)
  let bytes = Array(name.utf8)
  check(
    X509_NAME_add_entry_by_txt(subject, "CN", mbstringUTF8, bytes, Int32(bytes.count), -1, 0) == 1, "name")
  return certificate
}

// MBSTRING_UTF8 is a macro that the importer does not read (asn1.h: MBSTRING_FLAG).
private let mbstringUTF8: Int32 = 0x1000

private func addExtension(_ certificate: OpaquePointer, issuer: OpaquePointer, _ kind: Int32, _ value: String) {
  var context = X509V3_CTX()
  X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
  guard let new = X509V3_EXT_conf_nid(nil, &context, kind, value) else {
    preconditionFailure("OpenSSL does not take the extension \(value)")
  }
  defer { X509_EXTENSION_free(new) }
  check(X509_add_ext(certificate, new, -1) == 1, "extension")
}

private func setIssuer(_ certificate: OpaquePointer, _ issuer: OpaquePointer) {
  check(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1, "issuer")
}

private func sign(_ certificate: OpaquePointer, _ key: OpaquePointer) {
  check(X509_sign(certificate, key, EVP_sha256()) > 0, "sign")
}

private func text(_ certificate: OpaquePointer) -> [UInt8] {
  written { PEM_write_bio_X509($0, certificate) == 1 }
}

private func text(key: OpaquePointer) -> [UInt8] {
  written { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) == 1 }
}

private func written(_ body: (OpaquePointer) -> Bool) -> [UInt8] {
  guard let target = BIO_new(BIO_s_mem()) else { preconditionFailure("no memory") }
  defer { BIO_free(target) }
  check(body(target), "PEM")
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 4096)
  while true {
    let count = BIO_read(target, &buffer, Int32(buffer.count))
    if count <= 0 { return bytes }
    bytes += buffer[..<Int(count)]
  }
}
