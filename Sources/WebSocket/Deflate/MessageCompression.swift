// What one end of a connection compresses and decompresses messages with, as it was agreed on (RFC 7692 §7).
//
// Where no contexts are kept one of these serves any number of connections of a thread: no message depends on another.
// Where they are kept it belongs to its connection, and costs it some 75 KiB.

import Bytes

/// A compressor and a decompressor. Not thread-safe.
public final class MessageCompression {
  /// 4 KiB of window, 16 KiB of tables and the fastest level: messages have some 300 bytes, and a window of this size still
  /// holds the last dozen of them.
  private static let windowBits = 12
  private static let memoryLevel = 5
  private static let level = 1

  private var deflater: Deflater?
  private var inflater: Inflater
  private let keepsContexts: Bool
  private let windowBits: Int
  private var payload = ByteBuffer()

  /// For one connection.
  public init(for agreed: DeflateParameters, as role: Role) {
    let limit = role == .client ? agreed.clientMaxWindowBits : agreed.serverMaxWindowBits
    let ownContext = role == .client ? !agreed.clientNoContextTakeover : !agreed.serverNoContextTakeover
    let peerContext = role == .client ? !agreed.serverNoContextTakeover : !agreed.clientNoContextTakeover
    windowBits = min(MessageCompression.windowBits, limit.number ?? 15)
    keepsContexts = ownContext
    // RFC 7692 §6: an end may send any message uncompressed. With a window of 8 bits, which zlib has not, it sends all so.
    if windowBits >= Deflater.smallestWindowBits {
      deflater = Deflater(
        windowBits: windowBits, level: MessageCompression.level, memoryLevel: MessageCompression.memoryLevel,
        takesContextOver: ownContext)
    }
    inflater = Inflater(takesContextOver: peerContext)
  }

  /// To be shared by clients' connections that keep no contexts.
  public static func shared() -> MessageCompression { MessageCompression(for: .withoutContexts, as: .client) }

  /// Whether a shared one does for what a client and its server agreed on.
  func serves(_ agreed: DeflateParameters) -> Bool {
    agreed.serverNoContextTakeover && agreed.clientNoContextTakeover
      && windowBits <= agreed.clientMaxWindowBits.number ?? 15
  }

  /// See `Inflater.inflate`.
  func inflate(
    _ message: UnsafeRawBufferPointer, _ kind: MessageKind, limits: InflateLimits
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    try inflater.inflate(message, kind, limits: limits)
  }

  /// Compresses what stands in `buffer` behind `start`, in its place. False where it was left as it is: too small to gain
  /// by it, or not smaller afterwards. With a context every message goes through it: one like the last costs little.
  func compress(payloadAt start: Int, minimumBytes: Int, in buffer: inout ByteBuffer) -> Bool {
    let length = buffer.count - start
    guard deflater != nil, keepsContexts || length >= minimumBytes else { return false }
    payload.removeAll(keepingAtMost: 64 * 1024)
    buffer.withBytes { deflater!.compress(UnsafeRawBufferPointer(rebasing: $0[start...]), into: &payload) }
    // A context has the message now, so it must reach the peer's too.
    guard keepsContexts || payload.count < length else { return false }
    buffer.truncate(to: start)
    payload.withBytes { buffer.append($0) }
    return true
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
