// Frames in, messages out (RFC 6455 §5 and §8.1), for either end.
//
// Usually a complete message is one frame in one read: it is unmasked in place and delivered as a range of the caller's
// buffer, without a copy or an allocation. Only an incomplete header, payload or fragmented message is kept, in a box
// on the heap that is freed when it is complete. An idle connection is 16 bytes here.
//
// All input is consumed, so a loop's connections can share one read buffer.
import HubBytes

/// An event from the peer. Payloads are unmasked, and valid until the next call of `next`.
@safe
public enum FrameEvent {
  /// A complete message. Text is valid UTF-8 unless it is compressed: then it is checked when inflated.
  case message(MessageKind, UnsafeRawBufferPointer, isCompressed: Bool)
  /// To be answered with a pong of the same payload (RFC 6455 §5.5.2), at most 125 bytes.
  case ping(UnsafeRawBufferPointer)
  case pong(UnsafeRawBufferPointer)
  /// The last event of a connection. No code means an empty Close frame; the reason is valid UTF-8.
  case close(CloseCode?, reason: UnsafeRawBufferPointer)
}

/// The type of a data message (RFC 6455 §5.6).
public enum MessageKind: UInt8, Sendable {
  case text, binary
}

/// The receiving half of a WebSocket connection.
public struct FrameReader: ~Copyable {
  @usableFromInline
  enum State {
    /// At the start of a frame, with no incomplete message.
    case idle
    case cut(PartialInput)
    /// After a Close frame or an error. Input is dropped (RFC 6455 §1.4, §7.1.7).
    case finished
  }

  @usableFromInline var state = State.idle
  let role: Role
  /// Whether permessage-deflate was negotiated.
  public let allowsCompression: Bool

  /// `role` is this end's. `allowsCompression`: permessage-deflate was negotiated, so RSV1 may be set.
  public init(role: Role, allowsCompression: Bool = false) {
    self.role = role
    self.allowsCompression = allowsCompression
  }

  /// Whether no frame or message is incomplete.
  @inlinable public var isIdle: Bool {
    switch state {
    case .idle, .finished: return true
    case .cut: return false
    }
  }

  /// Bytes kept of an incomplete frame or message. Never more than `FrameLimits.messageBytes` and a control frame.
  public var bufferedBytes: Int {
    switch state {
    case .idle, .finished: return 0
    case .cut(let partial): return partial.assembly.count
    }
  }

  /// Reads frames from `buffer`, from `offset` on, up to the next event.
  ///
  /// Nil once all is consumed; incomplete input is kept, and the buffer may be reused. `buffer` is unmasked in place.
  /// After an error, and after `.close`, input is dropped. Costs about 25 ns and 0.05 ns a byte of ASCII; allocates
  /// only where a frame or message is incomplete.
  public mutating func next(
    in buffer: UnsafeMutableRawBufferPointer, at offset: inout Int, limits: FrameLimits
  ) throws(FrameError) -> FrameEvent? {
    precondition(offset >= 0 && offset <= buffer.count)
    do throws(FrameError) {
      while true {
        switch state {
        case .finished:
          offset = buffer.count
          return nil
        case .idle:
          guard offset < buffer.count else { return nil }
          if let message = try unsafe plainMessage(buffer, &offset, limits) { return message }
          if let event = try unsafe readFrame(buffer, &offset, limits, keptIn: nil) { return event }
        case .cut(let partial):
          if partial.forgetDelivered() {
            state = partial.isFinished ? .finished : .idle
          } else {
            guard offset < buffer.count else { return nil }
            if let event = try unsafe resume(partial, buffer, &offset, limits) { return event }
          }
        }
      }
    } catch {
      state = .finished
      offset = buffer.count
      throw error
    }
  }

  /// Reads a client's complete message of one uncompressed frame of up to 65,535 bytes, the common case: its header is
  /// one word. Nil for any other frame and for invalid ones, of which nothing is consumed.
  @inline(__always)
  private func plainMessage(
    _ buffer: UnsafeMutableRawBufferPointer, _ offset: inout Int, _ limits: FrameLimits
  ) throws(FrameError) -> FrameEvent? {
    let left = buffer.count &- offset
    guard role == .server, left >= 8, let base = buffer.baseAddress else { return nil }
    let start = unsafe base + offset
    let header = unsafe UInt64(littleEndian: start.loadUnaligned(as: UInt64.self))
    let kind: MessageKind
    switch header & 0x80FF {  // FIN, no RSV, the opcode; MASK
    case 0x8081: kind = .text
    case 0x8082: kind = .binary
    case _: return nil
    }
    let short = Int(truncatingIfNeeded: (header &>> 8) & 0x7F)
    guard short != 127 else { return nil }
    let isShort = short < 126
    let length = isShort ? short : Int(UInt16(truncatingIfNeeded: header &>> 16).byteSwapped)
    let headerLength = isShort ? 6 : 8
    guard isShort || length > 125, length <= left &- headerLength, length <= limits.messageBytes else { return nil }
    let key = MaskKey(UInt32(truncatingIfNeeded: header &>> (isShort ? 16 : 32)))
    offset &+= headerLength &+ length
    let payload = unsafe UnsafeMutableRawBufferPointer(start: start + headerLength, count: length)
    let isASCII = unsafe applyMask(key, to: payload)
    if kind == .text, !isASCII { try unsafe FrameHeader.checkUTF8(UnsafeRawBufferPointer(payload)) }  // RFC 6455 §8.1
    return unsafe .message(kind, UnsafeRawBufferPointer(payload), isCompressed: false)
  }

  /// Reads a frame that begins at `offset`, between frames.
  private mutating func readFrame(
    _ buffer: UnsafeMutableRawBufferPointer, _ offset: inout Int, _ limits: FrameLimits, keptIn partial: PartialInput?
  ) throws(FrameError) -> FrameEvent? {
    let input = unsafe UnsafeRawBufferPointer(rebasing: buffer[offset...])
    guard let header = try unsafe FrameHeader.parse(input, context(partial, limits)) else {
      let partial = partial ?? PartialInput()
      unsafe partial.keepHeader(input)
      state = .cut(partial)
      offset = buffer.count
      return nil
    }
    offset += header.length
    return try unsafe readPayload(of: header, buffer, &offset, keptIn: partial)
  }

  /// Continues where the last buffer ended.
  private mutating func resume(
    _ partial: PartialInput, _ buffer: UnsafeMutableRawBufferPointer, _ offset: inout Int, _ limits: FrameLimits
  ) throws(FrameError) -> FrameEvent? {
    switch partial.position {
    case .betweenFrames, .delivered:
      return try unsafe readFrame(buffer, &offset, limits, keptIn: partial)
    case .header(let kept):
      let input = unsafe UnsafeRawBufferPointer(rebasing: buffer[offset...])
      let added = unsafe partial.keepHeader(input)
      guard
        let header = try unsafe partial.withHeaderBytes({ (bytes) throws(FrameError) in
          try unsafe FrameHeader.parse(bytes, context(partial, limits))
        })
      else {
        offset += added
        return nil
      }
      offset += header.length - kept
      partial.position = .betweenFrames
      return try unsafe readPayload(of: header, buffer, &offset, keptIn: partial)
    case .payload(let header, let received):
      return try unsafe partial.take(header, received, buffer, &offset)
    }
  }

  /// Reads the payload of a frame whose header is complete: in place when it is complete and nothing precedes it, else
  /// into the box.
  private mutating func readPayload(
    of header: FrameHeader, _ buffer: UnsafeMutableRawBufferPointer, _ offset: inout Int, keptIn partial: PartialInput?
  ) throws(FrameError) -> FrameEvent? {
    let isWhole = header.payloadLength <= buffer.count - offset
    let isAlone = header.opcode.isControl || header.isFinal && header.opcode != .continuation
    guard isWhole, isAlone else {
      let partial = partial ?? PartialInput()
      partial.begin(header)
      state = .cut(partial)
      return try unsafe partial.take(header, 0, buffer, &offset)
    }
    // An incomplete message stays in its box during a control frame; a box that held only a header is freed.
    if let partial, !partial.hasMessage { state = .idle }
    let payload = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<(offset + header.payloadLength)])
    offset += header.payloadLength
    let isASCII = unsafe header.unmask(payload, from: 0)
    let event = try unsafe header.event(UnsafeRawBufferPointer(payload), isASCII: isASCII)
    if header.opcode == .close { state = .finished }
    return event
  }

  private func context(_ partial: PartialInput?, _ limits: FrameLimits) -> FrameContext {
    FrameContext(role: role, allowsCompression: allowsCompression, message: partial?.messageSize, limits: limits)
  }
}

extension FrameHeader {
  /// Unmasks the part of the payload that begins at its byte `received`. True when it is ASCII.
  func unmask(_ bytes: UnsafeMutableRawBufferPointer, from received: Int) -> Bool {
    if let mask { return unsafe applyMask(mask.advanced(by: received), to: bytes) }
    return unsafe opcode == .text || opcode == .continuation
      ? HubWebSocket.isASCII(UnsafeRawBufferPointer(bytes)) : false
  }

  /// The event of a complete unfragmented message or control frame.
  func event(_ payload: UnsafeRawBufferPointer, isASCII: Bool) throws(FrameError) -> FrameEvent {
    switch opcode {
    case .ping: return unsafe .ping(payload)
    case .pong: return unsafe .pong(payload)
    case .close: return try unsafe FrameHeader.closeEvent(payload)
    case .binary: return unsafe .message(.binary, payload, isCompressed: isCompressed)
    case .text:
      if !isASCII, !isCompressed { try unsafe FrameHeader.checkUTF8(payload) }  // RFC 6455 §8.1
      return unsafe .message(.text, payload, isCompressed: isCompressed)
    case .continuation:
      preconditionFailure("continuations are assembled in PartialInput")
    }
  }

  /// RFC 6455 §5.5.1: empty, or a code of two bytes and a reason in UTF-8.
  static func closeEvent(_ payload: UnsafeRawBufferPointer) throws(FrameError) -> FrameEvent {
    guard payload.count > 0 else { return unsafe .close(nil, reason: payload) }
    guard payload.count > 1 else { throw .closeFrameOfOneByte }
    let code = unsafe CloseCode(UInt16(bigEndian: payload.loadUnaligned(as: UInt16.self)))
    guard code.isValidOnWire else { throw .invalidCloseCode(code.rawValue) }  // RFC 6455 §7.4
    let reason = unsafe UnsafeRawBufferPointer(rebasing: payload[2...])
    try unsafe checkUTF8(reason)
    return unsafe .close(code, reason: reason)
  }

  static func checkUTF8(_ bytes: UnsafeRawBufferPointer) throws(FrameError) {
    var text = UTF8Validator()
    guard unsafe text.consume(bytes), text.isComplete else { throw .invalidUTF8 }
  }
}
