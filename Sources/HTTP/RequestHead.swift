// A request's start line and fields, copied from the read buffer.

/// The supported methods (RFC 9110 §9.3, RFC 5789). Others are answered with 501.
public enum Method: UInt8, Sendable, Equatable, CaseIterable {
  case get, head, post, put, delete, options, patch

  /// The method as in a request line (RFC 9110 §9.1).
  public var name: StaticString {
    switch self {
    case .get: "GET"
    case .head: "HEAD"
    case .post: "POST"
    case .put: "PUT"
    case .delete: "DELETE"
    case .options: "OPTIONS"
    case .patch: "PATCH"
    }
  }

  /// Methods are case-sensitive (RFC 9110 §9.1).
  init?(_ bytes: ArraySlice<UInt8>) {
    let method = Method.allCases.first {
      unsafe bytes.elementsEqual(UnsafeBufferPointer(start: $0.name.utf8Start, count: $0.name.utf8CodeUnitCount))
    }
    guard let method else { return nil }
    self = method
  }
}

/// HTTP/1.0 or 1.1; a higher minor version counts as 1.1 (RFC 9110 §2.5).
public enum Version: UInt8, Sendable, Equatable {
  case http10, http11
}

/// The head of a request, checked.
public struct RequestHead: Sendable {
  public let method: Method
  public let version: Version
  public let fields: HeaderFields
  /// The framing of the body (RFC 9112 §6.3); `.none` without one.
  public let framing: BodyFraming
  /// Whether the connection stays open after the response (RFC 9112 §9.3).
  public let keepsAlive: Bool

  private let pathStart: UInt16
  private let pathEnd: UInt16
  private let queryStart: UInt16
  private let queryEnd: UInt16

  init(
    method: Method, version: Version, target: TargetRanges, fields: HeaderFields, framing: BodyFraming, keepsAlive: Bool
  ) {
    self.method = method
    self.version = version
    self.fields = fields
    self.framing = framing
    self.keepsAlive = keepsAlive
    pathStart = UInt16(target.path.lowerBound)
    pathEnd = UInt16(target.path.upperBound)
    queryStart = UInt16(target.query.lowerBound)
    queryEnd = UInt16(target.query.upperBound)
  }

  /// The size of the head in bytes.
  public var byteCount: Int { fields.bytes.count }

  /// The raw path: `/v1/ws`. It is empty only for an absolute target without a path, which means `/`, and `*` only for
  /// `OPTIONS *`.
  public var path: ArraySlice<UInt8> { fields.bytes[Int(pathStart)..<Int(pathEnd)] }

  /// The query; empty without one.
  public var query: Query { Query(fields.bytes[Int(queryStart)..<Int(queryEnd)]) }

  /// The segments of the path, percent-decoded: `/v1/trips/t-1` is `["v1", "trips", "t-1"]`. `%2F` stays inside its
  /// segment. Dot segments are kept: no path is mapped to a file. Past `HTTPLimits.pathSegments` there is one more, of
  /// all the rest.
  public func pathSegments() throws(HTTPError) -> [String] {
    var segments: [String] = []
    let parts = path.split(separator: 0x2F, maxSplits: HTTPLimits.pathSegments + 1, omittingEmptySubsequences: false)
    for part in parts.dropFirst() {
      segments.append(try PercentEncoding.string(part, plusIsSpace: false))
    }
    return segments
  }

  /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1; not in HTTP/1.0).
  public var expectsContinue: Bool {
    version == .http11 && framing != .none && fields.contains("expect", token: "100-continue")
  }
}
