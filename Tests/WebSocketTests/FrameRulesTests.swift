import HubWebSocket
import Testing

/// Each rule of RFC 6455 §5 that a peer can break, and the moment it is noticed.
@Suite struct FrameRulesTests {
  private func error(_ bytes: [UInt8], role: Role = .server, limits: FrameLimits = FrameLimits()) -> FrameError? {
    guard case .error(let error)? = readWhole(bytes, role: role, limits: limits).last else { return nil }
    return error
  }

  @Test(
    "What the first byte shows is refused at the first byte",
    arguments: [
      (0xC1, FrameError.reservedBits(0x40)), (0xA1, .reservedBits(0x20)), (0x91, .reservedBits(0x10)),
      (0xF1, .reservedBits(0x70)), (0xC9, .reservedBits(0x40)), (0x83, .reservedOpcode(3)), (0x87, .reservedOpcode(7)),
      (0x8B, .reservedOpcode(11)), (0x8F, .reservedOpcode(15)), (0x08, .fragmentedControlFrame),
      (0x09, .fragmentedControlFrame), (0x0A, .fragmentedControlFrame), (0x80, .unexpectedContinuation),
      (0x00, .unexpectedContinuation),
    ] as [(UInt8, FrameError)])
  func firstByte(byte: UInt8, expected: FrameError) {
    #expect(error([byte]) == expected)
    #expect(expected.closeCode == .protocolError)
  }

  @Test("What the second byte shows is refused at the second byte") func secondByte() {
    #expect(error([0x81, 0x05]) == .unmaskedFrame)
    #expect(error([0x81, 0x85], role: .client) == .maskedFrame)
    #expect(error([0x89, 0xFE]) == .controlFrameTooLong)
    #expect(error([0x88, 0xFF]) == .controlFrameTooLong)
    #expect(error([0x88, 0x81]) == .closeFrameOfOneByte)
  }

  @Test("A length that is not in its shortest form is refused before the key") func minimalLength() {
    #expect(error([0x82, 0xFE, 0, 125]) == .lengthNotMinimal(125))
    #expect(error([0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) == .lengthNotMinimal(65535))
    #expect(error([0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0]) == .lengthOutOfRange)
    #expect(error([0x82, 0xFE, 0, 126]) == nil)
  }

  @Test("A new message inside a message is refused") func interleaved() {
    #expect(error(text("a", final: false) + [0x81]) == .expectedContinuation)
    #expect(error(text("a", final: false) + [0x02]) == .expectedContinuation)
    #expect(error(text("a") + [0x80]) == .unexpectedContinuation)
  }

  @Test("A message over the limit is refused from its header") func messageLimit() {
    let limits = FrameLimits(messageBytes: 200)
    #expect(error([0x82, 0xFE, 0, 201], limits: limits) == .messageTooLarge(bytes: 201, limit: 200))
    #expect(error([0x82, 0xFE, 0, 200], limits: limits) == nil)
    let huge: [UInt8] = [0x82, 0xFF, 0x7F] + [UInt8](repeating: 0xFF, count: 7)
    #expect(error(huge, limits: limits) == .messageTooLarge(bytes: UInt64(Int64.max), limit: 200))
    let first = frame(.binary, [UInt8](repeating: 0, count: 150), final: false)
    #expect(error(first + [0x80, 0x80 | 51], limits: limits) == .messageTooLarge(bytes: 201, limit: 200))
    #expect(readWhole(first + frame(.continuation, [UInt8](repeating: 0, count: 50)), limits: limits).count == 1)
    #expect(FrameError.messageTooLarge(bytes: 201, limit: 200).closeCode == .messageTooBig)
  }

  @Test("A control frame does not count towards the message limit") func controlBesideMessage() {
    let bytes = frame(.binary, [1, 2], final: false) + frame(.ping, [UInt8](repeating: 0, count: 125))
    let seen = readWhole(bytes + frame(.continuation, []), limits: FrameLimits(messageBytes: 2))
    #expect(seen == [.ping([UInt8](repeating: 0, count: 125)), .binary([1, 2])])
  }

  @Test("Endless empty fragments come to an end") func fragmentLimit() {
    let limits = FrameLimits(fragments: 3)
    let begun = frame(.text, [], final: false) + frame(.continuation, [], final: false)
    #expect(readWhole(begun + frame(.continuation, []), limits: limits) == [.text("")])
    #expect(
      error(begun + frame(.continuation, [], final: false) + [0x80], limits: limits) == .tooManyFragments(limit: 3))
    #expect(FrameError.tooManyFragments(limit: 3).closeCode == .messageTooBig)
  }

  @Test("RSV1 marks a compressed message where that was agreed, on its first frame only") func compression() {
    let bytes = frame(.text, [0xFF], final: false, compressed: true) + frame(.continuation, [0xFE])
    #expect(readWhole(bytes, compression: true) == [.compressed([0xFF, 0xFE])])
    #expect(readWhole(frame(.text, [0xFF], compressed: true), compression: true) == [.compressed([0xFF])])
    let second = text("a", final: false) + [0xC0]
    #expect(readWhole(second, compression: true) == [.error(.reservedBits(0x40))])
    #expect(readWhole([0xC9], compression: true) == [.error(.reservedBits(0x40))])
    #expect(readWhole([0xA1], compression: true) == [.error(.reservedBits(0x20))])
  }

  @Test("A Close frame has no payload, or a code that may be sent and a reason in UTF-8") func close() {
    #expect(readWhole(frame(.close, [])) == [.close(nil, "")])
    #expect(readWhole(frame(.close, [0x03, 0xE8])) == [.close(.normal, "")])
    #expect(readWhole(frame(.close, [0x03, 0xE8, 0xCE])) == [.error(.invalidUTF8)])
    #expect(FrameError.invalidUTF8.closeCode == .invalidPayload)
    let long = [0x0F, 0xA0] + [UInt8](repeating: 0x61, count: 123)
    #expect(readWhole(frame(.close, long)) == [.close(CloseCode(4000), String(repeating: "a", count: 123))])
  }

  @Test(
    "Close codes that may not be sent are refused",
    arguments: [
      0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535,
    ] as [UInt16])
  func invalidCodes(code: UInt16) {
    let payload = [UInt8(code >> 8), UInt8(code & 0xFF)]
    #expect(readWhole(frame(.close, payload)) == [.error(.invalidCloseCode(code))])
    #expect(FrameError.invalidCloseCode(code).closeCode == .protocolError)
  }

  @Test(
    "Close codes that may be sent are taken",
    arguments: [
      1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4413, 4999,
    ] as [UInt16])
  func validCodes(code: UInt16) {
    let payload = [UInt8(code >> 8), UInt8(code & 0xFF)]
    #expect(readWhole(frame(.close, payload)) == [.close(CloseCode(code), "")])
  }

  @Test("A Close frame ends a fragmented message, and nothing is read after it") func closeInsideMessage() {
    let bytes = text("a", final: false) + frame(.close, [0x03, 0xE9]) + frame(.continuation, [0x62])
    for split in 0...bytes.count {
      #expect(read(bytes, ends: [split, bytes.count]).seen == [.close(.goingAway, "")])
    }
  }

  @Test("Text that is not UTF-8 is refused in whole frames, cut frames and fragments") func wrongText() {
    let wrong: [UInt8] = Array("κόσμε".utf8) + [0xED, 0xA0, 0x80] + Array("edited".utf8)
    let bytes = frame(.text, wrong)
    for split in 0...bytes.count {
      #expect(read(bytes, ends: [split, bytes.count]).seen.first == .error(.invalidUTF8))
    }
    let ends = frame(.text, [0xCE], final: false) + frame(.continuation, [])
    #expect(readWhole(ends) == [.error(.invalidUTF8)])
    #expect(readWhole(frame(.text, [0xCE])) == [.error(.invalidUTF8)])
  }

  @Test("Text is refused at its first wrong byte, before the rest of the frame has come (Autobahn 6.4)")
  func failsFast() {
    let payload: [UInt8] = Array("κόσμε".utf8) + [0xF4, 0x90, 0x80, 0x80] + Array("edited".utf8)
    let bytes = frame(.text, payload)
    let wrongByte = bytes.count - payload.count + 10 + 1  // 0x90: nothing above U+10FFFF
    #expect(read(bytes, ends: [wrongByte]).seen.isEmpty)
    #expect(read(bytes, ends: [wrongByte, wrongByte + 1]).seen == [.error(.invalidUTF8)])
  }
}
