// What one end of a connection compresses and decompresses messages with, as it was agreed on (RFC 7692 §7).
//
// Where no contexts are kept one of these serves any number of connections of a thread: no message depends on another.
// Where they are kept it belongs to its connection, and costs it some 80 KiB.

public import HubBytes

/// A compressor and a decompressor. Not thread-safe.
public final class MessageCompression {
  /// 4 KiB of window, 16 KiB of tables and the fastest level. A position has 300 bytes, so the window holds the last
  /// dozen of them, and a smaller one has less to clear before each message; of the 100 bytes that level 6 takes off
  /// one, level 1 takes off 99.
  public static let windowBits = 12
  private static let memoryLevel = 5
  private static let level = 1
  /// Messages of so many bytes are maps for the most part, and made once for many: those of 2,000 drivers that move are
  /// 62 KB a second with this level and 74 with the fastest, for 1.3 ms of CPU more.
  private static let (longBytes, longLevel) = (8 * 1024, 4)
  /// Memory for a message that is kept from one to the next.
  public static let keptBytes = 64 * 1024

  private var deflater: Deflater?
  /// Nil where contexts are kept.
  private var longDeflater: Deflater?
  private var inflater: Inflater
  /// Whether the compressor keeps its context: then what it makes must reach the peer, in order.
  public let keepsContext: Bool
  private let role: Role
  private let windowBits: Int
  private var payload = ByteBuffer()

  /// For one connection, or for all that keep no contexts. Of the memory for inflated messages so much is kept from one
  /// to the next: one that serves many keeps the largest message's, for else every bomb makes the kernel find it anew.
  public init(
    for agreed: DeflateParameters, as role: Role, keepingInflated inflatedBytes: Int = MessageCompression.keptBytes
  ) {
    let limit = role == .client ? agreed.clientMaxWindowBits : agreed.serverMaxWindowBits
    let ownContext = role == .client ? !agreed.clientNoContextTakeover : !agreed.serverNoContextTakeover
    let peerContext = role == .client ? !agreed.serverNoContextTakeover : !agreed.clientNoContextTakeover
    windowBits = min(MessageCompression.windowBits, limit.number ?? 15)
    keepsContext = ownContext
    self.role = role
    // RFC 7692 §6: an end may send any message uncompressed. With a window of 8 bits, which zlib has not, it sends all
    // so.
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

  /// Whether one that keeps no contexts does for what was agreed on with a peer.
  public func serves(_ agreed: DeflateParameters) -> Bool {
    let limit = role == .client ? agreed.clientMaxWindowBits : agreed.serverMaxWindowBits
    return agreed.serverNoContextTakeover && agreed.clientNoContextTakeover && windowBits <= limit.number ?? 15
  }

  /// See `Inflater.inflate`.
  public func inflate(
    _ message: UnsafeRawBufferPointer, _ kind: MessageKind, limits: InflateLimits
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    try unsafe inflater.inflate(message, kind, limits: limits)
  }

  /// Compresses a message, for `withCompressed`. False where it is to be sent as it is: too small to gain by it, or not
  /// smaller. With a context every message goes through it, for one like the last costs little.
  public func compress(_ message: UnsafeRawBufferPointer, minimumBytes: Int) -> Bool {
    payload.removeAll(keepingAtMost: MessageCompression.keptBytes)
    guard deflater != nil, keepsContext || message.count >= minimumBytes else { return false }
    if longDeflater != nil, message.count >= MessageCompression.longBytes {
      unsafe longDeflater!.compress(message, into: &payload)
    } else {
      unsafe deflater!.compress(message, into: &payload)
    }
    // A context has the message now, so it must reach the peer's too.
    return keepsContext || payload.count < message.count
  }

  /// What the last message was compressed to.
  public func withCompressed(_ body: (UnsafeRawBufferPointer) -> Void) { unsafe payload.withBytes(body) }

  /// Its bytes; 0 where it was not tried.
  public var compressedBytes: Int { payload.count }

  /// Compresses what stands in `buffer` behind `start`, in its place; see `compress(_:minimumBytes:)`.
  func compress(payloadAt start: Int, minimumBytes: Int, in buffer: inout ByteBuffer) -> Bool {
    let isCompressed = unsafe buffer.withBytes {
      unsafe compress(UnsafeRawBufferPointer(rebasing: $0[start...]), minimumBytes: minimumBytes)
    }
    guard isCompressed else { return false }
    buffer.truncate(to: start)
    unsafe payload.withBytes { unsafe buffer.append($0) }
    return true
  }

  /// Compresses a part of a message, all that stands in `buffer` behind `start`, in its place. Parts one behind the
  /// other are one compressed message (RFC 7692 §7.2.3.4): each is compressed for itself and ends with the empty block
  /// of a flush, whose last bytes only the end of the message goes without (§7.2.1).
  ///
  /// - Precondition: it compresses, and keeps no context: other messages may go out between two parts.
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
