// An id in 17 bytes instead of 73, for where a hundred thousand of them are kept and few are longer than 16 bytes.
import HubBytes
import HubMessages

/// An identifier that takes more than two words only where it is long.
enum CompactIdentifier {
  /// Up to 16 bytes, the unused ones zero, as they lie in memory. No identifier has a zero byte.
  case short(InlineArray<2, UInt64>)
  case long(LongIdentifier)

  final class LongIdentifier {
    let identifier: Identifier

    init(_ identifier: Identifier) { self.identifier = identifier }
  }

  init(_ identifier: Identifier) {
    guard identifier.text.count <= 16 else {
      self = .long(LongIdentifier(identifier))
      return
    }
    self = .short([identifier.text.word(0), identifier.text.word(1)])
  }

  var identifier: Identifier {
    switch self {
    case .short(let words): Identifier(checked: InlineText(words[0], words[1]))
    case .long(let long): long.identifier
    }
  }
}
