// A server's parser of request heads: RFC 9112 §2–§6, strict wherever leniency has been used for smuggling.
//
// The scanner finds the end of the head, reading each byte once over all calls; the head is copied once, and parsed in
// the copy with checked indices. 12 bytes of state between calls.
import HubBytes

/// The result of `RequestParser.parse`.
public enum RequestParse: Sendable {
  /// The head is not complete. Call again with the same bytes and more behind them.
  case incomplete
  /// A head of `consumed` bytes, including empty lines before it. The body begins there.
  case request(RequestHead, consumed: Int)
}

/// Reads request heads from a connection, one after another.
public struct RequestParser: Sendable {
  private var scanner = HeadScanner()

  public init() {}

  /// Reads a head from `bytes`: all bytes of the connection that were not consumed yet.
  ///
  /// After `.request` the parser is ready for the next head. After an error, answer with its status and close. Costs
  /// O(new bytes), and two allocations when the head is complete.
  public mutating func parse(
    _ bytes: UnsafeRawBufferPointer, limits: HTTPLimits = HTTPLimits()
  ) throws(HTTPError) -> RequestParse {
    guard let end = try unsafe scanner.scan(bytes, limit: limits.headBytes) else { return .incomplete }
    let start = Int(scanner.start)
    scanner = HeadScanner()
    let head = try unsafe RequestParser.head(
      [UInt8](UnsafeRawBufferPointer(rebasing: bytes[start..<end])), limits: limits)
    return .request(head, consumed: end)
  }

  private static func head(_ bytes: [UInt8], limits: HTTPLimits) throws(HTTPError) -> RequestHead {
    guard let lineEnd = HeaderFields.lineEnd(in: bytes, from: 0) else { throw .malformedStartLine }
    let line = bytes[0..<lineEnd]
    // RFC 9112 §3: method SP request-target SP HTTP-version. A target has no spaces, so there are exactly two.
    guard let first = line.firstIndex(of: 0x20), let last = line.lastIndex(of: 0x20), first < last else {
      throw .malformedStartLine
    }
    let version = try self.version(line[(last + 1)...])  // before the method: `PRI * HTTP/2.0` gets 505, not 501
    guard first > 0, line[..<first].allSatisfy(ASCII.isTokenByte) else { throw .malformedStartLine }
    let target = (first + 1)..<last
    guard target.count <= limits.targetBytes else {
      throw .targetTooLong(bytes: target.count, limit: limits.targetBytes)
    }
    guard let method = Method(line[..<first]) else { throw .methodNotImplemented }
    let ranges = try TargetRanges(in: bytes, target, method: method)
    var fields = HeaderFields(bytes: bytes)
    try fields.parse(from: lineEnd + 2, limits: limits)
    try checkHost(fields, version)
    try checkExpectation(fields, version)
    return RequestHead(
      method: method, version: version, target: ranges, fields: fields,
      framing: try BodyFraming(request: fields, version), keepsAlive: BodyFraming.keepsAlive(fields, version))
  }

  /// RFC 9112 §2.3: `HTTP/` DIGIT `.` DIGIT, case-sensitive.
  static func version(_ bytes: ArraySlice<UInt8>) throws(HTTPError) -> Version {
    let start = bytes.startIndex
    guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), bytes[start + 6] == 0x2E,
      bytes[start + 5].isDigit, bytes[start + 7].isDigit
    else { throw .malformedStartLine }
    guard bytes[start + 5] == 0x31 else { throw .versionNotSupported(major: bytes[start + 5] - 0x30) }
    return bytes[start + 7] == 0x30 ? .http10 : .http11  // RFC 9110 §2.5: higher counts as 1.1
  }

  /// RFC 9112 §3.2: HTTP/1.1 has exactly one Host, and its value is a host and port (or empty).
  private static func checkHost(_ fields: HeaderFields, _ version: Version) throws(HTTPError) {
    switch fields.single("host") {
    case .absent:
      if version == .http11 { throw .missingHost }
    case .repeated:
      throw .repeatedHost
    case .value(let host):
      guard host.allSatisfy(isHostByte) else { throw .malformedHost }
    }
  }

  /// RFC 9110 §10.1.1: `100-continue` is the only expectation that can be met. HTTP/1.0 ignores them.
  private static func checkExpectation(_ fields: HeaderFields, _ version: Version) throws(HTTPError) {
    guard version == .http11, fields["expect"] != nil else { return }
    guard fields.elements("expect").allSatisfy({ ASCII.equals($0, "100-continue") }) else { throw .unknownExpectation }
  }

  /// The bytes of `uri-host [":" port]` (RFC 3986 §3.2.2): unreserved, sub-delims, `%`, `:`, `[`, `]`; not the comma,
  /// by which a proxy joins two Host fields.
  private static func isHostByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: return true
    case 0x21, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x2B, 0x2D, 0x2E, 0x3A, 0x3B, 0x3D, 0x5B, 0x5D, 0x5F, 0x7E:
      return true
    default: return false
    }
  }
}

/// The ranges of path and query in a head.
struct TargetRanges {
  var path: Range<Int>
  var query: Range<Int>

  /// RFC 9112 §3.2: origin-form, absolute-form (which a server must accept) and, for OPTIONS, asterisk-form.
  /// Authority-form belongs to CONNECT, which got its 501 before.
  init(in bytes: [UInt8], _ target: Range<Int>, method: Method) throws(HTTPError) {
    // A URI is visible ASCII, without a fragment (RFC 3986 §3.5). Visible bytes that a URI must encode and browsers do
    // not (`|`, `{`, `"`) are accepted: they have no meaning here.
    for index in target {
      guard bytes[index] > 0x20, bytes[index] < 0x7F, bytes[index] != 0x23 else { throw .malformedTarget }
    }
    guard !target.isEmpty else { throw .malformedTarget }
    var start = target.lowerBound
    if bytes[start] == 0x2A, target.count == 1, method == .options {
      path = target
      query = target.upperBound..<target.upperBound
      return
    }
    if bytes[start] != 0x2F {
      start = try TargetRanges.behindAuthority(bytes[target])
    }
    let mark = bytes[start..<target.upperBound].firstIndex(of: 0x3F)
    path = start..<(mark ?? target.upperBound)
    query = (mark.map { $0 + 1 } ?? target.upperBound)..<target.upperBound
    // Each look-up of a parameter walks all of them.
    guard bytes[query].count(where: { $0 == 0x26 }) < HTTPLimits.parameters else {
      throw .tooManyParameters(limit: HTTPLimits.parameters)
    }
  }

  /// The index of path or query in `http://authority/path?query`.
  private static func behindAuthority(_ target: ArraySlice<UInt8>) throws(HTTPError) -> Int {
    var start = target.startIndex
    for byte in "http".utf8 {
      guard start < target.endIndex, ASCII.lowercased(target[start]) == byte else { throw .malformedTarget }
      start += 1
    }
    if start < target.endIndex, ASCII.lowercased(target[start]) == 0x73 { start += 1 }
    guard target[start...].starts(with: "://".utf8) else { throw .malformedTarget }
    start += 3
    let authority = start
    while start < target.endIndex, target[start] != 0x2F, target[start] != 0x3F {
      guard target[start] != 0x40 else { throw .malformedTarget }  // RFC 9110 §4.2.4: userinfo is an error
      start += 1
    }
    guard start > authority else { throw .malformedTarget }  // RFC 9110 §4.2.1: an empty host is invalid
    return start
  }
}
