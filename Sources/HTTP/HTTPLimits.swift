// Limits of the HTTP parsers. The defaults fit a bearer token of 4 KiB in the target or in a field.

/// The bounds of one message.
public struct HTTPLimits: Sendable, Equatable {
  /// Bytes of a head: start line, fields and the empty line.
  public let headBytes: Int
  /// Field lines in a head.
  public let fields: Int
  /// Bytes of a request target.
  public let targetBytes: Int
  /// Bytes of a body, decoded.
  public let bodyBytes: Int
  /// Bytes of all chunk extensions of a body together, which are skipped.
  public let chunkExtensionBytes: Int

  /// Interim responses (1xx) that a client reads before a response. Past it the response is malformed.
  public static let interimResponses = 8
  /// Pairs of a query, empty ones included, and of a form.
  public static let parameters = 256
  /// Bytes of a decoded value of a path or query with non-ASCII characters: room for any 64 characters. Past it: 414.
  public static let otherTextBytes = 256
  /// Segments of a path that are taken apart; more than any endpoint has. Past it the rest is one segment.
  public static let pathSegments = 8
  /// Elements of `Accept-Encoding` and `If-None-Match` that are read. Past it the rest is ignored, so that the answer
  /// may be uncompressed, or complete where 304 would do.
  public static let listElements = 64

  /// Ranges within a head are kept as 16-bit numbers, so `headBytes` is at most 65,535.
  public init(
    headBytes: Int = 8192, fields: Int = 64, targetBytes: Int = 6144, bodyBytes: Int = 1 << 20,
    chunkExtensionBytes: Int = 1024
  ) {
    precondition(headBytes > 0 && headBytes <= Int(UInt16.max))
    precondition(fields >= 0 && targetBytes > 0 && bodyBytes >= 0 && chunkExtensionBytes >= 0)
    self.headBytes = headBytes
    self.fields = fields
    self.targetBytes = targetBytes
    self.bodyBytes = bodyBytes
    self.chunkExtensionBytes = chunkExtensionBytes
  }
}
