// A connection's compression as agreed on (RFC 7692 §7).
//
// Without contexts one of these serves all connections of a thread. With contexts each connection has its own, of some
// 80 KiB.

public import HubBytes
import HubDeflate

/// A compressor and a decompressor. Not thread-safe.
public final class MessageCompression {
  /// 4 KiB of window, 16 KiB of tables and the fastest level. A position has 300 bytes, so the window holds the last
  /// dozen of them, and a smaller one is faster to clear before each message; level 1 saves 99 of the 100 bytes that
  /// level 6 saves.
  public static let windowBits = 12
  private static let memoryLevel = 5
  private static let level = 1
  /// Messages from this size on are mostly maps, compressed once for many: those of 2,000 moving drivers are 62 KB a
  /// second with this level and 74 with the fastest, for 1.3 ms of CPU more.
  private static let (longBytes, longLevel) = (8 * 1024, 4)
  /// Bytes of buffers kept between messages.
  public static let keptBytes = 64 * 1024

  private var deflater: Deflater?
  /// Nil where contexts are kept.
  private var longDeflater: Deflater?
  private var inflater: Inflater
  /// Whether the compressor keeps its context: then its output must reach the peer, in order.
  public let keepsContext: Bool
  private let role: Role
  private let windowBits: Int
  private var payload = ByteBuffer()

  /// For one connection, or for all that keep no contexts. `inflatedBytes` of memory for decompressed messages are
  /// kept: in a shared one those of the largest message, or the kernel would have to allocate them for every bomb.
  public init(
    for agreed: DeflateParameters, as role: Role, keepingInflated inflatedBytes: Int = MessageCompression.keptBytes
  ) {
    let limit = role == .client ? agreed.clientMaxWindowBits : agreed.serverMaxWindowBits
    let ownContext = role == .client ? !agreed.clientNoContextTakeover : !agreed.serverNoContextTakeover
    let peerContext = role == .client ? !agreed.serverNoContextTakeover : !agreed.clientNoContextTakeover
    windowBits = min(MessageCompression.windowBits, limit.number ?? 15)
    keepsContext = ownContext
    self.role = role
    // RFC 7692 §6: any message may be sent uncompressed. zlib has no window of 8 bits; with that, all are.
    if windowBits >= Deflater.smallestWindowBits {
      deflater = Deflater(
        windowBits: windowBits, level: MessageCompression.level, memoryLevel: MessageCompression.memoryLevel,
        takesContextOver: ownContext)
      if !ownContext {
        longDeflater = Deflater(
          windowBits: windowBits, level: MessageCompression.longLevel, memoryLevel: MessageCompression.memoryLevel,
          takesContextOver: false)
      }
    }
    inflater = Inflater(takesContextOver: peerContext, keptBytes: inflatedBytes)
  }

  /// To be shared by clients' connections that keep no contexts.
  public static func shared() -> MessageCompression { MessageCompression(for: .withoutContexts, as: .client) }

  /// Whether this compression, which keeps no contexts, fits the agreement with a peer.
  public func serves(_ agreed: DeflateParameters) -> Bool {
    let limit = role == .client ? agreed.clientMaxWindowBits : agreed.serverMaxWindowBits
    return agreed.serverNoContextTakeover && agreed.clientNoContextTakeover && windowBits <= limit.number ?? 15
  }

  /// The message of a compressed payload, valid until the next call; text is checked to be UTF-8 (RFC 6455 §8.1).
  ///
  /// Throws `.messageTooLarge` or `.inflatesTooMuch` at the limit, `.invalidDeflate` for malformed or incomplete data.
  /// With context takeover the connection cannot be used after an error.
  public func inflate(
    _ message: UnsafeRawBufferPointer, _ kind: MessageKind, limits: InflateLimits
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    try unsafe inflater.inflate(message, kind, limits: limits)
  }

  /// The work of the last payload's blocks, which counts besides its bytes, as a number of bytes.
  public var blockWork: Int { inflater.blocks * InflateLimits.blockWork }

  /// Compresses a message, for `withCompressed`. False where it is to be sent uncompressed: too small, or not smaller
  /// afterwards. With a context every message is compressed, as a repeated one costs little.
  public func compress(_ message: UnsafeRawBufferPointer, minimumBytes: Int) -> Bool {
    payload.removeAll(keepingAtMost: MessageCompression.keptBytes)
    guard deflater != nil, keepsContext || message.count >= minimumBytes else { return false }
    if longDeflater != nil, message.count >= MessageCompression.longBytes {
      unsafe longDeflater!.compress(message, into: &payload)
    } else {
      unsafe deflater!.compress(message, into: &payload)
    }
    // The context has the message now, so it must reach the peer's.
    return keepsContext || payload.count < message.count
  }

  /// The last message, compressed.
  public func withCompressed(_ body: (UnsafeRawBufferPointer) -> Void) { unsafe payload.withBytes(body) }

  /// Its size in bytes; 0 where it was not compressed.
  public var compressedBytes: Int { payload.count }

  /// Compresses `buffer` from `start` on, in place; see `compress(_:minimumBytes:)`.
  func compress(payloadAt start: Int, minimumBytes: Int, in buffer: inout ByteBuffer) -> Bool {
    let isCompressed = unsafe buffer.withBytes {
      unsafe compress(UnsafeRawBufferPointer(rebasing: $0[start...]), minimumBytes: minimumBytes)
    }
    guard isCompressed else { return false }
    buffer.truncate(to: start)
    unsafe payload.withBytes { unsafe buffer.append($0) }
    return true
  }

  /// Compresses a part of a message, `buffer` from `start` on, in place. The concatenated parts are one compressed
  /// message (RFC 7692 §7.2.3.4): each is compressed by itself and ends with the empty block of a flush, whose last
  /// bytes are omitted at the end of the message only (§7.2.1).
  ///
  /// - Precondition: compression is on, and keeps no context: other messages may be sent between two parts.
  public func compress(partAt start: Int, isLast: Bool, in buffer: inout ByteBuffer) {
    precondition(deflater != nil && !keepsContext)
    payload.removeAll(keepingAtMost: MessageCompression.keptBytes)
    unsafe buffer.withBytes {
      unsafe deflater!.compress(UnsafeRawBufferPointer(rebasing: $0[start...]), into: &payload)
    }
    buffer.truncate(to: start)
    unsafe payload.withBytes { unsafe buffer.append($0) }
    if !isLast { buffer.append([0x00, 0x00, 0xFF, 0xFF]) }
  }
}

extension DeflateParameters.WindowBits {
  fileprivate var number: Int? {
    switch self {
    case .absent, .unspecified: nil
    case .bits(let bits): bits
    }
  }
}
