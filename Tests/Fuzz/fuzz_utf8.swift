// modules: HubBytes HubHTTP HubDeflate HubWebSocket
// libraries: crypto z
// libFuzzer entry for UTF-8 (run.sh in this folder builds and runs it).
//
// Input: one byte that says how many cuts, the cuts, then what may be text. Checked beyond not crashing: the verdict is
// the standard library's wherever the text is cut, and what is refused is refused as early as RFC 6455's suites want
// it: a prefix is taken exactly if some text begins with it.

import HubWebSocket

/// A validator given the pieces that end at `ends`, each in memory of its own, so that the address sanitizer sees a
/// read beyond it. Nil where it refused one.
private func validate(_ data: ArraySlice<UInt8>, ends: [Int]) -> UTF8Validator? {
  var validator = UTF8Validator()
  var start = data.startIndex
  for end in ends {
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: end - start, alignment: 1)
    defer { piece.deallocate() }
    piece.copyBytes(from: data[start..<end])
    start = end
    guard validator.consume(UnsafeRawBufferPointer(piece)) else { return nil }
  }
  return validator
}

private func isText(_ bytes: some Sequence<UInt8>) -> Bool { String(validating: Array(bytes), as: UTF8.self) != nil }

/// Whether some text begins with these bytes: they are text, or what is missing of their last character can be put
/// there. The next byte of an open sequence can always be one of 0x80, 0x90 and 0xA0 (Unicode 15 table 3-7), and those
/// behind it can be 0x80.
private func beginsText(_ bytes: ArraySlice<UInt8>) -> Bool {
  if isText(bytes) { return true }
  for next: UInt8 in [0x80, 0x90, 0xA0] {
    for more in 0...2 where isText(Array(bytes) + [next] + [UInt8](repeating: 0x80, count: more)) { return true }
  }
  return false
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzUTF8(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let flags = input.first else { return 0 }
  let cutCount = min(Int(flags & 7), count - 1)
  let data = input[(1 + cutCount)...]
  let cuts = input[1..<(1 + cutCount)].map { data.startIndex + Int($0) % (data.count + 1) }.sorted()
  let whole = validate(data, ends: [data.endIndex])
  let cut = validate(data, ends: cuts + [data.endIndex])
  precondition((whole == nil) == (cut == nil) && whole?.isComplete == cut?.isComplete, "cuts change nothing")
  precondition((whole?.isComplete ?? false) == isText(data), "the verdict is the standard library's")
  let prefix = data.prefix(64)
  precondition((validate(prefix, ends: [prefix.endIndex]) != nil) == beginsText(prefix), "refused as early as can be")
  return 0
}
