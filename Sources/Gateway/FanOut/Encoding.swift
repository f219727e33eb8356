// A table of the forms of messages, and where the frame of each form is once a message was encoded.
import HubBytes
import HubMessages
import HubWebSocket

/// What carries a message.
enum Carrier: UInt8, CaseIterable {
  /// A frame of its own (RFC 6455 §5.6).
  case webSocket
  /// An event of a stream (HTML standard, "Server-sent events"): one `data` line, as JSON has no line ends.
  case eventStream

  /// The name in metrics.
  var name: StaticString {
    switch self {
    case .webSocket: "websocket"
    case .eventStream: "event_stream"
    }
  }

  private static let data: StaticString = "data: "
  private static let end: StaticString = "\n\n"

  /// Leaves room in front of a message; gives the index where it begins.
  @inline(__always)
  func begin(in arena: inout ByteBuffer) -> Int {
    switch self {
    case .webSocket: return FrameWriter.begin(as: .server, in: &arena)
    case .eventStream:
      arena.append(Carrier.data)
      return arena.count
    }
  }

  /// Completes the message from `payload` to the arena's end; gives its range with the front.
  @inline(__always)
  func finish(_ form: MessageForm, payloadAt payload: Int, isCompressed: Bool = false, in arena: inout ByteBuffer)
    -> Range<Int>
  {
    switch self {
    case .webSocket:
      let start = FrameWriter.finish(form.opcode, payloadAt: payload, isCompressed: isCompressed, in: &arena)
      return start..<arena.count
    case .eventStream:
      arena.append(Carrier.end)
      return (payload - Carrier.data.utf8CodeUnitCount)..<arena.count
    }
  }

  /// The range of the message within that of `finish`.
  func payload(of frame: Range<Int>) -> Range<Int> {
    switch self {
    case .webSocket: FrameWriter.serverPayload(of: frame)
    case .eventStream:
      (frame.lowerBound + Carrier.data.utf8CodeUnitCount)..<(frame.upperBound - Carrier.end.utf8CodeUnitCount)
    }
  }

  /// Appends a message that is compressed by RFC 7692; gives its range.
  func append(compressed message: UnsafeRawBufferPointer, to arena: inout ByteBuffer) -> Range<Int> {
    let start = arena.count
    switch self {
    case .webSocket: unsafe FrameWriter.write(.text, message, isCompressed: true, into: &arena)
    case .eventStream: preconditionFailure("no row of the table is a compressed stream")
    }
    return start..<arena.count
  }
}

extension MessageForm {
  /// RFC 6455 §5.6: text is UTF-8; all else is binary.
  fileprivate var opcode: Opcode {
    switch self {
    case .json: .text
    case .binary: .binary
    }
  }
}

/// The form of a session's messages: a row of the table. A message is encoded once for each form in use.
struct Encoding: Hashable, BitwiseCopyable {
  struct Row: Hashable {
    var carrier = Carrier.webSocket
    var form: MessageForm
    /// Compressed with the shared compressor, from the row without it.
    var isCompressed = false
    /// For the holders of shares: without ids.
    var hidesIDs = false
  }

  /// All encodings. A new one is a row here, and a writer of its form or carrier where that is new.
  static let table: [Row] =
    TimeFormat.allCases.map { Row(form: .json($0)) } + [Row(form: .binary)]
    + TimeFormat.allCases.map { Row(form: .json($0), isCompressed: true) }
    + TimeFormat.allCases.map { Row(carrier: .eventStream, form: .json($0)) }
    + [Carrier.webSocket, .eventStream].map { Row(carrier: $0, form: .json(.unixMilliseconds), hidesIDs: true) }

  static let ofShares = Encoding(Row(form: .json(.unixMilliseconds), hidesIDs: true))

  /// - Precondition: with `hidesIDs` times are in milliseconds.
  static func stream(_ time: TimeFormat, hidesIDs: Bool) -> Encoding {
    Encoding(Row(carrier: .eventStream, form: .json(time), hidesIDs: hidesIDs))
  }

  let index: UInt8

  /// - Precondition: the table has the row.
  init(_ row: Row) {
    guard let index = Encoding.table.firstIndex(of: row) else { preconditionFailure("no row of the table: \(row)") }
    self.index = UInt8(index)
  }

  var row: Row { Encoding.table[Int(index)] }
  var isCompressed: Bool { row.isCompressed }
  var isStream: Bool { row.carrier == .eventStream }

  var uncompressed: Encoding {
    var row = row
    row.isCompressed = false
    return Encoding(row)
  }
}

/// The ranges of a message's encodings in the arena.
struct EncodedFrames {
  /// By the encoding's index: offsets in the arena, which are within 32 bits. Empty where it is not encoded.
  private var frames = InlineArray<12, Range<UInt32>>(repeating: 0..<0)

  subscript(encoding: Encoding) -> Range<Int>? {
    @inline(__always) get {
      let frame = frames[Int(encoding.index)]
      return frame.isEmpty ? nil : Int(frame.lowerBound)..<Int(frame.upperBound)
    }
    @inline(__always) set {
      frames[Int(encoding.index)] = newValue.map { UInt32($0.lowerBound)..<UInt32($0.upperBound) } ?? 0..<0
    }
  }
}
