// Changes messages at random, from a seed: bytes anywhere, and values of JSON as a whole, which are repeated, nested,
// made long and given names until a message has what a parser or the hub behind it finds dear.
import HubSimulation

package struct MessageMutator {
  private var random: SplitMix64
  /// Messages are no longer than this.
  private let limit: Int

  package init(seed: UInt64, limit: Int = DearMessage.bytes) {
    random = SplitMix64(seed: seed)
    self.limit = limit
  }

  /// An index below `count`, which is 1 or more.
  package mutating func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

  /// A message with one to four changes; `other` gives parts.
  package mutating func mutated(_ message: DearMessage, with other: DearMessage) -> DearMessage {
    var child = message
    for _ in 0...pick(4) { change(&child, other) }
    if child.bytes.isEmpty { child.bytes = message.bytes }
    return child
  }

  private mutating func change(_ message: inout DearMessage, _ other: DearMessage) {
    switch message.carrier {
    case .binary: changeBytes(&message.bytes, other)
    case .plain, .deflated:
      if pick(12) == 0 { message.carrier = message.carrier == .plain ? .deflated : .plain }
      if pick(5) == 0 { changeBytes(&message.bytes, other) } else { changeJSON(&message.bytes, other) }
    }
    if message.bytes.count > limit { message.bytes.removeLast(message.bytes.count - limit) }
  }

  // MARK: Bytes

  private mutating func changeBytes(_ bytes: inout [UInt8], _ other: DearMessage) {
    guard !bytes.isEmpty else { return }
    let offset = pick(bytes.count)
    switch pick(5) {
    case 0: bytes[offset] = UInt8(truncatingIfNeeded: random.next())
    case 1: bytes[offset] ^= 1 << UInt8(pick(8))
    case 2: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: offset)
    case 3:
      let end = min(bytes.count, offset + 1 + pick(64))
      bytes.insert(contentsOf: repeated(bytes[offset..<end]), at: offset)
    case _:
      guard !other.bytes.isEmpty, other.carrier == .binary else { return }
      let start = pick(other.bytes.count)
      bytes.insert(contentsOf: other.bytes[start..<min(other.bytes.count, start + 1 + pick(256))], at: offset)
    }
  }

  /// Some bytes two to many times, as far as a message has room.
  private mutating func repeated(_ part: some Collection<UInt8>, between separator: [UInt8] = []) -> [UInt8] {
    let piece = Array(part) + separator
    let count = min(1 << pick(17), limit / (piece.count + 1) + 1)
    return Array(repeatElement(piece, count: count).joined())
  }

  // MARK: Values of JSON

  private mutating func changeJSON(_ bytes: inout [UInt8], _ other: DearMessage) {
    guard let value = value(in: bytes) else { return changeBytes(&bytes, other) }
    let part = Array(bytes[value])
    let comma = [UInt8(ascii: ",")]
    let new: [UInt8]
    switch pick(9) {
    case 0: new = Array("[".utf8) + repeated(part, between: comma) + part + Array("]".utf8)
    case 1: new = nested(part)
    case 2: new = members(part)
    case 3: new = number()
    case 4: new = text()
    case 5: new = word()
    case 6:
      guard other.carrier != .binary, let part = self.value(in: other.bytes) else { return }
      new = Array(other.bytes[part])
    case 7:
      // A member more, behind the envelope's first brace.
      bytes.insert(contentsOf: Array("\"j\(pick(1000))\":".utf8) + part + comma, at: min(1, bytes.count))
      return
    case _: new = []
    }
    bytes.replaceSubrange(value, with: new)
  }

  private mutating func nested(_ part: [UInt8]) -> [UInt8] {
    let depth = 1 << pick(6)
    let (open, close) = pick(2) == 0 ? ("[", "]") : ("{\"a\":", "}")
    return Array(String(repeating: open, count: depth).utf8) + part
      + Array(String(repeating: close, count: depth).utf8)
  }

  /// An object of that value under many names: short ones, long ones, of one prefix, the protocol's own.
  private mutating func members(_ part: [UInt8]) -> [UInt8] {
    let count = min(1 << pick(13), limit / (part.count + 12) + 1)
    let prefix = ["n", "payload", String(repeating: "x", count: 1 + pick(200)), "\\u006e", ""][pick(5)]
    let step = 1 + pick(1000)
    let all = (0..<count).map { Array("\"\(prefix)\($0 &* step)\":".utf8) + part }
    return Array("{".utf8) + Array(all.joined(separator: [UInt8(ascii: ",")])) + Array("}".utf8)
  }

  private mutating func number() -> [UInt8] {
    let digits = String((0..<(1 << pick(8))).map { _ in Character("\(pick(10))") })
    let forms = [
      "\(pick(1000))", "-\(pick(90)).\(digits)", "1.\(digits)e-\(pick(400))",
      "0.\(String(repeating: "0", count: 300))1",
      "\(48 + pick(9)).\(pick(1_000_000))", "\(1 + pick(5000))", "1e\(pick(309))",
    ]
    return Array(forms[pick(forms.count)].utf8)
  }

  private mutating func text() -> [UInt8] {
    let pieces = ["a", "\\u00e9", "\\ud83d\\ude00", "é", "\\\\", "0", ",", "{", "nearby:52.52,13.405,", "area:u33d"]
    let piece = pieces[pick(pieces.count)]
    let count = min(1 << pick(16), limit / piece.utf8.count)
    return Array("\"".utf8) + Array(String(repeating: piece, count: count).utf8) + Array("\"".utf8)
  }

  private mutating func word() -> [UInt8] {
    let words = [
      "\"ping\"", "\"query\"", "\"subscribe\"", "\"nearby\"", "\"within\"", "\"refresh\"", "\"trip_status\"",
      "\"location_batch\"", "\"driver_status\"", "null", "true", "[]", "{}", "\"nearby:52.52,13.405,5000\"",
      "\"area:u33db\"", "100", "5000", "52.52", "13.405", "\"requested\"", "\"Polygon\"", "\"MultiPolygon\"",
    ]
    return Array(words[pick(words.count)].utf8)
  }

  /// The range of a value somewhere in a text that may be no JSON any more; nil where none was found.
  private mutating func value(in bytes: [UInt8]) -> Range<Int>? {
    guard bytes.count > 2 else { return nil }
    let first = pick(bytes.count)
    for step in 0..<min(bytes.count, 4096) {
      let offset = (first + step) % bytes.count
      guard [UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: ",")].contains(bytes[offset]), offset + 1 < bytes.count
      else { continue }
      let end = MessageMutator.end(ofValueAt: offset + 1, in: bytes)
      if end > offset + 1 { return offset + 1..<end }
    }
    return nil
  }

  /// Behind a value: a string, an array or object with all it has, or a word.
  private static func end(ofValueAt start: Int, in bytes: [UInt8]) -> Int {
    var depth = 0
    var isText = false
    var offset = start
    while offset < bytes.count {
      let byte = bytes[offset]
      if isText {
        if byte == UInt8(ascii: "\\") { offset += 1 } else if byte == UInt8(ascii: "\"") { isText = false }
      } else {
        switch byte {
        case UInt8(ascii: "\""): isText = true
        case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "]"), UInt8(ascii: "}"):
          if depth == 0 { return offset }
          depth -= 1
        case UInt8(ascii: ","): if depth == 0 { return offset }
        case _: break
        }
      }
      offset += 1
    }
    return min(offset, bytes.count)
  }
}
