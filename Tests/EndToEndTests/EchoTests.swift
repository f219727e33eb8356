// The server that the Autobahn suite talks to, for what conformance suites don't look at: Autobahn always asks for
// client_no_context_takeover, so no context is ever kept there for a client's messages, and it waits for the 101 before
// its first frame.
import Foundation
import HubBytes
import HubDeflate
import HubTestSupport
import HubWebSocket
import Testing

extension EndToEnd {
  @Suite struct Echo {}
}

/// A client of the echo server that compresses as was agreed on.
private final class EchoPeer {
  let agreed: String
  private let connection: RawConnection
  private var reader = FrameReader(role: .client, allowsCompression: true)
  private var deflater: Deflater
  private var inflater: Inflater
  /// Bytes of the last compressed payload, out and in.
  private(set) var sent = 0
  private(set) var received = 0

  init(port: UInt16, offer: String) throws {
    connection = try RawConnection(port: port)
    try connection.send(UpgradeRequest("/").with("Sec-WebSocket-Extensions", offer).text)
    agreed = try connection.readResponse().fields["sec-websocket-extensions"] ?? ""
    deflater = Deflater(
      windowBits: 15, level: 6, memoryLevel: 8, takesContextOver: !agreed.contains("client_no_context_takeover"))
    inflater = Inflater(takesContextOver: !agreed.contains("server_no_context_takeover"))
  }

  deinit { connection.close() }

  func echo(_ message: [UInt8]) throws -> [UInt8] {
    var payload = ByteBuffer()
    message.withUnsafeBytes { deflater.compress($0, into: &payload) }
    sent = payload.count
    try connection.send(Peer.frame(payload.array(), opcode: 2, reserved: 0x40))
    while true {
      var bytes = try connection.receive(waitingFor: "the echo")
      guard !bytes.isEmpty else { throw PeerError.ended(waitingFor: "the echo") }
      var echo: [UInt8]?
      try bytes.withUnsafeMutableBytes { buffer in
        var offset = 0
        while let event = try reader.next(in: buffer, at: &offset, limits: FrameLimits()) {
          guard case .message(let kind, let payload, isCompressed: true) = event else {
            throw PeerError.unexpected("an echo that is not compressed")
          }
          received = payload.count
          echo = Array(try inflater.inflate(payload, kind, limits: InflateLimits()))
        }
      }
      if let echo { return echo }
    }
  }
}

extension EndToEnd.Echo {
  @Test("contexts are kept from message to message in each direction unless the client asks otherwise")
  func contexts() throws {
    let server = try HubProcess.echo()
    var random = SplitMix64(seed: 7692)
    let offers: [(offer: String, agreed: String, keepsClient: Bool, keepsServer: Bool)] = [
      ("permessage-deflate", "permessage-deflate", true, true),
      (
        "permessage-deflate; server_no_context_takeover", "permessage-deflate; server_no_context_takeover", true, false
      ),
      (
        "permessage-deflate; client_no_context_takeover", "permessage-deflate; client_no_context_takeover", false, true
      ),
      (
        "permessage-deflate; server_max_window_bits=9; client_max_window_bits=15",
        "permessage-deflate; server_max_window_bits=9", true, true
      ),
    ]
    for (offer, agreed, keepsClient, keepsServer) in offers {
      let peer = try EchoPeer(port: server.port, offer: offer)
      #expect(peer.agreed == agreed)
      // Nothing repeats within it, so that only a context can make it small.
      let noise = (0..<200).map { _ in UInt8.random(in: 0...255, using: &random) }
      #expect(try peer.echo(noise) == noise)
      #expect(peer.sent > 200 && peer.received > 200)
      for round in 0..<20 {
        #expect(try peer.echo(noise) == noise)
        #expect((peer.sent < 30) == keepsClient && (peer.received < 30) == keepsServer, "\(offer), message \(round)")
      }
    }
    server.send(signal: SIGTERM)
    #expect(try server.outcome().status == 0)
  }

  @Test("frames that come in one segment with the handshake, and cut anywhere, are answered")
  func behindTheHandshake() throws {
    let server = try HubProcess.echo()
    let request = Array(UpgradeRequest("/").text.utf8)
    let stream = request + Peer.frame(Array("first".utf8)) + Peer.frame(Array("second".utf8))
    let expected =
      Array("\u{81}\u{5}first".unicodeScalars.map { UInt8($0.value) })
      + Array("\u{81}\u{6}second".unicodeScalars.map { UInt8($0.value) })
    for cut in [stream.count, request.count, request.count - 1, request.count + 3, 20] {
      let connection = try RawConnection(port: server.port)
      defer { connection.close() }
      try connection.send(Array(stream[..<cut]))
      if cut < stream.count { try connection.send(Array(stream[cut...])) }
      #expect(try connection.readResponse().status == 101)
      var answer: [UInt8] = []
      while answer.count < expected.count {
        let more = try connection.receive(waitingFor: "the echoes")
        guard !more.isEmpty else { throw PeerError.ended(waitingFor: "the echoes") }
        answer += more
      }
      #expect(answer == expected, "cut at \(cut)")
    }
  }
}
