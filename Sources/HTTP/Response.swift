// The control plane's responses (RFC 9112 §4–§6). An accepted upgrade is answered elsewhere.

public import HubBytes

/// A header field of a request or a response. Names are literals, so that only values can contain a peer's bytes.
public struct OutgoingField: Sendable {
  public let name: StaticString
  public let value: String

  public init(_ name: StaticString, _ value: String) {
    self.name = name
    self.value = value
  }

  /// Appends the field's line. A control byte in the value, which could begin another line, is sent as a space (RFC
  /// 9110 §5.5).
  public func write(into buffer: inout ByteBuffer) {
    buffer.append(name)
    buffer.append(": ")
    for byte in value.utf8 { buffer.append(byte < 0x20 || byte == 0x7F ? 0x20 : byte) }
    buffer.append("\r\n")
  }
}

/// A response to be written.
public struct Response: Sendable {
  public var status: Status
  public var fields: [OutgoingField]
  public var body: [UInt8]
  /// Whether other responses have the same body in memory, which counts once.
  public var isShared = false

  public init(_ status: Status, fields: [OutgoingField] = [], body: [UInt8] = []) {
    self.status = status
    self.fields = fields
    self.body = body
  }

  /// A response with a body of that type, such as `application/json`.
  public init(_ status: Status, contentType: StaticString, body: [UInt8], fields: [OutgoingField] = []) {
    self.init(status, fields: [OutgoingField("Content-Type", "\(contentType)")] + fields, body: body)
  }

  /// The answer to a malformed message: plain text, and the connection must be closed behind it.
  public init(refusing error: HTTPError) {
    let reason = error.status.reason
    self.init(error.status, contentType: "text/plain; charset=utf-8", body: Array("\(reason)\n".utf8))
  }

  /// Adds `Retry-After` in whole seconds (RFC 9110 §10.2.3).
  public func retryAfter(seconds: Int) -> Response {
    var response = self
    response.fields.append(OutgoingField("Retry-After", String(max(0, seconds))))
    return response
  }

  /// Writes status line, fields, `Content-Length`, `Connection` and the body.
  ///
  /// `keepsAlive`: the request's `keepsAlive`, or false to end the connection; the caller then closes when all is sent.
  /// `toHead`: for a response to HEAD, which has the head of the response to GET and no body (RFC 9110 §9.3.2).
  /// `isChunked`: no body is written, and `Transfer-Encoding` replaces `Content-Length`: the caller sends chunks
  /// (`writeChunk`).
  public func write(
    into buffer: inout ByteBuffer, keepsAlive: Bool, toHead: Bool = false, isChunked: Bool = false
  ) {
    Response.writeStatusLine(status, into: &buffer)
    for field in fields { field.write(into: &buffer) }
    if isChunked {
      buffer.append("Transfer-Encoding: chunked\r\n")
    } else if !status.hasNoBody {  // RFC 9110 §8.6: no Content-Length in 1xx and 204
      buffer.append("Content-Length: ")
      buffer.append(utf8: String(body.count))
      buffer.append("\r\n")
    }
    // HTTP/1.0 clients need the field, and 1.1 clients ignore it.
    buffer.append(keepsAlive ? "Connection: keep-alive" : "Connection: close")
    if status == .upgradeRequired { buffer.append(", upgrade") }  // RFC 9110 §7.8: where the head has Upgrade
    buffer.append("\r\n\r\n")
    if !toHead, !isChunked, !status.hasNoBody { buffer.append(body) }
  }

  /// Writes the head of a response whose body ends with the connection (RFC 9112 §6.3); the caller writes the body.
  public func writeEndlessHead(into buffer: inout ByteBuffer) {
    Response.writeStatusLine(status, into: &buffer)
    for field in fields { field.write(into: &buffer) }
    buffer.append("Connection: close\r\n\r\n")
  }

  /// Writes one chunk of a body (RFC 9112 §7.1), and behind the last one the body's end.
  public static func writeChunk(_ bytes: UnsafeRawBufferPointer, isLast: Bool, into buffer: inout ByteBuffer) {
    if bytes.count > 0 {  // an empty chunk would end the body
      buffer.append(utf8: String(bytes.count, radix: 16))
      buffer.append("\r\n")
      unsafe buffer.append(bytes)
      buffer.append("\r\n")
    }
    if isLast { buffer.append("0\r\n\r\n") }
  }

  /// `100 Continue`, for a request that waits for it (RFC 9110 §15.2.1).
  public static func writeContinue(into buffer: inout ByteBuffer) {
    buffer.append("HTTP/1.1 100 Continue\r\n\r\n")
  }

  /// RFC 9112 §4; the answer to HTTP/1.0 is HTTP/1.1 too (RFC 9110 §6.2).
  static func writeStatusLine(_ status: Status, into buffer: inout ByteBuffer) {
    buffer.append("HTTP/1.1 ")
    buffer.append(utf8: String(status.code))
    buffer.append(" ")
    buffer.append(status.reason)
    buffer.append("\r\n")
  }
}
