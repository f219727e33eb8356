// The few forms of DER (X.690 §8, §10) that make a key of a JSON Web Key's numbers, so that OpenSSL reads it like any
// other. Written by hand: the parameter builder of OpenSSL 3 keeps pointers to its arguments.

enum DER {
  /// Object identifiers, with tag and length: RFC 8017 §A.1, RFC 5480 §2.1.1.
  static let rsaEncryption: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
  static let ecPublicKey: [UInt8] = [0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
  static let prime256v1: [UInt8] = [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
  static let null: [UInt8] = [0x05, 0x00]

  /// An unsigned number from its bytes, big-endian.
  static func integer(_ bytes: [UInt8]) -> [UInt8] {
    var digits = Array(bytes.drop { $0 == 0 })
    if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }  // a set first bit means a negative number
    return value(0x02, digits)
  }

  static func octetString(_ bytes: [UInt8]) -> [UInt8] { value(0x04, bytes) }

  /// A bit string of whole bytes.
  static func bitString(_ bytes: [UInt8]) -> [UInt8] { value(0x03, [0] + bytes) }

  static func sequence(_ parts: [[UInt8]]) -> [UInt8] { value(0x30, Array(parts.joined())) }

  /// An explicit tag around a value.
  static func tagged(_ number: UInt8, _ part: [UInt8]) -> [UInt8] { value(0xA0 | number, part) }

  /// Tag, length, content (X.690 §8.1).
  private static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    if content.count < 0x80 { return [tag, UInt8(content.count)] + content }
    var length: [UInt8] = []
    var rest = content.count
    while rest > 0 {
      length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
      rest >>= 8
    }
    return [tag, 0x80 | UInt8(length.count)] + length + content
  }
}
