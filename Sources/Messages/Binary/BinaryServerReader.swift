// The hub's messages in binary, as a client reads them.
//
// One reader for each connection: positions name their channel by a number from `subscribed`, and leave out the ids and
// the lag that `subscribed` or `names` gave, and the high half of the time. No message is a difference from another
// one: any position may be missing (the hub replaces unsent ones by newer ones) without affecting the next.
import HubBytes
import HubGeo

/// Reads the hub's messages of one connection (`locationhub.v1.binary`). Not thread-safe.
public struct BinaryServerReader: Sendable {
  struct Entry: Sendable {
    var channel: Channel
    var names: ImpliedNames
  }

  /// The channels that `subscribed` gave a number, by that number.
  var entries: [UInt32: Entry] = [:]
  var handles: [Channel: UInt32] = [:]
  /// The hub's clock, from the newest message with a full timestamp.
  var hubTime: Timestamp?

  /// `hubTime`: the hub's clock, where no message with a full timestamp comes first.
  public init(hubTime: Timestamp? = nil) { self.hubTime = hubTime }

  /// Reads one message. A message with an unknown type or keyword is `.unknown`, since a newer hub may send it.
  ///
  /// - Returns: nil for `names`, which is only for this reader.
  /// - Throws: `bad_message` or `too_large`, which a client can only log: the hub sends none.
  public mutating func read(_ bytes: UnsafeRawBufferPointer) throws(MessageError) -> ServerEnvelope? {
    var type = ""
    do throws(ValidationError) {
      guard bytes.count <= MessageLimits.serverBytes else {
        throw ValidationError(.tooLarge, .unknown, "the message is longer than 1,048,576 bytes")
      }
      var input = unsafe BinaryInput(bytes)
      let first = try input.byte(.type)
      if first & binaryFrequentBit != 0 {
        type = "driver_location"
        return state(Publication(try readPosition(first, &input)))
      }
      guard let known = BinaryServerType(rawValue: first) else {
        // The layout of an unknown type is unknown, so nothing else can be read.
        return ServerEnvelope(
          messageID: .ofState, timestamp: hubTime ?? Timestamp(milliseconds: 0), message: .unknown(type: "\(first)"))
      }
      type = known.name
      return try read(known, &input)
    } catch {
      guard error.isUnknownKeyword else { throw MessageError(error, messageID: nil) }
      return ServerEnvelope(
        messageID: .ofState, timestamp: hubTime ?? Timestamp(milliseconds: 0), message: .unknown(type: type))
    }
  }

  /// Reads a message that is a position; nil for any other, and for one that `read` refuses. The frequent kind, without
  /// what an envelope costs.
  public mutating func readPosition(_ bytes: UnsafeRawBufferPointer) -> PublishedPosition? {
    do throws(ValidationError) {
      var input = unsafe BinaryInput(bytes)
      let first = try input.byte(.type)
      guard first & binaryFrequentBit != 0 else { return nil }
      let position = try readPosition(first, &input)
      note(position.timestamp)
      return position
    } catch { return nil }
  }

  private mutating func read(
    _ type: BinaryServerType, _ input: inout BinaryInput
  ) throws(ValidationError) -> ServerEnvelope? {
    switch type {
    case .names:
      try readNames(&input)
      return nil
    case .etaUpdate: return state(try readETA(&input))
    case .areaUpdate: return state(try readArea(&input))
    case .rawFix: return state(try readRawFix(&input))
    case .countsUpdate: return state(try readCounts(&input))
    case .stats:
      let published = try time(lowest: try input.word32(.timestamp), input)
      let figures = try input.figures()
      return state(Publication(channel: .stats, number: 0, timestamp: published, body: .stats(figures)))
    case .tripUpdate, .notification, .offer, .offerWithdrawn:
      return try readEvent(type, &input)
    case .connected, .subscribed, .unsubscribed, .ack, .pong, .sampling, .error, .result:
      return try readAnswer(type, &input)
    }
  }

  /// Reads a reply without a part that has an unknown keyword; it is `.unknown` where the part is not optional.
  private mutating func readAnswer(
    _ type: BinaryServerType, _ input: inout BinaryInput
  ) throws(ValidationError) -> ServerEnvelope {
    let number = try input.varint(.messageId)
    let timestamp = try input.timestamp(.timestamp)
    note(timestamp)
    input.passesUnknownKeywords = true
    let reply = try readReply(type, &input)
    var read = ServerEnvelope(
      messageID: MessageID(prefix: UInt8(ascii: "r"), number: number), timestamp: timestamp, message: .reply(reply))
    if input.hasUnknownKeyword {
      read.message = .unknown(type: type.name)
      if case .result(let answer) = reply { read.unknownReplyTo = answer.replyTo }
    }
    return read
  }

  /// Reads an event. It is `.unknown` where it has an unknown keyword, but its sequence counts.
  private mutating func readEvent(
    _ type: BinaryServerType, _ input: inout BinaryInput
  ) throws(ValidationError) -> ServerEnvelope {
    input.passesUnknownKeywords = true
    let publication = try readPublication(type, &input)
    note(publication.timestamp)
    var event = ServerEnvelope(
      messageID: MessageID(prefix: UInt8(ascii: "p"), number: publication.number), timestamp: publication.timestamp,
      message: .publication(publication))
    if input.hasUnknownKeyword, let sequence = publication.sequence {
      event.message = .unknown(type: type.name)
      event.unknownEvent = UnknownEvent(channel: publication.channel, sequence: sequence)
    }
    return event
  }

  private mutating func state(_ publication: Publication) -> ServerEnvelope {
    note(publication.timestamp)
    return ServerEnvelope(
      messageID: .ofState, timestamp: publication.timestamp, message: .publication(publication))
  }

  // MARK: Times

  /// The newest time is kept: a message may be older than the one before, if it was kept for recovery.
  private mutating func note(_ timestamp: Timestamp) { hubTime = max(hubTime ?? timestamp, timestamp) }

  /// The time with these lowest 32 bits that is nearest to the hub's known time. Candidates are 49.7 days apart.
  func time(lowest bits: UInt32, _ input: borrowing BinaryInput) throws(ValidationError) -> Timestamp {
    guard let hubTime else { throw ValidationError(.timestamp, "no message with the whole time has come before") }
    let difference = Int32(bitPattern: bits &- UInt32(truncatingIfNeeded: hubTime.milliseconds))
    return try input.accepted(hubTime.milliseconds &+ Int64(difference), .timestamp)
  }

  // MARK: Handles

  func entry(_ input: inout BinaryInput) throws(ValidationError) -> Entry {
    let handle = try input.varint(.channel)
    guard let narrow = UInt32(exactly: handle), let entry = entries[narrow] else {
      throw ValidationError(.unknownChannel, .channel, "no subscribed gave a channel this number")
    }
    return entry
  }

  mutating func readHandle(_ input: inout BinaryInput) throws(ValidationError) -> UInt32 {
    guard let handle = UInt32(exactly: try input.varint(.channel)) else {
      throw ValidationError(.channel, "expected a number below 2^32")
    }
    return handle
  }

  private mutating func readNames(_ input: inout BinaryInput) throws(ValidationError) {
    let handle = try readHandle(&input)
    let names = try input.channelNames()
    guard entries[handle] != nil else {
      throw ValidationError(.unknownChannel, .channel, "no subscribed gave a channel this number")
    }
    entries[handle]?.names = names
  }

  /// Gives a channel a number, which no other channel has.
  mutating func name(_ channel: Channel, _ handle: UInt32, _ names: ImpliedNames) throws(ValidationError) {
    if let before = entries[handle] { handles[before.channel] = nil }
    if let before = handles[channel] { entries[before] = nil }
    guard entries.count < MessageLimits.channelHandles else {
      throw ValidationError(.tooLarge, .channel, "more channels than a client has subscriptions")
    }
    entries[handle] = Entry(channel: channel, names: names)
    handles[channel] = handle
  }

  mutating func forget(_ channel: Channel) {
    if let handle = handles.removeValue(forKey: channel) { entries[handle] = nil }
  }
}

extension MessageID {
  /// State has no number in binary: where an id is needed, it is `p0`.
  static let ofState = MessageID(prefix: UInt8(ascii: "p"), number: 0)
}

extension BinaryInput {
  mutating func channelNames() throws(ValidationError) -> ImpliedNames {
    let flags = try byte(.channel)
    var names = ImpliedNames()
    if flags & 0x01 != 0 { names.driverID = try identifier(.driverId) }
    if flags & 0x02 != 0 { names.tripID = try identifier(.tripId) }
    names.lagMilliseconds = try zigzag(.age)
    return names
  }
}
