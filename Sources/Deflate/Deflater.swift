// Compresses texts piece by piece, each a run of deflate that ends on a byte: the form of WebSocket's messages
// (RFC 7692 §7.2.1). With zlib.

import CHubZlib
public import HubBytes

/// A compressor. Without context takeover it serves any number of connections, with the same output for all.
@safe
public struct Deflater: ~Copyable {
  /// The smallest window of zlib's raw deflate; RFC 7692 §7.1.2.1 allows 8 too.
  public static let smallestWindowBits = 9

  // Begun by deflateInit2_ in `init`, ended in `deinit`.
  private let zlib = ZlibStream()
  private var stream: UnsafeMutablePointer<z_stream> { unsafe zlib.pointer }
  private let takesContextOver: Bool

  /// `windowBits` 9–15, `level` 1 (fast) to 9, `memoryLevel` 1–9. Costs 2^(windowBits + 2) + 2^(memoryLevel + 9) bytes.
  public init(windowBits: Int, level: Int, memoryLevel: Int, takesContextOver: Bool) {
    precondition((Deflater.smallestWindowBits...15).contains(windowBits))
    self.takesContextOver = takesContextOver
    // Negative: raw deflate, without zlib's header and checksum (RFC 7692 §7.2.1).
    let status = unsafe deflateInit2_(
      stream, CInt(level), Z_DEFLATED, CInt(-windowBits), CInt(memoryLevel), Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      CInt(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "deflateInit2: \(status)")  // no memory, or invalid arguments
  }

  deinit { unsafe deflateEnd(zlib.pointer) }

  /// Appends the payload of a compressed message. At level 1 a message of 300 bytes costs 7 µs, or up to 20 with cold
  /// caches.
  public mutating func compress(_ message: UnsafeRawBufferPointer, into output: inout ByteBuffer) {
    // RFC 7692 §7.2.3.6. zlib would write nothing: it drops a second flush without data.
    guard message.count > 0 else { return output.append(0x00) }
    if !takesContextOver { unsafe deflateReset(stream) }
    unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: message.bindMemory(to: UInt8.self).baseAddress)
    unsafe stream.pointee.avail_in = UInt32(message.count)
    var room = message.count / 2 + 64
    // All is written when zlib leaves room (zlib.h, deflate(): "avail_out is not zero").
    repeat {
      unsafe output.append(atMost: room) { unsafe Deflater.step(stream, into: $0) }
      room = 4096
    } while unsafe stream.pointee.avail_out == 0
    unsafe stream.pointee.next_in = nil
    unsafe stream.pointee.next_out = nil
    unsafe output.withBytes { unsafe precondition($0.suffix(4).elementsEqual([0x00, 0x00, 0xFF, 0xFF])) }
    output.truncate(to: output.count - 4)  // RFC 7692 §7.2.1 item 3
  }

  /// Z_SYNC_FLUSH ends with an empty uncompressed block, as RFC 7692 §7.2.1 item 2 requires.
  private static func step(_ stream: UnsafeMutablePointer<z_stream>, into room: UnsafeMutableRawBufferPointer) -> Int {
    unsafe stream.pointee.next_out = room.bindMemory(to: UInt8.self).baseAddress
    unsafe stream.pointee.avail_out = UInt32(room.count)
    let status = unsafe deflate(stream, Z_SYNC_FLUSH)
    // Z_BUF_ERROR: the last step filled the room exactly, and nothing is left.
    precondition(status == Z_OK || status == Z_BUF_ERROR, "deflate: \(status)")
    return unsafe room.count - Int(stream.pointee.avail_out)
  }
}
