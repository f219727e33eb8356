// A receiver's answer. Only its status matters; the body is read so that the connection can be reused.
import HubHTTP

struct ReplyReader {
  /// How much has been read.
  enum Progress: Equatable {
    case incomplete
    /// The head is complete; `isComplete` where no more of the body is wanted. `keepsAlive`: the connection may be
    /// reused then.
    case answered(WebhookReply, isComplete: Bool, keepsAlive: Bool)
  }

  private var response = ResponseReader(limits: HTTPLimits(headBytes: headBytes, bodyBytes: bodyBytes))

  /// Takes bytes. Throws if the head is no HTTP/1.1, or passes a limit. A body that does so costs only the connection:
  /// the status counts.
  mutating func read(_ bytes: UnsafeRawBufferPointer) throws(HTTPError) -> Progress {
    var (isComplete, isSound) = (true, true)
    do throws(HTTPError) { isComplete = try unsafe response.read(bytes) } catch {
      guard response.head != nil else { throw error }
      isSound = false
    }
    guard let head = response.head else { return .incomplete }
    // RFC 9110 §10.2.3: seconds, or a date, which is ignored.
    let seconds = head.fields.string("retry-after").flatMap { UInt32($0) }.map(Double.init)
    return .answered(
      .status(Int(head.status.code), retryAfterSeconds: seconds), isComplete: isComplete,
      keepsAlive: isSound && head.version == .http11 && !head.fields.contains("connection", token: "close"))
  }

  /// The status has come.
  var hasHead: Bool { response.head != nil }
  /// Nothing has come yet.
  var isUntouched: Bool { response.isUntouched }
}
