// Writes frames (RFC 6455 §5.2, §5.6) into a ByteBuffer.
//
// A payload is encoded in place: room for the longest header is left before it, and the header is written right-aligned
// when the length is known. So a frame costs no copy, and begins a few bytes behind the start of its room:
//
//     let payload = FrameWriter.begin(as: .server, in: &buffer)
//     … append the payload …
//     let start = FrameWriter.finish(.text, payloadAt: payload, in: &buffer)   // the frame is start..<buffer.count

public import HubBytes

/// Writes frames; every message is one frame.
public enum FrameWriter {
  /// The longest header of a server's frame: 2 bytes and 8 of length.
  public static let maximumServerHeader = 10
  /// The longest header of a client's frame: a server's and 4 of key.
  public static let maximumClientHeader = 14
  /// The most payload bytes of a control frame. RFC 6455 §5.5.
  public static let maximumControlPayload = 125

  /// Leaves room for a header at the end of `buffer`; gives the start of the payload.
  @inlinable @inline(__always)
  public static func begin(as role: Role, in buffer: inout ByteBuffer) -> Int {
    let room = role == .server ? maximumServerHeader : maximumClientHeader
    unsafe buffer.append(atMost: room) { bytes in
      unsafe bytes.initializeMemory(as: UInt8.self, repeating: 0)
      return room
    }
    return buffer.count
  }

  /// Completes the frame whose payload is `payload..<buffer.count`, and gives the start of the frame, 2 to 14 bytes
  /// before. A client, as given to `begin`, must pass a `mask`, a server must not; it is applied in place.
  @inlinable @inline(__always)
  public static func finish(
    _ opcode: Opcode, payloadAt payload: Int, isFinal: Bool = true, isCompressed: Bool = false, mask: MaskKey? = nil,
    in buffer: inout ByteBuffer
  ) -> Int {
    let length = buffer.count - payload
    let header = headerLength(payload: length, isMasked: mask != nil)
    precondition(length >= 0 && payload >= header)
    precondition(!opcode.isControl || length <= maximumControlPayload)
    return unsafe buffer.withMutableBytes { bytes in
      let start = payload - header
      unsafe write(
        opcode, length, isFinal, isCompressed, mask, to: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
      if let mask { _ = unsafe applyMask(mask, to: UnsafeMutableRawBufferPointer(rebasing: bytes[payload...])) }
      return start
    }
  }

  /// The range of the payload in a server's frame.
  public static func serverPayload(of frame: Range<Int>) -> Range<Int> {
    let header = frame.count < 126 + 2 ? 2 : frame.count <= Int(UInt16.max) + 4 ? 4 : maximumServerHeader
    return frame.lowerBound + header..<frame.upperBound
  }

  /// Appends a frame with a copy of `payload`. A client passes a mask, a server does not.
  public static func write(
    _ opcode: Opcode, _ payload: UnsafeRawBufferPointer, isFinal: Bool = true, isCompressed: Bool = false,
    mask: MaskKey? = nil, into buffer: inout ByteBuffer
  ) {
    let header = headerLength(payload: payload.count, isMasked: mask != nil)
    precondition(!opcode.isControl || payload.count <= maximumControlPayload && isFinal)
    unsafe buffer.append(atMost: header + payload.count) { room in
      unsafe write(opcode, payload.count, isFinal, isCompressed, mask, to: room)
      let copy = unsafe UnsafeMutableRawBufferPointer(rebasing: room[header...])
      unsafe copy.copyMemory(from: payload)
      if let mask { _ = unsafe applyMask(mask, to: copy) }
      return header + payload.count
    }
  }

  /// Appends a Close frame: empty without a code, else the code and as many whole characters of the reason as fit into
  /// 123 bytes (RFC 6455 §5.5.1). The code must be one that may be sent.
  public static func writeClose(
    _ code: CloseCode?, reason: String = "", mask: MaskKey? = nil, into buffer: inout ByteBuffer
  ) {
    guard let code else {
      unsafe write(.close, UnsafeRawBufferPointer(start: nil, count: 0), mask: mask, into: &buffer)
      return
    }
    precondition(code.isValidOnWire)
    let text = Array(reason.utf8)
    var count = min(text.count, maximumControlPayload - 2)
    while count > 0, count < text.count, text[count] & 0xC0 == 0x80 { count -= 1 }
    let payload = [UInt8(code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)] + text[..<count]
    unsafe payload.withUnsafeBytes { unsafe write(.close, $0, mask: mask, into: &buffer) }
  }

  /// Bytes of a header, whose length has the shortest form. RFC 6455 §5.2.
  @inlinable public static func headerLength(payload: Int, isMasked: Bool) -> Int {
    (payload < 126 ? 2 : payload <= Int(UInt16.max) ? 4 : 10) + (isMasked ? 4 : 0)
  }

  @inlinable @inline(__always)
  static func write(
    _ opcode: Opcode, _ length: Int, _ isFinal: Bool, _ isCompressed: Bool, _ mask: MaskKey?,
    to bytes: UnsafeMutableRawBufferPointer
  ) {
    unsafe bytes[0] = opcode.rawValue | (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0)
    let masked: UInt8 = mask == nil ? 0 : 0x80
    var end = 2
    if length < 126 {
      unsafe bytes[1] = masked | UInt8(length)
    } else if length <= Int(UInt16.max) {
      unsafe bytes[1] = masked | 126
      unsafe bytes.storeBytes(of: UInt16(length).bigEndian, toByteOffset: 2, as: UInt16.self)
      end = 4
    } else {
      unsafe bytes[1] = masked | 127
      unsafe bytes.storeBytes(of: UInt64(length).bigEndian, toByteOffset: 2, as: UInt64.self)
      end = 10
    }
    if let mask { unsafe bytes.storeBytes(of: mask.word.littleEndian, toByteOffset: end, as: UInt32.self) }
  }
}
