// modules: HubBytes HubHTTP HubDeflate HubWebSocket
// libraries: crypto z
// libFuzzer entry for the frame reader of both ends (run.sh in this folder builds and runs it).
//
// Input: one byte of flags (bit 0: client, bit 1: compression agreed, bits 2–4: how many cuts), the cuts, then what the
// peer sends. Checked beyond not crashing: cuts change nothing, all input is consumed, what is kept stays bounded.

import HubWebSocket

private struct Trace: Equatable {
  var bytes: [UInt8] = []
  var error: FrameError?

  mutating func add(_ kind: UInt8, _ payload: UnsafeRawBufferPointer) {
    bytes.append(kind)
    withUnsafeBytes(of: payload.count) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: payload)
  }

  mutating func add(_ event: FrameEvent) {
    switch event {
    case .message(let kind, let payload, let isCompressed):
      if kind == .text, !isCompressed {
        precondition(String(validating: payload, as: UTF8.self) != nil, "text is valid")
      }
      add(kind.rawValue | (isCompressed ? 2 : 0), payload)
    case .ping(let payload): add(4, payload)
    case .pong(let payload): add(5, payload)
    case .close(let code, let reason):
      precondition(code.map(\.isValidOnWire) ?? reason.isEmpty)
      bytes.append(UInt8(truncatingIfNeeded: code?.rawValue ?? 0))
      add(6, reason)
    }
  }
}

private let limits = FrameLimits(messageBytes: 1000, fragments: 5)

private func trace(_ data: ArraySlice<UInt8>, ends: [Int], role: Role, compression: Bool) -> Trace {
  var reader = FrameReader(role: role, allowsCompression: compression)
  var trace = Trace()
  var start = data.startIndex
  for end in ends {
    // Memory of its own, so that the address sanitizer sees a read beyond the piece.
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: end - start, alignment: 1)
    defer { piece.deallocate() }
    piece.copyBytes(from: data[start..<end])
    start = end
    var offset = 0
    do throws(FrameError) {
      while let event = try reader.next(in: piece, at: &offset, limits: limits) { trace.add(event) }
    } catch {
      precondition(trace.error == nil, "an error is reported once")
      trace.error = error
    }
    precondition(offset == piece.count, "all input is consumed")
    precondition(reader.bufferedBytes <= limits.messageBytes + FrameWriter.maximumControlPayload)
  }
  return trace
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFrames(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let flags = input.first else { return 0 }
  let cutCount = min(Int(flags >> 2 & 7), count - 1)
  let data = input[(1 + cutCount)...]
  let cuts = input[1..<(1 + cutCount)].map { data.startIndex + Int($0) % (data.count + 1) }.sorted()
  let role: Role = flags & 1 == 0 ? .server : .client
  let whole = trace(data, ends: [data.endIndex], role: role, compression: flags & 2 != 0)
  let cut = trace(data, ends: cuts + [data.endIndex], role: role, compression: flags & 2 != 0)
  precondition(whole == cut, "cuts change nothing")
  return 0
}
