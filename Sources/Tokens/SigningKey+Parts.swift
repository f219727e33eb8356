// Keys from files: PEM blocks, secrets, and the members of a JSON Web Key (RFC 7518 §6, RFC 8037 §2).
import CHubOpenSSL
import HubBytes

extension SigningKey {
  /// A secret for HS256. `number` names the key in errors.
  package static func secret(_ bytes: [UInt8], keyID: String?, number: Int) throws(KeyError) -> SigningKey {
    guard !isKeyText(bytes) else { throw .secretIsAKey(number) }
    return try random(bytes, keyID: keyID, number: number)
  }

  /// A secret of random bytes, which may look like anything. `number` names the key in errors.
  package static func random(_ bytes: [UInt8], keyID: String?, number: Int) throws(KeyError) -> SigningKey {
    guard bytes.count >= minimumSecretBytes else { throw .tooShort(number) }
    guard let key = unsafe EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, nil, bytes, bytes.count) else {
      throw .badKey(number)
    }
    return unsafe SigningKey(consuming: key, algorithm: .hs256, keyID: keyID, isPrivate: true)
  }

  /// One PEM block with its lines (RFC 7468), public or private, without a passphrase; `number` names it in errors.
  static func pem(_ block: [UInt8], isPrivate: Bool, number: Int) throws(KeyError) -> SigningKey {
    defer { ERR_clear_error() }
    let read: OpaquePointer? = unsafe block.withUnsafeBytes { bytes in
      guard let source = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
      defer { unsafe BIO_free(source) }
      // Without a callback OpenSSL would ask the terminal for a passphrase.
      return unsafe isPrivate
        ? PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in -1 }, nil)
        : unsafe PEM_read_bio_PUBKEY(source, nil, { _, _, _, _ in -1 }, nil)
    }
    guard let read = unsafe read else { throw .badPEM(block: number) }
    return try unsafe adopt(read, keyID: nil, isPrivate: isPrivate, number: number)
  }

  /// RSA by its numbers, big-endian (RFC 7518 §6.3). `rest` is d, p, q, dp, dq and qi, which signing needs.
  static func rsa(n: [UInt8], e: [UInt8], rest: [[UInt8]], keyID: String?, number: Int) throws(KeyError) -> SigningKey {
    let isPrivate = rest.count == 6
    let der: [UInt8]
    if isPrivate {  // RFC 8017 §A.1.2
      der = DER.sequence([DER.integer([0]), DER.integer(n), DER.integer(e)] + rest.map(DER.integer))
    } else {  // RFC 8017 §A.1.1 in RFC 5280 §4.1
      let key = DER.sequence([DER.integer(n), DER.integer(e)])
      der = DER.sequence([DER.sequence([DER.rsaEncryption, DER.null]), DER.bitString(key)])
    }
    return try unsafe adopt(
      read(der, isPrivate: isPrivate, number: number), keyID: keyID, isPrivate: isPrivate, number: number)
  }

  /// P-256: the point as 32 bytes each of `x` and `y`, and for a private key `d` (RFC 7518 §6.2). OpenSSL checks that
  /// the point is on the curve.
  static func p256(x: [UInt8], y: [UInt8], d: [UInt8]?, keyID: String?, number: Int) throws(KeyError) -> SigningKey {
    guard x.count == 32, y.count == 32, d.map({ $0.count == 32 }) ?? true else { throw .badKey(number) }
    let point = DER.bitString([4] + x + y)  // SEC 1 §2.3.3: 4 says that both coordinates follow
    let der: [UInt8]
    if let d {  // RFC 5915 §3
      der = DER.sequence([
        DER.integer([1]), DER.octetString(d), DER.tagged(0, DER.prime256v1), DER.tagged(1, point),
      ])
    } else {  // RFC 5480 §2
      der = DER.sequence([DER.sequence([DER.ecPublicKey, DER.prime256v1]), point])
    }
    return try unsafe adopt(
      read(der, isPrivate: d != nil, number: number), keyID: keyID, isPrivate: d != nil, number: number)
  }

  /// Ed25519: 32 bytes of `x`, and for a private key 32 of `d` (RFC 8037 §2).
  static func ed25519(x: [UInt8], d: [UInt8]?, keyID: String?, number: Int) throws(KeyError) -> SigningKey {
    guard x.count == 32, d.map({ $0.count == 32 }) ?? true else { throw .badKey(number) }
    let made =
      if let d { unsafe EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, d, d.count) } else {
        unsafe EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, x, x.count)
      }
    guard let made = unsafe made else { throw .badKey(number) }
    return try unsafe adopt(made, keyID: keyID, isPrivate: d != nil, number: number)
  }

  /// A key from its DER.
  private static func read(_ der: [UInt8], isPrivate: Bool, number: Int) throws(KeyError) -> OpaquePointer {
    defer { ERR_clear_error() }
    let key = unsafe der.withUnsafeBufferPointer { buffer in
      var start = buffer.baseAddress
      return unsafe isPrivate ? d2i_AutoPrivateKey(nil, &start, buffer.count) : d2i_PUBKEY(nil, &start, buffer.count)
    }
    guard let key = unsafe key else { throw .badKey(number) }
    return unsafe key
  }

  /// Takes over a key of any kind. Its type decides the algorithm, not a token's header.
  private static func adopt(
    _ key: OpaquePointer, keyID: String?, isPrivate: Bool, number: Int
  ) throws(KeyError) -> SigningKey {
    let algorithm: Algorithm? =
      switch unsafe EVP_PKEY_get_base_id(key) {
      case EVP_PKEY_RSA: .rs256
      case EVP_PKEY_EC: unsafe isP256(key) ? .es256 : nil
      case EVP_PKEY_ED25519: .edDSA
      default: nil
      }
    guard let algorithm else {
      unsafe EVP_PKEY_free(key)
      throw .unsupportedKey(number)
    }
    guard unsafe algorithm != .rs256 || EVP_PKEY_get_bits(key) >= minimumRSABits else {
      unsafe EVP_PKEY_free(key)
      throw .tooShort(number)
    }
    return unsafe SigningKey(consuming: key, algorithm: algorithm, keyID: keyID, isPrivate: isPrivate)
  }

  private static func isP256(_ key: OpaquePointer) -> Bool {
    var name = [CChar](repeating: 0, count: 32)
    var length = 0
    guard unsafe EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else { return false }
    return String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
  }

  /// Whether a "secret" is the text or the DER of a key, or a page that was fetched instead of one. Taken for a secret,
  /// what others can read would let anybody sign (RFC 8725 §2.1).
  static func isKeyText(_ bytes: [UInt8]) -> Bool {
    if isDER(bytes) { return true }
    // Without line breaks, a byte order mark and the zeros of UTF-16.
    let text = bytes.filter { $0 > 0x20 && $0 < 0x7F }
    func has(_ part: String) -> Bool { text.firstRange(of: Array(part.utf8)) != nil }
    func begins(with part: String) -> Bool { text.starts(with: part.utf8) }
    if has("-----BEGIN") || has("\"kty\"") || begins(with: "<") && has("</") { return true }
    if ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"].contains(where: begins) { return true }  // RFC 4253 §6.6, RFC 5656
    if let value = JSONValue(parsing: text), value.members != nil || value.elements != nil { return true }
    // PEM without its first and last line, as consoles of issuers show a key.
    let digits = text.filter { $0 != UInt8(ascii: "=") }
    return [Base64.unpadded, .url].contains { $0.decode(digits).map(isDER) ?? false }
  }

  /// Whether bytes begin with a key, public or private, or with a certificate.
  private static func isDER(_ bytes: [UInt8]) -> Bool {
    guard !bytes.isEmpty else { return false }
    defer { ERR_clear_error() }
    return unsafe bytes.withUnsafeBufferPointer { buffer in
      var start = buffer.baseAddress
      if let certificate = unsafe d2i_X509(nil, &start, buffer.count) {
        unsafe X509_free(certificate)
        return true
      }
      unsafe start = buffer.baseAddress
      var key = unsafe d2i_PUBKEY(nil, &start, buffer.count)
      if unsafe key == nil {  // RFC 8017 §A.1.1
        unsafe start = buffer.baseAddress
        unsafe key = d2i_PublicKey(EVP_PKEY_RSA, nil, &start, buffer.count)
      }
      if unsafe key == nil {
        unsafe start = buffer.baseAddress
        unsafe key = d2i_AutoPrivateKey(nil, &start, buffer.count)
      }
      guard let key = unsafe key else { return false }
      unsafe EVP_PKEY_free(key)
      return true
    }
  }
}
