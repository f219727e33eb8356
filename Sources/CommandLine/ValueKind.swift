// The kinds of values of settings: parsing, printing and error texts.

/// A kind of value, for instance an integer from 1 to 64.
public struct ValueKind<Value>: Sendable {
  /// Its text behind "must be": "a whole number from 1 to 64".
  public let words: String
  /// As a range alone, where there is one: "1 to 64".
  public let range: String
  public let read: @Sendable (String) -> Value?
  public let write: @Sendable (Value) -> String

  public init(
    _ words: String, range: String? = nil, read: @escaping @Sendable (String) -> Value?,
    write: @escaping @Sendable (Value) -> String
  ) {
    self.words = words
    self.range = range ?? words
    self.read = read
    self.write = write
  }
}

extension ValueKind where Value: FixedWidthInteger & Sendable {
  /// Whole numbers of a range, in decimal.
  public static func whole(_ range: ClosedRange<Value>) -> ValueKind {
    let isOpen = range.upperBound == .max && Value.bitWidth > 16  // 65535 is shown: a port
    let words = isOpen ? "\(range.lowerBound) and more" : "\(range.lowerBound) to \(range.upperBound)"
    return ValueKind(
      "a whole number from " + words, range: words, read: { Value($0).flatMap { range.contains($0) ? $0 : nil } },
      write: { "\($0)" })
  }
}

extension ValueKind<Int> {
  /// Bytes: `4096`, `64K`, `500M`, `64G`.
  public static func size(_ range: ClosedRange<Int> = 1...(1 << 60)) -> ValueKind {
    let words = "\(range.lowerBound) to \(range.upperBound)"
    return ValueKind(
      "a number of bytes like 4096, 64K, 500M or 64G, from " + words, range: words,
      read: { text in
        let shift = units.first { text.last == $0.unit }?.shift ?? 0
        guard let count = Int(shift == 0 ? text[...] : text.dropLast()), count >= 0, count <= Int.max >> shift,
          range.contains(count << shift)
        else { return nil }
        return count << shift
      },
      write: { bytes in
        guard let (unit, shift) = units.first(where: { bytes > 0 && bytes % (1 << $0.shift) == 0 }) else {
          return "\(bytes)"
        }
        return "\(bytes >> shift)\(unit)"
      })
  }

  private static var units: [(unit: Character, shift: Int)] { [("G", 30), ("M", 20), ("K", 10)] }
}

extension ValueKind<Double> {
  /// Numbers of a range, with or without a fraction.
  public static func number(_ range: ClosedRange<Double>) -> ValueKind {
    let words = "\(short(range.lowerBound)) to \(short(range.upperBound))"
    return ValueKind(
      "a number from " + words, range: words, read: { Double($0).flatMap { range.contains($0) ? $0 : nil } },
      write: short)
  }

  @Sendable private static func short(_ value: Double) -> String {
    Int(exactly: value).map { "\($0)" } ?? "\(value)"
  }
}

extension ValueKind<Int64> {
  /// Milliseconds of `90s`, `15m`, `36h`, `30d`: a second up to a hundred years.
  public static var duration: ValueKind {
    ValueKind(
      "a time like 90s, 15m, 36h or 30d",
      read: { text in
        guard let unit = units.first(where: { text.last == $0.unit })?.seconds, let count = Int64(text.dropLast()),
          count >= 1, count <= 100 * 366 * 86_400 / unit
        else { return nil }
        return count * unit * 1000
      },
      write: { milliseconds in
        let (unit, seconds) = units.first { milliseconds % ($0.seconds * 1000) == 0 } ?? ("s", 1)
        return "\(milliseconds / 1000 / seconds)\(unit)"
      })
  }

  private static var units: [(unit: Character, seconds: Int64)] {
    [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)]
  }
}

extension ValueKind<String> {
  /// Any text.
  public static var text: ValueKind { ValueKind("text", read: { $0 }, write: { $0 }) }
}

extension ValueKind<Bool> {
  /// A switch with a value: `on` or `off`.
  public static var onOff: ValueKind { .choice([("on", true), ("off", false)]) }
  /// A switch: its name alone on a command line, true or false in a file.
  static var flag: ValueKind { .choice([("true", true), ("false", false)]) }
}

extension ValueKind where Value: Equatable & Sendable {
  /// One of a few words.
  public static func choice(_ words: [(String, Value)]) -> ValueKind {
    let names = words.map(\.0)
    return ValueKind(
      names.dropLast().joined(separator: ", ") + " or " + (names.last ?? ""),
      read: { text in words.first { $0.0 == text }?.1 }, write: { value in words.first { $0.1 == value }?.0 ?? "" })
  }
}
