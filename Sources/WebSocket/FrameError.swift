// What a peer can get wrong in frames, and the one close code that each is answered with.

/// A frame or message that breaks RFC 6455, or one of our limits. The connection has failed (RFC 6455 §7.1.7): send a
/// Close frame with `closeCode` and read nothing more.
public enum FrameError: Error, Equatable, Sendable {
  /// RSV bits that no extension gave a meaning. RFC 6455 §5.2.
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
  /// A continuation where no message was begun. RFC 6455 §5.4.
  case unexpectedContinuation
  /// A new message inside a fragmented one. RFC 6455 §5.4.
  case expectedContinuation
  /// `bytes` would have been reached with the frame whose header was just read.
  case messageTooLarge(bytes: UInt64, limit: Int)
  case tooManyFragments(limit: Int)
  /// In a text message (RFC 6455 §8.1) or in the reason of a Close frame (§5.5.1).
  case invalidUTF8
  /// A Close frame with half a code. RFC 6455 §5.5.1.
  case closeFrameOfOneByte
  /// A compressed message that is no deflate data, or ends inside a block. RFC 7692 §7.2.2 names no code; 1007, for the
  /// payload is not what it says it is.
  case invalidDeflate
  /// A compressed message that would become more than `ratio` times its size.
  case inflatesTooMuch(ratio: Int)
  /// RFC 6455 §7.4.
  case invalidCloseCode(UInt16)

  /// What the Close frame says beside its code: what is wrong, or which limit was passed and how much it allows. It
  /// has at most 123 bytes, as many as fit (RFC 6455 §5.5).
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

  /// The code of the Close frame that answers it. RFC 6455 §7.4.1.
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
