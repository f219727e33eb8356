// modules: HubBytes HubHTTP HubDeflate HubWebSocket
// libraries: crypto z
// libFuzzer entry for compressed messages (run.sh in this folder builds and runs it).
//
// Input: one byte of flags (bit 0: contexts are kept, bit 1: text, bits 2–4: window), then what is both compressed and
// taken for compressed messages, in pieces of up to 64 bytes. Checked beyond not crashing: what was compressed comes
// back, what is inflated stays within the limits, text is UTF-8, and one connection's rubbish harms no other.

import HubBytes
import HubDeflate
import HubWebSocket

private func roundTrip(_ pieces: [ArraySlice<UInt8>], keeps: Bool, windowBits: Int) {
  var deflater = Deflater(windowBits: windowBits, level: 1, memoryLevel: 5, takesContextOver: keeps)
  var inflater = Inflater(takesContextOver: keeps)
  var payload = ByteBuffer()
  for piece in pieces {
    payload.removeAll()
    Array(piece).withUnsafeBytes { deflater.compress($0, into: &payload) }
    do throws(FrameError) {
      try payload.withBytes { (bytes) throws(FrameError) in
        let message = try inflater.inflate(bytes, .binary, limits: InflateLimits())
        precondition(message.elementsEqual(piece), "what was compressed comes back")
      }
    } catch {
      preconditionFailure("\(error)")
    }
  }
}

private func inflateAll(_ pieces: [ArraySlice<UInt8>], _ kind: MessageKind, keeps: Bool) {
  var inflater = Inflater(takesContextOver: keeps)
  let limits = InflateLimits(messageBytes: 3000, ratio: 20, freeBytes: 100)
  let honest: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]  // RFC 7692 §7.2.3.1
  for piece in pieces {
    do throws(FrameError) {
      var input = ByteBuffer(capacity: 64)
      input.append(Array(piece))
      try input.withBytes { (bytes) throws(FrameError) in
        let message = try inflater.inflate(bytes, kind, limits: limits)
        precondition(message.count <= min(3000, max(100, piece.count * 20)), "within the limits")
        if kind == .text { precondition(String(validating: message, as: UTF8.self) != nil, "text is valid") }
      }
    } catch {
      precondition(error.closeCode == .invalidPayload || error.closeCode == .messageTooBig)
    }
    if keeps { continue }
    do throws(FrameError) {
      var input = ByteBuffer()
      input.append(honest)
      try input.withBytes { (bytes) throws(FrameError) in
        let message = try inflater.inflate(bytes, .text, limits: limits)
        precondition(message.elementsEqual("Hello".utf8), "rubbish harms nobody else")
      }
    } catch {
      preconditionFailure("\(error)")
    }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDeflate(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let flags = input.first else { return 0 }
  var pieces: [ArraySlice<UInt8>] = []
  var rest = input.dropFirst()
  while let length = rest.popFirst() {
    pieces.append(rest.prefix(Int(length & 63)))
    rest = rest.dropFirst(Int(length & 63))
  }
  roundTrip(pieces, keeps: flags & 1 != 0, windowBits: 9 + Int(flags >> 2 & 7) % 7)
  inflateAll(pieces, flags & 2 == 0 ? .binary : .text, keeps: flags & 1 != 0)
  return 0
}
