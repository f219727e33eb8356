// An id in 17 bytes instead of 65, for sessions, drivers and trips, of which there are many.
public import HubBytes

/// An identifier that needs more than two words only where it is long.
@frozen
public enum CompactIdentifier: Sendable {
  /// Up to 16 bytes in memory order, the unused ones zero. No identifier has a zero byte.
  case short(InlineArray<2, UInt64>)
  /// A longer one in an array of its words, which takes 80 bytes for a UUID.
  case long([UInt64])

  public init(_ identifier: Identifier) {
    let text = identifier.text
    if text.count <= 16 {
      self = .short([text.word(0), text.word(1)])
    } else {
      self = .long((0..<(text.count + 7) / 8).map { text.word($0) })
    }
  }

  /// The identifier. Some 5 ns; a short one allocates and retains nothing.
  @inlinable public var identifier: Identifier {
    @inline(__always) get {
      switch self {
      case .short(let words): Identifier(checked: InlineText(words[0], words[1]))
      case .long(let words): CompactIdentifier.identifier(words)
      }
    }
  }

  @inline(never) @usableFromInline
  static func identifier(_ words: [UInt64]) -> Identifier {
    var text = InlineText()
    for word in words { text.append(word: word, count: 8 - word.leadingZeroBitCount / 8) }
    return Identifier(checked: text)
  }

  /// Whether they are equal, compared in place.
  @inlinable @inline(__always)
  public func matches(_ identifier: Identifier) -> Bool {
    switch self {
    case .short(let words):
      identifier.text.count <= 16 && identifier.text.word(0) == words[0] && identifier.text.word(1) == words[1]
    case .long(let words): CompactIdentifier.identifier(words) == identifier
    }
  }

  /// Whether both are the same identifier.
  @inlinable @inline(__always)
  public func matches(_ other: CompactIdentifier) -> Bool {
    switch (self, other) {
    case (.short(let a), .short(let b)): a[0] == b[0] && a[1] == b[1]
    case (.long(let a), .long(let b)): a == b
    case (.short, .long), (.long, .short): false
    }
  }
}
