// Why a request is refused, from any layer: handlers throw it, and one function writes and counts it.
import HubBytes
import HubHTTP
import HubMessages
import HubWebSocket

struct Refusal: Error {
  var status: Status
  var code: ErrorCode
  /// A text for developers.
  var message: String
  /// Seconds.
  var retryAfter: Int?
  /// Further fields of the answer.
  var fields: [OutgoingField]
  /// The connection ends after the answer.
  var endsConnection: Bool
  /// The trip's status, with `invalid_transition`.
  var tripStatus: TripStatus?
  /// Counts it in further counters.
  var counting: @Sendable (inout LoopCounters) -> Void

  /// The status is the code's own by default.
  init(
    _ code: ErrorCode, _ message: String, status: Status? = nil, retryAfter: Int? = nil, fields: [OutgoingField] = [],
    endsConnection: Bool = false, counting: @escaping @Sendable (inout LoopCounters) -> Void = { _ in }
  ) {
    self.status = status ?? code.status
    self.code = code
    self.message = message
    self.retryAfter = retryAfter
    self.fields = fields
    self.endsConnection = endsConnection
    self.counting = counting
  }

  /// Counts it by its code, and in further counters.
  func count(in counters: inout LoopCounters) {
    counters.errors[Int(code.rawValue)] += 1
    counting(&counters)
  }

  var response: Response {
    let response = Response.json(status, fields: fields) { JSONWriter.writeError(code, message: message, into: &$0) }
    return retryAfter.map(response.retryAfter(seconds:)) ?? response
  }
}

extension Refusal {
  /// A refusal of the hub, or of a question without the right to it.
  init(_ error: ErrorReply) {
    self.init(
      error.code, error.message, status: error.isOwnLimit ? .tooManyRequests : nil,
      retryAfter: error.retryAfter.map { Int($0.rounded(.up)) })
    tripStatus = error.status
  }

  init(_ error: MessageError) { self.init(error.code, error.text) }

  init(_ error: HTTPError) { self.init(error.code, error.explanation, status: error.status) }

  /// RFC 9110 §11.6.1: a 401 names what would be accepted.
  init(_ error: CredentialError) {
    self.init(error.code, error.text, status: .unauthorized, fields: [error.challenge])
  }

  init(_ refusal: UpgradeRefusal) {
    self.init(.badMessage, refusal.explanation, status: refusal.status, fields: refusal.response.fields)
  }
}

extension ErrorCode {
  /// The code's status.
  var status: Status { Status(facts.status) }
}

extension Response {
  /// A response whose body `write` appends.
  static func json(
    _ status: Status = .ok, fields: [OutgoingField] = [], capacity: Int = 512, _ write: (inout ByteBuffer) -> Void
  ) -> Response {
    var body = ByteBuffer(capacity: capacity)
    write(&body)
    return Response(status, contentType: "application/json", body: body.array(), fields: fields)
  }

  /// A response in plain text.
  static func text(_ text: StaticString) -> Response {
    let body = unsafe UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    return unsafe Response(.ok, contentType: "text/plain; charset=utf-8", body: Array(body))
  }
}

extension HTTPError {
  /// The code in the body; the status is the error's own.
  fileprivate var code: ErrorCode {
    status == .contentTooLarge || status == .headerFieldsTooLarge || status == .uriTooLong ? .tooLarge : .badMessage
  }

  /// A text for developers.
  fileprivate var explanation: String {
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
    case .tooManyParameters(let limit): "there are more than \(limit) parameters"
    case .tooManyInterimResponses(let limit): "there are more than \(limit) interim responses"
    case .textTooLong(let limit): "a text with non-ASCII characters is longer than \(limit) bytes"
    case .malformedPercentEncoding: "a % without two hex digits, or bytes that are not UTF-8 once decoded"
    }
  }
}

extension UpgradeRefusal {
  /// A text for developers.
  fileprivate var explanation: String {
    switch self {
    case .methodNotAllowed: "a WebSocket is opened with GET"
    case .versionTooOld: "a WebSocket needs HTTP/1.1"
    case .hasBody: "a request that opens a WebSocket has no body"
    case .upgradeMissing: "this is a WebSocket endpoint: send Upgrade: websocket"
    case .connectionMissing: "send Connection: Upgrade"
    case .malformedKey: "Sec-WebSocket-Key must be 16 bytes in base64, once"
    case .malformedVersion: "send Sec-WebSocket-Version: 13, once"
    case .malformedExtensions: "Sec-WebSocket-Extensions is malformed"
    case .unsupportedVersion: "this hub speaks version 13 of WebSocket only"
    }
  }
}
