// The errors of a peer's HTTP/1.1 messages, each with the status to answer.
//
// After one of them the start of the next message is unknown: answer, then close (RFC 9112 §2.2, §11.2). A server that
// guesses instead enables request smuggling.

/// A message that breaks RFC 9110 or 9112, or one of our limits.
public enum HTTPError: Error, Equatable, Sendable {
  /// A CR that no LF follows. RFC 9112 §2.2.
  case bareCarriageReturn
  /// An LF without CR. RFC 9112 §2.2 allows it as a line end; it is refused, because peers that disagree about it can
  /// be exploited.
  case bareLineFeed
  /// A control byte in the head. RFC 9110 §5.5.
  case controlByte(UInt8)
  /// Not `method SP target SP version`, or not `version SP status`. RFC 9112 §3, §4.
  case malformedStartLine
  /// A method that RFC 9110 §9 or RFC 5789 does not name, or CONNECT or TRACE, which this server does not have.
  case methodNotImplemented
  /// A target that is none of the forms of RFC 9112 §3.2, or has bytes a URI has not.
  case malformedTarget
  /// A request target over the limit. RFC 9110 §15.5.15.
  case targetTooLong(bytes: Int, limit: Int)
  /// Not HTTP/1. RFC 9110 §2.5.
  case versionNotSupported(major: UInt8)
  /// A head over the limit of bytes. RFC 6585 §5.
  case headTooLarge(limit: Int)
  case tooManyFields(limit: Int)
  /// No colon, an empty name, a byte in the name that is not a token's, or a space before the colon. RFC 9112 §5.1.
  case malformedField
  /// A field line that begins with a space or tab. RFC 9112 §5.2.
  case obsoleteLineFolding
  /// HTTP/1.1 without Host. RFC 9112 §3.2.
  case missingHost
  case repeatedHost
  case malformedHost
  /// An expectation other than `100-continue`. RFC 9110 §10.1.1.
  case unknownExpectation
  /// More than one field, a list, or not digits. RFC 9112 §6.3.
  case malformedContentLength
  /// Content-Length and Transfer-Encoding in one message. RFC 9112 §6.1, §11.2.
  case contentLengthWithTransferEncoding
  /// Transfer-Encoding in HTTP/1.0, or one whose last coding is not `chunked`. RFC 9112 §6.1, §6.3.
  case malformedTransferEncoding
  /// A coding other than `chunked`. RFC 9112 §6.1.
  case transferCodingNotImplemented
  case bodyTooLarge(limit: Int)
  /// A chunk without the form of RFC 9112 §7.1.
  case malformedChunk
  /// Chunk extensions (RFC 9112 §7.1.1) beyond the limit.
  case chunkExtensionsTooLong(limit: Int)
  case trailersTooLarge(limit: Int)
  /// A `%` without two hex digits, or bytes that are not UTF-8 once decoded. RFC 3986 §2.1.
  case malformedPercentEncoding
  /// A decoded text with non-ASCII characters, beyond the limit.
  case textTooLong(limit: Int)
  /// A query, or a form, with more pairs than are read.
  case tooManyParameters(limit: Int)
  /// A server that sends more interim responses than a client reads. RFC 9110 §15.2.
  case tooManyInterimResponses(limit: Int)

  /// The status to answer with before closing.
  public var status: Status {
    switch self {
    case .bareCarriageReturn, .bareLineFeed, .controlByte, .malformedStartLine, .malformedTarget, .malformedField,
      .obsoleteLineFolding, .missingHost, .repeatedHost, .malformedHost, .malformedContentLength,
      .contentLengthWithTransferEncoding, .malformedTransferEncoding, .malformedChunk, .chunkExtensionsTooLong,
      .malformedPercentEncoding, .tooManyInterimResponses:
      return .badRequest
    case .unknownExpectation: return .expectationFailed
    case .bodyTooLarge, .tooManyParameters: return .contentTooLarge
    case .targetTooLong, .textTooLong: return .uriTooLong
    case .headTooLarge, .tooManyFields, .trailersTooLarge: return .headerFieldsTooLarge
    case .methodNotImplemented, .transferCodingNotImplemented: return .notImplemented
    case .versionNotSupported: return .versionNotSupported
    }
  }
}
