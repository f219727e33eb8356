// A peer's errors in frames, each with its close code.

/// A frame or message that breaks RFC 6455 or a limit. The connection has failed (RFC 6455 §7.1.7): send a Close frame
/// with `closeCode` and read nothing more.
public enum FrameError: Error, Equatable, Sendable {
  /// RSV bits without an agreed extension. RFC 6455 §5.2.
  case reservedBits(UInt8)
  /// RFC 6455 §5.2.
  case reservedOpcode(UInt8)
  /// RFC 6455 §5.5.
  case fragmentedControlFrame
  /// More than 125 bytes. RFC 6455 §5.5.
  case controlFrameTooLong
  /// RFC 6455 §5.1: a server must close on a frame that is not masked.
  case unmaskedFrame
  /// RFC 6455 §5.1: a client must close on a frame that is masked.
  case maskedFrame
  /// RFC 6455 §5.2: the shortest form of the length must be used.
  case lengthNotMinimal(UInt64)
  /// The most significant bit of a 64-bit length is set. RFC 6455 §5.2.
  case lengthOutOfRange
  /// A continuation without a message. RFC 6455 §5.4.
  case unexpectedContinuation
  /// A new message inside a fragmented one. RFC 6455 §5.4.
  case expectedContinuation
  /// The frame whose header was just read would make the message `bytes` long.
  case messageTooLarge(bytes: UInt64, limit: Int)
  case tooManyFragments(limit: Int)
  /// In a text message (RFC 6455 §8.1) or in the reason of a Close frame (§5.5.1).
  case invalidUTF8
  /// A Close frame with half a code. RFC 6455 §5.5.1.
  case closeFrameOfOneByte
  /// A compressed message that is malformed or truncated. RFC 7692 §7.2.2 names no code; 1007 is for a payload that
  /// does not match its type.
  case invalidDeflate
  /// A compressed message that would exceed `ratio` times its size.
  case inflatesTooMuch(ratio: Int)
  /// RFC 6455 §7.4.
  case invalidCloseCode(UInt16)

  /// The reason in the Close frame: the error, or the exceeded limit. At most 123 bytes (RFC 6455 §5.5).
  public var closeReason: String {
    switch self {
    case .messageTooLarge(_, let limit): "a message may have up to \(limit) bytes"
    case .tooManyFragments(let limit): "a message may have up to \(limit) fragments"
    case .inflatesTooMuch(let ratio): "a compressed message may inflate to up to \(ratio) times its size"
    case .reservedBits: "a frame has reserved bits that no extension uses"
    case .reservedOpcode(let opcode): "the opcode \(opcode) is reserved"
    case .fragmentedControlFrame: "a control frame must not be fragmented"
    case .controlFrameTooLong: "a control frame may have up to 125 bytes"
    case .unmaskedFrame: "a client's frames must be masked"
    case .maskedFrame: "a server's frames must not be masked"
    case .lengthNotMinimal, .lengthOutOfRange: "a frame's length is not written as it should be"
    case .unexpectedContinuation: "a continuation, and no message was begun"
    case .expectedContinuation: "a new message within a message in fragments"
    case .closeFrameOfOneByte, .invalidCloseCode: "a Close frame has no valid code"
    case .invalidUTF8: "the text is not UTF-8"
    case .invalidDeflate: "the compressed message is not deflate data"
    }
  }

  /// The code of the Close frame in answer. RFC 6455 §7.4.1.
  public var closeCode: CloseCode {
    switch self {
    case .reservedBits, .reservedOpcode, .fragmentedControlFrame, .controlFrameTooLong, .unmaskedFrame, .maskedFrame,
      .lengthNotMinimal, .lengthOutOfRange, .unexpectedContinuation, .expectedContinuation, .closeFrameOfOneByte,
      .invalidCloseCode:
      return .protocolError
    case .messageTooLarge, .tooManyFragments, .inflatesTooMuch:
      return .messageTooBig
    case .invalidUTF8, .invalidDeflate:
      return .invalidPayload
    }
  }
}
