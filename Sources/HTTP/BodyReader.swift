// Reads a body from a connection's bytes: by length, in chunks (RFC 9112 §7.1), or to the end.
//
// Each byte is read once. Memory is bounded: the body by its limit (checked at the Content-Length where there is one),
// chunk extensions by a count over the whole body, trailers by the limit of a head.

public import HubBytes

/// The result of `BodyReader.read`.
public struct BodyProgress: Sendable, Equatable {
  /// Bytes taken from the input. The next message begins behind them.
  public let consumed: Int
  public let isComplete: Bool
}

/// The state of reading a body.
public struct BodyReader: Sendable {
  private enum State: Sendable, Equatable {
    case length(remaining: Int)
    case untilClose
    /// `digits` hex digits of a chunk size were read; at least one is required.
    case chunkSize(value: Int, digits: Int)
    case chunkExtension(size: Int)
    case chunkSizeLineFeed(size: Int)
    case chunkData(remaining: Int)
    case chunkDataReturn
    case chunkDataLineFeed
    case trailerBegins
    case trailer
    case trailerLineFeed
    case lastLineFeed
    case complete
  }

  private var state: State
  private var received = 0
  private var extensionBytes = 0
  private var trailerBytes = 0
  private let limits: HTTPLimits

  /// Throws `.bodyTooLarge` at once where the framing has the length.
  public init(_ framing: BodyFraming, limits: HTTPLimits = HTTPLimits()) throws(HTTPError) {
    self.limits = limits
    switch framing {
    case .none: state = .complete
    case .untilClose: state = .untilClose
    case .chunked: state = .chunkSize(value: 0, digits: 0)
    case .length(let length):
      guard length <= limits.bodyBytes else { throw .bodyTooLarge(limit: limits.bodyBytes) }
      state = length == 0 ? .complete : .length(remaining: length)
    }
  }

  /// Whether the body is complete. Never true for `.untilClose`, which the connection's end completes.
  public var isComplete: Bool { state == .complete }

  /// Appends the body's bytes in `bytes` to `body`, and gives the number of bytes used.
  public mutating func read(
    _ bytes: UnsafeRawBufferPointer, into body: inout ByteBuffer
  ) throws(HTTPError) -> BodyProgress {
    var position = 0
    while position < bytes.count, state != .complete {
      switch state {
      case .length(let remaining):
        let taken = try unsafe take(bytes, from: &position, atMost: remaining, into: &body)
        state = taken == remaining ? .complete : .length(remaining: remaining - taken)
      case .chunkData(let remaining):
        let taken = try unsafe take(bytes, from: &position, atMost: remaining, into: &body)
        state = taken == remaining ? .chunkDataReturn : .chunkData(remaining: remaining - taken)
      case .untilClose:
        _ = try unsafe take(bytes, from: &position, atMost: .max, into: &body)
      case .chunkSize, .chunkExtension, .chunkSizeLineFeed, .chunkDataReturn, .chunkDataLineFeed, .trailerBegins,
        .trailer, .trailerLineFeed, .lastLineFeed, .complete:
        state = try unsafe next(after: bytes[position])
        position += 1
      }
    }
    return BodyProgress(consumed: position, isComplete: state == .complete)
  }

  private mutating func take(
    _ bytes: UnsafeRawBufferPointer, from position: inout Int, atMost limit: Int, into body: inout ByteBuffer
  ) throws(HTTPError) -> Int {
    let count = min(bytes.count - position, limit)
    guard received + count <= limits.bodyBytes else { throw .bodyTooLarge(limit: limits.bodyBytes) }
    unsafe body.append(UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)]))
    received += count
    position += count
    return count
  }

  /// The state after one byte of chunk framing.
  private mutating func next(after byte: UInt8) throws(HTTPError) -> State {
    switch state {
    case .chunkSize(let value, let digits):
      return try chunkSize(value, digits, byte)
    case .chunkExtension(let size):
      extensionBytes += 1
      guard extensionBytes <= limits.chunkExtensionBytes else {
        throw .chunkExtensionsTooLong(limit: limits.chunkExtensionBytes)
      }
      if byte == 0x0D { return .chunkSizeLineFeed(size: size) }
      guard byte >= 0x20 && byte != 0x7F || byte == 0x09 else { throw .malformedChunk }  // refuses LF
      return state
    case .chunkSizeLineFeed(let size):
      guard byte == 0x0A else { throw .malformedChunk }
      return size == 0 ? .trailerBegins : .chunkData(remaining: size)
    case .chunkDataReturn:
      guard byte == 0x0D else { throw .malformedChunk }
      return .chunkDataLineFeed
    case .chunkDataLineFeed:
      guard byte == 0x0A else { throw .malformedChunk }
      return .chunkSize(value: 0, digits: 0)
    case .trailerBegins, .trailer, .trailerLineFeed, .lastLineFeed:
      return try trailer(byte)
    case .length, .untilClose, .chunkData, .complete:
      return state
    }
  }

  /// RFC 9112 §7.1: 1*HEXDIG, then an extension or the line's end.
  private func chunkSize(_ value: Int, _ digits: Int, _ byte: UInt8) throws(HTTPError) -> State {
    if let digit = ASCII.hexValue(byte) {
      guard digits < 15 else { throw .malformedChunk }  // 60 bits: no overflow, and a bound for zeros
      let size = value << 4 | Int(digit)
      // Checked before the chunk arrives, so that nothing of a refused body is buffered.
      guard size <= limits.bodyBytes - received else { throw .bodyTooLarge(limit: limits.bodyBytes) }
      return .chunkSize(value: size, digits: digits + 1)
    }
    guard digits > 0 else { throw .malformedChunk }
    switch byte {
    case 0x0D: return .chunkSizeLineFeed(size: value)
    case 0x3B, 0x20, 0x09: return .chunkExtension(size: value)  // §7.1.1; BWS may precede the semicolon
    default: throw .malformedChunk
    }
  }

  /// Trailer fields are read and dropped (RFC 9110 §6.5.1 allows it).
  private mutating func trailer(_ byte: UInt8) throws(HTTPError) -> State {
    trailerBytes += 1
    guard trailerBytes <= limits.headBytes else { throw .trailersTooLarge(limit: limits.headBytes) }
    switch (state, byte) {
    case (.trailerLineFeed, 0x0A): return .trailerBegins
    case (.lastLineFeed, 0x0A): return .complete
    case (.trailerLineFeed, _), (.lastLineFeed, _): throw .bareCarriageReturn
    case (_, 0x0D): return state == .trailerBegins ? .lastLineFeed : .trailerLineFeed
    case (_, 0x0A): throw .bareLineFeed
    case (_, 0x00...0x08), (_, 0x0B...0x1F), (_, 0x7F): throw .controlByte(byte)
    default: return .trailer
    }
  }
}
