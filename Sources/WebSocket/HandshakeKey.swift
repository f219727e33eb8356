// Sec-WebSocket-Key and Sec-WebSocket-Accept (RFC 6455 §1.3, §4.1, §4.2.2).

import HubBytes

/// The nonce of a handshake as in `Sec-WebSocket-Key`: 24 characters for 16 bytes.
public struct HandshakeKey: Sendable {
  static let length = 24

  private var characters = InlineArray<24, UInt8>(repeating: 0)

  /// A client's key. The 16 bytes must be random for each connection (RFC 6455 §4.1).
  public init(nonce: (UInt64, UInt64)) {
    let bytes = Base64.padded.encode(unsafe withUnsafeBytes(of: nonce) { unsafe [UInt8]($0) })
    for index in 0..<HandshakeKey.length { characters[index] = bytes[index] }
  }

  /// Nil unless it decodes to 16 bytes (RFC 6455 §4.2.1 item 5): 22 characters of base64 and two of padding. The four
  /// unused bits are ignored; RFC 4648 §3.5 allows both.
  public init?(_ value: ArraySlice<UInt8>) {
    guard value.count == HandshakeKey.length else { return nil }
    let start = value.startIndex
    for index in 0..<HandshakeKey.length {
      let byte = value[start + index]
      guard index < 22 ? Base64.padded.isDigit(byte) : byte == 0x3D else { return nil }
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
    let digest = (0..<20).map { UInt8(truncatingIfNeeded: words[$0 / 4] >> UInt32(24 - $0 % 4 * 8)) }
    let text = Base64.padded.encode(digest)
    var accept = HandshakeAccept()
    for index in 0..<28 { accept.characters[index] = text[index] }
    return accept
  }

  func write(into buffer: inout ByteBuffer) {
    unsafe withUnsafeBytes(of: characters) { unsafe buffer.append($0) }
  }
}

/// The value of `Sec-WebSocket-Accept`.
public struct HandshakeAccept: Sendable {
  fileprivate var characters = InlineArray<28, UInt8>(repeating: 0)

  /// Whether a header has this value (RFC 6455 §4.1 response item 4).
  public func matches(_ value: ArraySlice<UInt8>) -> Bool {
    unsafe withUnsafeBytes(of: characters) { unsafe value.elementsEqual($0) }
  }

  func write(into buffer: inout ByteBuffer) {
    unsafe withUnsafeBytes(of: characters) { unsafe buffer.append($0) }
  }
}
