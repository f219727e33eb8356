// modules: HubBytes HubHTTP HubDeflate HubWebSocket
// libraries: crypto z
// libFuzzer entry for a client's socket (run.sh in this folder builds and runs it).
//
// Input: one byte of flags (bit 0: the answer is the fuzzer's too, bit 1: compression is offered, bits 2–4: how many
// cuts), the cuts, then what the server sends. Checked beyond not crashing: cuts change nothing, all input is consumed,
// an error is the last thing that is heard, and nothing is to be sent behind a Close.

import HubBytes
import HubHTTP
import HubWebSocket

private struct Counting: RandomNumberGenerator {
  var state: UInt64 = 0
  mutating func next() -> UInt64 {
    state += 1
    return state
  }
}

private struct Trace: Equatable {
  var bytes: [UInt8] = []
  var failed = false
  var isOpen = false
  var pongs = 0
}

private let limits = ClientSocketLimits(
  headBytes: 512, frames: FrameLimits(messageBytes: 1000, fragments: 5),
  inflate: InflateLimits(messageBytes: 2000, ratio: 20, freeBytes: 100), pongs: 1000)

/// The answer to the nonce (1, 2), made by the server's half.
private func answer(compression: Bool) -> [UInt8] {
  var accept = ByteBuffer()
  accept.append("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
  accept.append("Sec-WebSocket-Accept: ")
  accept.append(utf8: acceptance)
  if compression { accept.append("\r\nSec-WebSocket-Extensions: permessage-deflate") }
  accept.append("\r\n\r\n")
  return accept.array()
}

/// Of the request that a client with the nonce (1, 2) writes.
private let acceptance: String = {
  var request = ByteBuffer()
  ClientHandshake(nonce: (1, 2)).writeRequest(host: "x", target: "/", into: &request)
  var parser = RequestParser()
  do {
    guard case .request(let head, _) = try request.withBytes({ try parser.parse($0) }) else { return "" }
    var response = ByteBuffer()
    try ServerHandshake(head, subprotocols: []).write(into: &response, subprotocols: [])
    let lines = String(decoding: response.array(), as: UTF8.self).split(separator: "\r\n")
    return lines.first { $0.hasPrefix("Sec-WebSocket-Accept: ") }.map { String($0.dropFirst(22)) } ?? ""
  } catch {
    preconditionFailure("\(error)")
  }
}()

private func trace(_ data: [UInt8], ends: [Int], offer: DeflateParameters?) -> Trace {
  var socket = ClientSocket(ClientHandshake(nonce: (1, 2), compression: offer))
  var random = Counting()
  var output = ByteBuffer()
  socket.writeRequest(host: "x", target: "/", into: &output)
  var trace = Trace()
  var start = 0
  for end in ends {
    // Memory of its own, so that the address sanitizer sees a read beyond the piece.
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: end - start, alignment: 1)
    defer { piece.deallocate() }
    piece.copyBytes(from: data[start..<end])
    start = end
    var offset = 0
    do throws(ClientSocketError) {
      while let event = try socket.next(in: piece, at: &offset, limits: limits) {
        precondition(!trace.failed, "an error is the last thing that is heard")
        switch event {
        case .opened: trace.isOpen = true
        case .message(let kind, let payload):
          precondition(payload.count <= 2000)
          if kind == .text { precondition(String(validating: payload, as: UTF8.self) != nil, "text is valid") }
          trace.bytes.append(kind.rawValue)
          trace.bytes.append(contentsOf: payload)
        case .close(let code):
          precondition(!socket.maySend)
          trace.bytes.append(UInt8(truncatingIfNeeded: code?.rawValue ?? 0))
        }
      }
    } catch {
      precondition(!trace.failed, "an error is reported once")
      trace.failed = true
      precondition(!socket.maySend)
    }
    precondition(offset == piece.count, "all input is consumed")
    output.removeAll()
    socket.writeControlFrames(into: &output, using: &random)
    trace.pongs += output.count
    precondition(!socket.hasControlFrames)
  }
  return trace
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzClient(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let flags = input.first else { return 0 }
  let cutCount = min(Int(flags >> 2 & 7), count - 1)
  let offers = flags & 2 != 0
  let data = (flags & 1 == 0 ? answer(compression: offers) : []) + input[(1 + cutCount)...]
  let cuts = input[1..<(1 + cutCount)].map { Int($0) * 2 % (data.count + 1) }.sorted()
  let offer = offers ? DeflateParameters() : nil
  let whole = trace(data, ends: [data.count], offer: offer)
  let cut = trace(data, ends: cuts + [data.count], offer: offer)
  precondition(whole == cut, "cuts change nothing")
  if flags & 1 == 0 { precondition(whole.isOpen) }
  return 0
}
