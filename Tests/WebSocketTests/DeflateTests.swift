// Compression itself: the examples of RFC 7692, round trips, contexts, and what a hostile peer may send.

import HubBytes
import HubDeflate
import HubTestSupport
import HubWebSocket
import Testing

@Suite struct DeflateTests {
  private func deflate(_ deflater: inout Deflater, _ message: [UInt8]) -> [UInt8] {
    var output = ByteBuffer()
    message.withUnsafeBytes { deflater.compress($0, into: &output) }
    return output.array()
  }

  private func inflate(
    _ inflater: inout Inflater, _ payload: [UInt8], _ kind: MessageKind = .binary,
    limits: InflateLimits = InflateLimits()
  ) throws(FrameError) -> [UInt8] {
    var input = ByteBuffer()
    input.append(payload)
    return try input.withBytes { (bytes) throws(FrameError) in
      Array(try inflater.inflate(bytes, kind, limits: limits))
    }
  }

  private func error(_ payload: [UInt8], _ kind: MessageKind = .binary, limits: InflateLimits = InflateLimits())
    -> FrameError?
  {
    var inflater = Inflater(takesContextOver: false)
    do throws(FrameError) {
      _ = try inflate(&inflater, payload, kind, limits: limits)
      return nil
    } catch { return error }
  }

  private static let hello = Array("Hello".utf8)

  /// RFC 7692 §7.2.3.1, §7.2.3.3, §7.2.3.4, §7.2.3.5.
  static let vectors: [[UInt8]] = [
    [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00],
    [0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00],
    [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
    [0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
  ]

  @Test("The examples of RFC 7692 §7.2.3 inflate, by one decompressor and in any order") func examples() throws {
    var inflater = Inflater(takesContextOver: false)
    for payload in Self.vectors + Self.vectors.reversed() {
      #expect(try inflate(&inflater, payload, .text) == Self.hello)
    }
    var deflater = Deflater(windowBits: 15, level: 6, memoryLevel: 8, takesContextOver: false)
    #expect(deflate(&deflater, Self.hello) == Self.vectors[0])
    #expect(deflate(&deflater, Self.hello) == Self.vectors[0], "the same bytes for whoever gets them")
  }

  @Test("With context takeover the second message is the example of RFC 7692 §7.2.3.2") func takeover() throws {
    let second: [UInt8] = [0xF2, 0x00, 0x11, 0x00, 0x00]
    var deflater = Deflater(windowBits: 15, level: 6, memoryLevel: 8, takesContextOver: true)
    #expect(deflate(&deflater, Self.hello) == Self.vectors[0])
    #expect(deflate(&deflater, Self.hello) == second)
    var keeping = Inflater(takesContextOver: true)
    #expect(try inflate(&keeping, Self.vectors[0]) == Self.hello)
    #expect(try inflate(&keeping, second) == Self.hello)
    #expect(error(second) == .invalidDeflate, "without the first it points to nothing")
  }

  @Test("The window is kept over a block with BFINAL and over an empty message") func keptWindow() throws {
    var keeping = Inflater(takesContextOver: true)
    #expect(try inflate(&keeping, Self.vectors[2]) == Self.hello)
    #expect(try inflate(&keeping, [0x00]) == [])
    #expect(try inflate(&keeping, []) == [])
    #expect(try inflate(&keeping, [0xF2, 0x00, 0x11, 0x00, 0x00]) == Self.hello)
  }

  @Test("An empty message is one zero byte (RFC 7692 §7.2.3.6), also after others") func empty() throws {
    for keeps in [false, true] {
      var deflater = Deflater(windowBits: 9, level: 1, memoryLevel: 1, takesContextOver: keeps)
      var inflater = Inflater(takesContextOver: keeps)
      for message in [[], Self.hello, [], [], Self.hello] {
        let payload = deflate(&deflater, message)
        if message.isEmpty { #expect(payload == [0x00]) }
        #expect(try inflate(&inflater, payload, .text) == message)
      }
    }
  }

  @Test("Random messages come back, with every window and level, with and without contexts") func roundTrip() throws {
    var random = SplitMix64(seed: 7692)
    for round in 0..<60 {
      let keeps = round % 2 == 0
      var deflater = Deflater(
        windowBits: 9 + round % 7, level: 1 + round % 9, memoryLevel: 1 + round % 9, takesContextOver: keeps)
      var inflater = Inflater(takesContextOver: keeps)
      for _ in 0..<8 {
        // From noise, which deflate makes longer, to few letters, which it makes very short.
        let letters = UInt8(truncatingIfNeeded: UInt64(1) << (random.next() % 9)) &- 1
        let count = Int(random.next() % 3) == 0 ? Int(random.next() % 60_000) : Int(random.next() % 300)
        let message = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) & letters }
        let back = try inflate(
          &inflater, deflate(&deflater, message), limits: InflateLimits(messageBytes: count, ratio: 1100))
        #expect(back == message)
      }
    }
  }

  @Test("A compressed message cut at every byte, or into fragments there, is the same message") func splits() throws {
    let message = Array("{\"type\":\"ping\",\"payload\":{\"text\":\"größer\"},\"payload\":{}}".utf8)
    var deflater = Deflater(windowBits: 15, level: 6, memoryLevel: 8, takesContextOver: false)
    let payload = deflate(&deflater, message)
    let whole = frame(.text, payload, compressed: true)
    var inflater = Inflater(takesContextOver: false)
    for split in 0...payload.count {
      // RFC 7692 §6.1: RSV1 on the first fragment only, and a control frame may come between.
      let fragments =
        frame(.text, Array(payload[..<split]), final: false, compressed: true) + frame(.ping, [1])
        + frame(.continuation, Array(payload[split...]))
      let seen = readWhole(fragments, compression: true)
      #expect(seen == [.ping([1]), .compressed(payload)])
    }
    for split in 0...whole.count {
      let seen = read(whole, ends: [split, whole.count], compression: true).seen
      guard case .compressed(let payload) = seen.first else {
        Issue.record("\(seen)")
        continue
      }
      #expect(try inflate(&inflater, payload, .text) == message)
    }
  }

  @Test("What is cut off, at any byte, is not taken for a message") func cutOff() {
    for vector in Self.vectors {
      for count in 1..<vector.count {
        let found = error(Array(vector[..<count]))
        // A cut behind a complete block with the next one's header leaves a shorter message.
        let isShorter = vector == Self.vectors[3] && (count == 4 || count == 8) || count == 1 && vector[0] == 0
        if !isShorter { #expect(found == .invalidDeflate, "\(vector) up to \(count)") }
      }
    }
    #expect(FrameError.invalidDeflate.closeCode == .invalidPayload)
  }

  @Test("What is no deflate data is refused, and the next message of another connection is not harmed")
  func invalid() throws {
    var inflater = Inflater(takesContextOver: false)
    for payload: [UInt8] in [
      [0x07], [0xFF, 0xFF, 0xFF], [0x01, 0x01, 0x00, 0x00, 0x00], Array(repeating: 0xAA, count: 99),
    ] {
      #expect(throws: FrameError.invalidDeflate) { try inflate(&inflater, payload) }
      #expect(try inflate(&inflater, Self.vectors[0]) == Self.hello)
    }
    var keeping = Inflater(takesContextOver: true)
    #expect(throws: FrameError.invalidDeflate) { try inflate(&keeping, [0x07]) }
    #expect(throws: FrameError.invalidDeflate) { try inflate(&keeping, Self.vectors[0]) }
  }

  @Test("A message may have some blocks that say to be the last, and no more") func finalBlocks() throws {
    let empty: [UInt8] = [0x03, 0x00]
    let most = Array(repeating: empty, count: InflateLimits.finalBlocks).flatMap(\.self)
    var inflater = Inflater(takesContextOver: false)
    for _ in 0..<2 {
      #expect(try inflate(&inflater, most + Self.vectors[0]) == Self.hello)
      #expect(throws: FrameError.invalidDeflate) { try inflate(&inflater, empty + most + Self.vectors[0]) }
    }
  }

  /// Four empty blocks with codes of their own (RFC 1951 §3.2.7), each of 90 bits; building the codes takes 1 µs.
  static let emptyBlocks: [UInt8] = [
    0x04, 0xC0, 0x81, 0x00, 0x00, 0x00, 0x00, 0x00, 0x90, 0xFF, 0x6B, 0x10, 0x00, 0x07, 0x02, 0x00, 0x00, 0x00, 0x00,
    0x40, 0xFE, 0xAF, 0x41, 0x00, 0x1C, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0xF9, 0xBF, 0x06, 0x01, 0x70, 0x20, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xE4, 0xFF, 0x1A,
  ]

  @Test("Some blocks may be empty, and many are refused, of every kind", arguments: [false, true])
  func emptyBlocks(keepsContext: Bool) throws {
    let stored: [UInt8] = [0x00, 0x00, 0x00, 0xFF, 0xFF]
    for (blocks, count) in [(Self.emptyBlocks, 4), (stored, 1)] {
      func times(_ number: Int) -> [UInt8] { Array(repeating: blocks, count: number / count).flatMap(\.self) }
      var inflater = Inflater(takesContextOver: keepsContext)
      for _ in 0..<2 { #expect(try inflate(&inflater, times(60) + Self.vectors[0]) == Self.hello) }
      #expect(throws: FrameError.invalidDeflate) { try inflate(&inflater, times(80) + Self.vectors[0]) }
    }
    // With fixed codes: eight of 10 bits each.
    let fixed: [UInt8] = [0x02, 0x08, 0x20, 0x80, 0x00, 0x02, 0x08, 0x20, 0x80, 0x00]
    let few = Array(repeating: fixed, count: 5).flatMap(\.self)
    #expect(error(few + Self.vectors[0]) == nil && error(few + few + Self.vectors[0]) == .invalidDeflate)
  }

  @Test("What an honest compressor makes has few blocks for its bytes, also with the least memory and many flushes")
  func honestBlocks() throws {
    let text = (0..<4000).map { "{\"latitude\":47.\($0 &* 7919 % 1_000_000),\"heading\":\($0 % 360)}," }.joined()
    for memory in [1, 8] {
      var inflater = Inflater(takesContextOver: false)
      var deflater = Deflater(windowBits: 15, level: 9, memoryLevel: memory, takesContextOver: false)
      let message = Array(text.utf8)
      #expect(try inflate(&inflater, deflate(&deflater, message)) == message)
      // A flush behind each hundred bytes: two blocks.
      var parts: [UInt8] = []
      for start in stride(from: 0, to: 2000, by: 100) {
        parts += deflate(&deflater, Array(message[start..<start + 100])) + [0x00, 0x00, 0xFF, 0xFF]
      }
      #expect(try inflate(&inflater, parts + [0x00]) == Array(message[..<2000]))
    }
  }

  @Test("Random bytes never pass a limit and never crash") func randomBytes() {
    var random = SplitMix64(seed: 3)
    let limits = InflateLimits(messageBytes: 500, ratio: 3, freeBytes: 20)
    var inflater = Inflater(takesContextOver: false)
    for _ in 0..<20_000 {
      let payload = (0..<Int(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      do throws(FrameError) {
        let message = try inflate(&inflater, payload, limits: limits)
        #expect(message.count <= max(20, payload.count * 3))
      } catch {
        #expect(error.closeCode == .invalidPayload || error.closeCode == .messageTooBig)
      }
    }
  }

  @Test("A text that is not UTF-8 when inflated is refused, a binary message is not") func utf8() {
    var deflater = Deflater(windowBits: 15, level: 6, memoryLevel: 8, takesContextOver: false)
    for bytes: [UInt8] in [[0xC3, 0x28], [0x41, 0xE2, 0x82], [0xED, 0xA0, 0x80]] {
      let payload = deflate(&deflater, bytes)
      #expect(error(payload, .text) == .invalidUTF8)
      #expect(error(payload, .binary) == nil)
    }
  }

  @Test("A bomb ends at the limit of its size or ratio, whichever comes first") func bombs() {
    var deflater = Deflater(windowBits: 15, level: 9, memoryLevel: 9, takesContextOver: false)
    let zeros = deflate(&deflater, [UInt8](repeating: 0, count: 10_000_000))
    #expect(zeros.count < 11_000)
    #expect(error(zeros) == .messageTooLarge(bytes: 262_145, limit: 262_144))
    let small = deflate(&deflater, [UInt8](repeating: 0, count: 100_000))
    #expect(error(small) == .inflatesTooMuch(ratio: 200))
    #expect(error(small, limits: InflateLimits(ratio: 1100)) == nil)
    #expect(error(deflate(&deflater, [UInt8](repeating: 0, count: 65_536))) == nil, "small enough for any ratio")
    #expect(FrameError.inflatesTooMuch(ratio: 200).closeCode == .messageTooBig)
  }

  @Test("The limit is a size that is allowed; one byte more is not") func exactLimit() {
    var deflater = Deflater(windowBits: 15, level: 6, memoryLevel: 8, takesContextOver: false)
    for count in [0, 1, 16_383, 16_384, 16_385, 32_768] {
      let payload = deflate(&deflater, (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
      #expect(error(payload, limits: InflateLimits(messageBytes: count)) == nil)
      let over = InflateLimits(messageBytes: max(0, count - 1))
      if count > 0 { #expect(error(payload, limits: over)?.closeCode == .messageTooBig) }
    }
  }

  @Test("A long message is compressed further than the fastest level does, with others between, and reads as any")
  func long() throws {
    let compression = MessageCompression(for: .withoutContexts, as: .server)
    var random = SplitMix64(seed: 5)
    func number(_ limit: UInt64) -> UInt64 { random.next() % limit }
    func map(_ drivers: Int) -> [UInt8] {
      let texts = (0..<drivers).map { index in
        "{\"driverId\":\"sim-\(index)\",\"latitude\":47.\(number(1_000_000)),\"longitude\":9.\(number(1_000_000)),"
          + "\"heading\":\(number(360)),\"speed\":\(number(20)).\(number(100)),\"status\":"
          + "\"\(number(2) == 0 ? "available" : "on_trip")\",\"timestamp\":17957427\(10_000 + number(90_000))},"
      }
      return Array(texts.joined().utf8)
    }
    for message in [map(2), map(300), map(3), map(200)] {
      var fastest = Deflater(
        windowBits: MessageCompression.windowBits, level: 1, memoryLevel: 5, takesContextOver: false)
      let bytes = deflate(&fastest, message)
      var made: [UInt8] = []
      #expect(message.withUnsafeBytes { compression.compress($0, minimumBytes: 0) })
      compression.withCompressed { made = Array($0) }
      #expect(message.count < 8192 ? made == bytes : made.count < bytes.count * 95 / 100)
      var inflater = Inflater(takesContextOver: false)
      #expect(try inflate(&inflater, made, limits: InflateLimits(messageBytes: 1 << 20)) == message)
    }
  }

  @Test("A frame's payload is found again whatever the length of its header") func payloads() {
    for count in [0, 1, 125, 126, 127, 65_535, 65_536, 65_537] {
      var buffer = ByteBuffer()
      buffer.append("before")
      [UInt8](repeating: 1, count: count).withUnsafeBytes { FrameWriter.write(.text, $0, into: &buffer) }
      let payload = FrameWriter.serverPayload(of: 6..<buffer.count)
      #expect(payload.count == count && payload.upperBound == buffer.count)
    }
  }
}
