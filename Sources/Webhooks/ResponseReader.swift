// The answer of a receiver, taken off a connection as its bytes come (RFC 9112). Its status is all that counts; the
// body is read only so that the connection can be used again.
import HubBytes
import HubHTTP

struct ResponseReader {
  /// How far it came.
  enum Progress: Equatable {
    case incomplete
    /// The head is there; `isComplete` where the body is, too. `keepsAlive`: the connection may be used again then.
    case answered(WebhookReply, isComplete: Bool, keepsAlive: Bool)
  }

  private var parser = ResponseParser()
  private var input: [UInt8] = []
  private var head: ResponseHead?
  private var body: BodyReader?
  private static let limits = HTTPLimits(headBytes: headBytes, bodyBytes: bodyBytes)

  /// Takes bytes. Throws where they are no HTTP/1.1, or beyond a limit: after `answered` that only means that the
  /// connection must end.
  mutating func read(_ bytes: UnsafeRawBufferPointer) throws(HTTPError) -> Progress {
    unsafe input.append(contentsOf: bytes)
    while head == nil {
      let parsed = try unsafe input.withBytes { (bytes) throws(HTTPError) in
        unsafe try parser.parse(bytes, limits: Self.limits)
      }
      guard case .response(let found, let consumed) = parsed else { return .incomplete }
      input.removeFirst(consumed)
      if (100..<200).contains(found.status.code) { continue }  // RFC 9110 §15.2: the final one follows
      head = found
    }
    guard let head else { return .incomplete }
    return .answered(reply(head), isComplete: try readBody(head), keepsAlive: keepsAlive(head))
  }

  /// Nothing came yet.
  var isUntouched: Bool { head == nil && input.isEmpty }

  private mutating func readBody(_ head: ResponseHead) throws(HTTPError) -> Bool {
    if body == nil { body = try BodyReader(head.framing, limits: Self.limits) }
    guard var reader = body else { return false }
    var dropped = ByteBuffer()
    _ = try unsafe input.withBytes { (bytes) throws(HTTPError) in unsafe try reader.read(bytes, into: &dropped) }
    input.removeAll(keepingCapacity: true)
    body = reader
    return reader.isComplete
  }

  private func reply(_ head: ResponseHead) -> WebhookReply {
    // RFC 9110 §10.2.3: seconds, or a date, which is not heard.
    let seconds = head.fields.string("retry-after").flatMap { UInt32($0) }.map(Double.init)
    return .status(Int(head.status.code), retryAfterSeconds: seconds)
  }

  private func keepsAlive(_ head: ResponseHead) -> Bool {
    head.version == .http11 && !head.fields.contains("connection", token: "close")
  }
}

extension [UInt8] {
  fileprivate func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws(HTTPError) -> R) throws(HTTPError) -> R {
    let bytes = unsafe span.bytes
    return try unsafe bytes.withUnsafeBytes(body)
  }
}
