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
import HubRuntime
import HubTransport
import HubWebSocket

extension DeflatePolicy {
  /// What one compressor can do for all.
  static let shared = DeflatePolicy(
    keepsContexts: false, windowBits: MessageCompression.windowBits...MessageCompression.windowBits)
  /// What a session's own can do: all that zlib can.
  static let own = DeflatePolicy(keepsContexts: true, windowBits: Deflater.smallestWindowBits...15)
}

/// What the sessions of one loop compress with.
struct LoopCompression {
  /// Made with the first session that needs it.
  private(set) lazy var shared = MessageCompression(
    for: .withoutContexts, as: .server, keepingInflated: keptBytes)
  /// By slot, of the sessions that have their own.
  private var own: [MessageCompression?] = []
  private(set) var contexts = 0
  private let keptBytes: Int

  /// The shared one keeps room for the largest message, as far as a loop keeps memory at all. A buffer grows by
  /// doubling.
  init(_ limits: Limits) { keptBytes = min(2 * limits.messageBytes, limits.arenaKeepBytes) }

  /// What a session compresses with if not with the shared one.
  @inline(__always) subscript(slot: Int) -> MessageCompression? {
    contexts > 0 && slot < own.count ? own[slot] : nil
  }

  /// A session opens with what was agreed on.
  mutating func open(_ slot: Int, _ agreed: DeflateParameters) {
    guard !shared.serves(agreed) else { return }
    while own.count <= slot { own.append(nil) }
    if own[slot] == nil { contexts += 1 }
    own[slot] = MessageCompression(for: agreed, as: .server)
  }

  /// A session has ended.
  mutating func close(_ slot: Int) {
    guard self[slot] != nil else { return }
    own[slot] = nil
    contexts -= 1
  }
}

extension SessionLoop {
  /// What is taken of a newcomer's offers; nil for none.
  var deflatePolicy: DeflatePolicy? {
    guard configuration.compression else { return nil }
    return compression.contexts < limits.compressionContexts ? .own : .shared
  }

  /// Whether a session's messages may be compressed as everybody's are.
  func sharesCompression(_ slot: Int) -> Bool { sessions[slot].frames.allowsCompression && compression[slot] == nil }

  /// Compresses the text message whose payload lies in the arena at `range`, into a frame behind all that is there; nil
  /// where that would not be smaller.
  mutating func deflate(_ range: Range<Int>) -> Range<Int>? {
    guard range.count >= limits.compressedBytes else { return nil }
    return deflate(range, with: compression.shared)
  }

  private mutating func deflate(_ range: Range<Int>, with compression: MessageCompression) -> Range<Int>? {
    let minimum = limits.compressedBytes
    let isSmaller = loop.arena.withBytes { arena in
      compression.compress(UnsafeRawBufferPointer(rebasing: arena[range]), minimumBytes: minimum)
    }
    counters.deflates += 1
    counters.deflatedBytesIn += UInt64(range.count)
    counters.deflatedBytesOut += UInt64(compression.compressedBytes)
    guard isSmaller else { return nil }
    let start = loop.arena.count
    compression.withCompressed { FrameWriter.write(.text, $0, isCompressed: true, into: &loop.arena) }
    return start..<loop.arena.count
  }

  /// Sends the plain frame at `frame`, compressed with the session's own context where there is one.
  @inline(__always)
  mutating func send(_ frame: Range<Int>, to connection: ConnectionID, conflationKey: UInt64 = 0) {
    guard let own = compression[Int(connection.slot)] else {
      return loop.send(frame, to: connection, conflationKey: conflationKey)
    }
    send(frame, to: connection, conflationKey, with: own)
  }

  private mutating func send(
    _ frame: Range<Int>, to connection: ConnectionID, _ conflationKey: UInt64, with own: MessageCompression
  ) {
    if conflationKey == 0 || !loop.isBlocked(connection),
      let compressed = deflate(FrameWriter.serverPayload(of: frame), with: own)
    {
      loop.send(compressed, to: connection)
    } else {
      loop.send(frame, to: connection, conflationKey: conflationKey)
    }
  }

  /// The message of a compressed payload, valid until the next one.
  mutating func inflate(
    _ slot: Int, _ payload: UnsafeRawBufferPointer, _ kind: MessageKind
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    let inflateLimits = InflateLimits(
      messageBytes: limits.messageBytes, ratio: limits.inflateRatio, freeBytes: limits.inflateFreeBytes)
    counters.inflates += 1
    let own = compression[slot]
    let inflater = if let own { own } else { compression.shared }
    do throws(FrameError) {
      let message = try inflater.inflate(payload, kind, limits: inflateLimits)
      counters.inflatedBytes += UInt64(message.count)
      loop.spend(bytes: message.count)
      return message
    } catch {
      loop.spend(bytes: limits.messageBytes)  // a bomb is inflated up to its limit before it is refused
      throw error
    }
  }
}
