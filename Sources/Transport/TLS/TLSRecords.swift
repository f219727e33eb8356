// TLS 1.3's records after the handshake (RFC 8446 §5), by OpenSSL's ciphers but without its SSL: what kernel TLS does, in user
// space. OpenSSL shakes hands; then the server takes over the two traffic secrets, frees the SSL, and a session costs some
// 300 bytes instead of 13 KB (loadtest/NOTES.md). The cipher contexts belong to the loop and get the connection's key for
// each record.
//
// What a client may still say after the handshake is little: data, an alert, a key update. Everything else ends the
// connection with the alert that the RFC asks for. There are no session tickets to take (a server gives them), no
// renegotiation and no client certificates after the handshake in TLS 1.3 unless the server asks.
//
// Unsafe island: keys and nonces lie inline and are lent to OpenSSL for the length of a call.

import Bytes
import COpenSSL

/// The ciphers of TLS 1.3 that everybody has (RFC 8446 §9.1, §B.4).
enum TLSCipher: UInt8, CaseIterable {
  case aes128, aes256, chaCha20

  /// By its number in the handshake; nil for one that this file does not know.
  init?(number: UInt16) {
    switch number {
    case 0x1301: self = .aes128
    case 0x1302: self = .aes256
    case 0x1303: self = .chaCha20
    case _: return nil
    }
  }

  var keyBytes: Int { self == .aes128 ? 16 : 32 }
  /// Of its hash, and so of its secrets.
  var secretBytes: Int { self == .aes256 ? 48 : 32 }

  fileprivate var hash: OpaquePointer? { self == .aes256 ? EVP_sha384() : EVP_sha256() }

  fileprivate var cipher: OpaquePointer? {
    switch self {
    case .aes128: EVP_aes_128_gcm()
    case .aes256: EVP_aes_256_gcm()
    case .chaCha20: EVP_chacha20_poly1305()
    }
  }
}

/// One loop's cipher contexts: one for each cipher and way, which get another key for each record.
struct TLSCipherContexts: ~Copyable {
  private var sealing = [OpaquePointer?](repeating: nil, count: TLSCipher.allCases.count)
  private var opening = [OpaquePointer?](repeating: nil, count: TLSCipher.allCases.count)

  init() {}

  deinit {
    for context in sealing + opening { EVP_CIPHER_CTX_free(context) }
  }

  fileprivate mutating func forSealing(_ cipher: TLSCipher) -> OpaquePointer {
    if let context = sealing[Int(cipher.rawValue)] { return context }
    let context = TLSCipherContexts.make { EVP_EncryptInit_ex($0, cipher.cipher, nil, nil, nil) }
    sealing[Int(cipher.rawValue)] = context
    return context
  }

  fileprivate mutating func forOpening(_ cipher: TLSCipher) -> OpaquePointer {
    if let context = opening[Int(cipher.rawValue)] { return context }
    let context = TLSCipherContexts.make { EVP_DecryptInit_ex($0, cipher.cipher, nil, nil, nil) }
    opening[Int(cipher.rawValue)] = context
    return context
  }

  private static func make(_ start: (OpaquePointer) -> Int32) -> OpaquePointer {
    guard let context = EVP_CIPHER_CTX_new(), start(context) == 1 else {
      preconditionFailure("OpenSSL does not have a cipher that it shook hands with")
    }
    return context
  }
}

/// A traffic secret: room for the longest, SHA-384's.
typealias TLSSecret = InlineArray<48, UInt8>

/// The keys of one direction (RFC 8446 §7.3), and how many records they have protected.
struct TLSDirection {
  private var secret: TLSSecret
  private var key = InlineArray<32, UInt8>(repeating: 0)
  private var iv = InlineArray<12, UInt8>(repeating: 0)
  fileprivate var sequence: UInt64

  /// `sequence`: records that were protected with this secret before.
  init(_ cipher: TLSCipher, _ secret: TLSSecret, sequence: UInt64) {
    self.secret = secret
    self.sequence = sequence
    derive(cipher)
  }

  private mutating func derive(_ cipher: TLSCipher) {
    expand(cipher, secret, "tls13 key", into: &key, count: cipher.keyBytes)
    expand(cipher, secret, "tls13 iv", into: &iv, count: 12)
  }

  /// The next generation of keys (RFC 8446 §7.2).
  mutating func update(_ cipher: TLSCipher) {
    var next = TLSSecret(repeating: 0)
    expand(cipher, secret, "tls13 traffic upd", into: &next, count: cipher.secretBytes)
    secret = next
    sequence = 0
    derive(cipher)
  }

  /// Calls `body` with the key and the next record's nonce: the sequence number, in network order, over the IV's last eight
  /// bytes (RFC 8446 §5.3).
  mutating func withNextNonce<R>(_ body: (UnsafePointer<UInt8>, UnsafePointer<UInt8>) -> R) -> R {
    var nonce = iv
    for index in 0..<8 { nonce[4 + index] ^= UInt8(truncatingIfNeeded: sequence >> UInt64(56 - 8 * index)) }
    // 2^64 records can't be; and keys are changed long before.
    sequence += 1
    return withUnsafeBytes(of: &key) { key in
      withUnsafeBytes(of: &nonce) { nonce in
        body(
          key.baseAddress!.assumingMemoryBound(to: UInt8.self), nonce.baseAddress!.assumingMemoryBound(to: UInt8.self))
      }
    }
  }
}

/// HKDF-Expand-Label with an empty context (RFC 8446 §7.1). What is asked for is never more than one block of the hash, so
/// that HKDF-Expand (RFC 5869 §2.3) is one HMAC.
private func expand<let n: Int>(
  _ cipher: TLSCipher, _ secret: TLSSecret, _ label: StaticString, into target: inout InlineArray<n, UInt8>, count: Int
) {
  precondition(count <= cipher.secretBytes && count <= n)
  let length = label.utf8CodeUnitCount
  withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) { scratch in
    // struct HkdfLabel { uint16 length; opaque label<7..255>; opaque context<0..255>; }, and HKDF's counter.
    let text = scratch.baseAddress!
    text.storeBytes(of: 0, as: UInt8.self)
    text.storeBytes(of: UInt8(count), toByteOffset: 1, as: UInt8.self)
    text.storeBytes(of: UInt8(length), toByteOffset: 2, as: UInt8.self)
    (text + 3).copyMemory(from: label.utf8Start, byteCount: length)
    text.storeBytes(of: 0, toByteOffset: 3 + length, as: UInt8.self)
    text.storeBytes(of: 1, toByteOffset: 4 + length, as: UInt8.self)
    let block = text + 64
    let made = withUnsafeBytes(of: secret) {
      HMAC(
        cipher.hash, $0.baseAddress, Int32(cipher.secretBytes), text.assumingMemoryBound(to: UInt8.self), 5 + length,
        block.assumingMemoryBound(to: UInt8.self), nil)
    }
    precondition(made != nil, "OpenSSL has no memory")
    withUnsafeMutableBytes(of: &target) { $0.baseAddress!.copyMemory(from: block, byteCount: count) }
    OPENSSL_cleanse(scratch.baseAddress, scratch.count)
  }
}

/// Both directions of one connection after its handshake.
struct TLSRecords: ~Copyable {
  /// What a record has inside (RFC 8446 §5.1).
  enum Content: UInt8 {
    case alert = 21
    case handshake = 22
    case applicationData = 23
  }

  static let headerBytes = 5
  private static let tagBytes = 16
  /// A record's ciphertext may be this long (RFC 8446 §5.2); everything that follows the header.
  static let longestCiphertext = TLSRoom.recordBytes + 256

  /// What an opened record says.
  enum Opened: Equatable {
    case data(Int)
    case keyUpdate(isRequested: Bool)
    /// close_notify.
    case goodbye
    /// Nothing that matters.
    case nothing
    /// The peer's fatal alert.
    case alert(UInt8)
    /// It broke the rules: the alert that it gets for it.
    case fault(UInt8)
  }

  let cipher: TLSCipher
  private var reading: TLSDirection
  private var writing: TLSDirection

  init(_ cipher: TLSCipher, reading: TLSDirection, writing: TLSDirection) {
    self.cipher = cipher
    self.reading = reading
    self.writing = writing
  }

  // MARK: Sealing

  /// Appends a record of data; with the next key where that many records have the present one.
  mutating func sealData(
    _ bytes: UnsafeRawBufferPointer, newKeyAfter limit: UInt64, _ contexts: inout TLSCipherContexts,
    into output: inout ByteBuffer
  ) {
    if writing.sequence >= limit { sealKeyUpdate(&contexts, into: &output) }
    seal(.applicationData, bytes, &contexts, into: &output)
  }

  /// Appends a record with `bytes` inside.
  mutating func seal(
    _ content: Content, _ bytes: UnsafeRawBufferPointer, _ contexts: inout TLSCipherContexts,
    into output: inout ByteBuffer
  ) {
    seal(type: content.rawValue, bytes, &contexts, into: &output)
  }

  mutating func seal(
    type: UInt8, _ bytes: UnsafeRawBufferPointer, _ contexts: inout TLSCipherContexts, into output: inout ByteBuffer
  ) {
    let inner = bytes.count + 1
    let ciphertext = inner + TLSRecords.tagBytes
    let context = contexts.forSealing(cipher)
    output.append(atMost: TLSRecords.headerBytes + ciphertext) { target in
      let header = target.baseAddress!.assumingMemoryBound(to: UInt8.self)
      TLSRecords.writeHeader(header, ciphertext)
      let body = header + TLSRecords.headerBytes
      var type = type
      var count: Int32 = 0
      let isSealed = writing.withNextNonce { key, nonce in
        EVP_EncryptInit_ex(context, nil, nil, key, nonce) == 1
          && EVP_EncryptUpdate(context, nil, &count, header, Int32(TLSRecords.headerBytes)) == 1
          && EVP_EncryptUpdate(
            context, body, &count, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(bytes.count)) == 1
          && EVP_EncryptUpdate(context, body + bytes.count, &count, &type, 1) == 1
          && EVP_EncryptFinal_ex(context, body + inner, &count) == 1
          && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(TLSRecords.tagBytes), body + inner) == 1
      }
      precondition(isSealed, "a cipher of OpenSSL's refuses to encrypt")
      return TLSRecords.headerBytes + ciphertext
    }
  }

  /// The header of a protected record: application data, version "TLS 1.2", length (RFC 8446 §5.2).
  private static func writeHeader(_ header: UnsafeMutablePointer<UInt8>, _ length: Int) {
    header[0] = Content.applicationData.rawValue
    header[1] = 3
    header[2] = 3
    header[3] = UInt8(length >> 8)
    header[4] = UInt8(length & 0xFF)
  }

  /// Changes the own keys, and says so with the old ones (RFC 8446 §4.6.3).
  mutating func sealKeyUpdate(_ contexts: inout TLSCipherContexts, into output: inout ByteBuffer) {
    // KeyUpdate, three bytes of length, update_not_requested.
    withUnsafeBytes(of: (UInt8(24), UInt8(0), UInt8(0), UInt8(1), UInt8(0))) {
      seal(.handshake, $0, &contexts, into: &output)
    }
    writing.update(cipher)
  }

  mutating func sealAlert(
    _ description: UInt8, _ contexts: inout TLSCipherContexts, into output: inout ByteBuffer
  ) {
    // close_notify is a warning, everything else fatal (RFC 8446 §6).
    withUnsafeBytes(of: (description == 0 ? UInt8(1) : UInt8(2), description)) {
      seal(.alert, $0, &contexts, into: &output)
    }
  }

  // MARK: Opening

  /// Opens one whole record; `record` has its header, and `target` room for its ciphertext.
  mutating func open(
    _ record: UnsafeRawBufferPointer, _ contexts: inout TLSCipherContexts, into target: UnsafeMutableRawBufferPointer
  ) -> Opened {
    let ciphertext = record.count - TLSRecords.headerBytes
    // Since the client's Finished nothing comes unprotected, change_cipher_spec included (RFC 8446 §5).
    guard record[0] == Content.applicationData.rawValue else { return .fault(10) }  // unexpected_message
    guard ciphertext <= TLSRecords.longestCiphertext else { return .fault(22) }  // record_overflow
    guard ciphertext > TLSRecords.tagBytes else { return .fault(20) }  // bad_record_mac: not even a type inside
    guard decrypt(record, &contexts, into: target) else { return .fault(20) }
    // TLSInnerPlaintext (RFC 8446 §5.4): content, its type, zeros.
    var count = ciphertext - TLSRecords.tagBytes
    while count > 0, target[count - 1] == 0 { count -= 1 }
    guard count > 0, let content = Content(rawValue: target[count - 1]) else { return .fault(10) }
    count -= 1
    guard count <= TLSRoom.recordBytes else { return .fault(22) }
    let bytes = UnsafeRawBufferPointer(rebasing: target[..<count])
    switch content {
    case .applicationData: return .data(count)
    case .alert: return TLSRecords.readAlert(bytes)
    case .handshake: return readHandshake(bytes)
    }
  }

  private mutating func decrypt(
    _ record: UnsafeRawBufferPointer, _ contexts: inout TLSCipherContexts, into target: UnsafeMutableRawBufferPointer
  ) -> Bool {
    let header = record.baseAddress!.assumingMemoryBound(to: UInt8.self)
    let body = header + TLSRecords.headerBytes
    let inner = record.count - TLSRecords.headerBytes - TLSRecords.tagBytes
    let context = contexts.forOpening(cipher)
    let plaintext = target.baseAddress!.assumingMemoryBound(to: UInt8.self)
    var count: Int32 = 0
    return reading.withNextNonce { key, nonce in
      EVP_DecryptInit_ex(context, nil, nil, key, nonce) == 1
        && EVP_DecryptUpdate(context, nil, &count, header, Int32(TLSRecords.headerBytes)) == 1
        && EVP_DecryptUpdate(context, plaintext, &count, body, Int32(inner)) == 1
        // OpenSSL only reads the tag.
        && EVP_CIPHER_CTX_ctrl(
          context, EVP_CTRL_AEAD_SET_TAG, Int32(TLSRecords.tagBytes), UnsafeMutableRawPointer(mutating: body + inner))
          == 1
        && EVP_DecryptFinal_ex(context, plaintext + inner, &count) == 1
    }
  }

  private static func readAlert(_ bytes: UnsafeRawBufferPointer) -> Opened {
    // A level, which is to be ignored, and a description; never in pieces (RFC 8446 §6, §5.1).
    guard bytes.count == 2 else { return .fault(50) }  // decode_error
    switch bytes[1] {
    case 0: return .goodbye
    case 90: return .nothing  // user_canceled: close_notify follows
    case let description: return .alert(description)
    }
  }

  private mutating func readHandshake(_ bytes: UnsafeRawBufferPointer) -> Opened {
    // Only KeyUpdate may come, and nothing may follow it in its record, for that would have the old keys (§5.1).
    guard bytes.count == 5, bytes[0] == 24, bytes[1] == 0, bytes[2] == 0, bytes[3] == 1 else { return .fault(10) }
    guard bytes[4] <= 1 else { return .fault(47) }  // illegal_parameter
    reading.update(cipher)
    return .keyUpdate(isRequested: bytes[4] == 1)
  }
}
