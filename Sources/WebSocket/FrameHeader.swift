// The header of a frame, in both directions (RFC 6455 §5.2).
//
//      0                   1                   2                   3
//      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//     +-+-+-+-+-------+-+-------------+-------------------------------+
//     |F|R|R|R| opcode|M| Payload len |   16 or 64 bits more of it    |
//     |I|S|S|S|  (4)  |A|     (7)     |   when it is 126 or 127,      |
//     |N|V|V|V|       |S|             |   then the key when M is set  |
//     +-+-+-+-+-------+-+-------------+-------------------------------+

/// The role of this end. A server's frames are unmasked, a client's are masked (RFC 6455 §5.1).
public enum Role: UInt8, Sendable {
  case server, client
}

/// The type of a frame. RFC 6455 §5.2, §11.8.
public enum Opcode: UInt8, Sendable {
  case continuation = 0x0
  case text = 0x1
  case binary = 0x2
  case close = 0x8
  case ping = 0x9
  case pong = 0xA

  @inlinable public var isControl: Bool { rawValue & 0x8 != 0 }
}

/// A parsed frame header.
struct FrameHeader {
  /// The longest header: 2 bytes, 8 of length, 4 of key.
  static let maximumLength = 14

  var isFinal: Bool
  var isCompressed: Bool
  var opcode: Opcode
  var mask: MaskKey?
  var payloadLength: Int
  /// Bytes of the header itself.
  var length: Int
}

/// What a header is checked against, besides RFC 6455 itself.
struct FrameContext {
  var role: Role
  var allowsCompression: Bool
  /// Bytes and frames of the incomplete message, if any.
  var message: (bytes: Int, fragments: Int)?
  var limits: FrameLimits
}

extension FrameHeader {
  /// Reads the header at the start of `bytes`; nil while it is incomplete. Every rule is applied as soon as its bits
  /// are there, so that a violation is answered without the rest.
  static func parse(_ bytes: UnsafeRawBufferPointer, _ context: FrameContext) throws(FrameError) -> FrameHeader? {
    guard bytes.count > 0 else { return nil }
    let first = unsafe bytes[0]
    let opcode = try checkFirst(first, context)
    guard bytes.count > 1 else { return nil }
    let second = unsafe bytes[1]
    let isMasked = second & 0x80 != 0
    switch context.role {  // RFC 6455 §5.1
    case .server: guard isMasked else { throw .unmaskedFrame }
    case .client: guard !isMasked else { throw .maskedFrame }
    }
    let short = second & 0x7F
    if opcode.isControl {
      guard short <= 125 else { throw .controlFrameTooLong }  // RFC 6455 §5.5
      guard opcode != .close || short != 1 else { throw .closeFrameOfOneByte }  // RFC 6455 §5.5.1
    }
    let lengthEnd = short < 126 ? 2 : short == 126 ? 4 : 10
    guard bytes.count >= lengthEnd else { return nil }
    let length = try unsafe payloadLength(bytes, short)
    if !opcode.isControl {
      let total = UInt64(context.message?.bytes ?? 0) + length  // below 2^64: both are below 2^63
      guard total <= UInt64(context.limits.messageBytes) else {
        throw .messageTooLarge(bytes: total, limit: context.limits.messageBytes)
      }
    }
    let end = isMasked ? lengthEnd + 4 : lengthEnd
    guard bytes.count >= end else { return nil }
    let mask =
      unsafe isMasked
      ? MaskKey(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: lengthEnd, as: UInt32.self))) : nil
    return FrameHeader(
      isFinal: first & 0x80 != 0, isCompressed: first & 0x40 != 0, opcode: opcode, mask: mask,
      payloadLength: Int(length), length: end)
  }

  /// Checks the first byte.
  private static func checkFirst(_ first: UInt8, _ context: FrameContext) throws(FrameError) -> Opcode {
    guard let opcode = Opcode(rawValue: first & 0x0F) else { throw .reservedOpcode(first & 0x0F) }  // RFC 6455 §5.2
    let reserved = first & 0x70
    if reserved != 0 {
      // RFC 7692 §6: RSV1 marks a compressed message, on its first frame only.
      guard reserved == 0x40, context.allowsCompression, opcode == .text || opcode == .binary else {
        throw .reservedBits(reserved)  // RFC 6455 §5.2
      }
    }
    switch opcode {
    case .close, .ping, .pong:
      guard first & 0x80 != 0 else { throw .fragmentedControlFrame }  // RFC 6455 §5.5
    case .continuation:
      guard let message = context.message else { throw .unexpectedContinuation }  // RFC 6455 §5.4
      guard message.fragments < context.limits.fragments else {
        throw .tooManyFragments(limit: context.limits.fragments)
      }
    case .text, .binary:
      guard context.message == nil else { throw .expectedContinuation }  // RFC 6455 §5.4
    }
    return opcode
  }

  private static func payloadLength(_ bytes: UnsafeRawBufferPointer, _ short: UInt8) throws(FrameError) -> UInt64 {
    switch short {
    case 126:
      let length = unsafe UInt64(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
      guard length > 125 else { throw .lengthNotMinimal(length) }  // RFC 6455 §5.2
      return length
    case 127:
      let length = unsafe UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
      guard length <= UInt64(Int64.max) else { throw .lengthOutOfRange }  // RFC 6455 §5.2
      guard length > UInt64(UInt16.max) else { throw .lengthNotMinimal(length) }  // RFC 6455 §5.2
      return length
    default:
      return UInt64(short)
    }
  }
}
