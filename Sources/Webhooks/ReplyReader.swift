// A receiver's answer. Only its status matters; the body is read so that the connection can be reused.
import HubHTTP

struct ReplyReader {
  /// How much has been read.
  enum Progress: Equatable {
    case incomplete
    /// The head is complete; `isComplete` where the body is, too. `keepsAlive`: the connection may be reused then.
    case answered(WebhookReply, isComplete: Bool, keepsAlive: Bool)
  }

  private var response = ResponseReader(limits: HTTPLimits(headBytes: headBytes, bodyBytes: bodyBytes))

  /// Takes bytes. Throws where they are no HTTP/1.1, or beyond a limit: after `answered` that only means that the
  /// connection must end.
  mutating func read(_ bytes: UnsafeRawBufferPointer) throws(HTTPError) -> Progress {
    let isComplete = try unsafe response.read(bytes)
    guard let head = response.head else { return .incomplete }
    // RFC 9110 §10.2.3: seconds, or a date, which is ignored.
    let seconds = head.fields.string("retry-after").flatMap { UInt32($0) }.map(Double.init)
    return .answered(
      .status(Int(head.status.code), retryAfterSeconds: seconds), isComplete: isComplete,
      keepsAlive: head.version == .http11 && !head.fields.contains("connection", token: "close"))
  }

  /// Nothing has come yet.
  var isUntouched: Bool { response.isUntouched }
}
