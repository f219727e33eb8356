// Members of the hub's messages, found without reading the messages: the load must cost less than what it loads. It
// trusts the order in which the hub writes members, which tests of the hub hold fast, and counts an error where it
// finds nothing.
import Glibc

enum Scan {
  /// The whole number behind the first `name` (with its quotation marks and colon) from `start` on.
  static func integer(_ name: StaticString, in payload: UnsafeRawBufferPointer, from start: Int = 0) -> Int? {
    guard var offset = end(of: name, in: payload, from: start) else { return nil }
    let first = offset
    var value = 0
    while offset < payload.count, payload[offset] &- 48 < 10 {
      value = value &* 10 &+ Int(payload[offset] &- 48)
      offset += 1
    }
    return offset > first ? value : nil
  }

  /// The text behind `name` (which ends with the opening quotation mark) up to the next quotation mark.
  static func text(_ name: StaticString, in payload: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard let start = end(of: name, in: payload, from: 0),
      let stop = payload[start...].firstIndex(of: UInt8(ascii: "\""))
    else { return nil }
    return UnsafeRawBufferPointer(rebasing: payload[start..<stop])
  }

  static func contains(_ name: StaticString, in payload: UnsafeRawBufferPointer) -> Bool {
    end(of: name, in: payload, from: 0) != nil
  }

  /// The timestamp of a position's fix. It is the first of two in a message: the envelope's comes behind it, and the
  /// search begins shortly before both.
  static func fixTimestamp(_ payload: UnsafeRawBufferPointer) -> Int? {
    integer(",\"timestamp\":", in: payload, from: max(0, payload.count - 140))
  }

  /// The timestamp of the envelope, which is the last in a message.
  static func envelopeTimestamp(_ payload: UnsafeRawBufferPointer) -> Int? {
    var offset = max(0, payload.count - 120)
    var last: Int?
    while let found = end(of: ",\"timestamp\":", in: payload, from: offset) {
      last = integer(",\"timestamp\":", in: payload, from: offset)
      offset = found
    }
    return last
  }

  /// The digits at the end of a text.
  static func trailingNumber(_ text: UnsafeRawBufferPointer) -> Int? {
    var offset = text.count
    while offset > 0, text[offset - 1] &- 48 < 10 { offset -= 1 }
    return offset < text.count ? text[offset...].reduce(0) { $0 &* 10 &+ Int($1 &- 48) } : nil
  }

  /// Where what follows `name` begins.
  private static func end(of name: StaticString, in payload: UnsafeRawBufferPointer, from start: Int) -> Int? {
    let length = name.utf8CodeUnitCount
    guard let base = payload.baseAddress else { return nil }
    var offset = start
    while offset + length <= payload.count {
      // The last offset where it may begin is `length` before the end.
      guard let found = memchr(base + offset, Int32(name.utf8Start.pointee), payload.count - length + 1 - offset)
      else { return nil }
      offset = UnsafeRawPointer(found) - base
      if memcmp(found, name.utf8Start, length) == 0 { return offset + length }
      offset += 1
    }
    return nil
  }
}
