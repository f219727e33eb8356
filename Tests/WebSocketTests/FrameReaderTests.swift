import HubTestSupport
import HubWebSocket
import Testing

@Suite struct FrameReaderTests {
  /// RFC 6455 §5.7, the examples that a server may get.
  static let toServer: [(bytes: [UInt8], seen: [Seen])] = [
    ([0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58], [.text("Hello")]),
    ([0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58], [.pong(Array("Hello".utf8))]),
  ]

  /// RFC 6455 §5.7, the examples that a client may get.
  static let toClient: [(bytes: [UInt8], seen: [Seen])] = [
    ([0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F], [.text("Hello")]),
    ([0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F], [.text("Hello")]),
    ([0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F], [.ping(Array("Hello".utf8))]),
    ([0x82, 0x7E, 0x01, 0x00] + [UInt8](repeating: 7, count: 256), [.binary([UInt8](repeating: 7, count: 256))]),
    (
      [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + [UInt8](repeating: 7, count: 65536),
      [.binary([UInt8](repeating: 7, count: 65536))]
    ),
  ]

  @Test("The examples of RFC 6455 §5.7 are read") func vectors() {
    for (bytes, seen) in Self.toServer { #expect(readWhole(bytes) == seen) }
    for (bytes, seen) in Self.toClient { #expect(readWhole(bytes, role: .client) == seen) }
  }

  /// A conversation with all that can happen in one.
  static func conversation(to role: Role) -> (bytes: [UInt8], seen: [Seen]) {
    let long = String(repeating: "0123456789", count: 20)
    var bytes = text("Hello", to: role)
    bytes += text("", to: role)
    bytes += frame(.ping, [1, 2, 3], to: role)
    bytes += text("κόσ", final: false, to: role)
    bytes += frame(.ping, [], to: role)
    bytes += frame(.continuation, [0xCE], final: false, to: role)
    bytes += frame(.pong, Array("in between".utf8), to: role)
    bytes += frame(.continuation, [0xBC, 0xCE, 0xB5], to: role)
    bytes += frame(.binary, Array(long.utf8), to: role)
    bytes += frame(.binary, [], final: false, to: role)
    bytes += frame(.continuation, [], to: role)
    bytes += text("ünï𝄞", to: role)
    bytes += frame(.close, [0x03, 0xE8] + Array("bÿe".utf8), to: role)
    bytes += text("after the end", to: role)
    let seen: [Seen] = [
      .text("Hello"), .text(""), .ping([1, 2, 3]), .ping([]), .pong(Array("in between".utf8)), .text("κόσμε"),
      .binary(Array(long.utf8)), .binary([]), .text("ünï𝄞"), .close(.normal, "bÿe"),
    ]
    return (bytes, seen)
  }

  @Test("A conversation is the same at every split in two and byte by byte", arguments: [Role.server, .client])
  func everySplit(role: Role) {
    let (bytes, seen) = Self.conversation(to: role)
    #expect(readWhole(bytes, role: role) == seen)
    for split in 0...bytes.count {
      #expect(read(bytes, ends: [split, bytes.count], role: role).seen == seen, "split at \(split)")
    }
    #expect(read(bytes, ends: Array(0...bytes.count), role: role).seen == seen)
  }

  @Test("The larger examples survive every split near their headers and at random") func largeSplits() {
    var random = SplitMix64(seed: 4)
    for (bytes, seen) in Self.toClient {
      var splits = Array(0...min(bytes.count, 20))
      splits += (0..<20).map { _ in Int.random(in: 0...bytes.count, using: &random) }
      for split in splits { #expect(read(bytes, ends: [split, bytes.count], role: .client).seen == seen) }
    }
  }

  @Test("Nothing is kept between whole frames, and 16 bytes are the size of that") func idleIsSmall() {
    #expect(MemoryLayout<FrameReader>.size <= 16)
    let bytes = text("one") + text("two")
    for split in 0...bytes.count {
      let isBoundary = split % text("one").count == 0
      #expect(read(bytes, ends: [split]).isIdle == isBoundary, "\(split)")
    }
  }

  @Test("What is kept is what has come of a message, and then nothing") func bufferedBytes() {
    var reader = FrameReader(role: .server)
    var bytes = frame(.binary, [UInt8](repeating: 1, count: 100), final: false) + frame(.continuation, [1, 2])
    let kept = bytes.withUnsafeMutableBytes { raw in
      let pieces = [
        UnsafeMutableRawBufferPointer(rebasing: raw[..<50]), UnsafeMutableRawBufferPointer(rebasing: raw[50...]),
      ]
      var kept: [Int] = []
      for piece in pieces {
        var offset = 0
        do throws(FrameError) {
          while try reader.next(in: piece, at: &offset, limits: FrameLimits()) != nil {
            kept.append(reader.bufferedBytes)
          }
        } catch {
          Issue.record("\(error)")
        }
        kept.append(reader.bufferedBytes)
      }
      return kept
    }
    #expect(kept == [44, 102, 0])
  }

  @Test("After an error, input is consumed and dropped") func afterError() {
    let bytes = text("ok") + rawHeader(0x83, 0x80, [0, 0, 0, 0])
    #expect(
      read(bytes + text("no"), ends: [bytes.count, bytes.count + 8]).seen == [.text("ok"), .error(.reservedOpcode(3))])
  }

  @Test("Random frame streams are read as they were meant, whatever the splits", arguments: [Role.server, .client])
  func randomStreams(role: Role) {
    var random = SplitMix64(seed: role == .server ? 5 : 6)
    for _ in 0..<400 {
      var stream = RandomStream(role: role)
      for _ in 0..<Int.random(in: 1...8, using: &random) { stream.addMessage(&random) }
      let count = stream.bytes.count
      #expect(readWhole(stream.bytes, role: role) == stream.expected)
      for _ in 0..<4 {
        let cuts = (0..<Int.random(in: 1...12, using: &random)).map { _ in Int.random(in: 0...count, using: &random) }
        #expect(read(stream.bytes, ends: cuts.sorted() + [count], role: role).seen == stream.expected)
      }
    }
  }

  @Test("Random bytes never crash, and mean the same whatever the splits", arguments: [Role.server, .client])
  func randomBytes(role: Role) {
    var random = SplitMix64(seed: 7)
    for round in 0..<4_000 {
      var bytes = (0..<Int.random(in: 0..<80, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      if round % 2 == 0 {  // one broken byte in something that is right
        bytes = Self.conversation(to: role).bytes
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      let whole = readWhole(bytes, role: role, limits: FrameLimits(messageBytes: 300, fragments: 3), compression: true)
      let cut = Int.random(in: 0...bytes.count, using: &random)
      let split = read(
        bytes, ends: [cut, bytes.count], role: role, limits: FrameLimits(messageBytes: 300, fragments: 3),
        compression: true)
      // Wrong text is noticed at the wrong byte in a cut frame, at the frame's end in a complete one: same error.
      #expect(whole == split.seen)
    }
  }

  @Test("A frame that is there whole means what it means byte by byte, whatever its first bytes and its length")
  func everyHeader() {
    var random = SplitMix64(seed: 8)
    let limits = FrameLimits(messageBytes: 300)
    for first in [0x81, 0x82, 0x80, 0x83, 0x88, 0x89, 0x8A, 0x8B, 0x01, 0x02, 0x91, 0xA2, 0xC1] as [UInt8] {
      for count in [0, 1, 2, 8, 125, 126, 127, 256, 300, 301] {
        let payload = (0..<count).map { _ in UInt8.random(in: 0..<128, using: &random) }
        var bytes = frame(.binary, payload, key: UInt32.random(in: 0...UInt32.max, using: &random))
        bytes[0] = first
        // A length in a longer form than it needs, one that is not masked, and the right one with less or more behind
        // it.
        var variants = [bytes, bytes + [0x81], bytes.dropLast(), bytes + text("next")]
        variants.append([first, 0xFE, 0, UInt8(truncatingIfNeeded: count)] + bytes.dropFirst(2))
        variants.append([first, bytes[1] & 0x7F] + bytes.dropFirst(2))
        for variant in variants {
          let whole = readWhole(variant, limits: limits)
          let bytewise = read(variant, ends: Array(0...variant.count), limits: limits).seen
          if whole != bytewise { Issue.record("\(variant.prefix(12)): \(whole) and \(bytewise)") }
        }
      }
    }
  }

  @Test("A message of 16 MiB in reads of 64 KiB costs linear time and arrives whole") func largeMessage() {
    let payload = [UInt8](repeating: 0x61, count: 16 << 20)
    let bytes = frame(.text, payload)
    let ends = Array(stride(from: 65536, to: bytes.count, by: 65536)) + [bytes.count]
    let result = read(bytes, ends: ends, limits: FrameLimits(messageBytes: 16 << 20))
    #expect(result.seen.count == 1)
    #expect(result.isIdle)
    guard case .text(let text)? = result.seen.first else {
      Issue.record("no text")
      return
    }
    #expect(text.utf8.count == payload.count)
  }
}

/// A stream of valid frames and what a reader should make of it.
struct RandomStream {
  let role: Role
  var bytes: [UInt8] = []
  var expected: [Seen] = []

  mutating func addMessage(_ random: inout SplitMix64) {
    let isText = Bool.random(using: &random)
    let scalars = ["a", "é", "€", "𝄞"]
    var payload: [UInt8] = []
    let length = [0, 1, 5, 125, 126, 300].randomElement(using: &random) ?? 0
    while payload.count < length {
      payload +=
        isText
        ? Array((scalars.randomElement(using: &random) ?? "").utf8) : [UInt8.random(in: 0...255, using: &random)]
    }
    let fragments = Int.random(in: 1...4, using: &random)
    var cuts = (1..<fragments).map { _ in Int.random(in: 0...payload.count, using: &random) }.sorted()
    cuts.append(payload.count)
    var start = 0
    for (index, end) in cuts.enumerated() {
      let opcode: Opcode = index > 0 ? .continuation : isText ? .text : .binary
      add(opcode, Array(payload[start..<end]), final: index == cuts.count - 1, &random)
      start = end
      if index < cuts.count - 1, Bool.random(using: &random) { addPing(&random) }
    }
    expected.append(isText ? .text(String(decoding: payload, as: UTF8.self)) : .binary(payload))
  }

  private mutating func addPing(_ random: inout SplitMix64) {
    let payload = (0..<Int.random(in: 0...125, using: &random)).map { UInt8(truncatingIfNeeded: $0) }
    add(.ping, payload, final: true, &random)
    expected.append(.ping(payload))
  }

  private mutating func add(_ opcode: Opcode, _ payload: [UInt8], final: Bool, _ random: inout SplitMix64) {
    let key = UInt32.random(in: 0...UInt32.max, using: &random)
    bytes += frame(opcode, payload, final: final, to: role, key: key)
  }
}
