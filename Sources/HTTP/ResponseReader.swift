// A client's reader of responses (RFC 9112).
import HubBytes

/// Reads one response with its body. Interim responses (1xx) are skipped (RFC 9110 §15.2).
public struct ResponseReader: Sendable {
  /// Nil until it is complete.
  public private(set) var head: ResponseHead?
  public private(set) var body: [UInt8] = []
  private var parser = ResponseParser()
  private var input: [UInt8] = []
  private var bodyReader: BodyReader?
  /// Interim responses so far.
  private var interim = 0
  private let limits: HTTPLimits

  public init(limits: HTTPLimits = HTTPLimits()) { self.limits = limits }

  /// Whether no byte was received.
  public var isUntouched: Bool { head == nil && input.isEmpty }

  /// Reads bytes; true once the response is complete. Throws on malformed HTTP/1.1 and at a limit, perhaps after `head`
  /// was set. A body that ends with the connection is never complete here.
  public mutating func read(_ bytes: UnsafeRawBufferPointer) throws(HTTPError) -> Bool {
    unsafe input.append(contentsOf: bytes)
    while head == nil {
      let parsed = try unsafe input.withBytes { (bytes) throws(HTTPError) in
        unsafe try parser.parse(bytes, limits: limits)
      }
      guard case .response(let found, let consumed) = parsed else { return false }
      input.removeFirst(consumed)
      if !(100..<200).contains(found.status.code) {
        head = found
      } else {
        interim += 1
        let limit = HTTPLimits.interimResponses
        guard interim <= limit else { throw .tooManyInterimResponses(limit: limit) }
      }
    }
    guard let head else { return false }
    if bodyReader == nil { bodyReader = try BodyReader(head.framing, limits: limits) }
    guard var reader = bodyReader else { return false }
    var new = ByteBuffer()
    _ = try unsafe input.withBytes { (bytes) throws(HTTPError) in unsafe try reader.read(bytes, into: &new) }
    input.removeAll(keepingCapacity: true)
    body += new.array()
    bodyReader = reader
    return reader.isComplete
  }
}

extension [UInt8] {
  fileprivate func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws(HTTPError) -> R) throws(HTTPError) -> R {
    let bytes = unsafe span.bytes
    return try unsafe bytes.withUnsafeBytes(body)
  }
}
