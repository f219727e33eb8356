// Server-Sent Events (WHATWG HTML §9.2): the stream that a rider without a WebSocket reads.

import HubBytes

/// Writes events of a `text/event-stream`.
public enum ServerSentEvent {
  /// The stream's media type; always UTF-8, so it has no charset.
  public static let contentType: StaticString = "text/event-stream"

  /// Appends one event: `id` (left out when empty; what the client sends back as `Last-Event-ID`), and `data`, of which
  /// each line becomes a `data:` line of its own. LF, CR and CRLF end a line; in the `id` they and NUL are left out,
  /// because a client would take them for the field's end or drop the field.
  public static func write(
    id: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer, into buffer: inout ByteBuffer
  ) {
    buffer.reserve(id.count + data.count + 16)
    if id.count > 0 {
      buffer.append("id: ")
      for byte in id where byte != 0x0A && byte != 0x0D && byte != 0 { buffer.append(byte) }
      buffer.append("\n")
    }
    var lineStart = 0
    var position = 0
    while position < data.count {
      let byte = data[position]
      if byte == 0x0A || byte == 0x0D {
        writeLine(data, lineStart..<position, into: &buffer)
        if byte == 0x0D, position + 1 < data.count, data[position + 1] == 0x0A { position += 1 }
        lineStart = position + 1
      }
      position += 1
    }
    writeLine(data, lineStart..<data.count, into: &buffer)
    buffer.append("\n")
  }

  /// Appends a comment, which clients ignore: it keeps proxies from closing a quiet stream.
  public static func writeKeepAlive(into buffer: inout ByteBuffer) {
    buffer.append(":\n\n")
  }

  /// Appends how long a client should wait before it connects again.
  public static func writeRetry(milliseconds: Int, into buffer: inout ByteBuffer) {
    buffer.append("retry: ")
    buffer.append(utf8: String(max(0, milliseconds)))
    buffer.append("\n\n")
  }

  private static func writeLine(_ data: UnsafeRawBufferPointer, _ range: Range<Int>, into buffer: inout ByteBuffer) {
    buffer.append("data: ")
    buffer.append(UnsafeRawBufferPointer(rebasing: data[range]))
    buffer.append("\n")
  }
}
