// Sec-WebSocket-Key and Sec-WebSocket-Accept (RFC 6455 §1.3, §4.1, §4.2.2), with the base64 (RFC 4648 §4) they need.

import HubBytes

/// The nonce of a handshake as it is in `Sec-WebSocket-Key`: 24 characters for 16 bytes.
public struct HandshakeKey: Sendable {
  static let length = 24
  static let nonceLength = 16

  private var characters = InlineArray<24, UInt8>(repeating: 0)

  /// A client's key. The 16 bytes are to be drawn at random for each connection (RFC 6455 §4.1).
  public init(nonce: (UInt64, UInt64)) {
    unsafe withUnsafeBytes(of: nonce) { source in
      unsafe withUnsafeMutableBytes(of: &characters) { unsafe Base64.encode(source, into: $0) }
    }
  }

  /// Nil unless it decodes to 16 bytes (RFC 6455 §4.2.1 item 5): 22 characters of base64 and two of padding. The four
  /// bits behind the 16 bytes are not looked at; RFC 4648 §3.5 leaves that open.
  public init?(_ value: ArraySlice<UInt8>) {
    guard value.count == HandshakeKey.length else { return nil }
    let start = value.startIndex
    for index in 0..<HandshakeKey.length {
      let byte = value[start + index]
      guard index < 22 ? Base64.isCharacter(byte) : byte == 0x3D else { return nil }
      characters[index] = byte
    }
  }

  /// The 28 characters of `Sec-WebSocket-Accept`: base64 of SHA-1 of the key and the GUID. RFC 6455 §4.2.2 item 5.4.
  /// Under 1 µs.
  public var accept: HandshakeAccept {
    let guid: StaticString = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    var input = InlineArray<60, UInt8>(repeating: 0)
    for index in 0..<HandshakeKey.length { input[index] = characters[index] }
    for index in 0..<36 { input[HandshakeKey.length + index] = unsafe guid.utf8Start[index] }
    let words = SHA1.digest(of: input.span)
    var digest = InlineArray<20, UInt8>(repeating: 0)
    for index in 0..<20 { digest[index] = UInt8(truncatingIfNeeded: words[index / 4] >> UInt32(24 - index % 4 * 8)) }
    var accept = HandshakeAccept()
    unsafe withUnsafeBytes(of: digest) { source in
      unsafe withUnsafeMutableBytes(of: &accept.characters) { unsafe Base64.encode(source, into: $0) }
    }
    return accept
  }

  func write(into buffer: inout ByteBuffer) {
    unsafe withUnsafeBytes(of: characters) { unsafe buffer.append($0) }
  }
}

/// The value of `Sec-WebSocket-Accept`.
public struct HandshakeAccept: Sendable {
  fileprivate var characters = InlineArray<28, UInt8>(repeating: 0)

  /// Whether a header has exactly this value (RFC 6455 §4.1 response item 4).
  public func matches(_ value: ArraySlice<UInt8>) -> Bool {
    unsafe withUnsafeBytes(of: characters) { unsafe value.elementsEqual($0) }
  }

  func write(into buffer: inout ByteBuffer) {
    unsafe withUnsafeBytes(of: characters) { unsafe buffer.append($0) }
  }
}

/// As much of RFC 4648 §4 as the handshake needs.
enum Base64 {
  static func isCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F: return true
    default: return false
    }
  }

  /// Writes all of `bytes`, padded, to `text`, which has room for it: four characters for each three bytes begun.
  static func encode(_ bytes: UnsafeRawBufferPointer, into text: UnsafeMutableRawBufferPointer) {
    precondition(text.count >= (bytes.count + 2) / 3 * 4)
    var position = 0
    var end = 0
    while position < bytes.count {
      let left = min(3, bytes.count - position)
      var group: UInt32 = 0
      for index in 0..<3 { group = unsafe group << 8 | (index < left ? UInt32(bytes[position + index]) : 0) }
      for index in 0..<4 {
        unsafe text[end + index] = index <= left ? character(UInt8(group >> UInt32(18 - 6 * index) & 0x3F)) : 0x3D
      }
      position += 3
      end += 4
    }
  }

  private static func character(_ value: UInt8) -> UInt8 {
    switch value {
    case 0..<26: return 0x41 + value
    case 26..<52: return 0x61 + (value - 26)
    case 52..<62: return 0x30 + (value - 52)
    case 62: return 0x2B
    default: return 0x2F
    }
  }
}
