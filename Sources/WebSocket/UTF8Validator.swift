// Incremental UTF-8 validation (RFC 3629 §4; Unicode 15 table 3-7) that fails at the first invalid byte, as RFC 6455
// §8.1 and the Autobahn cases 6.4 require.
//
// The range of the second byte depends on the first (no overlong forms, no surrogates, nothing above U+10FFFF). So the
// state is the number of missing bytes and the range of the next.

/// The state between pieces of a text: three bytes.
public struct UTF8Validator: Sendable, Equatable {
  /// Continuation bytes still due.
  private var due: UInt8 = 0
  /// The range of the next one.
  private var lowest: UInt8 = 0x80
  private var highest: UInt8 = 0xBF

  public init() {}

  /// Whether the text may end here: no sequence is incomplete.
  public var isComplete: Bool { due == 0 }

  /// Validates more of the text. False at the first invalid byte; do not use the validator after that. Costs 0.1 ns a
  /// byte in ASCII, 1–2 ns elsewhere.
  public mutating func consume(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var position = 0
    // The rest of the last piece's sequence.
    while due > 0, position < bytes.count {
      guard unsafe step(bytes[position]) else { return false }
      position += 1
    }
    while position < bytes.count {
      guard unsafe bytes[position] >= 0x80 else {
        position = unsafe UTF8Validator.skipASCII(bytes, from: position)
        continue
      }
      if bytes.count - position >= 4 {
        let word = unsafe UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
        let length = UTF8Validator.sequenceLength(word)
        guard length > 0 else { return false }
        position += length
      } else {
        guard unsafe step(bytes[position]) else { return false }
        position += 1
        while due > 0, position < bytes.count {
          guard unsafe step(bytes[position]) else { return false }
          position += 1
        }
      }
    }
    return true
  }

  /// The length of the valid multi-byte sequence at the top of `word`; 0 without one. RFC 3629 §4: the rules of `begin`
  /// and `step` for a complete sequence.
  private static func sequenceLength(_ word: UInt32) -> Int {
    let second = word >> 16 & 0xFF
    switch word >> 24 {
    case 0xC2...0xDF:
      return word & 0x00C0_0000 == 0x0080_0000 ? 2 : 0
    case 0xE0...0xEF:
      guard word & 0x00C0_C000 == 0x0080_8000 else { return 0 }
      let isWrong = word >> 24 == 0xE0 && second < 0xA0 || word >> 24 == 0xED && second > 0x9F
      return isWrong ? 0 : 3
    case 0xF0...0xF4:
      guard word & 0x00C0_C0C0 == 0x0080_8080 else { return 0 }
      let isWrong = word >> 24 == 0xF0 && second < 0x90 || word >> 24 == 0xF4 && second > 0x8F
      return isWrong ? 0 : 4
    default:
      return 0
    }
  }

  /// One byte: the first of a sequence, or a continuation.
  private mutating func step(_ byte: UInt8) -> Bool {
    guard due > 0 else { return byte < 0x80 || begin(byte) }
    guard byte >= lowest, byte <= highest else { return false }
    due -= 1
    lowest = 0x80
    highest = 0xBF
    return true
  }

  /// The first byte of a multi-byte sequence. RFC 3629 §4.
  private mutating func begin(_ byte: UInt8) -> Bool {
    switch byte {
    case 0xC2...0xDF: due = 1  // C0 and C1 would be overlong
    case 0xE0...0xEF:
      due = 2
      if byte == 0xE0 { lowest = 0xA0 }  // below U+0800: overlong
      if byte == 0xED { highest = 0x9F }  // U+D800…U+DFFF: surrogates
    case 0xF0...0xF4:
      due = 3
      if byte == 0xF0 { lowest = 0x90 }  // below U+10000: overlong
      if byte == 0xF4 { highest = 0x8F }  // above U+10FFFF
    default: return false
    }
    return true
  }

  /// The index of the next byte that is not ASCII, eight at a time. Every load is within `bytes`.
  private static func skipASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var position = start
    while bytes.count - position >= 8 {
      let high =
        unsafe bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self).littleEndian & 0x8080_8080_8080_8080
      if high != 0 { return position + high.trailingZeroBitCount >> 3 }
      position += 8
    }
    while position < bytes.count, unsafe bytes[position] < 0x80 { position += 1 }
    return position
  }
}
