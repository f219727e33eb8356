// Finds the end of a head, reading each byte once, however the head is split.
//
// It also refuses at once what no head may contain, so that a peer that speaks another protocol (TLS to a plain port,
// say) is answered at its first bytes and not after 8 KiB.

/// The state of the search for the empty line.
struct HeadScanner: Sendable {
  private enum Line: UInt8, Sendable {
    /// At the first byte of the message: empty lines before it are skipped (RFC 9112 §2.2).
    case beforeMessage
    case skippingEmptyLine
    case begins
    case inside
    /// A CR ended a non-empty line; LF must follow.
    case ending
    /// A CR is at the start of a line; the LF completes the head.
    case last
  }

  private var line = Line.beforeMessage
  private var scanned: UInt16 = 0
  private(set) var start: UInt16 = 0

  init() {}

  /// Scans the new bytes of `bytes`, which begin where they began the last time. Gives the end of the head, behind its
  /// empty line, or nil while it is incomplete.
  mutating func scan(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(HTTPError) -> Int? {
    let end = min(bytes.count, limit)
    var position = Int(scanned)
    while position < end {
      let byte = unsafe bytes[position]
      position += 1
      // Nearly all bytes are text inside a line, and cost these two comparisons.
      if byte >= 0x20, byte != 0x7F, line == .inside { continue }
      if try step(byte, at: position - 1) { return position }
    }
    scanned = UInt16(position)
    guard bytes.count < limit else { throw .headTooLarge(limit: limit) }
    return nil
  }

  /// One byte that may change the state; true when it completed the head.
  private mutating func step(_ byte: UInt8, at position: Int) throws(HTTPError) -> Bool {
    switch line {
    case .skippingEmptyLine, .ending, .last:
      guard byte == 0x0A else { throw .bareCarriageReturn }
      if line == .last { return true }
      line = line == .skippingEmptyLine ? .beforeMessage : .begins
      return false
    case .beforeMessage, .begins, .inside:
      break
    }
    switch byte {
    case 0x0D:
      line = line == .beforeMessage ? .skippingEmptyLine : line == .begins ? .last : .ending
    case 0x0A:
      throw .bareLineFeed
    case 0x00...0x08, 0x0B, 0x0C, 0x0E...0x1F, 0x7F:
      throw .controlByte(byte)
    default:
      if line == .beforeMessage { start = UInt16(position) }
      line = .inside
    }
    return false
  }
}
