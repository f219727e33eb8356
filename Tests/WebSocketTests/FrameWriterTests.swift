import HubBytes
import HubTestSupport
import HubWebSocket
import Testing

@Suite struct FrameWriterTests {
  @Test("The examples of RFC 6455 §5.7 are written byte for byte") func vectors() {
    let hello = Array("Hello".utf8)
    let key: UInt32 = 0x3D21_FA37  // 37 fa 21 3d on the wire
    #expect(frame(.text, hello, to: .client) == [0x81, 0x05] + hello)
    #expect(
      frame(.text, hello, to: .server, key: key)
        == [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
    #expect(frame(.text, Array("Hel".utf8), final: false, to: .client) == [0x01, 0x03, 0x48, 0x65, 0x6C])
    #expect(frame(.continuation, Array("lo".utf8), to: .client) == [0x80, 0x02, 0x6C, 0x6F])
    #expect(frame(.ping, hello, to: .client) == [0x89, 0x05] + hello)
    #expect(frame(.pong, hello, key: key) == [0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
    let medium = [UInt8](repeating: 9, count: 256)
    #expect(frame(.binary, medium, to: .client) == [0x82, 0x7E, 0x01, 0x00] + medium)
    let large = [UInt8](repeating: 9, count: 65536)
    #expect(frame(.binary, large, to: .client) == [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + large)
  }

  @Test("A frame around a payload that is in place is the frame of a copy", arguments: [Role.server, .client])
  func inPlace(role: Role) {
    let mask = role == .client ? MaskKey(0xDEAD_BEEF) : nil
    for length in [0, 1, 125, 126, 65535, 65536] {
      let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
      var copied = ByteBuffer()
      payload.withUnsafeBytes { FrameWriter.write(.binary, $0, mask: mask, into: &copied) }
      var buffer = ByteBuffer()
      buffer.append("what was there before")
      let start = FrameWriter.begin(as: role, in: &buffer)
      buffer.append(payload)
      let frameStart = FrameWriter.finish(.binary, payloadAt: start, mask: mask, in: &buffer)
      #expect(Array(buffer.array()[frameStart...]) == copied.array())
      #expect(buffer.array().starts(with: "what was there before".utf8))
    }
  }

  @Test("What one end writes the other reads, for every length around the forms", arguments: [Role.server, .client])
  func roundTrip(role: Role) {
    var random = SplitMix64(seed: 9)
    for length in Array(0...140) + [1000, 65534, 65535, 65536, 65537] {
      let payload = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
      let key = UInt32.random(in: 0...UInt32.max, using: &random)
      #expect(readWhole(frame(.binary, payload, to: role, key: key), role: role) == [.binary(payload)])
    }
  }

  @Test("Masking is its own inverse from every offset of a payload") func maskPhases() {
    let payload = (0..<100).map { UInt8($0) }
    let bytes = frame(.binary, payload)
    for first in 6...bytes.count {
      for second in [first, first + 1, first + 2, first + 3, first + 9] where second <= bytes.count {
        #expect(read(bytes, ends: [first, second, bytes.count]).seen == [.binary(payload)])
      }
    }
  }

  @Test("A Close frame has its code and reason, cut at a whole character where it is too long") func close() {
    func written(_ code: CloseCode?, _ reason: String = "") -> [Seen] {
      var buffer = ByteBuffer()
      FrameWriter.writeClose(code, reason: reason, mask: MaskKey(1), into: &buffer)
      return readWhole(buffer.array())
    }
    #expect(written(nil) == [.close(nil, "")])
    #expect(written(.goingAway) == [.close(.goingAway, "")])
    #expect(written(CloseCode(4413), "slow consumer") == [.close(CloseCode(4413), "slow consumer")])
    let long =
      "€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€a€€€"
    #expect(written(.normal, long) == [.close(.normal, String(repeating: "€", count: 40) + "a")])
  }
}
