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
    guard let start = dataStart(file), file.count >= start + 8 else { return nil }
    // The byte that RFC 7692 §7.2.3.4 requires behind a last block.
    let data = file[start..<file.count - 8] + [0]
    var inflater = Inflater(takesContextOver: false)
    let limits = InflateLimits(messageBytes: limit, ratio: mostRatio)
    let text = unsafe data.withUnsafeBytes { bytes -> [UInt8]? in
      do throws(FrameError) {
        return unsafe Array(try inflater.inflate(bytes, .binary, limits: limits))
      } catch {
        return nil
      }
    }
    guard let text else { return nil }
    let checksum = unsafe text.withUnsafeBufferPointer { unsafe crc32(0, $0.baseAddress, UInt32($0.count)) }
    let trailer = [UInt32(truncatingIfNeeded: checksum), UInt32(truncatingIfNeeded: text.count)]
    let written = trailer.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * UInt32($0))) } }
    return file.suffix(8).elementsEqual(written) ? text : nil
  }

  /// The highest ratio of deflate (zlib's technical page).
  private static let mostRatio = 1032

  /// The index behind a file's head and its optional fields (§2.3.1).
  private static func dataStart(_ file: [UInt8]) -> Int? {
    guard file.count >= 18, file.starts(with: [0x1F, 0x8B, 8]), file[3] & 0xE0 == 0 else { return nil }
    let flags = file[3]
    var start = 10
    if flags & 4 != 0 { start += 2 + Int(file[10]) + Int(file[11]) << 8 }
    for flag: UInt8 in [8, 16] where flags & flag != 0 {  // name and comment, zero-terminated
      guard start < file.count, let end = file[start...].firstIndex(of: 0) else { return nil }
      start = end + 1
    }
    if flags & 2 != 0 { start += 2 }
    return start
  }
}
