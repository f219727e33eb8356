// What a peer is told of a request that could not be understood.
import HubHTTP
import HubMessages

extension ErrorCode {
  /// The status that goes with the code.
  var status: Status { Status(facts.status) }
}

extension HTTPError {
  /// The code in the body; the status is the error's own.
  var code: ErrorCode {
    status == .contentTooLarge || status == .headerFieldsTooLarge || status == .uriTooLong ? .tooLarge : .badMessage
  }

  /// For the developer who reads it.
  var explanation: String {
    switch self {
    case .bareCarriageReturn: "a CR that no LF follows (RFC 9112 §2.2)"
    case .bareLineFeed: "an LF without a CR before it"
    case .controlByte(let byte): "a control byte, \(byte), in the head (RFC 9110 §5.5)"
    case .malformedStartLine: "the request line is not METHOD SP TARGET SP HTTP/1.1 (RFC 9112 §3)"
    case .methodNotImplemented: "this method is not implemented"
    case .malformedTarget: "the request target is malformed (RFC 9112 §3.2)"
    case .targetTooLong(let bytes, let limit): "the request target has \(bytes) bytes; at most \(limit) are taken"
    case .versionNotSupported(let major): "HTTP/\(major) is not spoken here, HTTP/1.1 is"
    case .headTooLarge(let limit): "the head has more than \(limit) bytes"
    case .tooManyFields(let limit): "the head has more than \(limit) fields"
    case .malformedField: "a header field is malformed (RFC 9112 §5.1)"
    case .obsoleteLineFolding: "a header field is folded over lines (RFC 9112 §5.2)"
    case .missingHost: "HTTP/1.1 needs a Host field (RFC 9112 §3.2)"
    case .repeatedHost: "there is more than one Host field"
    case .malformedHost: "the Host field is malformed"
    case .unknownExpectation: "the only expectation that is met is 100-continue (RFC 9110 §10.1.1)"
    case .malformedContentLength: "Content-Length is malformed or repeated (RFC 9112 §6.3)"
    case .contentLengthWithTransferEncoding: "Content-Length and Transfer-Encoding in one message (RFC 9112 §6.1)"
    case .malformedTransferEncoding: "Transfer-Encoding must end with chunked, once, in HTTP/1.1 (RFC 9112 §6.1)"
    case .transferCodingNotImplemented: "of the transfer codings only chunked is implemented"
    case .bodyTooLarge(let limit): "the body has more than \(limit) bytes"
    case .malformedChunk: "a chunk of the body is malformed (RFC 9112 §7.1)"
    case .chunkExtensionsTooLong(let limit): "the chunk extensions have more than \(limit) bytes"
    case .trailersTooLarge(let limit): "the trailers have more than \(limit) bytes"
    case .malformedPercentEncoding: "a % without two hex digits, or bytes that are not UTF-8 once decoded"
    }
  }
}
