// permessage-deflate over a socket (RFC 7692): one compressed publication for all, and what a hostile peer may send.
import Bytes
import Foundation
import Gateway
import Messages
import Testing
import WebSocket

extension EndToEnd {
  @Suite struct Compression {}
}

/// A session that compresses, and sees what comes as it is on the wire.
private final class CompressedPeer {
  private let connection: RawConnection
  private var reader = FrameReader(role: .client, allowsCompression: true)
  private var inflater = Inflater(takesContextOver: false)
  private var frames: [(payload: [UInt8], isCompressed: Bool)] = []
  private(set) var closeCode: UInt16?
  let agreed: String?

  init(_ hub: TestHub, _ query: String, offer: String = "permessage-deflate; client_max_window_bits") throws {
    connection = try hub.connect()
    try connection.send(UpgradeRequest("/v1/ws?\(query)").with("Sec-WebSocket-Extensions", offer).text)
    agreed = try connection.readResponse().fields["sec-websocket-extensions"]
  }

  func send(_ bytes: [UInt8]) throws { try connection.send(bytes) }

  /// A message in a compressed frame.
  func send(_ type: String, _ payload: [String: Any]) throws {
    try send(Peer.frame(deflated(Array(try Peer.message(type, payload, id: "c1").utf8)), reserved: 0x40))
  }

  /// The next message, with its payload on the wire where it came compressed; nil when a Close frame or the end came.
  func next() throws -> (message: HubMessage, compressed: [UInt8]?)? {
    while frames.isEmpty {
      guard closeCode == nil else { return nil }
      var bytes = try connection.receive()
      if bytes.isEmpty { return nil }
      try bytes.withUnsafeMutableBytes { buffer in
        var offset = 0
        while let event = try reader.next(in: buffer, at: &offset, limits: FrameLimits()) {
          switch event {
          case .message(_, let payload, let isCompressed): frames.append((Array(payload), isCompressed))
          case .ping, .pong: break
          case .close(let code, reason: _): closeCode = code?.rawValue ?? 0
          }
        }
      }
    }
    let (payload, isCompressed) = frames.removeFirst()
    guard isCompressed else { return (try HubMessage(payload), nil) }
    let text = try payload.withUnsafeBytes { Array(try inflater.inflate($0, .text, limits: InflateLimits())) }
    return (try HubMessage(text), payload)
  }

  func receive(_ type: String) throws -> (message: HubMessage, compressed: [UInt8]?) {
    while let next = try next() { if next.message.type == type { return next } }
    throw PeerError.ended(waitingFor: type)
  }
}

private func deflated(_ message: [UInt8]) -> [UInt8] {
  var deflater = Deflater(windowBits: 15, level: 9, memoryLevel: 9, takesContextOver: false)
  var output = ByteBuffer()
  message.withUnsafeBytes { deflater.compress($0, into: &output) }
  return output.array()
}

extension EndToEnd.Compression {
  @Test(
    "a publication is compressed once, the same bytes for all, and plain for who did not ask", arguments: loopCounts)
  func sharing(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let plain = try hub.ops("o0")
    try plain.subscribe("driver:d1")
    let compressed = try (1...3).map { try CompressedPeer(hub, "role=ops&id=o\($0)") }
    for peer in compressed {
      #expect(peer.agreed == "permessage-deflate; server_no_context_takeover; client_no_context_takeover")
      _ = try peer.receive("connected")
      try peer.send("subscribe", ["channel": "driver:d1"])
      #expect(try peer.receive("subscribed").message.string("channel") == "driver:d1")
    }
    for step in 0..<3 {
      try driver.sendFix(step)
      let expected = try plain.skip(to: "driver_location").text
      let all = try compressed.map { try $0.receive("driver_location") }
      for one in all { #expect(one.message.text == expected) }
      let payload = try #require(all[0].compressed)
      #expect(all.allSatisfy { $0.compressed == payload } && payload.count < expected.utf8.count)
    }
    try hub.metrics { metrics in
      // Three positions, one compression each for a loop; everything else was shorter than what pays.
      let deflates = metrics["deflates_total"]
      return metrics["compressed_sessions_opened_total"] == 3 && metrics["inflates_total"] == 3
        && (loops == 1 ? deflates == 3 : (3...6).contains(deflates))
    }
  }

  @Test("a bomb, rubbish, bad text and RSV1 out of place each get their close code, and harm nobody else")
  func hostile() throws {
    let hub = try TestHub()
    let witness = try Witness(hub)
    let zeros = deflated([UInt8](repeating: 0x20, count: 50_000_000))
    let cases: [([UInt8], UInt16)] = [
      (Peer.frame(zeros, reserved: 0x40), 1009),
      (Peer.frame(deflated([UInt8](repeating: 0x20, count: 200_000)), reserved: 0x40), 1009),
      (Peer.frame([0x07], reserved: 0x40), 1007),
      (Peer.frame([0xF2, 0x48], reserved: 0x40), 1007),
      (Peer.frame(deflated([0x22, 0xC3, 0x28, 0x22]), reserved: 0x40), 1007),
      (Peer.frame([0x00], opcode: 9, reserved: 0x40), 1002),
      (Peer.frame([0x00], isFinal: false, reserved: 0x40) + Peer.frame([0x00], opcode: 0, reserved: 0x40), 1002),
    ]
    for (bytes, code) in cases {
      let peer = try CompressedPeer(hub, "role=rider&id=r1")
      _ = try peer.receive("connected")
      try peer.send(bytes)
      while try peer.next() != nil {}
      #expect(peer.closeCode == code)
      try witness.check()
    }
  }

  @Test("offers that one compressor for all can't serve are declined, and so are all when it is off")
  func declined() throws {
    let hub = try TestHub()
    #expect(
      try CompressedPeer(hub, "role=ops&id=o1", offer: "permessage-deflate; server_max_window_bits=9").agreed == nil)
    let off = try TestHub { $0.compression = false }
    let peer = try CompressedPeer(off, "role=ops&id=o1")
    #expect(peer.agreed == nil)
    #expect(try peer.receive("connected").compressed == nil)
  }
}
