// Authentication of frames: HMAC-SHA-256 (RFC 2104) cut to 16 bytes (RFC 2104 §5), under a key that all hubs of a
// cluster have. An intruder on the bus can neither forge nor change frames.
//
// The hash behind the key's two blocks is kept for each key (RFC 2104 §4), since OpenSSL's one-shot HMAC looks for its
// algorithm at each call, which takes longer than a frame of ten positions. OpenSSL's objects are freed by who made
// them; the kept ones are only copied from.
import CHubOpenSSL

/// One or two keys: frames are written with the first and read with either, so that keys are changed one hub after the
/// other (old; new behind old; old behind new; new).
public struct FrameKeys: Sendable, Equatable {
  public static let macBytes = 16
  private let keys: [FrameKey]

  /// From the text of a key file: one or two lines of 64 hexadecimal digits. Nil for anything else.
  public init?(_ text: String) {
    let lines = text.split(whereSeparator: \.isNewline).filter { !$0.allSatisfy(\.isWhitespace) }
    let read = lines.compactMap { FrameKeys.key($0.filter { !$0.isWhitespace }) }
    guard (1...2).contains(lines.count), read.count == lines.count else { return nil }
    keys = read.map(FrameKey.init)
  }

  private static func key(_ text: String) -> [UInt8]? {
    let digits = text.compactMap(\.hexDigitValue)
    guard digits.count == 64, text.utf8.count == 64 else { return nil }
    return (0..<32).map { UInt8(digits[2 * $0] << 4 | digits[2 * $0 + 1]) }
  }

  /// A secret derived from each key for another purpose than frames, the same at all hubs: the HMAC-SHA-256 of
  /// `purpose`, which must not be a frame. It reveals nothing about the key.
  public func secrets(for purpose: String) -> [[UInt8]] { keys.map { $0.code(of: Array(purpose.utf8)[...]) } }

  /// The code of bytes under the first key.
  func code(of bytes: ArraySlice<UInt8>) -> [UInt8] { Array(keys[0].code(of: bytes).prefix(FrameKeys.macBytes)) }

  /// Whether `code` is that of the bytes under one of the keys. Takes the same time wherever codes differ.
  func verifies(_ code: ArraySlice<UInt8>, of bytes: ArraySlice<UInt8>) -> Bool {
    guard code.count == FrameKeys.macBytes else { return false }
    return keys.contains { key in zip(key.code(of: bytes), code).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0 }
  }
}

/// One key. Immutable; used from any thread.
@safe
private final class FrameKey: Sendable, Equatable {
  private let bytes: [UInt8]
  // Not changed after init: OpenSSL reads them where it copies them, which several threads may do at once.
  nonisolated(unsafe) private let inner: OpaquePointer
  nonisolated(unsafe) private let outer: OpaquePointer

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    unsafe inner = FrameKey.hash(behind: bytes, xor: 0x36)
    unsafe outer = FrameKey.hash(behind: bytes, xor: 0x5C)
  }

  deinit {
    unsafe EVP_MD_CTX_free(inner)
    unsafe EVP_MD_CTX_free(outer)
  }

  static func == (one: FrameKey, other: FrameKey) -> Bool { one.bytes == other.bytes }

  /// The hash behind a block of 64 bytes: the key and zeros, each changed by `pad`.
  private static func hash(behind key: [UInt8], xor pad: UInt8) -> OpaquePointer {
    guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("OpenSSL has no memory") }
    let block = (key + [UInt8](repeating: 0, count: 64 - key.count)).map { $0 ^ pad }
    let isDone =
      unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 && EVP_DigestUpdate(context, block, block.count) == 1
    precondition(isDone, "SHA-256 of bytes in memory does not fail")
    return unsafe context
  }

  /// The 32 bytes of HMAC-SHA-256.
  func code(of bytes: ArraySlice<UInt8>) -> [UInt8] {
    guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("OpenSSL has no memory") }
    defer { unsafe EVP_MD_CTX_free(context) }
    var digest = [UInt8](repeating: 0, count: 32)
    let isDone = unsafe bytes.withUnsafeBytes { bytes in
      unsafe EVP_MD_CTX_copy_ex(context, inner) == 1
        && EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
        && EVP_DigestFinal_ex(context, &digest, nil) == 1 && EVP_MD_CTX_copy_ex(context, outer) == 1
        && EVP_DigestUpdate(context, digest, digest.count) == 1 && EVP_DigestFinal_ex(context, &digest, nil) == 1
    }
    precondition(isDone, "SHA-256 of bytes in memory does not fail")
    return digest
  }
}
