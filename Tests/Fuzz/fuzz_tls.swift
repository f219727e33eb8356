// modules: HubBytes HubSystem HubTransport HubTestCertificates
// libraries: ssl crypto
// libFuzzer entry for the server's side of TLS (run.sh in this folder builds and runs it).
//
// Input: one byte of flags (bit 0: all that follows is what the peer sends, in pieces of the length that the next byte
// says; bit 1: the client goes to TLS 1.2 at most), then changes of four bytes: which of the client's flights, what is
// done to it (bits flipped, cut short, bytes put in, delivered in two pieces, repeated), where, and with what. OpenSSL
// draws random numbers, so an input is not the same handshake twice; what must hold holds for all. Checked beyond not
// crashing: an unchanged client gets in and is understood, nothing is left in the buffers, a failed stream stays
// failed, and what is taken for plaintext of a client is what it sent.

import CHubOpenSSL
import HubBytes
import HubTestCertificates

@testable import HubTransport

private let authority = TestAuthority(name: "fuzz")
private let server: TLSServer = {
  let issued = authority.issue()
  do { return try TLSServer([TLSCertificate(certificate: issued.certificate, key: issued.key)]) } catch {
    preconditionFailure("\(error)")
  }
}()
private func makeClient(newest version: Int32) -> TLSClient {
  do throws(TLSError) {
    let client = try TLSClient(trusting: authority.pem)
    SSL_CTX_ctrl(client.context.raw, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
    return client
  } catch {
    preconditionFailure("\(error)")
  }
}

private let client = makeClient(newest: TLS1_3_VERSION)
private let oldClient = makeClient(newest: TLS1_2_VERSION)

private let inputBytes = 32 * 1024

/// One end of a connection in memory.
private struct End: ~Copyable {
  let buffers: UnsafeMutablePointer<TLSBuffers>
  var stream: TLSStream
  var heard: [UInt8] = []
  var isOver = false

  init(_ buffers: UnsafeMutablePointer<TLSBuffers>, _ stream: consuming TLSStream) {
    self.buffers = buffers
    self.stream = stream
  }

  /// What came from the other end; gives the answer.
  mutating func take(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var rest = bytes
    var answer: [UInt8] = []
    while !rest.isEmpty {
      let piece = rest.prefix(inputBytes)
      rest = rest.dropFirst(piece.count)
      let buffers = buffers
      for (index, byte) in piece.enumerated() { buffers.pointee.input[index] = byte }
      buffers.pointee.offer(piece.count)
      // No larger than it must be, so that the address sanitizer sees a write beyond it.
      let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: piece.count + TLSBuffers.recordBytes, alignment: 1)
      defer { buffer.deallocate() }
      let (count, _, end) = stream.open(into: buffer, now: 0)
      precondition(buffers.pointee.isInputEmpty, "what one connection left is nobody else's")
      heard += buffer[..<count]
      answer += buffers.pointee.output.array()
      buffers.pointee.output.removeAll()
      if end != .none { isOver = true }
      if case .failed = end { precondition(stream.open(into: buffer, now: 0).end == .failed(.internal)) }
      if isOver { break }
    }
    return answer
  }

  mutating func say(_ bytes: [UInt8]) -> [UInt8] {
    guard stream.isSecured, !isOver, !bytes.isEmpty else { return [] }
    let (count, failure) = bytes.withUnsafeBytes { stream.seal($0) }
    precondition(count == bytes.count && failure == nil)
    let buffers = buffers
    defer { buffers.pointee.output.removeAll() }
    return buffers.pointee.output.array()
  }
}

private func makeBuffers() -> UnsafeMutablePointer<TLSBuffers> {
  let buffers = UnsafeMutablePointer<TLSBuffers>.allocate(capacity: 1)
  let limit = EventLoopLimits().tlsHandshakeReadBytes
  buffers.initialize(to: TLSBuffers(inputBytes: inputBytes, keyUpdateLimit: 4, handshakeLimit: limit))
  return buffers
}

// libFuzzer calls from one thread.
nonisolated(unsafe) private let serverRoom = makeBuffers()
nonisolated(unsafe) private let clientRoom = makeBuffers()

private func change(_ flight: [UInt8], _ changes: ArraySlice<UInt8>, number: Int) -> [ArraySlice<UInt8>] {
  var bytes = flight
  var pieces: Int?
  var rest = changes
  while rest.count >= 4 {
    let (which, action, offset, value) = (
      rest[rest.startIndex], rest[rest.startIndex + 1], rest[rest.startIndex + 2], rest[rest.startIndex + 3]
    )
    rest = rest.dropFirst(4)
    guard Int(which) == number, !bytes.isEmpty else { continue }
    // The first bytes are headers: reached one by one, the others by parts of the whole.
    let at = offset < 128 ? min(Int(offset), bytes.count - 1) : Int(offset - 128) * bytes.count / 128
    switch action % 5 {
    case 0: bytes[at] ^= value
    case 1: bytes.removeSubrange(at...)
    case 2: bytes.insert(contentsOf: repeatElement(value, count: Int(value)), at: at)
    case 3: pieces = at
    case _: bytes += bytes
    }
  }
  guard let pieces, pieces < bytes.count else { return [bytes[...]] }
  return [bytes[..<pieces], bytes[pieces...]]
}

private func fuzzRaw(_ length: Int, _ data: ArraySlice<UInt8>) {
  var end = End(serverRoom, TLSStream(server, serverRoom))
  var rest = data
  while !rest.isEmpty, !end.isOver {
    _ = end.take(rest.prefix(length))
    rest = rest.dropFirst(length)
  }
  precondition(end.heard.isEmpty && !end.stream.isSecured, "there was no handshake")
}

private func fuzzHandshake(_ changes: ArraySlice<UInt8>, old: Bool) {
  var atServer = End(serverRoom, TLSStream(server, serverRoom))
  var atClient = End(clientRoom, TLSStream(TLSPeer(old ? oldClient : client, name: "localhost"), clientRoom))
  let buffers = clientRoom
  let failure = atClient.stream.start()
  precondition(failure == nil)
  var flight = buffers.pointee.output.array()
  buffers.pointee.output.removeAll()
  let words = Array("GET /v1/ws HTTP/1.1\r\n\r\n".utf8)
  var said: [UInt8] = []
  for number in 0..<8 where !atServer.isOver {
    var answer: [UInt8] = []
    for piece in change(flight, changes, number: number) where !atServer.isOver { answer += atServer.take(piece) }
    answer += atServer.say([UInt8](repeating: UInt8(number), count: 100))
    flight = atClient.isOver ? [] : atClient.take(answer[...])
    if atClient.stream.isSecured, !atClient.isOver {
      if number == 5 { SSL_key_update(atClient.stream.ssl, SSL_KEY_UPDATE_REQUESTED) }
      let more = atClient.say(words)
      if !more.isEmpty { said += words }
      flight += more
    }
  }
  precondition(said.starts(with: atServer.heard), "nobody else's words are taken for the client's")
  if changes.count < 4 { precondition(atServer.stream.isSecured && atServer.heard.count >= words.count) }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTLS(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard count >= 2 else { return 0 }
  if input[0] & 1 == 1 {
    fuzzRaw(Int(input[1]) * 4 + 1, input[2...])
  } else {
    fuzzHandshake(input[1...], old: input[0] & 2 == 2)
  }
  return 0
}
