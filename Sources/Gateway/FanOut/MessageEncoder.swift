// Messages of the hub, written into the arena in the form of an encoding.
import HubBytes
import HubCore
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

/// Writes publications and replies, and has the state that readers of a form share: names that binary positions leave
/// out, and compressors.
struct MessageEncoder {
  private let loop: EventLoop
  private let rows = Encoding.table
  private let largestAnswer: Int
  private var names = BinaryNames()
  var compression: CompressionContexts
  /// Publications that were encoded.
  private(set) var encodes: UInt64 = 0
  /// The number of replies of this loop, for their envelopes.
  private var replyNumber: UInt64 = 0

  init(_ loop: EventLoop, _ limits: Limits) {
    self.loop = loop
    largestAnswer = limits.largestAnswer
    compression = CompressionContexts(limits)
  }

  // MARK: Publications

  /// Encodes a position for the first subscriber of an encoding; nil where that is not plain JSON.
  @inline(__always)
  mutating func encode(
    _ delivery: UnsafePointer<PositionDelivery>, _ encoding: Encoding, _ encoded: inout EncodedFrames
  ) -> Range<Int>? {
    let row = rows[Int(encoding.index)]
    guard case .json(let time) = row.form, !row.isCompressed, !row.hidesIDs,
      let position = unsafe delivery.pointer(to: \.position)
    else {
      return nil
    }
    let payload = row.carrier.begin(in: &loop.arena)
    unsafe JSONWriter.write(at: position, time: time, into: &loop.arena)
    let frame = row.carrier.finish(row.form, payloadAt: payload, in: &loop.arena)
    encodes += 1
    encoded[encoding] = frame
    return frame
  }

  /// Encodes a publication for the first subscriber of an encoding. The compressed form is made of the plain one, which
  /// is encoded if needed.
  mutating func encode(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ encoding: Encoding,
    _ encoded: inout EncodedFrames
  ) -> Range<Int> {
    let row = rows[Int(encoding.index)]
    guard row.isCompressed else {
      let frame = write(publication, on: channel, row)
      encoded[encoding] = frame
      return frame
    }
    let plain = encoded[encoding.uncompressed] ?? encode(publication, on: channel, encoding.uncompressed, &encoded)
    let frame = compression.deflate(row.carrier.payload(of: plain), row.carrier, in: &loop.arena) ?? plain
    encoded[encoding] = frame
    return frame
  }

  private mutating func write(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ row: Encoding.Row
  ) -> Range<Int> {
    encodes += 1
    let payload = row.carrier.begin(in: &loop.arena)
    switch row.form {
    case .json(let time) where row.hidesIDs:
      JSONWriter.write(publication.withoutIDs, time: time, into: &loop.arena)
    case .json(let time): JSONWriter.write(publication, time: time, into: &loop.arena)
    case .binary:
      BinaryWriter.write(publication, handle: channel.index, names: names.names(of: channel), into: &loop.arena)
    }
    return row.carrier.finish(row.form, payloadAt: payload, in: &loop.arena)
  }

  // MARK: Binary names

  func isBinary(_ encoding: Encoding) -> Bool { rows[Int(encoding.index)].form == .binary }

  /// New names that all binary subscribers of the channel get before a publication; nil where there are none.
  mutating func announcement(before publication: borrowing Publication, on channel: ChannelHandle) -> Range<Int>? {
    guard case .driverLocation(let location) = publication.body,
      let new = names.follow(location, publishedAt: publication.timestamp, on: channel)
    else { return nil }
    let payload = Carrier.webSocket.begin(in: &loop.arena)
    BinaryWriter.write(new, handle: channel.index, into: &loop.arena)
    return Carrier.webSocket.finish(.binary, payloadAt: payload, in: &loop.arena)
  }

  /// A session has subscribed to a channel.
  mutating func opened(_ channel: ChannelHandle, _ name: Channel, _ encoding: Encoding) {
    if isBinary(encoding) { names.open(channel, name) }
  }

  /// A channel has no subscriber any more.
  mutating func released(_ channel: ChannelHandle) {
    if !names.isEmpty { names.forget(channel) }
  }

  // MARK: Replies

  private mutating func nextReplyNumber() -> UInt64 {
    replyNumber += 1
    return replyNumber
  }

  private var now: Timestamp { Timestamp(milliseconds: loop.now.unixMilliseconds) }

  /// Encodes a reply; nil for a result that is too large. `channel`: the one that a `subscribed` is about.
  mutating func encode(_ reply: Reply, _ encoding: Encoding, naming channel: ChannelHandle?) -> Range<Int>? {
    let row = rows[Int(encoding.index)]
    let number = nextReplyNumber()
    let payload = row.carrier.begin(in: &loop.arena)
    switch row.form {
    case .json(let time):
      var reply = reply
      if row.hidesIDs, case .subscribed(let answer) = reply { reply = .subscribed(answer.withoutIDs) }
      JSONWriter.write(reply, timestamp: now, messageID: number, time: time, into: &loop.arena)
    case .binary:
      let naming = channel.map { (handle: $0.index, names: names.names(of: $0)) }
      BinaryWriter.write(reply, timestamp: now, messageID: number, naming: naming, into: &loop.arena)
    }
    let plain = row.carrier.finish(row.form, payloadAt: payload, in: &loop.arena)
    if case .result = reply, plain.count > largestAnswer { return nil }
    // It may have ten minutes of figures, and compressing those takes as long as a turn.
    if case .subscribed = reply, plain.count > WorkUnits.freeAnswerBytes { return plain }
    guard row.isCompressed else { return plain }
    return compression.deflate(payload..<plain.upperBound, row.carrier, in: &loop.arena) ?? plain
  }

  /// A list of drivers that was written over several turns, as one message; nil where it is too large.
  mutating func encode(_ reply: DriverListReply, _ replyTo: MessageID, _ encoding: Encoding) -> Range<Int>? {
    guard reply.plainBytes <= largestAnswer else { return nil }
    let (number, carrier) = (nextReplyNumber(), rows[Int(encoding.index)].carrier)
    let payload = carrier.begin(in: &loop.arena)
    switch reply.form {
    case .json: JSONWriter.writeResultHead(replyTo: replyTo, into: &loop.arena)
    case .binary: BinaryWriter.writeResultHead(replyTo: replyTo, timestamp: now, messageID: number, into: &loop.arena)
    }
    var plainBytes = reply.plainBytes + loop.arena.count - payload
    if reply.isCompressed { compress(partAt: payload, isLast: false) }
    loop.arena.append(reply.body)
    let end = loop.arena.count
    if case .json(let time) = reply.form {
      JSONWriter.writeEnd(timestamp: now, messageID: number, time: time, into: &loop.arena)
    }
    plainBytes += loop.arena.count - end
    guard plainBytes + FrameWriter.headerLength(payload: plainBytes, isMasked: false) <= largestAnswer else {
      return nil
    }
    if reply.isCompressed {
      compress(partAt: end, isLast: true)
      compression.count(bytesIn: plainBytes, bytesOut: loop.arena.count - payload)
    }
    return carrier.finish(reply.form, payloadAt: payload, isCompressed: reply.isCompressed, in: &loop.arena)
  }

  // MARK: Compression

  /// A session opens in a slot, with the form of its messages.
  mutating func open(_ slot: Int, _ form: MessageForm, _ agreed: DeflateParameters?) -> Encoding {
    let isShared = if let agreed { compression.open(slot, agreed) } else { false }
    return Encoding(Encoding.Row(form: form, isCompressed: isShared))
  }

  /// A plain frame compressed with the session's own context.
  mutating func deflate(_ frame: Range<Int>, with own: MessageCompression) -> Range<Int>? {
    compression.deflate(Carrier.webSocket.payload(of: frame), .webSocket, in: &loop.arena, with: own)
  }

  /// Compresses in place what is behind `start`, a part of a message.
  mutating func compress(partAt start: Int, isLast: Bool) {
    compression.compress(partAt: start, isLast: isLast, in: &loop.arena)
  }
}
