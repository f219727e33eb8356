// permessage-deflate over a socket (RFC 7692): one compressed publication for all, and what a hostile peer may send.
import Foundation
import HubBytes
import HubDeflate
import HubGateway
import HubMessages
import HubWebSocket
import Testing

extension EndToEnd {
  @Suite struct Compression {}
}

/// A session that compresses, and sees what comes as it is on the wire.
private final class CompressedPeer {
  private let connection: RawConnection
  private var reader = FrameReader(role: .client, allowsCompression: true)
  private var inflater: Inflater
  private var frames: [(payload: [UInt8], isCompressed: Bool)] = []
  private(set) var closeCode: UInt16?
  let agreed: String?

  init(
    _ hub: TestHub, _ query: String, offer: String = "permessage-deflate; client_max_window_bits",
    receiveBuffer: Int32? = nil
  ) throws {
    connection = try hub.connect(receiveBuffer: receiveBuffer)
    try connection.send(UpgradeRequest("/v1/ws?\(query)").with("Sec-WebSocket-Extensions", offer).text)
    agreed = try connection.readResponse().fields["sec-websocket-extensions"]
    inflater = Inflater(takesContextOver: agreed?.contains("server_no_context_takeover") == false)
  }

  func close() { connection.close() }

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
    try hub.metrics { $0.hits("message_bytes") == 1 && $0.hits("inflate_ratio") == 1 }
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

  // MARK: Contexts that are kept, where the hub is configured to

  @Test("as many sessions as the hub may keep contexts for have them, and get positions for a few bytes")
  func contexts() throws {
    let hub = try TestHub { $0.limits.compressionContexts = 1 }
    let driver = try hub.driver("d1")
    let keeping = try CompressedPeer(hub, "role=ops&id=o1", offer: "permessage-deflate")
    #expect(keeping.agreed == "permessage-deflate")
    let sharing = try CompressedPeer(hub, "role=ops&id=o2", offer: "permessage-deflate")
    #expect(sharing.agreed == "permessage-deflate; server_no_context_takeover; client_no_context_takeover")
    let plain = try hub.ops("o3")
    try plain.subscribe("driver:d1")
    var client = Deflater(windowBits: 15, level: 6, memoryLevel: 8, takesContextOver: true)
    for (peer, id) in [(keeping, "s1"), (sharing, "s2")] {
      _ = try peer.receive("connected")
      // Of the second only what the first one's context has is sent.
      for id in ["\(id)-1", "\(id)-2"] {
        let message = try Peer.message("subscribe", ["channel": "driver:d1"], id: id)
        if peer === sharing {
          try peer.send(Peer.frame(deflated(Array(message.utf8)), reserved: 0x40))
        } else {
          var payload = ByteBuffer()
          Array(message.utf8).withUnsafeBytes { client.compress($0, into: &payload) }
          #expect(id == "s1-1" || payload.count < message.utf8.count / 3)
          try peer.send(Peer.frame(payload.array(), reserved: 0x40))
        }
        #expect(try peer.receive("subscribed").message.payload["replyTo"] as? String == id)
      }
    }
    for step in 0..<5 {
      try driver.sendFix(step)
      let expected = try plain.skip(to: "driver_location").text
      let (own, shared) = (try keeping.receive("driver_location"), try sharing.receive("driver_location"))
      #expect(own.message.text == expected && shared.message.text == expected)
      let (few, many) = (try #require(own.compressed).count, try #require(shared.compressed).count)
      #expect(step == 0 || few < many / 2, "\(few) bytes, without a context \(many)")
    }
    try hub.metrics { $0["compression_contexts"] == 1 && $0["inflates_total"] == 4 }
    keeping.close()
    try hub.metrics { $0["compression_contexts"] == 0 }
    #expect(try CompressedPeer(hub, "role=ops&id=o4", offer: "permessage-deflate").agreed == "permessage-deflate")
  }

  @Test("who keeps a context and reads slowly can read all that comes, and it ends with the newest position")
  func slowContext() throws {
    let hub = try TestHub { $0.limits.compressionContexts = 1 }
    let driver = try hub.driver("d1")
    let slow = try CompressedPeer(hub, "role=rider&id=r1", offer: "permessage-deflate", receiveBuffer: 4096)
    #expect(slow.agreed == "permessage-deflate")
    _ = try slow.receive("connected")
    try slow.send(Peer.frame(Array(try Peer.message("subscribe", ["channel": "trip:T1"], id: "s1").utf8)))
    _ = try slow.receive("subscribed")
    let count = 30_000
    var step = 0
    while step < count {
      let fixes = (step..<(step + 500)).map(Peer.fix)
      try driver.send("location_batch", ["tripId": "T1", "locations": fixes])
      _ = try driver.receive("ack")
      step += 500
    }
    try hub.metrics { $0["dropped_total{reason=\"conflated_slow\"}"] > 1000 }
    // A status is an event: compressed with the context while the socket takes nothing, and never dropped.
    try driver.send("trip_status", ["tripId": "T1", "status": "driver_en_route", "timestamp": 1_763_680_000_001])
    _ = try driver.receive("ack")
    var (last, received, wasCompressed, wasPlain) = (0, 0, false, false)
    while last < Peer.firstFix + (count - 1) * 1000 {
      let next = try slow.receive("driver_location")
      let time = try #require(next.message.integer("timestamp"))
      #expect(time > last)
      last = time
      received += 1
      if next.compressed == nil { wasPlain = true } else { wasCompressed = true }
    }
    #expect(received < count && wasCompressed && wasPlain)
    #expect(try slow.receive("trip_update").message.string("status") == "driver_en_route")
  }
}
