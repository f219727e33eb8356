// What a browser does with a body in gzip.
import CHubZlib

/// The plain bytes; nil for what is no complete gzip file, or has anything behind it.
public func gunzip(_ bytes: [UInt8]) -> [UInt8]? {
  var (stream, bytes, plain) = (z_stream(), bytes, [UInt8]())
  // 16 more than the window: gzip, with its checksum (zlib.h, inflateInit2).
  guard inflateInit2_(&stream, 15 + 16, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size)) == Z_OK else { return nil }
  defer { inflateEnd(&stream) }
  var block = [UInt8](repeating: 0, count: 1 << 16)
  let count = UInt32(bytes.count)
  return bytes.withUnsafeMutableBufferPointer { input -> [UInt8]? in
    stream.next_in = input.baseAddress
    stream.avail_in = count
    while true {
      let status = block.withUnsafeMutableBufferPointer { output in
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(output.count)
        return inflate(&stream, Z_NO_FLUSH)
      }
      plain += block[..<(block.count - Int(stream.avail_out))]
      if status == Z_STREAM_END { return stream.avail_in == 0 ? plain : nil }
      guard status == Z_OK else { return nil }
    }
  }
}
