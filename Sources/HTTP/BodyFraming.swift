// Where a body ends and whether the connection is kept alive: RFC 9112 §6 and §9.3. Request smuggling uses servers that
// disagree about one of these, so every ambiguity is an error.

/// How the length of a body is known (RFC 9112 §6.3).
public enum BodyFraming: Sendable, Equatable {
  case none
  /// A body of this many bytes, more than 0.
  case length(Int)
  case chunked
  /// All bytes to the end of the connection. Responses only.
  case untilClose

  /// Whether the body is known to have at most so many bytes.
  public func isAtMost(_ bytes: Int) -> Bool {
    switch self {
    case .none: true
    case .length(let length): length <= bytes
    case .chunked, .untilClose: false
    }
  }

  /// RFC 9112 §6.3, the rules for requests.
  init(request fields: HeaderFields, _ version: Version) throws(HTTPError) {
    self = try BodyFraming.stated(by: fields, version) ?? .none  // rule 7
  }

  /// RFC 9112 §6.3, the rules for responses to anything but HEAD and CONNECT.
  init(response fields: HeaderFields, _ version: Version, status: Status) throws(HTTPError) {
    guard !status.hasNoBody else {  // rule 1
      self = .none
      return
    }
    self = try BodyFraming.stated(by: fields, version) ?? .untilClose  // rule 8
  }

  /// The framing that the fields give, if any. Rules 3 to 6.
  private static func stated(by fields: HeaderFields, _ version: Version) throws(HTTPError) -> BodyFraming? {
    let length = fields.single("content-length")
    guard fields["transfer-encoding"] != nil else { return try stated(by: length) }
    guard length == .absent else { throw .contentLengthWithTransferEncoding }  // rule 3: both may be refused
    guard version == .http11 else { throw .malformedTransferEncoding }  // §6.1: faulty framing in HTTP/1.0
    let codings = fields.elements("transfer-encoding")
    let chunkedCount = codings.count { ASCII.equals($0, "chunked") }
    // Rule 4 and §7.1: `chunked` is applied once and comes last.
    guard let last = codings.last, ASCII.equals(last, "chunked"), chunkedCount == 1 else {
      throw .malformedTransferEncoding
    }
    guard codings.count == 1 else { throw .transferCodingNotImplemented }  // §6.1
    return .chunked
  }

  private static func stated(by length: HeaderFields.Single) throws(HTTPError) -> BodyFraming? {
    switch length {
    case .absent: return nil
    case .repeated: throw .malformedContentLength  // rule 5; equal values may be folded, need not
    case .value(let bytes):
      guard let count = ASCII.decimal(bytes) else { throw .malformedContentLength }
      return count == 0 ? BodyFraming.none : .length(count)
    }
  }

  /// RFC 9112 §9.3: HTTP/1.1 stays open without `close`, 1.0 closes without `keep-alive`.
  static func keepsAlive(_ fields: HeaderFields, _ version: Version) -> Bool {
    if fields.contains("connection", token: "close") { return false }
    switch version {
    case .http11: return true
    case .http10: return fields.contains("connection", token: "keep-alive")
    }
  }
}
