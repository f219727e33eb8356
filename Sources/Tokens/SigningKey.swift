// One key of OpenSSL's, and the two things that are done with it. All four algorithms go the same way through EVP, HMAC
// as well, so that there is one place where a signature is made and one where it is checked.
//
// This file and SigningKey+Parts.swift are the module's unsafe island: what OpenSSL hands out is freed where it was
// made, and pointers into arrays live for the call only.
import CHubOpenSSL

/// A key for one algorithm. Immutable; used from any thread.
@safe
public final class SigningKey: Sendable {
  public let algorithm: Algorithm
  /// `kid`: the name by which tokens choose the key; nil where it has none.
  public let keyID: String?
  /// Whether it can sign, or only check.
  public let isPrivate: Bool

  // OpenSSL counts references to a key under a lock, and only reads it otherwise: since 1.1.0 one key may be used on
  // several threads at once (openssl-threads(7)). It is never changed after init and freed once.
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
    defer { ERR_clear_error() }  // the queue belongs to the thread; who asks it next must find only its own
    switch algorithm {
    case .hs256:
      guard let expected = digest(of: input) else { return false }
      // Constant time, so that answers don't tell how much of a guess was right.
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

  /// What the algorithm hashes with; Ed25519 has its hash inside (RFC 8032 §5.1).
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

  /// The signature, or the code of HMAC, as OpenSSL makes it.
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
    // takes both over, or neither
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
