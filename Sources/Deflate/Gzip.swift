// gzip (RFC 1952), for HTTP responses. A long one is compressed in pieces, between which the loop does other work: each
// piece is a run of deflate that ends on a byte, as messages are (`Deflater`). One compressor therefore serves any
// number of responses at a time, and a response under way costs 12 bytes, not the 256 KiB of a zlib state.
import CHubZlib
public import HubBytes

/// A compressor of texts. Not thread-safe; costs up to 256 KiB.
public final class Gzip {
  /// The progress of compressing one text.
  public struct Progress: Sendable {
    fileprivate var checksum: UInt32 = 0
    fileprivate var count: UInt32 = 0
    fileprivate var hasBegun = false

    public init() {}
  }

  private var deflater: Deflater

  /// `level`: 1 (fast) to 9.
  public init(level: Int) {
    deflater = Deflater(windowBits: 15, level: level, memoryLevel: 8, takesContextOver: false)
  }

  /// Appends the next piece of a text, compressed; the concatenated pieces are one gzip file. At level 1 some 4 ms for
  /// 1 MB of JSON.
  public func compress(
    _ piece: UnsafeRawBufferPointer, of text: inout Progress, isLast: Bool, into output: inout ByteBuffer
  ) {
    if !text.hasBegun {
      // RFC 1952 §2.3: deflate, no flags, no time, fast or not, made on Unix.
      output.append([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3])
      text.hasBegun = true
    }
    if piece.count > 0 {
      unsafe deflater.compress(piece, into: &output)
      output.append([0x00, 0x00, 0xFF, 0xFF])  // the rest of the flush, which WebSocket omits
      let bytes = unsafe piece.bindMemory(to: UInt8.self).baseAddress
      text.checksum = unsafe UInt32(truncatingIfNeeded: crc32(UInt(text.checksum), bytes, UInt32(piece.count)))
      text.count &+= UInt32(truncatingIfNeeded: piece.count)
    }
    guard isLast else { return }
    output.append([0x03, 0x00])  // RFC 1951 §3.2.6: an empty block, the last one
    for word in [text.checksum, text.count] {
      for shift in stride(from: UInt32(0), to: 32, by: 8) { output.append(UInt8(truncatingIfNeeded: word >> shift)) }
    }
  }

  /// Compresses a complete text.
  public func compress(_ bytes: [UInt8]) -> [UInt8] {
    var output = ByteBuffer(capacity: bytes.count / 3 + 64)
    var progress = Progress()
    unsafe bytes.withUnsafeBytes { unsafe compress($0, of: &progress, isLast: true, into: &output) }
    return output.array()
  }

  /// Decompresses one file (RFC 1952 §2.2) of at most `limit` bytes; nil where it is malformed or longer, or the
  /// checksum is wrong. Costs some 3 ns a byte.
  public static func decompress(_ file: [UInt8], limit: Int) -> [UInt8]? {
    let zlib = ZlibStream()
    // 16 more than the window's bits: with the head and the checksum of gzip (zlib.h, inflateInit2()).
    let begun = unsafe inflateInit2_(zlib.pointer, 15 + 16, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
    precondition(begun == Z_OK, "inflateInit2: \(begun)")  // no memory, or invalid arguments
    defer { unsafe inflateEnd(zlib.pointer) }
    var text = ByteBuffer()
    var status = Z_OK
    unsafe file.withUnsafeBufferPointer { bytes in
      unsafe zlib.pointer.pointee.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
      unsafe zlib.pointer.pointee.avail_in = UInt32(bytes.count)
      while status == Z_OK, text.count <= limit {
        // One byte beyond the limit, to distinguish an exact fit from more.
        unsafe text.append(atMost: min(pieceBytes, limit + 1 - text.count)) { room in
          unsafe zlib.pointer.pointee.next_out = room.bindMemory(to: UInt8.self).baseAddress
          unsafe zlib.pointer.pointee.avail_out = UInt32(room.count)
          status = unsafe inflate(zlib.pointer, Z_NO_FLUSH)
          return unsafe room.count - Int(zlib.pointer.pointee.avail_out)
        }
      }
    }
    let isOneFile = unsafe status == Z_STREAM_END && zlib.pointer.pointee.avail_in == 0
    return isOneFile && text.count <= limit ? text.array() : nil
  }

  private static let pieceBytes = 64 * 1024
}
