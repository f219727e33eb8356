// The pieces of JSON that the writers share.
public import HubBytes
public import HubGeo

extension ByteBuffer {
  /// Appends a JSON string, quotation marks included, with the escapes that RFC 8259 §7 requires and no others. The
  /// text is UTF-8: String and InlineText guarantee it.
  public mutating func append(json text: String) {
    var text = text
    text.withUTF8 { unsafe append(jsonText: UnsafeRawBufferPointer($0)) }
  }

  /// Appends a JSON string, quotation marks included.
  public mutating func append(json text: InlineText) {
    unsafe text.withBytes { unsafe append(jsonText: $0) }
  }

  /// Copies runs without escapes at once.
  private mutating func append(jsonText bytes: UnsafeRawBufferPointer) {
    append(UInt8(ascii: "\""))
    var start = 0
    for i in 0..<bytes.count {
      let byte = unsafe bytes[i]
      guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
      unsafe append(UnsafeRawBufferPointer(rebasing: bytes[start..<i]))
      append(escaped: byte)
      start = i + 1
    }
    unsafe append(UnsafeRawBufferPointer(rebasing: bytes[start...]))
    append(UInt8(ascii: "\""))
  }

  private mutating func append(escaped byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): append("\\\"")
    case UInt8(ascii: "\\"): append("\\\\")
    case 0x08: append("\\b")
    case 0x09: append("\\t")
    case 0x0A: append("\\n")
    case 0x0C: append("\\f")
    case 0x0D: append("\\r")
    default:
      func hex(_ digit: UInt8) -> UInt8 { digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10 }
      append("\\u00")
      append(hex(byte >> 4))
      append(hex(byte & 0xF))
    }
  }

  /// Appends `"latitude":…,"longitude":…`.
  @inline(__always)
  package mutating func append(members coordinate: Coordinate) {
    append("\"latitude\":")
    append(fixed: coordinate.latitude, decimals: 7)
    append(",\"longitude\":")
    append(fixed: coordinate.longitude, decimals: 7)
  }

  /// Appends a member where there is a value. `key` is the text before it: mostly `,"name":`.
  @inline(__always)
  package mutating func append(_ key: StaticString, _ value: (some JSONWritable)?) {
    guard let value else { return }
    append(key)
    value.writeJSON(into: &self)
  }

  @inline(__always)
  package mutating func append(_ key: StaticString, _ timestamp: Timestamp?, as format: TimeFormat) {
    guard let timestamp else { return }
    append(key)
    append(timestamp, as: format)
  }
}

/// A value with one form in JSON, whatever the connection.
package protocol JSONWritable {
  func writeJSON(into buffer: inout ByteBuffer)
}

extension Double: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) { buffer.append(double: self) }
}

extension UInt64: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) { buffer.append(integer: self) }
}

extension Int: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) { buffer.append(integer: Int64(self)) }
}

extension Bool: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) { buffer.append(self ? "true" : "false") }
}

extension String: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) { buffer.append(json: self) }
}

extension InlineText: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) { buffer.append(json: self) }
}

/// Keywords of the protocol need no escapes.
extension StaticString: JSONWritable {
  @inline(__always)
  package func writeJSON(into buffer: inout ByteBuffer) {
    buffer.append(UInt8(ascii: "\""))
    buffer.append(self)
    buffer.append(UInt8(ascii: "\""))
  }
}

/// Ids, geohashes and channel names need no escapes.
extension Identifier: JSONWritable {
  @inline(__always)
  package func writeJSON(into buffer: inout ByteBuffer) {
    buffer.append(UInt8(ascii: "\""))
    buffer.append(text)
    buffer.append(UInt8(ascii: "\""))
  }
}

extension GeohashCell: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) {
    buffer.withRoom(for: 14) {
      $0.append(UInt8(ascii: "\""))
      $0.append(self)
      $0.append(UInt8(ascii: "\""))
    }
  }
}

extension Channel: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) {
    buffer.append(UInt8(ascii: "\""))
    buffer.append(self)
    buffer.append(UInt8(ascii: "\""))
  }
}

extension Coordinate: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) {
    buffer.append("{")
    buffer.append(members: self)
    buffer.append("}")
  }
}

extension Array: JSONWritable where Element: JSONWritable {
  package func writeJSON(into buffer: inout ByteBuffer) {
    buffer.append(list: self) { $1.writeJSON(into: &$0) }
  }
}

extension ByteBuffer {
  /// Appends `[…]`, with commas between the elements that `write` writes.
  package mutating func append<List: Collection>(list elements: List, _ write: (inout ByteBuffer, List.Element) -> Void)
  {
    append("[")
    for (index, element) in elements.enumerated() {
      if index > 0 { append(UInt8(ascii: ",")) }
      write(&self, element)
    }
    append("]")
  }
}
