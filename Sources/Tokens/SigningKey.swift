// One key of OpenSSL's, which signs and verifies. All four algorithms, HMAC included, use EVP, so that there is one
// path for each.
//
// This file and SigningKey+Parts.swift are the module's unsafe code: OpenSSL's objects are freed in the function that
// made them, and pointers into arrays live for the call only.
import CHubOpenSSL

/// A key for one algorithm. Immutable; used from any thread.
@safe
public final class SigningKey: Sendable {
  public let algorithm: Algorithm
  /// `kid`: the name by which tokens select the key, if it has one.
  public let keyID: String?
  /// Whether it can sign, and not only verify.
  public let isPrivate: Bool

  // OpenSSL locks a key's reference count, and otherwise only reads it: since 1.1.0 a key may be used on several
  // threads at once (openssl-threads(7)). It is not changed after init, and freed once.
  nonisolated(unsafe) private let key: OpaquePointer

  /// Takes over the key.
  init(consuming key: OpaquePointer, algorithm: Algorithm, keyID: String?, isPrivate: Bool) {
    unsafe self.key = key
    self.algorithm = algorithm
    self.keyID = keyID
    self.isPrivate = isPrivate
  }

  deinit { unsafe EVP_PKEY_free(key) }

  /// RFC 7515 §5.2 step 8: whether `signature` is this key's over `input`. 2 µs (HS256) to 100 µs (ES256, EdDSA).
  package func verifies(_ signature: [UInt8], of input: ArraySlice<UInt8>) -> Bool {
    defer { ERR_clear_error() }  // the queue is the thread's: leave no errors to the next call
    switch algorithm {
    case .hs256:
      guard let expected = digest(of: input) else { return false }
      // Constant time, so that the time does not reveal how much of a guess was right.
      return unsafe signature.count == expected.count && CRYPTO_memcmp(signature, expected, expected.count) == 0
    case .rs256, .edDSA:
      return checks(signature, of: input)
    case .es256:
      guard let der = ECDSASignature.der(fromRaw: signature) else { return false }
      return checks(der, of: input)
    }
  }

  /// RFC 7515 §5.1 step 5.
  package func sign(_ input: [UInt8]) throws(KeyError) -> [UInt8] {
    defer { ERR_clear_error() }
    guard isPrivate, let signature = digest(of: input[...]) else { throw .cannotSign }
    guard algorithm == .es256 else { return signature }
    guard let raw = ECDSASignature.raw(fromDER: signature) else { throw .cannotSign }
    return raw
  }

  /// The algorithm's hash; Ed25519 has its own (RFC 8032 §5.1).
  private var hash: OpaquePointer? {
    switch algorithm {
    case .hs256, .rs256, .es256: unsafe EVP_sha256()
    case .edDSA: nil
    }
  }

  private func checks(_ signature: [UInt8], of input: ArraySlice<UInt8>) -> Bool {
    guard let context = unsafe EVP_MD_CTX_new() else { return false }
    defer { unsafe EVP_MD_CTX_free(context) }
    guard unsafe EVP_DigestVerifyInit(context, nil, hash, nil, key) == 1 else { return false }
    return unsafe input.withUnsafeBufferPointer {
      unsafe EVP_DigestVerify(context, signature, signature.count, $0.baseAddress, $0.count) == 1
    }
  }

  /// The signature or HMAC in OpenSSL's form.
  private func digest(of input: ArraySlice<UInt8>) -> [UInt8]? {
    guard let context = unsafe EVP_MD_CTX_new() else { return nil }
    defer { unsafe EVP_MD_CTX_free(context) }
    guard unsafe EVP_DigestSignInit(context, nil, hash, nil, key) == 1 else { return nil }
    return unsafe input.withUnsafeBufferPointer { input -> [UInt8]? in
      var length = 0
      guard unsafe EVP_DigestSign(context, nil, &length, input.baseAddress, input.count) == 1 else { return nil }
      var signature = [UInt8](repeating: 0, count: length)
      guard unsafe EVP_DigestSign(context, &signature, &length, input.baseAddress, input.count) == 1 else { return nil }
      return Array(signature.prefix(length))
    }
  }
}

/// ES256 signs with R and S as 32 bytes each, one behind the other (RFC 7518 §3.4); OpenSSL with the DER of both.
enum ECDSASignature {
  private static let half = 32

  /// Nil where there are not exactly 64 bytes.
  static func der(fromRaw raw: [UInt8]) -> [UInt8]? {
    guard raw.count == 2 * half, let signature = unsafe ECDSA_SIG_new() else { return nil }
    defer { unsafe ECDSA_SIG_free(signature) }
    let r = unsafe raw.withUnsafeBufferPointer { unsafe BN_bin2bn($0.baseAddress, Int32(half), nil) }
    let s = unsafe raw[half...].withUnsafeBufferPointer { unsafe BN_bin2bn($0.baseAddress, Int32(half), nil) }
    // `ECDSA_SIG_set0` takes over both numbers, or neither.
    guard let r = unsafe r, let s = unsafe s, unsafe ECDSA_SIG_set0(signature, r, s) == 1 else {
      unsafe BN_free(r)
      unsafe BN_free(s)
      return nil
    }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = unsafe Int(i2d_ECDSA_SIG(signature, &bytes))
    guard count > 0, let bytes = unsafe bytes else { return nil }
    defer { unsafe CRYPTO_free(bytes, #file, #line) }
    return unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
  }

  static func raw(fromDER der: [UInt8]) -> [UInt8]? {
    unsafe der.withUnsafeBufferPointer { buffer -> [UInt8]? in
      var start = buffer.baseAddress
      guard let signature = unsafe d2i_ECDSA_SIG(nil, &start, buffer.count) else { return nil }
      defer { unsafe ECDSA_SIG_free(signature) }
      var r = [UInt8](repeating: 0, count: half)
      var s = r
      guard unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), &r, Int32(half)) == half,
        unsafe BN_bn2binpad(ECDSA_SIG_get0_s(signature), &s, Int32(half)) == half
      else { return nil }
      return r + s
    }
  }
}
