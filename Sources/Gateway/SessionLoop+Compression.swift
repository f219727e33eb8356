// permessage-deflate (RFC 7692) for the sessions of one loop: one compressor and one decompressor for all of them.
//
// Every session that compresses was told `server_no_context_takeover` and `client_no_context_takeover`. So no message
// depends on another: a publication is compressed once and the same bytes go to all, and a session that compresses costs
// no byte more than one that does not. What it gives away is the repetition between messages, which would need 40 KiB a
// session one way and 40 the other, and a compression for each subscriber.
import Bytes
import Transport
import WebSocket

/// What a loop compresses and decompresses with; allocated with the first session that needs it.
struct LoopCompression: ~Copyable {
  /// 4 KiB: publications have 300 bytes and replies seldom more than this. Smaller windows clear less memory before each
  /// message, and clients that can spare little may ask for one of this size.
  static let windowBits = 12
  /// 2^(5 + 9) bytes of tables, for the same reason. More gains nothing at these sizes.
  static let memoryLevel = 5
  /// The fastest: of the 100 bytes that level 6 takes off a position, level 1 takes off 99.
  static let level = 1

  static let policy = DeflatePolicy(keepsContexts: false, windowBits: windowBits...windowBits)

  var deflater = Deflater(windowBits: windowBits, level: level, memoryLevel: memoryLevel, takesContextOver: false)
  var inflater = Inflater(takesContextOver: false)
  /// The compressed message on its way into the arena.
  var payload = ByteBuffer()

  /// Makes `payload` that of a message.
  mutating func compress(_ message: UnsafeRawBufferPointer, keptBytes: Int) {
    payload.removeAll(keepingAtMost: keptBytes)
    deflater.compress(message, into: &payload)
  }
}

extension SessionLoop {
  /// Whether a session's messages may be compressed.
  func isCompressed(_ slot: Int) -> Bool { sessions[slot].frames.allowsCompression }

  /// Compresses the text message whose payload lies in the arena at `range`, into a frame behind all that is there; nil
  /// where that would not be smaller.
  mutating func deflate(_ range: Range<Int>) -> Range<Int>? {
    guard range.count >= limits.compressedBytes else { return nil }
    if compression == nil { compression = LoopCompression() }
    loop.arena.withBytes { arena in
      compression!.compress(UnsafeRawBufferPointer(rebasing: arena[range]), keptBytes: limits.arenaKeepBytes)
    }
    let compressed = compression!.payload.count
    counters.deflates += 1
    counters.deflatedBytesIn += UInt64(range.count)
    counters.deflatedBytesOut += UInt64(compressed)
    guard compressed < range.count else { return nil }
    let start = loop.arena.count
    compression!.payload.withBytes { FrameWriter.write(.text, $0, isCompressed: true, into: &loop.arena) }
    return start..<loop.arena.count
  }

  /// The message of a compressed payload, valid until the next one.
  mutating func inflate(
    _ payload: UnsafeRawBufferPointer, _ kind: MessageKind
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    if compression == nil { compression = LoopCompression() }
    let inflateLimits = InflateLimits(
      messageBytes: limits.messageBytes, ratio: limits.inflateRatio, freeBytes: limits.inflateFreeBytes)
    counters.inflates += 1
    let message = try compression!.inflater.inflate(payload, kind, limits: inflateLimits)
    counters.inflatedBytes += UInt64(message.count)
    return message
  }
}
