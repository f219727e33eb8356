// The fields of a head: one copy of its bytes, and the ranges of names and values.
//
// Two allocations a head; a look-up walks at most `HTTPLimits.fields` lengths, which for the ten fields of an upgrade
// is faster than a table.

/// Header fields in the order received (RFC 9110 §5).
public struct HeaderFields: Sendable {
  struct Line: Sendable {
    var nameStart: UInt16
    var nameEnd: UInt16
    var valueStart: UInt16
    var valueEnd: UInt16
  }

  let bytes: [UInt8]
  var lines: [Line] = []

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// A field that must not be repeated.
  public enum Single: Equatable, Sendable {
    case absent
    case value(ArraySlice<UInt8>)
    case repeated
  }

  /// The number of field lines.
  public var count: Int { lines.count }

  /// The value of the first field of that name. Names are given in lower case; they match in any.
  public subscript(_ lowercaseName: StaticString) -> ArraySlice<UInt8>? {
    guard let index = index(of: lowercaseName, from: 0) else { return nil }
    return value(at: index)
  }

  /// The value of a field that may occur only once, such as Host or Sec-WebSocket-Key.
  public func single(_ lowercaseName: StaticString) -> Single {
    guard let first = index(of: lowercaseName, from: 0) else { return .absent }
    return index(of: lowercaseName, from: first + 1) == nil ? .value(value(at: first)) : .repeated
  }

  /// The first value as text; nil also where it is not ASCII: then its meaning is unknown (RFC 9110 §5.5), and
  /// comparing it could take time quadratic in its length.
  public func string(_ lowercaseName: StaticString) -> String? {
    self[lowercaseName].flatMap { value in
      value.allSatisfy { $0 < 0x80 } ? String(decoding: value, as: UTF8.self) : nil
    }
  }

  /// The raw values of all fields of that name, in order.
  public func values(_ lowercaseName: StaticString) -> [ArraySlice<UInt8>] {
    var found: [ArraySlice<UInt8>] = []
    var from = 0
    while let index = index(of: lowercaseName, from: from) {
      found.append(value(at: index))
      from = index + 1
    }
    return found
  }

  /// Whether a field's name begins with this prefix, given in lower case.
  public func hasName(startingWith lowercasePrefix: StaticString) -> Bool {
    let length = lowercasePrefix.utf8CodeUnitCount
    return lines.contains { line in
      Int(line.nameEnd - line.nameStart) >= length
        && ASCII.equals(bytes[Int(line.nameStart)..<Int(line.nameStart) + length], lowercasePrefix)
    }
  }

  /// The elements of a comma-separated list over all fields of that name, in order, without empty ones, up to `limit`.
  /// RFC 9110 §5.6.1.
  public func elements(_ lowercaseName: StaticString, atMost limit: Int = .max) -> [ArraySlice<UInt8>] {
    var found: [ArraySlice<UInt8>] = []
    forEachElement(lowercaseName) { element in
      found.append(element)
      return found.count < limit
    }
    return found
  }

  /// Whether a comma-separated list of that name has the token, in any case.
  public func contains(_ lowercaseName: StaticString, token: StaticString) -> Bool {
    var found = false
    forEachElement(lowercaseName) { element in
      found = ASCII.equals(element, token)
      return !found
    }
    return found
  }

  /// Calls `body` with each list element until it returns false.
  private func forEachElement(_ lowercaseName: StaticString, _ body: (ArraySlice<UInt8>) -> Bool) {
    var from = 0
    while let index = index(of: lowercaseName, from: from) {
      from = index + 1
      var rest = value(at: index)
      while !rest.isEmpty {
        let comma = rest.firstIndex(of: 0x2C) ?? rest.endIndex
        let element = ASCII.trimmed(rest[rest.startIndex..<comma])
        rest = comma == rest.endIndex ? rest[comma...] : rest[(comma + 1)...]
        if !element.isEmpty, !body(element) { return }
      }
    }
  }

  private func index(of lowercaseName: StaticString, from start: Int) -> Int? {
    // The length is compared first, so that most lines need no slice.
    lines[start...].firstIndex { line in
      Int(line.nameEnd - line.nameStart) == lowercaseName.utf8CodeUnitCount
        && ASCII.equals(bytes[Int(line.nameStart)..<Int(line.nameEnd)], lowercaseName)
    }
  }

  private func value(at index: Int) -> ArraySlice<UInt8> {
    bytes[Int(lines[index].valueStart)..<Int(lines[index].valueEnd)]
  }

  /// Takes the field line in `range` (without its CRLF). RFC 9112 §5.
  mutating func append(line range: Range<Int>, limits: HTTPLimits) throws(HTTPError) {
    guard lines.count < limits.fields else { throw .tooManyFields(limit: limits.fields) }
    guard bytes[range.lowerBound] != 0x20, bytes[range.lowerBound] != 0x09 else {
      throw .obsoleteLineFolding  // RFC 9112 §5.2: a server must reject it or replace it
    }
    var colon = range.lowerBound
    while colon < range.upperBound, ASCII.isTokenByte(bytes[colon]) { colon += 1 }
    // The name must end at the colon: a space before it is refused too (RFC 9112 §5.1).
    guard colon > range.lowerBound, colon < range.upperBound, bytes[colon] == 0x3A else { throw .malformedField }
    let value = ASCII.trimmed(bytes[(colon + 1)..<range.upperBound])
    lines.append(
      Line(
        nameStart: UInt16(range.lowerBound), nameEnd: UInt16(colon), valueStart: UInt16(value.startIndex),
        valueEnd: UInt16(value.endIndex)))
  }

  /// Takes all field lines from `start` to the empty line. The scanner has checked that lines end with CRLF.
  mutating func parse(from start: Int, limits: HTTPLimits) throws(HTTPError) {
    lines.reserveCapacity(16)
    var position = start
    while true {
      guard let end = HeaderFields.lineEnd(in: bytes, from: position) else { throw .malformedField }
      if end == position { return }
      try append(line: position..<end, limits: limits)
      position = end + 2
    }
  }

  /// The index of the CR of the line that begins at `start`.
  static func lineEnd(in bytes: [UInt8], from start: Int) -> Int? { bytes[start...].firstIndex(of: 0x0D) }
}
