// The grammar of Sec-WebSocket-Extensions (RFC 6455 §9.1), read strictly: a malformed value fails the handshake, as
// that section requires of both ends.

import HubHTTP

/// One extension of an offer or a response, with its parameters.
struct ExtensionElement {
  var name: ArraySlice<UInt8>
  /// A value is a token, perhaps quoted; nil without `=`.
  var parameters: [(name: ArraySlice<UInt8>, value: [UInt8]?)] = []
}

/// Reads the elements of all the field's lines.
struct ExtensionListParser {
  private var rest: ArraySlice<UInt8>

  /// Nil for a malformed value. Bounded by the limit of the head.
  static func parse(_ fields: HeaderFields) -> [ExtensionElement]? {
    var elements: [ExtensionElement] = []
    for line in fields.values("sec-websocket-extensions") {
      var parser = ExtensionListParser(rest: line)
      guard parser.readList(into: &elements) else { return nil }
    }
    return elements
  }

  /// `1#extension`; empty elements are skipped (RFC 9110 §5.6.1.2).
  private mutating func readList(into elements: inout [ExtensionElement]) -> Bool {
    while true {
      while skip(0x2C) {}
      guard !rest.isEmpty else { return true }
      guard let name = token() else { return false }
      var element = ExtensionElement(name: name)
      while skip(0x3B) {
        guard let parameter = token() else { return false }
        guard skip(0x3D) else {
          element.parameters.append((parameter, nil))
          continue
        }
        guard let value = value() else { return false }
        element.parameters.append((parameter, value))
      }
      elements.append(element)
      guard rest.isEmpty || rest.first == 0x2C else { return false }
    }
  }

  private mutating func skipSpace() {
    while let byte = rest.first, byte == 0x20 || byte == 0x09 { rest.removeFirst() }
  }

  /// Skips a separator and the space around it; false when something else follows.
  private mutating func skip(_ separator: UInt8) -> Bool {
    skipSpace()
    guard rest.first == separator else { return false }
    rest.removeFirst()
    skipSpace()
    return true
  }

  private mutating func token() -> ArraySlice<UInt8>? {
    let token = rest.prefix(while: ASCII.isTokenByte)
    rest = rest[token.endIndex...]
    skipSpace()
    return token.isEmpty ? nil : token
  }

  /// A token, perhaps quoted: "the value after quoted-string unescaping MUST conform to the 'token' ABNF".
  private mutating func value() -> [UInt8]? {
    guard rest.first == 0x22 else { return token().map { Array($0) } }
    rest.removeFirst()
    var value: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == 0x22 {
        skipSpace()
        return value.isEmpty ? nil : value
      }
      let plain = byte == 0x5C ? rest.popFirst() : byte  // quoted-pair, RFC 9110 §5.6.4
      guard let plain, ASCII.isTokenByte(plain) else { return nil }
      value.append(plain)
    }
    return nil  // no closing quote
  }
}
