// A client's parser of response heads: the part of RFC 9112 §4 that a WebSocket handshake and its refusals need.

/// The head of a response, checked.
public struct ResponseHead: Sendable {
  public let status: Status
  public let version: Version
  public let fields: HeaderFields
  /// The framing of the body, unless this answers HEAD (RFC 9112 §6.3).
  public let framing: BodyFraming
}

/// The result of `ResponseParser.parse`.
public enum ResponseParse: Sendable {
  case incomplete
  /// A head of `consumed` bytes. After `101` the other protocol begins there.
  case response(ResponseHead, consumed: Int)
}

/// Reads response heads from a connection.
public struct ResponseParser: Sendable {
  private var scanner = HeadScanner()

  public init() {}

  /// Reads a head from `bytes`: all bytes of the connection that were not consumed yet.
  /// Costs O(new bytes), and two allocations when the head is complete.
  public mutating func parse(
    _ bytes: UnsafeRawBufferPointer, limits: HTTPLimits = HTTPLimits()
  ) throws(HTTPError) -> ResponseParse {
    guard let end = try unsafe scanner.scan(bytes, limit: limits.headBytes) else { return .incomplete }
    let start = Int(scanner.start)
    scanner = HeadScanner()
    let head = try unsafe ResponseParser.head(
      [UInt8](UnsafeRawBufferPointer(rebasing: bytes[start..<end])), limits: limits)
    return .response(head, consumed: end)
  }

  private static func head(_ bytes: [UInt8], limits: HTTPLimits) throws(HTTPError) -> ResponseHead {
    guard let lineEnd = HeaderFields.lineEnd(in: bytes, from: 0) else { throw .malformedStartLine }
    // RFC 9112 §4: HTTP-version SP 3DIGIT SP [reason]. Servers often omit the last space where there is no reason.
    guard lineEnd >= 12, bytes[8] == 0x20, lineEnd == 12 || bytes[12] == 0x20 else { throw .malformedStartLine }
    let version = try RequestParser.version(bytes[0..<8])
    guard let code = ASCII.decimal(bytes[9..<12]), let status = Status(code: code) else { throw .malformedStartLine }
    var fields = HeaderFields(bytes: bytes)
    try fields.parse(from: lineEnd + 2, limits: limits)
    let framing = try BodyFraming(response: fields, version, status: status)
    return ResponseHead(status: status, version: version, fields: fields, framing: framing)
  }
}
