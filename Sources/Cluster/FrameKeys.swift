// Authentication of frames: HMAC-SHA-256 (RFC 2104) cut to 16 bytes (RFC 2104 §5), under a key that all hubs of a
// cluster have. An intruder on the bus can neither forge nor change frames.
import CHubOpenSSL

/// One or two keys: frames are written with the first and read with either, so that keys are changed one hub after the
/// other (old; new behind old; old behind new; new).
public struct FrameKeys: Sendable, Equatable {
  public static let macBytes = 16
  private let keys: [[UInt8]]

  /// From the text of a key file: one or two lines of 64 hexadecimal digits. Nil for anything else.
  public init?(_ text: String) {
    let lines = text.split(whereSeparator: \.isNewline).filter { !$0.allSatisfy(\.isWhitespace) }
    let read = lines.compactMap { FrameKeys.key($0.filter { !$0.isWhitespace }) }
    guard (1...2).contains(lines.count), read.count == lines.count else { return nil }
    keys = read
  }

  private static func key(_ text: String) -> [UInt8]? {
    let digits = text.compactMap(\.hexDigitValue)
    guard digits.count == 64, text.utf8.count == 64 else { return nil }
    return (0..<32).map { UInt8(digits[2 * $0] << 4 | digits[2 * $0 + 1]) }
  }

  /// The code of bytes under the first key.
  func code(of bytes: ArraySlice<UInt8>) -> [UInt8] { FrameKeys.code(of: bytes, keys[0]) }

  /// Whether `code` is that of the bytes under one of the keys. Takes the same time wherever codes differ.
  func verifies(_ code: ArraySlice<UInt8>, of bytes: ArraySlice<UInt8>) -> Bool {
    guard code.count == FrameKeys.macBytes else { return false }
    return keys.contains { key in
      zip(FrameKeys.code(of: bytes, key), code).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
  }

  private static func code(of bytes: ArraySlice<UInt8>, _ key: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    let isMade = unsafe bytes.withUnsafeBufferPointer { bytes in
      unsafe HMAC(EVP_sha256(), key, Int32(key.count), bytes.baseAddress, bytes.count, &digest, &length) != nil
    }
    precondition(isMade && length == 32, "OpenSSL has no memory")
    return Array(digest.prefix(macBytes))
  }
}
