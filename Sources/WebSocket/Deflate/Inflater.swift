// Decompresses messages (RFC 7692 §7.2.2), with zlib, within limits.
//
// The input is a complete message, so zlib keeps no pointer into a caller's buffer after a call.

import CHubZlib
import HubBytes
import HubDeflate

/// The limits of a decompressed message.
public struct InflateLimits: Sendable, Equatable {
  /// Bytes of the decompressed message.
  public var messageBytes: Int
  /// Decompressed bytes for each compressed byte; deflate can reach 1032. Real clients' JSON stays below 50.
  public var ratio: Int
  /// Messages up to this size may have any ratio: a repeated message may be one match in the window of 32 KiB.
  public var freeBytes: Int

  /// Blocks of a message that are marked as its last one (RFC 7692 §7.2.3.4), each of which restarts the decompressor.
  /// Past it: `.invalidDeflate`.
  public static let finalBlocks = 16
  /// Blocks that a message may have: `freeBlocks`, and one more for each `bytesPerBlock` bytes. Past it:
  /// `.invalidDeflate`. zlib with its least memory makes one of each 127 bytes or more, and a flush two.
  static let freeBlocks = 64
  static let bytesPerBlock = 64
  /// The work of a block, as a number of bytes: a block may have codes of its own, which take 1 µs to build.
  public static let blockWork = 192

  public init(messageBytes: Int = 256 * 1024, ratio: Int = 200, freeBytes: Int = 64 * 1024) {
    precondition(messageBytes >= 0 && ratio >= 1 && freeBytes >= 0 && messageBytes < Int(UInt32.max))
    self.messageBytes = messageBytes
    self.ratio = ratio
    self.freeBytes = freeBytes
  }

  /// The most bytes for a payload of `compressed` bytes.
  func bytes(compressed: Int) -> Int {
    let (byRatio, overflow) = compressed.multipliedReportingOverflow(by: ratio)
    return min(messageBytes, max(freeBytes, overflow ? .max : byRatio))
  }
}

/// A decompressor. Without context takeover it serves any number of connections.
@safe
public struct Inflater: ~Copyable {
  /// Output is produced in pieces of this size, so that a bomb costs at most one of them beyond its limit.
  private static let pieceBytes = 16 * 1024

  // Begun by inflateInit2_ in `init`, ended in `deinit`.
  private let zlib = ZlibStream()
  private var stream: UnsafeMutablePointer<z_stream> { unsafe zlib.pointer }
  private let takesContextOver: Bool
  private let keptBytes: Int
  private var output = ByteBuffer()
  private var isBroken = false
  /// Blocks of the message that is being decompressed, or was last.
  private(set) var blocks = 0
  private var finalBlocks = 0

  /// Costs 40 KiB after its first use, and the largest message up to `keptBytes`. It understands every window.
  public init(takesContextOver: Bool, keptBytes: Int = MessageCompression.keptBytes) {
    self.takesContextOver = takesContextOver
    self.keptBytes = keptBytes
    // Negative: raw deflate.
    let status = unsafe inflateInit2_(stream, -15, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "inflateInit2: \(status)")  // no memory, or invalid arguments
  }

  deinit { unsafe inflateEnd(zlib.pointer) }

  /// The message of a compressed payload, valid until the next call; text is checked to be UTF-8 (RFC 6455 §8.1).
  ///
  /// Throws `.messageTooLarge` or `.inflatesTooMuch` at the limit, `.invalidDeflate` for malformed or incomplete data
  /// and past the limits of blocks. With context takeover the connection cannot be used after an error. Costs
  /// about 1 µs, 3 ns a byte of the longer, the payload or the message, and up to 1 µs a block.
  public mutating func inflate(
    _ payload: UnsafeRawBufferPointer, _ kind: MessageKind, limits: InflateLimits
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    guard !isBroken else { throw .invalidDeflate }
    output.removeAll(keepingAtMost: keptBytes)
    (blocks, finalBlocks) = (0, 0)
    if !takesContextOver { unsafe inflateReset(stream) }
    // A zlib that drops an empty flush sends an empty message as no bytes, not as the 0x00 of RFC 7692 §7.2.3.6. With
    // the tail it would be an error; its meaning is unambiguous.
    if payload.count > 0 {
      do throws(FrameError) {
        try unsafe inflateAll(payload, limits)
      } catch {
        isBroken = takesContextOver
        output.removeAll(keepingAtMost: keptBytes)
        throw error
      }
    }
    // The view outlives the call: the buffer's memory is not moved or freed before the next one.
    let message = unsafe output.withBytes { unsafe $0 }
    if kind == .text {
      var text = UTF8Validator()
      guard unsafe text.consume(message), text.isComplete else { throw .invalidUTF8 }
    }
    return unsafe message
  }

  private mutating func inflateAll(_ payload: UnsafeRawBufferPointer, _ limits: InflateLimits) throws(FrameError) {
    let limit = limits.bytes(compressed: payload.count)
    _ = try unsafe feed(payload, limit, limits)
    let inflated = output.count
    // RFC 7692 §7.2.2 item 1: what the sender removed at the end.
    var tail: (UInt8, UInt8, UInt8, UInt8) = (0x00, 0x00, 0xFF, 0xFF)
    let isWhole = try unsafe withUnsafeBytes(of: &tail) { (bytes) throws(FrameError) in
      try unsafe feed(bytes, limit, limits)
    }
    // An empty block adds nothing: output here means that the tail completed a truncated block.
    guard isWhole, output.count == inflated else { throw .invalidDeflate }
  }

  /// Decompresses all of `input`, appending to `output`. True when it ended with a block; else it was truncated.
  private mutating func feed(
    _ input: UnsafeRawBufferPointer, _ limit: Int, _ limits: InflateLimits
  ) throws(FrameError) -> Bool {
    unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
    unsafe stream.pointee.avail_in = UInt32(input.count)
    defer {
      unsafe stream.pointee.next_in = nil
      unsafe stream.pointee.next_out = nil
    }
    while true {
      // One byte beyond the limit, to distinguish an exact fit from more output.
      let room = min(Inflater.pieceBytes, limit + 1 - output.count)
      let stream = unsafe stream
      var status = Z_OK
      unsafe output.append(atMost: room) { unsafe Inflater.step(stream, into: $0, &status) }
      guard output.count <= limit else { throw limits.error(exceeding: limit) }
      switch status {
      case Z_OK, Z_BUF_ERROR:
        // zlib.h, inflate(): 128 is a block's end, 64 the last block, and below that are the bits of a byte left over.
        let state = unsafe stream.pointee.data_type
        guard state & 128 != 0 else {
          if unsafe stream.pointee.avail_out > 0 { return false }
          continue
        }
        blocks += 1
        guard blocks <= InflateLimits.freeBlocks + output.count / InflateLimits.bytesPerBlock else {
          throw .invalidDeflate
        }
        // The header of another block has three bits.
        if unsafe stream.pointee.avail_in == 0 && state & 127 < 3 { return true }
      case Z_STREAM_END:
        finalBlocks += 1
        guard finalBlocks <= InflateLimits.finalBlocks else { throw .invalidDeflate }
        // RFC 7692 §7.2.3.4: a block with BFINAL may be followed by others. The window stays as it is.
        unsafe inflateResetKeep(stream)
        if unsafe stream.pointee.avail_in == 0 { return true }
      default: throw .invalidDeflate  // Z_DATA_ERROR; raw deflate has no dictionary
      }
    }
  }

  private static func step(
    _ stream: UnsafeMutablePointer<z_stream>, into room: UnsafeMutableRawBufferPointer, _ status: inout CInt
  ) -> Int {
    unsafe stream.pointee.next_out = room.bindMemory(to: UInt8.self).baseAddress
    unsafe stream.pointee.avail_out = UInt32(room.count)
    status = unsafe CHubZlib.inflate(stream, Z_BLOCK)
    return unsafe room.count - Int(stream.pointee.avail_out)
  }
}

extension InflateLimits {
  fileprivate func error(exceeding limit: Int) -> FrameError {
    limit == messageBytes
      ? .messageTooLarge(bytes: UInt64(limit) + 1, limit: limit) : .inflatesTooMuch(ratio: ratio)
  }
}
