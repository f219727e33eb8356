// The envelope of every message, in both directions, and common parts of payloads.
import HubBytes

extension JSONTape {
  /// The members of the message itself; none where it is no object.
  func envelopeMembers() -> JSONMembers {
    self[0].kind == .object ? members(of: 0) : JSONMembers()
  }

  /// The message's id, if it has a valid one, so that an error can name it.
  func messageID(_ envelope: JSONMembers, _ bytes: Span<UInt8>) -> MessageID? {
    guard let index = present(envelope, .messageId), isText(index) else { return nil }
    return unsafe withText(index, bytes) { unsafe MessageID($0) }
  }

  /// The id by which a repeated body is recognised; nil where it has none.
  func messageID(ofBody body: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> MessageID? {
    guard present(body, .messageId) != nil else { return nil }
    return try checked(messageID(body, bytes))
  }

  private func checked(_ messageID: MessageID?) throws(ValidationError) -> MessageID {
    guard let messageID else { throw ValidationError(.messageId, "expected a string of 1–64 bytes") }
    return messageID
  }

  /// RFC 8259 §4: names should be unique. With duplicates, readers may understand a text differently.
  func checkDuplicates() throws(ValidationError) {
    guard !hasDuplicate else { throw ValidationError(.unknown, "an object has two members of the same name") }
  }

  /// Checks the envelope's members except `type` and `payload`.
  func envelopeHead(
    _ envelope: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> (messageID: MessageID, timestamp: Timestamp) {
    guard self[0].kind == .object else { throw ValidationError(.unknown, "expected an object: the envelope") }
    _ = try required(present(envelope, .messageId), .messageId)
    let messageID = try checked(messageID(envelope, bytes))
    return (messageID, try required(timestamp(envelope, .timestamp, bytes, time), .timestamp))
  }

  /// The index of the envelope's `type`.
  func typeIndex(_ envelope: JSONMembers) throws(ValidationError) -> Int {
    let type = try required(present(envelope, .type), .type)
    guard isText(type) else { throw ValidationError(.type, "expected a string") }
    return type
  }

  /// The members of the envelope's `payload`.
  @inline(__always)
  func payload(_ envelope: JSONMembers) throws(ValidationError) -> JSONMembers {
    try required(object(envelope, .payload), .payload)
  }

  /// The payload of a ping, or that of a pong without the members that the hub adds.
  func ping(_ payload: Int, _ bytes: Span<UInt8>) throws(ValidationError) -> Ping {
    let members = members(of: payload, but: [.replyTo, .serverTime, .storedThrough], bytes)
    try Ping.check(members?.count ?? 0)
    return Ping(members: members)
  }

  /// The text of an object's members without the braces and without those of some names; nil where none are left. It is
  /// one line, as events of a stream and lines of NDJSON have to be: line ends become spaces (RFC 8259 §2 has them only
  /// between tokens).
  func members(of payload: Int, but own: [JSONKey], _ bytes: Span<UInt8>) -> [UInt8]? {
    guard self[payload].kind == .object else { return nil }
    let end = Int(self[payload].next)
    var kept: [UInt8] = []
    var i = payload + 1
    while i < end {
      let next = Int(self[i + 1].next)
      if !own.contains(self[i].key) {
        if !kept.isEmpty { kept.append(UInt8(ascii: ",")) }
        let start = Int(self[i].source)
        let text = start..<endOfSource(i + 1, bytes)
        for index in text {
          let isLineEnd = bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r")
          kept.append(isLineEnd ? UInt8(ascii: " ") : bytes[index])
        }
      }
      i = next
    }
    return kept.isEmpty ? nil : kept
  }

  /// The index behind the text of the value at `index`.
  private func endOfSource(_ index: Int, _ bytes: Span<UInt8>) -> Int {
    let token = self[index]
    let start = Int(token.source)
    switch token.kind {
    case .null, .true: return start + 4
    case .false: return start + 5
    case .number: return scanNumber(bytes, from: start)?.end ?? start
    case .string: return start + Int(token.count) + 2
    case .array, .object: return Int(token.start)
    case .unescaped: return endOfString(bytes, start)
    }
  }

  /// The index behind the well-formed string at `start`.
  private func endOfString(_ bytes: Span<UInt8>, _ start: Int) -> Int {
    var i = bytes.plainEnd(from: start + 1)
    while i < bytes.count, bytes[i] != UInt8(ascii: "\"") {
      i = bytes.plainEnd(from: min(i + 2, bytes.count))  // behind a backslash and what it escapes
    }
    return i + 1
  }
}
