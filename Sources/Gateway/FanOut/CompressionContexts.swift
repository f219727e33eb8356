// permessage-deflate (RFC 7692) for the sessions of one loop: one compressor and one decompressor for all of them.
//
// Compressed sessions negotiate `server_no_context_takeover` and `client_no_context_takeover`. So no message depends on
// another: a publication is compressed once for all, and a compressed session needs no more memory than others. The
// price is the redundancy between messages.
//
// Operators with few sessions on slow links may let some keep contexts (`Limits.compressionContexts`). Such a session
// has a compressor and a decompressor of its own, and each publication is compressed for it alone. The peer must get
// all of a compressor's output, in order. So a frame made with a context is never replaced by a newer one, and while
// the socket is full, positions are sent uncompressed and can be replaced (RFC 7692 §6 lets the sender choose).
import HubBytes
import HubDeflate
import HubTransport
import HubWebSocket

extension DeflatePolicy {
  /// The capabilities of the shared compressor.
  fileprivate static let shared = DeflatePolicy(
    keepsContexts: false, windowBits: MessageCompression.windowBits...MessageCompression.windowBits)
  /// The capabilities of a session's own compressor: all of zlib.
  fileprivate static let own = DeflatePolicy(keepsContexts: true, windowBits: Deflater.smallestWindowBits...15)
}

/// Counters of compression.
struct CompressionCounters {
  /// Sessions with deflate contexts of their own.
  var contexts = 0
  /// Messages that were compressed (a publication once for all subscribers), their bytes before and after.
  var deflates: UInt64 = 0
  var deflatedBytesIn: UInt64 = 0
  var deflatedBytesOut: UInt64 = 0
  /// Compressed messages from clients, and their bytes when inflated.
  var inflates: UInt64 = 0
  var inflatedBytes: UInt64 = 0
}

/// The compressors of one loop.
struct CompressionContexts {
  /// Created with the first session that needs it.
  private lazy var shared = MessageCompression(
    for: .withoutContexts, as: .server, keepingInflated: keptBytes)
  /// By slot, of the sessions that have their own.
  private var own: [MessageCompression?] = []
  private(set) var counters = CompressionCounters()
  private let keptBytes: Int
  private let minimumBytes: Int
  private let maximumContexts: Int
  private let inflateLimits: InflateLimits

  /// The shared one keeps a buffer of the largest message, doubled as buffers grow, within what a loop may keep.
  init(_ limits: Limits) {
    keptBytes = min(2 * limits.messageBytes, limits.loop.arenaKeepBytes)
    minimumBytes = limits.compressedBytes
    maximumContexts = limits.compressionContexts
    inflateLimits = InflateLimits(
      messageBytes: limits.messageBytes, ratio: limits.inflateRatio, freeBytes: limits.inflateFreeBytes)
  }

  /// What is accepted of a new session's offers.
  var policy: DeflatePolicy { counters.contexts < maximumContexts ? .own : .shared }

  /// A session's own compressor; nil for the shared one.
  @inline(__always) subscript(slot: Int) -> MessageCompression? {
    counters.contexts > 0 && slot < own.count ? own[slot] : nil
  }

  /// A session opens with the negotiated parameters; true where it uses the shared compressor.
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

  /// Compresses the text message in the arena at `payload` into a frame at the end; nil where it would not be smaller.
  mutating func deflate(_ payload: Range<Int>, _ carrier: Carrier, in arena: inout ByteBuffer) -> Range<Int>? {
    guard payload.count >= minimumBytes else { return nil }
    return deflate(payload, carrier, in: &arena, with: shared)
  }

  /// Compresses a message with a session's own compressor; one that keeps a context also takes short messages.
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

  /// Compresses in place what is behind `start` in the arena, a part of a message, with the shared compressor.
  mutating func compress(partAt start: Int, isLast: Bool, in arena: inout ByteBuffer) {
    shared.compress(partAt: start, isLast: isLast, in: &arena)
  }

  /// Counts a compressed message.
  mutating func count(bytesIn: Int, bytesOut: Int) {
    counters.deflates += 1
    counters.deflatedBytesIn += UInt64(bytesIn)
    counters.deflatedBytesOut += UInt64(bytesOut)
  }

  // MARK: In

  /// Decompresses a session's payload; the result is valid until the next call. `work`: the bytes to charge for it:
  /// empty blocks make a payload longer than its message, and are more work than their bytes.
  mutating func inflate(
    _ slot: Int, _ payload: UnsafeRawBufferPointer, _ kind: MessageKind
  ) throws(FrameError) -> (message: UnsafeRawBufferPointer, work: Int) {
    counters.inflates += 1
    let own = self[slot]
    let inflater = if let own { own } else { shared }
    let message = try unsafe inflater.inflate(payload, kind, limits: inflateLimits)
    counters.inflatedBytes += UInt64(message.count)
    return unsafe (message, max(message.count, payload.count, inflater.blockWork))
  }
}
