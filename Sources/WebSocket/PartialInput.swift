// An incomplete frame or message: the slow path of FrameReader.
//
// Payload is unmasked in the read buffer and appended here, each byte once, so a large message in many reads costs
// linear time. A control frame that interrupts a message is appended to its bytes and removed after its delivery. At
// most 1 KiB is reserved for an announced length: a peer that announces 16 MiB and sends nothing has cost that.

import HubBytes

/// The box of an incomplete frame or message.
@usableFromInline
final class PartialInput {
  enum Position {
    case betweenFrames
    /// `kept` bytes of a header are buffered.
    case header(kept: Int)
    case payload(FrameHeader, received: Int)
    /// The caller has an event that points into `assembly`; the first `keeping` bytes there belong to the message.
    case delivered(keeping: Int)
  }

  /// An incomplete message of at least one frame.
  private struct Message {
    var kind: MessageKind
    var isCompressed: Bool
    var fragments: Int
    var text = UTF8Validator()
  }

  private static let firstReservation = 1024

  var position = Position.betweenFrames
  var assembly = ByteBuffer()
  private(set) var isFinished = false
  private var message: Message?
  private var headerBytes = InlineArray<14, UInt8>(repeating: 0)

  var hasMessage: Bool { message != nil }

  /// Bytes and frames of the message so far. Called between frames, where `assembly` holds the message only.
  var messageSize: (bytes: Int, fragments: Int)? {
    message.map { (assembly.count, $0.fragments) }
  }

  /// Releases the bytes of the last event. True when the box is empty.
  func forgetDelivered() -> Bool {
    guard case .delivered(let keeping) = position else { return false }
    assembly.truncate(to: keeping)
    position = .betweenFrames
    return message == nil || isFinished
  }

  /// Buffers as much of `input` as a header can have, and gives that length.
  @discardableResult func keepHeader(_ input: UnsafeRawBufferPointer) -> Int {
    var kept = 0
    if case .header(let before) = position { kept = before }
    let added = min(FrameHeader.maximumLength - kept, input.count)
    for index in 0..<added { headerBytes[kept + index] = unsafe input[index] }
    position = .header(kept: kept + added)
    return added
  }

  func withHeaderBytes<R>(_ body: (UnsafeRawBufferPointer) throws(FrameError) -> R) throws(FrameError) -> R {
    guard case .header(let kept) = position else { preconditionFailure("no header is being read") }
    return try unsafe withUnsafeBytes(of: headerBytes) { (all: UnsafeRawBufferPointer) throws(FrameError) -> R in
      try unsafe body(UnsafeRawBufferPointer(rebasing: all[..<kept]))
    }
  }

  /// Begins a frame. The header is checked, so the opcode fits `message`.
  func begin(_ header: FrameHeader) {
    switch header.opcode {
    case .text: message = Message(kind: .text, isCompressed: header.isCompressed, fragments: 1)
    case .binary: message = Message(kind: .binary, isCompressed: header.isCompressed, fragments: 1)
    case .continuation: message?.fragments += 1
    case .close, .ping, .pong: break
    }
    assembly.reserve(min(header.payloadLength, PartialInput.firstReservation))
    position = .payload(header, received: 0)
  }

  /// Takes the payload in the input, of which `received` bytes preceded; an event when it is complete.
  func take(
    _ header: FrameHeader, _ received: Int, _ buffer: UnsafeMutableRawBufferPointer, _ offset: inout Int
  ) throws(FrameError) -> FrameEvent? {
    let count = min(header.payloadLength - received, buffer.count - offset)
    let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<(offset + count)])
    let isASCII = unsafe header.unmask(piece, from: received)
    if !header.opcode.isControl { try unsafe checkText(UnsafeRawBufferPointer(piece), isASCII) }
    unsafe assembly.append(UnsafeRawBufferPointer(piece))
    offset += count
    guard received + count == header.payloadLength else {
      position = .payload(header, received: received + count)
      return nil
    }
    return try header.opcode.isControl ? finishControlFrame(header) : finishDataFrame(header)
  }

  /// RFC 6455 §8.1: fails at the first invalid byte.
  private func checkText(_ piece: UnsafeRawBufferPointer, _ isASCII: Bool) throws(FrameError) {
    guard let message, message.kind == .text, !message.isCompressed else { return }
    if isASCII, message.text.isComplete { return }
    var text = message.text
    guard unsafe text.consume(piece) else { throw .invalidUTF8 }
    self.message?.text = text
  }

  private func finishControlFrame(_ header: FrameHeader) throws(FrameError) -> FrameEvent {
    let start = assembly.count - header.payloadLength
    position = .delivered(keeping: start)
    isFinished = header.opcode == .close
    return try unsafe header.event(bytes(from: start), isASCII: false)
  }

  private func finishDataFrame(_ header: FrameHeader) throws(FrameError) -> FrameEvent? {
    guard header.isFinal, let message else {
      position = .betweenFrames
      return nil
    }
    guard message.text.isComplete else { throw .invalidUTF8 }  // the text ends inside a character
    self.message = nil
    position = .delivered(keeping: 0)
    return unsafe .message(message.kind, bytes(from: 0), isCompressed: message.isCompressed)
  }

  /// A view of the assembled bytes that outlives the call: the buffer's memory is not moved or freed before
  /// `forgetDelivered`, which only the next call of `FrameReader.next` makes.
  private func bytes(from start: Int) -> UnsafeRawBufferPointer {
    unsafe assembly.withBytes { unsafe UnsafeRawBufferPointer(rebasing: $0[start...]) }
  }
}
