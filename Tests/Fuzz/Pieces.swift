// What fuzz targets share whose input is cut into pieces, as a network cuts it. Tests/Fuzz/run.sh builds it into each.

/// Calls `body` with a copy of the bytes in memory of its own, so that the address sanitizer sees a read beyond them.
/// Throws the error of `body`.
func withCopy<Result, Failure: Error>(
  _ bytes: ArraySlice<UInt8>, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
  let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { copy.deallocate() }
  copy.copyBytes(from: bytes)
  return try body(UnsafeRawBufferPointer(copy))
}

/// An input whose first byte says in its lowest three bits how often it is cut; the offsets follow, then the rest.
struct CutInput {
  let whole: ArraySlice<UInt8>
  /// The input, cut at those offsets.
  let pieces: [ArraySlice<UInt8>]

  /// - Precondition: `data` has a byte at least.
  init(_ data: [UInt8]) {
    let cuts = min(Int(data[0] & 7), data.count - 1)
    let body = data[(1 + cuts)...]
    let ends = data[1..<(1 + cuts)].map { body.startIndex + Int($0) % (body.count + 1) }.sorted()
    var start = body.startIndex
    whole = body
    pieces = (ends + [body.endIndex]).map { end in
      defer { start = end }
      return body[start..<end]
    }
  }
}
