// What a session makes of permessage-deflate; how messages are compressed is ClientSocketTests' and, against the hub,
// EndToEndTests' matter.
import HubBytes
import HubDeflate
import HubWebSocket
import Testing

@testable import HubClientCore

@Suite struct ClientCompressionTests {
  private static let policy = DeflatePolicy(keepsContexts: false, windowBits: 12...12)

  /// A client whose upgrade was answered by a hub that compresses.
  private func stage(_ offer: DeflateParameters?, _ policy: DeflatePolicy? = policy) throws -> Stage {
    let stage = try Stage { $0.compression = offer }
    stage.session.start(now: stage.now)
    try stage.flush()
    stage.session.transportConnected(stage.now)
    try stage.flush()
    try stage.answerUpgrade(compression: policy)
    return stage
  }

  /// A message of the hub, compressed for itself.
  private func frame(_ message: [UInt8]) -> [UInt8] {
    var deflater = Deflater(windowBits: 15, level: 9, memoryLevel: 9, takesContextOver: false)
    var payload = ByteBuffer()
    message.withUnsafeBytes { deflater.compress($0, into: &payload) }
    var buffer = ByteBuffer()
    payload.withBytes { FrameWriter.write(.text, $0, isCompressed: true, into: &buffer) }
    return buffer.array()
  }

  @Test("Compression is offered as configured, and by default not") func offer() throws {
    #expect(try !stage(nil).request.contains("Sec-WebSocket-Extensions"))
    let offer =
      "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n"
    #expect(try stage(.withoutContexts).request.contains(offer))
  }

  @Test("A hub may agree or decline: both are greeted") func answers() throws {
    for policy in [nil, Self.policy] {
      let stage = try stage(.withoutContexts, policy)
      #expect(stage.session.state == .greeting)
      stage.say(stage.connected())
      #expect(stage.session.state == .open)
    }
  }

  @Test("What a hub sends may become a megabyte when inflated, and 200 times what it was beyond 64 KiB")
  func bomb() throws {
    for (bytes, isTooMuch) in [(60_000, false), (70_000, true), (2_000_000, true)] {
      let stage = try stage(.withoutContexts)
      stage.say(stage.connected())
      stage.send(frame([UInt8](repeating: 0x20, count: bytes)))
      #expect((stage.session.state == .closing) == isTooMuch, "\(bytes)")
      guard isTooMuch else { continue }
      #expect(try stage.flush() == .disconnect)
      #expect(stage.closeCodes == [.messageTooBig])
      let end = stage.session.transportEnded(stage.now)
      #expect(end.cause == .protocolError(.inflatesTooMuch(ratio: 200)))
      #expect(end.next == .ended(.protocolError(.messageTooBig)))
    }
  }

  @Test("Sixteen pings of one read are answered, of more the newest sixteen") func pongs() throws {
    let stage = try stage(nil)
    stage.say(stage.connected())
    var pings = ByteBuffer()
    for number in 0..<20 {
      [UInt8(number)].withUnsafeBytes { FrameWriter.write(.ping, $0, into: &pings) }
    }
    stage.send(pings.array())
    try stage.flush()
    #expect(stage.pongs == (4..<20).map { [UInt8($0)] })
  }
}
