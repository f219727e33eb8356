// The character classes of RFC 9110 §5.6 and comparisons that ignore case, on bytes.
//
// Classes are two 64-bit sets, not tables: a global table would cost a once-check for each look.
import HubBytes

/// Byte classes and comparisons of HTTP's grammar.
public enum ASCII {
  /// Whether the byte may be part of a token: `!#$%&'*+-.^_`|~`, digits and letters. RFC 9110 §5.6.2.
  @inlinable public static func isTokenByte(_ byte: UInt8) -> Bool {
    if byte < 64 { return 0x03FF_6CFA_0000_0000 >> UInt64(byte) & 1 != 0 }
    if byte < 128 { return 0x57FF_FFFF_C7FF_FFFE >> UInt64(byte - 64) & 1 != 0 }
    return false
  }

  /// The value of a hex digit of either case.
  @inlinable public static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: return byte - 0x30
    case 0x41...0x46: return byte - 0x41 + 10
    case 0x61...0x66: return byte - 0x61 + 10
    default: return nil
    }
  }

  /// The small letter for a capital one of `A`–`Z`; any other byte as it is.
  @inlinable public static func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
  }

  /// Whether the bytes are those of `lowercase`, letters in either case. `lowercase` must have no capitals.
  public static func equals(_ bytes: ArraySlice<UInt8>, _ lowercase: StaticString) -> Bool {
    guard bytes.count == lowercase.utf8CodeUnitCount else { return false }
    var expected = unsafe lowercase.utf8Start
    for byte in bytes {
      guard unsafe lowercased(byte) == expected.pointee else { return false }
      unsafe expected += 1
    }
    return true
  }

  /// The bytes without spaces and tabs at either end. RFC 9110 §5.6.3.
  public static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var start = bytes.startIndex
    var end = bytes.endIndex
    while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
    while end > start, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
    return bytes[start..<end]
  }

  /// The decimal number; nil when empty or not all digits. Larger numbers give `Int.max`.
  public static func decimal(_ bytes: ArraySlice<UInt8>) -> Int? {
    guard !bytes.isEmpty else { return nil }
    var value = 0
    for byte in bytes {
      guard byte.isDigit else { return nil }
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(Int(byte - 0x30))
      value = overflow || carry || value == Int.max ? Int.max : sum
    }
    return value
  }
}
