// Strings by RFC 8259 §7. Nearly all have no escapes and stay in place; the others are copied unescaped.
import HubBytes

extension JSONTape {
  /// Reads the string that begins with the quotation mark at `start`, appends its token, and gives the index behind it.
  @inline(__always)
  mutating func parseString(_ bytes: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
    let end = bytes.plainEnd(from: start + 1)
    guard end < bytes.count else { throw JSONError(.truncated, at: end) }
    guard bytes[end] == UInt8(ascii: "\"") else { return try parseEscaped(bytes, start) }
    step(3 + (end - start) / 8)
    try appendText(.string, source: start, start: start + 1, count: end - start - 1)
    return end + 1
  }

  /// The slow path: copies the text into the tape's bytes, unescaped.
  @inline(never)
  private mutating func parseEscaped(_ bytes: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
    let first = text.count
    var i = start + 1
    while true {
      let end = bytes.plainEnd(from: i)
      unsafe bytes.extracting(i..<end).withUnsafeBytes { unsafe text.append($0) }
      step(5 + (end - i) / 8)
      guard end < bytes.count else { throw JSONError(.truncated, at: end) }
      i = end
      if bytes[i] == UInt8(ascii: "\"") { break }
      guard bytes[i] == UInt8(ascii: "\\") else { throw JSONError(.control, at: i) }  // RFC 8259 §7: must be escaped
      i = try parseEscape(bytes, i)
    }
    try appendText(.unescaped, source: start, start: first, count: text.count - first)
    return i + 1
  }

  /// Appends the character of the escape at the backslash `start`; gives the index behind it.
  private mutating func parseEscape(_ bytes: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
    guard start + 1 < bytes.count else { throw JSONError(.truncated, at: start + 1) }
    switch bytes[start + 1] {
    case UInt8(ascii: "\""): text.append(UInt8(ascii: "\""))
    case UInt8(ascii: "\\"): text.append(UInt8(ascii: "\\"))
    case UInt8(ascii: "/"): text.append(UInt8(ascii: "/"))
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"): return try parseUnicodeEscape(bytes, start)
    default: throw JSONError(.escape, at: start)
    }
    return start + 2
  }

  /// `\uXXXX`, or a surrogate pair of two. A lone surrogate is no character (RFC 8259 §8.2, RFC 3629 §3) and could not
  /// be written as UTF-8: refused.
  private mutating func parseUnicodeEscape(_ bytes: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
    let unit = try hexUnit(bytes, start)
    guard unit & 0xF800 == 0xD800 else {
      appendScalar(unit)
      return start + 6
    }
    guard unit & 0xFC00 == 0xD800 else { throw JSONError(.surrogate, at: start) }
    let second = start + 6
    guard second + 1 < bytes.count else { throw JSONError(.truncated, at: bytes.count) }
    guard bytes[second] == UInt8(ascii: "\\"), bytes[second + 1] == UInt8(ascii: "u") else {
      throw JSONError(.surrogate, at: start)
    }
    let low = try hexUnit(bytes, second)
    guard low & 0xFC00 == 0xDC00 else { throw JSONError(.surrogate, at: start) }
    appendScalar(0x10000 + (unit & 0x3FF) << 10 + (low & 0x3FF))
    return second + 6
  }

  /// The four hexadecimal digits of the escape whose backslash is at `start`.
  private func hexUnit(_ bytes: Span<UInt8>, _ start: Int) throws(JSONError) -> UInt32 {
    var unit: UInt32 = 0
    for i in start + 2..<start + 6 {
      guard i < bytes.count else { throw JSONError(.truncated, at: i) }
      let byte = bytes[i]
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): unit = (unit << 4) + UInt32(byte & 0xF)
      case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"):
        unit = (unit << 4) + UInt32(byte & 0xF) + 9
      default: throw JSONError(.escape, at: start)
      }
    }
    return unit
  }

  /// UTF-8 by RFC 3629 §3. `scalar` is no surrogate and at most 0x10FFFF.
  private mutating func appendScalar(_ scalar: UInt32) {
    func tail(_ shift: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: 0x80 | (scalar >> shift) & 0x3F) }
    if scalar < 0x80 {
      text.append(UInt8(truncatingIfNeeded: scalar))
    } else if scalar < 0x800 {
      text.append(UInt8(truncatingIfNeeded: 0xC0 | scalar >> 6))
      text.append(tail(0))
    } else if scalar < 0x10000 {
      text.append(UInt8(truncatingIfNeeded: 0xE0 | scalar >> 12))
      text.append(tail(6))
      text.append(tail(0))
    } else {
      text.append(UInt8(truncatingIfNeeded: 0xF0 | scalar >> 18))
      text.append(tail(12))
      text.append(tail(6))
      text.append(tail(0))
    }
  }

  /// The bytes of the text at `index`, valid for the call only.
  @inline(__always)
  func withText<R>(_ index: Int, _ bytes: Span<UInt8>, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    let token = self[index]
    let range = Int(token.start)..<Int(token.start) + Int(token.count)
    if token.kind == .unescaped {
      return unsafe text.withBytes { unsafe body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
    return unsafe bytes.extracting(range).withUnsafeBytes { unsafe body($0) }
  }
}
