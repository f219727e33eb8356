// The grammar of RFC 8259 by recursive descent: a function for each rule, which gives the index behind what it read.
import HubBytes

extension JSONTape {
  /// Parses a complete text, replacing the tape's content.
  ///
  /// - Throws: the first error in the JSON, or a limit. Duplicate names do not throw: see `hasDuplicate`.
  /// - Complexity: O(bytes), whatever they are.
  mutating func parse(_ bytes: Span<UInt8>) throws(JSONError) {
    removeAll()
    guard bytes.count <= limits.bytes else { throw JSONError(.bytes, at: limits.bytes) }
    var i = skipSpace(bytes, 0)
    i = try parseValue(bytes, i, depth: 0)
    i = skipSpace(bytes, i)
    guard i == bytes.count else { throw JSONError(.trailing, at: i) }  // RFC 8259 §2: one value
  }

  /// RFC 8259 §3. `i` may be at the end.
  private mutating func parseValue(_ bytes: Span<UInt8>, _ i: Int, depth: Int) throws(JSONError) -> Int {
    guard i < bytes.count else { throw JSONError(.truncated, at: i) }
    switch bytes[i] {
    case UInt8(ascii: "\""):
      return try parseString(bytes, i)
    case UInt8(ascii: "{"):
      guard depth < limits.depth else { throw JSONError(.depth, at: i) }
      return try parseObject(bytes, i, depth: depth + 1)
    case UInt8(ascii: "["):
      guard depth < limits.depth else { throw JSONError(.depth, at: i) }
      return try parseArray(bytes, i, depth: depth + 1)
    case UInt8(ascii: "t"):
      return try parseWord(bytes, i, "true", .true)
    case UInt8(ascii: "f"):
      return try parseWord(bytes, i, "false", .false)
    case UInt8(ascii: "n"):
      return try parseWord(bytes, i, "null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      guard let number = scanNumber(bytes, from: i) else { throw JSONError(.number, at: i) }  // RFC 8259 §6
      step(6 + 3 * (number.end - i) / 8)
      try appendValue(.number, source: i, bits: number.value.bitPattern)
      return number.end
    default:
      throw JSONError(.syntax, at: i)
    }
  }

  /// RFC 8259 §4.
  private mutating func parseObject(_ bytes: Span<UInt8>, _ start: Int, depth: Int) throws(JSONError) -> Int {
    let object = try append(JSONToken(kind: .object, source: UInt32(truncatingIfNeeded: start)))
    var members = 0
    var unknowns = 0
    var previous = JSONKey.unknown
    var seen: UInt128 = 0
    var i = skipSpace(bytes, start + 1)
    if i < bytes.count, bytes[i] == UInt8(ascii: "}") {
      close(object, parts: 0, end: i + 1)
      return i + 1
    }
    while true {
      guard i < bytes.count else { throw JSONError(.truncated, at: i) }
      guard bytes[i] == UInt8(ascii: "\"") else { throw JSONError(.syntax, at: i) }
      guard members < limits.members else { throw JSONError(.members, at: i) }
      let name = count
      i = skipSpace(bytes, try parseName(bytes, i, after: previous, depth: depth))
      previous = self[name].key
      if previous == .unknown {
        unknowns += 1
      } else {
        let bit = UInt128(1) << UInt128(previous.rawValue)
        if seen & bit != 0 { hasDuplicate = true }
        seen |= bit
      }
      guard i < bytes.count else { throw JSONError(.truncated, at: i) }
      guard bytes[i] == UInt8(ascii: ":") else { throw JSONError(.syntax, at: i) }
      i = skipSpace(bytes, i + 1)
      i = skipSpace(bytes, try parseValue(bytes, i, depth: depth))
      members += 1
      guard i < bytes.count else { throw JSONError(.truncated, at: i) }
      if bytes[i] == UInt8(ascii: "}") {
        close(object, parts: members, end: i + 1)
        if unknowns > 1, hasEqualNames(bytes, object) { hasDuplicate = true }
        return i + 1
      }
      guard bytes[i] == UInt8(ascii: ",") else { throw JSONError(.syntax, at: i) }
      i = skipSpace(bytes, i + 1)
    }
  }

  /// RFC 8259 §5.
  private mutating func parseArray(_ bytes: Span<UInt8>, _ start: Int, depth: Int) throws(JSONError) -> Int {
    let array = try append(JSONToken(kind: .array, source: UInt32(truncatingIfNeeded: start)))
    var elements = 0
    var i = skipSpace(bytes, start + 1)
    if i < bytes.count, bytes[i] == UInt8(ascii: "]") {
      close(array, parts: 0, end: i + 1)
      return i + 1
    }
    while true {
      i = skipSpace(bytes, try parseValue(bytes, i, depth: depth))
      elements += 1
      guard i < bytes.count else { throw JSONError(.truncated, at: i) }
      if bytes[i] == UInt8(ascii: "]") {
        close(array, parts: elements, end: i + 1)
        return i + 1
      }
      guard bytes[i] == UInt8(ascii: ",") else { throw JSONError(.syntax, at: i) }
      i = skipSpace(bytes, i + 1)
    }
  }

  private mutating func parseWord(
    _ bytes: Span<UInt8>, _ start: Int, _ word: StaticString, _ kind: JSONToken.Kind
  ) throws(JSONError) -> Int {
    let end = start + word.utf8CodeUnitCount
    for i in start..<end {
      guard i < bytes.count else { throw JSONError(.truncated, at: i) }
      guard unsafe bytes[i] == word.utf8Start[i - start] else { throw JSONError(.syntax, at: i) }
    }
    try appendValue(kind, source: start)
    return end
  }

  /// Reads a member's name, which begins with the quotation mark at `start`, and gives the index behind it.
  @inline(__always)
  private mutating func parseName(
    _ bytes: Span<UInt8>, _ start: Int, after previous: JSONKey, depth: Int
  ) throws(JSONError) -> Int {
    let (key, length) = keys.key(bytes, quotedFrom: start + 1, after: previous, depth: depth)
    guard key == .unknown else {
      step(9)  // and 3 for its token
      try appendText(.string, source: start, start: start + 1, count: length, key: key)
      return start + length + 2
    }
    return try parseOtherName(bytes, start)
  }

  /// Handles a name outside the protocol, or one that is spelled with escapes.
  @inline(never)
  private mutating func parseOtherName(_ bytes: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
    step(6)
    let name = count
    let end = try parseString(bytes, start)
    guard self[name].kind == .unescaped else { return end }
    let key = unsafe withText(name, bytes) {
      unsafe keys.key(of: PackedName($0.assumingMemoryBound(to: UInt8.self).span))
    }
    self.name(name, key: key)
    return end
  }

  /// Whether an object has duplicate names outside the protocol.
  @inline(never)
  private mutating func hasEqualNames(_ bytes: Span<UInt8>, _ object: Int) -> Bool {
    // The span stays valid, since nothing is appended to `text` meanwhile.
    let unescaped = unsafe text.withBytes { unsafe $0 }.assumingMemoryBound(to: UInt8.self).span
    names.removeAll()
    let end = Int(self[object].next)
    var i = object + 1
    while i < end {
      let name = self[i]
      if name.key == .unknown {
        names.add(start: name.start, length: name.count, isUnescaped: name.kind == .unescaped)
      }
      i = Int(self[i + 1].next)
      step(1)
    }
    return names.hasEqualNames(in: bytes, unescaped: unescaped)
  }

  /// The first index from `i` on without white space (RFC 8259 §2).
  @inline(__always)
  private mutating func skipSpace(_ bytes: Span<UInt8>, _ start: Int) -> Int {
    var i = start
    while i < bytes.count {
      let byte = bytes[i]
      if byte > 0x20 { return i }
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return i }
      step(i & 1)  // two bytes are a step
      i += 1
    }
    return i
  }
}
