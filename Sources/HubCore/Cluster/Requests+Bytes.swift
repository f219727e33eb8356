// Requests between hubs that are no messages of the protocol, in the journal's binary form.
package import HubBytes
package import HubMessages

extension SentOffer {
  package func append(to bytes: inout ByteBuffer) { write(into: &bytes) }

  /// Nil for what `append` did not write.
  package init?(_ bytes: ArraySlice<UInt8>) {
    guard let offer = RecordReader.values(bytes, { (reader) throws(RecordError) in try SentOffer(from: &reader) })
    else {
      return nil
    }
    self = offer
  }
}

extension NotificationPost {
  package func append(to bytes: inout ByteBuffer) {
    bytes.record(channel, kind, title, body, driverID, content, messageID)
  }

  /// Nil for what `append` did not write.
  package init?(_ bytes: ArraySlice<UInt8>) {
    let read = RecordReader.values(bytes) { (reader) throws(RecordError) in
      var post = NotificationPost(
        channel: try reader.read(), kind: try reader.read(), title: try reader.read(), body: try reader.read())
      (post.driverID, post.content, post.messageID) = (try reader.read(), try reader.read(), try reader.read())
      return post
    }
    guard let read else { return nil }
    self = read
  }
}

extension OffersQuestion {
  package func append(_ trip: Identifier, to bytes: inout ByteBuffer) {
    switch self {
    case .show: bytes.record(trip, UInt8(0))
    case .begin(let criteria, let key): bytes.record(trip, UInt8(1), criteria, key)
    case .stop: bytes.record(trip, UInt8(2))
    }
  }

  /// Nil for what `append` did not write.
  package static func read(_ bytes: ArraySlice<UInt8>) -> (trip: Identifier, question: OffersQuestion)? {
    RecordReader.values(bytes) { (reader) throws(RecordError) in
      let trip: Identifier = try reader.read()
      switch try reader.read() as UInt8 {
      case 0: return (trip, .show)
      case 1: return (trip, .begin(try reader.read(), key: try reader.read()))
      case 2: return (trip, .stop)
      case _: throw reader.failure(.status)
      }
    }
  }
}

extension OffersReport {
  package func append(to bytes: inout ByteBuffer) {
    DurableOffers(asker: 0, key: 0, report: self).write(into: &bytes)
  }

  /// Nil for what `append` did not write.
  package init?(_ bytes: ArraySlice<UInt8>) {
    let read = RecordReader.values(bytes) { (reader) throws(RecordError) in try DurableOffers(from: &reader).report }
    guard let read else { return nil }
    self = read
  }
}

extension TripShareQuestion {
  package func append(_ trip: Identifier, to bytes: inout ByteBuffer) {
    switch self {
    case .list: bytes.record(trip, UInt8(0))
    case .begin(let share): bytes.record(trip, UInt8(1), share)
    case .end(let id): bytes.record(trip, UInt8(2), id)
    }
  }

  /// Nil for what `append` did not write.
  package static func read(_ bytes: ArraySlice<UInt8>) -> (trip: Identifier, question: TripShareQuestion)? {
    RecordReader.values(bytes) { (reader) throws(RecordError) in
      let trip: Identifier = try reader.read()
      switch try reader.read() as UInt8 {
      case 0: return (trip, .list)
      case 1: return (trip, .begin(try reader.read()))
      case 2: return (trip, .end(try reader.read()))
      case _: throw reader.failure(.status)
      }
    }
  }
}

extension TripAnswer {
  /// Writes an answer about shares; no other answer is allowed.
  package func append(to bytes: inout ByteBuffer) {
    switch self {
    case .shares(let list): bytes.record(UInt8(0), list)
    case .shared(let share, let trip): bytes.record(UInt8(1), share, trip)
    case .unshared: bytes.record(UInt8(2))
    case .trip, .list, .refused, .offers, .offersStopped: preconditionFailure("it is not about shares")
    }
  }

  /// Nil for what `append` did not write.
  package init?(shares bytes: ArraySlice<UInt8>) {
    let read = RecordReader.values(bytes) { (reader) throws(RecordError) -> TripAnswer in
      switch try reader.read() as UInt8 {
      case 0: return .shares(try reader.read())
      case 1: return .shared(try reader.read(), of: try reader.read())
      case 2: return .unshared
      case _: throw reader.failure(.status)
      }
    }
    guard let read else { return nil }
    self = read
  }
}

extension RecordReader {
  /// The value that `body` reads, if it uses all bytes; else nil.
  fileprivate static func values<Value>(
    _ bytes: ArraySlice<UInt8>, _ body: (inout RecordReader) throws(RecordError) -> Value
  ) -> Value? {
    let read = unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(RecordError) in
        var reader = unsafe RecordReader(whole: bytes)
        let value = try body(&reader)
        guard reader.isAtEnd else { throw reader.failure(.surplus) }
        return value
      }
    }
    if case .success(let value) = read { return value }
    return nil
  }
}
