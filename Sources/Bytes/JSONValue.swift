// JSON of token headers, claims and key sets, parsed strictly by RFC 8259 into a tree: by the hub to verify a token,
// and by the client to read its own token's expiry.
//
// Not the tape of Messages: that one knows the protocol's member names and is made for two hundred thousand messages a
// second; this one is used once a connection, for other names, and refuses what two readers could understand
// differently (repeated members: RFC 7515 §4, RFC 7519 §4).

/// A value of RFC 8259 §3.
package indirect enum JSONValue: Equatable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  /// Parses a whole text. Nil where it is not JSON in UTF-8, is nested too deeply, or has an object with a repeated
  /// member. O(length).
  package init?(parsing bytes: some Collection<UInt8>) {
    guard String(validating: bytes, as: UTF8.self) != nil else { return nil }  // RFC 8259 §8.1
    var reader = JSONReader(bytes: Array(bytes))
    guard let value = reader.text() else { return nil }
    self = value
  }

  /// The members of an object; nil for anything else.
  package var members: [String: JSONValue]? {
    if case .object(let members) = self { members } else { nil }
  }

  package var string: String? {
    if case .string(let string) = self { string } else { nil }
  }

  package var number: Double? {
    if case .number(let number) = self { number } else { nil }
  }

  package var elements: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }
}

/// Recursive descent: each function reads one rule at `offset` and leaves `offset` behind it; nil where it does not
/// match.
private struct JSONReader {
  let bytes: [UInt8]
  var offset = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func text() -> JSONValue? {
    guard let value = value(depth: 0) else { return nil }
    skipSpace()
    return offset == bytes.count ? value : nil  // RFC 8259 §2: one value
  }

  private mutating func value(depth: Int) -> JSONValue? {
    skipSpace()
    guard offset < bytes.count, depth <= JSONValue.maximumDepth else { return nil }
    switch bytes[offset] {
    case UInt8(ascii: "{"): return object(depth: depth)
    case UInt8(ascii: "["): return array(depth: depth)
    case UInt8(ascii: "\""): return string().map { .string($0) }
    case UInt8(ascii: "t"): return word("true", .bool(true))
    case UInt8(ascii: "f"): return word("false", .bool(false))
    case UInt8(ascii: "n"): return word("null", .null)
    default:
      guard let number = scanNumber(bytes.span, from: offset), number.value.isFinite else { return nil }
      offset = number.end
      return .number(number.value)
    }
  }

  /// RFC 8259 §4.
  private mutating func object(depth: Int) -> JSONValue? {
    var members: [String: JSONValue] = [:]
    offset += 1
    if take(UInt8(ascii: "}")) { return .object(members) }
    repeat {
      skipSpace()
      guard let name = string(), take(UInt8(ascii: ":")), let value = value(depth: depth + 1) else { return nil }
      // Nobody looks up a long name with non-ASCII characters; as a key it may cost the square of its length.
      if name.utf8.count > 64, name.utf8.contains(where: { $0 >= 0x80 }) { continue }
      guard members.updateValue(value, forKey: name) == nil else { return nil }
    } while take(UInt8(ascii: ","))
    return take(UInt8(ascii: "}")) ? .object(members) : nil
  }

  /// RFC 8259 §5.
  private mutating func array(depth: Int) -> JSONValue? {
    var elements: [JSONValue] = []
    offset += 1
    if take(UInt8(ascii: "]")) { return .array(elements) }
    repeat {
      guard let value = value(depth: depth + 1) else { return nil }
      elements.append(value)
    } while take(UInt8(ascii: ","))
    return take(UInt8(ascii: "]")) ? .array(elements) : nil
  }

  /// RFC 8259 §7. That the bytes are UTF-8 was checked before.
  private mutating func string() -> String? {
    guard offset < bytes.count, bytes[offset] == UInt8(ascii: "\"") else { return nil }
    offset += 1
    var text: [UInt8] = []
    while offset < bytes.count {
      let byte = bytes[offset]
      offset += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let scalar = escape() else { return nil }
        text.append(contentsOf: Array(String(scalar).utf8))
      case 0..<0x20: return nil
      default: text.append(byte)
      }
    }
    return nil
  }

  /// The character of an escape. An unpaired surrogate is refused.
  private mutating func escape() -> Unicode.Scalar? {
    guard offset < bytes.count else { return nil }
    let byte = bytes[offset]
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"):
      guard let unit = codeUnit() else { return nil }
      guard UTF16.isLeadSurrogate(unit) else { return Unicode.Scalar(unit) }
      guard offset + 2 <= bytes.count, bytes[offset] == UInt8(ascii: "\\"), bytes[offset + 1] == UInt8(ascii: "u")
      else { return nil }
      offset += 2
      guard let trail = codeUnit(), UTF16.isTrailSurrogate(trail) else { return nil }
      return Unicode.Scalar(0x1_0000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(trail) - 0xDC00))
    default: return nil
    }
  }

  private mutating func codeUnit() -> UInt16? {
    guard offset + 4 <= bytes.count else { return nil }
    var unit: UInt16 = 0
    for i in offset..<offset + 4 {
      let digit: UInt8
      switch bytes[i] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[i] - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[i] - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = bytes[i] - UInt8(ascii: "A") + 10
      default: return nil
      }
      unit = unit << 4 | UInt16(digit)
    }
    offset += 4
    return unit
  }

  private mutating func word(_ word: StaticString, _ value: JSONValue) -> JSONValue? {
    let end = offset + word.utf8CodeUnitCount
    guard end <= bytes.count else { return nil }
    for i in offset..<end where unsafe bytes[i] != word.utf8Start[i - offset] { return nil }
    offset = end
    return value
  }

  /// Reads this byte after white space; false where another follows.
  private mutating func take(_ byte: UInt8) -> Bool {
    skipSpace()
    guard offset < bytes.count, bytes[offset] == byte else { return false }
    offset += 1
    return true
  }

  private mutating func skipSpace() {
    while offset < bytes.count {
      switch bytes[offset] {
      case 0x20, 0x0A, 0x0D, 0x09: offset += 1
      default: return
      }
    }
  }
}
