// The pieces of JSON that the writers share.
import HubBytes
import HubGeo

extension ByteBuffer {
  /// Appends a JSON string, quotation marks included, escaped as RFC 8259 §7 demands and no further. Text that is not
  /// UTF-8 can't get here: String and InlineText were checked.
  public mutating func append(json text: String) {
    var text = text
    text.withUTF8 { append(jsonText: UnsafeRawBufferPointer($0)) }
  }

  /// Appends a JSON string, quotation marks included.
  public mutating func append(json text: InlineText) {
    text.withBytes { append(jsonText: $0) }
  }

  /// Runs without anything to escape are copied as they are.
  private mutating func append(jsonText bytes: UnsafeRawBufferPointer) {
    append(UInt8(ascii: "\""))
    var start = 0
    for i in 0..<bytes.count {
      let byte = bytes[i]
      guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
      append(UnsafeRawBufferPointer(rebasing: bytes[start..<i]))
      append(escaped: byte)
      start = i + 1
    }
    append(UnsafeRawBufferPointer(rebasing: bytes[start...]))
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

  /// Appends `"…"` for text that needs no escape: the words and ids of the protocol.
  @inline(__always)
  mutating func append(quoted word: StaticString) {
    append(UInt8(ascii: "\""))
    append(word)
    append(UInt8(ascii: "\""))
  }

  /// Appends `"…"`: no character of an id needs an escape.
  @inline(__always)
  mutating func append(quoted id: Identifier) {
    append(UInt8(ascii: "\""))
    append(id.text)
    append(UInt8(ascii: "\""))
  }

  /// Appends `"…"`: no character of a channel's name needs an escape.
  @inline(__always)
  mutating func append(quoted channel: Channel) {
    append(UInt8(ascii: "\""))
    append(channel)
    append(UInt8(ascii: "\""))
  }

  /// Appends `"latitude":…,"longitude":…`.
  @inline(__always)
  mutating func append(members coordinate: Coordinate) {
    append("\"latitude\":")
    append(fixed: coordinate.latitude, decimals: 7)
    append(",\"longitude\":")
    append(fixed: coordinate.longitude, decimals: 7)
  }

  /// Appends a member with its comma and key where there is a value. `key` is `,"name":`.
  @inline(__always)
  mutating func append(_ key: StaticString, ifPresent value: Double?) {
    guard let value else { return }
    append(key)
    append(double: value)
  }

  @inline(__always)
  mutating func append(_ key: StaticString, ifPresent id: Identifier?) {
    guard let id else { return }
    append(key)
    append(quoted: id)
  }

  @inline(__always)
  mutating func append(_ key: StaticString, ifPresent word: StaticString?) {
    guard let word else { return }
    append(key)
    append(quoted: word)
  }

  @inline(__always)
  mutating func append(_ key: StaticString, ifPresent place: Coordinate?) {
    guard let place else { return }
    append(key)
    append("{")
    append(members: place)
    append("}")
  }
}
