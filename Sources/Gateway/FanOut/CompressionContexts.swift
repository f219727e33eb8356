// permessage-deflate (RFC 7692) for the sessions of one loop: one compressor and one decompressor for all of them.
//
// Every session that compresses was told `server_no_context_takeover` and `client_no_context_takeover`. So no message
// depends on another: a publication is compressed once and the same bytes go to all, and a session that compresses
// costs no byte more than one that does not. What it gives away is the repetition between messages.
//
// Operators who would rather have that, for few sessions on slow links, let some keep contexts
// (`Limits.compressionContexts`). Such a session has a compressor and a decompressor of its own, and each publication
// is compressed for it alone. What its compressor has seen must reach the peer, in order, or nothing behind it can be
// read; so a frame that was made with a context never gives way to a newer one, and while the socket takes no more,
// positions go out uncompressed and do give way (RFC 7692 §6 leaves it to the sender which messages are compressed).
import HubBytes
import HubWebSocket

extension DeflatePolicy {
  /// What one compressor can do for all.
  fileprivate static let shared = DeflatePolicy(
    keepsContexts: false, windowBits: MessageCompression.windowBits...MessageCompression.windowBits)
  /// What a session's own can do: all that zlib can.
  fileprivate static let own = DeflatePolicy(keepsContexts: true, windowBits: Deflater.smallestWindowBits...15)
}

/// What is counted of compression.
struct CompressionCounters {
  /// Sessions that have deflate contexts of their own now.
  var contexts = 0
  /// Messages that were compressed (a publication once for all subscribers), their bytes before and after.
  var deflates: UInt64 = 0
  var deflatedBytesIn: UInt64 = 0
  var deflatedBytesOut: UInt64 = 0
  /// Compressed messages from clients, and their bytes when inflated.
  var inflates: UInt64 = 0
  var inflatedBytes: UInt64 = 0
}

/// What the sessions of one loop compress with.
struct CompressionContexts {
  /// Made with the first session that needs it.
  private lazy var shared = MessageCompression(
    for: .withoutContexts, as: .server, keepingInflated: keptBytes)
  /// By slot, of the sessions that have their own.
  private var own: [MessageCompression?] = []
  private(set) var counters = CompressionCounters()
  private let keptBytes: Int
  private let minimumBytes: Int
  private let maximumContexts: Int
  private let inflateLimits: InflateLimits

  /// The shared one keeps room for the largest message, as far as a loop keeps memory at all. A buffer grows by
  /// doubling.
  init(_ limits: Limits) {
    keptBytes = min(2 * limits.messageBytes, limits.arenaKeepBytes)
    minimumBytes = limits.compressedBytes
    maximumContexts = limits.compressionContexts
    inflateLimits = InflateLimits(
      messageBytes: limits.messageBytes, ratio: limits.inflateRatio, freeBytes: limits.inflateFreeBytes)
  }

  /// What is taken of a newcomer's offers.
  var policy: DeflatePolicy { counters.contexts < maximumContexts ? .own : .shared }

  /// What a session compresses with if not with the shared one.
  @inline(__always) subscript(slot: Int) -> MessageCompression? {
    counters.contexts > 0 && slot < own.count ? own[slot] : nil
  }

  /// A session opens with what was agreed on; true where it shares the compressor of all.
  mutating func open(_ slot: Int, _ agreed: DeflateParameters) -> Bool {
    if shared.serves(agreed) { return true }
    while own.count <= slot { own.append(nil) }
    if own[slot] == nil { counters.contexts += 1 }
    own[slot] = MessageCompression(for: agreed, as: .server)
    return false
  }

  /// A session has ended.
  mutating func close(_ slot: Int) {
    guard self[slot] != nil else { return }
    own[slot] = nil
    counters.contexts -= 1
  }

  // MARK: Out

  /// Compresses the text message that lies in the arena at `payload`, into a frame behind all that is there; nil where
  /// that would not be smaller.
  mutating func deflate(_ payload: Range<Int>, _ carrier: Carrier, in arena: inout ByteBuffer) -> Range<Int>? {
    guard payload.count >= minimumBytes else { return nil }
    return deflate(payload, carrier, in: &arena, with: shared)
  }

  /// With a session's own context, which sees short messages too.
  mutating func deflate(
    _ payload: Range<Int>, _ carrier: Carrier, in arena: inout ByteBuffer, with compression: MessageCompression
  ) -> Range<Int>? {
    let minimum = minimumBytes
    let isSmaller = unsafe arena.withBytes {
      unsafe compression.compress(UnsafeRawBufferPointer(rebasing: $0[payload]), minimumBytes: minimum)
    }
    count(bytesIn: payload.count, bytesOut: compression.compressedBytes)
    guard isSmaller else { return nil }
    let start = arena.count
    unsafe compression.withCompressed { _ = unsafe carrier.append(compressed: $0, to: &arena) }
    return start..<arena.count
  }

  /// Compresses what stands behind `start` in the arena, in place, as a part of a message that is made in several, with
  /// what all sessions share.
  mutating func compress(partAt start: Int, isLast: Bool, in arena: inout ByteBuffer) {
    shared.compress(partAt: start, isLast: isLast, in: &arena)
  }

  /// Counts a message that was compressed.
  mutating func count(bytesIn: Int, bytesOut: Int) {
    counters.deflates += 1
    counters.deflatedBytesIn += UInt64(bytesIn)
    counters.deflatedBytesOut += UInt64(bytesOut)
  }

  // MARK: In

  /// The message of a session's compressed payload, valid until the next one.
  mutating func inflate(
    _ slot: Int, _ payload: UnsafeRawBufferPointer, _ kind: MessageKind
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    counters.inflates += 1
    let own = self[slot]
    let inflater = if let own { own } else { shared }
    let message = try unsafe inflater.inflate(payload, kind, limits: inflateLimits)
    counters.inflatedBytes += UInt64(message.count)
    return unsafe message
  }
}
