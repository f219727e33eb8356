// Reads messages and bodies in JSON: bytes in, a checked value out, or an error that says what would be right.
import HubBytes
public import HubGeo

/// Why a message was refused, for the `error` that answers it.
public struct MessageError: Error, Equatable {
  public var code: ErrorCode
  /// The member, and what was expected, for developers.
  public var text: String
  /// The message's own id, for `replyTo`, if it could be read.
  public var messageID: MessageID?
  /// Positions of polygons that were checked for crossings before the refusal, which the sender is charged for.
  public internal(set) var checkedPositions = 0

  public init(code: ErrorCode, text: String, messageID: MessageID? = nil) {
    self.code = code
    self.text = text
    self.messageID = messageID
  }
}

/// Reads messages one after the other, with scratch memory of its own: use one for each loop or connection.
///
/// The scratch holds up to 1.6 MB of tokens and one message's text, whatever is read. Not thread-safe.
@safe
public final class MessageReader {
  // Unsafe island: the tapes are behind pointers because each use of a class's stored property is checked for exclusive
  // access at run time, which cost a twentieth of a read. Exclusivity holds: the class is not Sendable, and none of its
  // methods runs code of a caller.
  private let tape = UnsafeMutablePointer<JSONTape>.allocate(capacity: 1)
  // A client reads with other limits (JSONLimits.server), in a tape that a hub never grows.
  private let serverTape = UnsafeMutablePointer<JSONTape>.allocate(capacity: 1)

  public init() {
    unsafe tape.initialize(to: JSONTape(limits: .client))
    unsafe serverTape.initialize(to: JSONTape(limits: .server))
  }

  deinit {
    unsafe tape.deinitialize(count: 1)
    unsafe serverTape.deinitialize(count: 1)
    unsafe tape.deallocate()
    unsafe serverTape.deallocate()
  }

  #if DEBUG
    /// The work of parsing clients' messages so far, in steps: for tests.
    var steps: Int { unsafe tape.pointee.steps + tape.pointee.names.steps }
  #endif

  /// Reads a `location_update`, as nine in ten messages are, in the form that encoders write. False for any other
  /// message or form: `readAny` reads those, and gives the errors.
  ///
  /// The result goes into an envelope that the caller keeps, since its 300 bytes would be copied several times as a
  /// result. After false its content is undefined.
  /// - Precondition: the bytes are UTF-8.
  /// - Complexity: O(bytes). Allocates nothing.
  public func readUpdate(
    _ bytes: UnsafeRawBufferPointer, time: TimeFormat, into envelope: inout UpdateEnvelope
  ) -> Bool {
    unsafe PlainUpdate.read(bytes.assumingMemoryBound(to: UInt8.self).span, time, tape.pointee.keys, into: &envelope)
  }

  /// Reads one message of a client to the hub.
  ///
  /// - Parameters:
  ///   - bytes: the whole message; used during the call only.
  ///   - time: how this connection writes timestamps.
  ///   - isValidUTF8: true where the bytes were checked already, like those of a text frame (RFC 6455 §8.1).
  /// - Throws: `bad_json` for text that is no JSON (RFC 8259), `too_large` beyond a limit, `unknown_type`, and
  ///   `bad_message`, `invalid_location` or `unknown_channel` for a member's value.
  /// - Complexity: O(bytes). A `location_update` allocates nothing once the scratch has grown.
  public func read(
    _ bytes: UnsafeRawBufferPointer, time: TimeFormat, isValidUTF8: Bool
  ) throws(MessageError) -> ClientEnvelope {
    if isValidUTF8 {
      var known = UpdateEnvelope()
      if unsafe readUpdate(bytes, time: time, into: &known) {
        return ClientEnvelope(
          messageID: known.messageID, timestamp: known.timestamp, message: .locationUpdate(known.update))
      }
    }
    return try unsafe readAny(bytes, time: time, isValidUTF8: isValidUTF8)
  }

  /// Reads a message of any type that `readUpdate` has left. Throws like `read`.
  @inline(never)
  public func readAny(
    _ bytes: UnsafeRawBufferPointer, time: TimeFormat, isValidUTF8: Bool
  ) throws(MessageError) -> ClientEnvelope {
    let span = unsafe bytes.assumingMemoryBound(to: UInt8.self).span
    try unsafe parse(&tape.pointee, span, isValidUTF8: isValidUTF8)
    let envelope = unsafe tape.pointee.envelopeMembers()
    let messageID = unsafe tape.pointee.messageID(envelope, span)
    do throws(ValidationError) {
      try unsafe tape.pointee.checkDuplicates()
      return try unsafe tape.pointee.clientEnvelope(envelope, span, time)
    } catch {
      throw MessageError(error, messageID: messageID)
    }
  }

  /// Reads the body of `POST /v1/locations`: one payload of a `location_update` or of a `location_batch`.
  ///
  /// - Throws: as `read`. An invalid fix is an error where it is the only one, and keeps its index in a batch.
  public func readLocations(_ bytes: UnsafeRawBufferPointer, time: TimeFormat) throws(MessageError) -> LocationBatch {
    try unsafe readBody(bytes) { (tape, span) throws(ValidationError) in try tape.locations(span, time) }
  }

  /// Reads the body of `POST /v1/trips`: a trip that is requested.
  ///
  /// `id` and `now` are the defaults of the body's members.
  /// - Throws: as `read`.
  public func readTripRequest(
    _ bytes: UnsafeRawBufferPointer, time: TimeFormat, id: Identifier, now: Timestamp
  ) throws(MessageError) -> TripStatusReport {
    try unsafe readBody(bytes, .tripRequest) { (tape, span) throws(ValidationError) in
      try tape.tripRequest(span, time, id: id, now: now)
    }
  }

  /// Reads the body of `POST /v1/trips/{id}/status`: a move, as in a `trip_status`, and the id by which a repetition is
  /// recognised (`messageId`), if it has one. `now`: the time of a move without one.
  ///
  /// - Throws: as `read`.
  public func readTripMove(
    _ bytes: UnsafeRawBufferPointer, time: TimeFormat, id: Identifier, now: Timestamp
  ) throws(MessageError) -> (messageID: MessageID?, report: TripStatusReport) {
    try unsafe readBody(bytes) { (tape, span) throws(ValidationError) in
      try tape.tripMove(span, time, id: id, now: now)
    }
  }

  /// Reads the body of `PUT /v1/drivers/{id}/status`, which is the payload of a `driver_status`.
  ///
  /// - Throws: as `read`.
  public func readDriverStatus(_ bytes: UnsafeRawBufferPointer) throws(MessageError) -> DriverStatusReport {
    try unsafe readBody(bytes) { (tape, span) throws(ValidationError) in try tape.driverStatus(span) }
  }

  /// Reads the body of `PATCH /v1/trips/{id}`: the changes of the trip.
  ///
  /// - Throws: as `read`.
  public func readTripChange(_ bytes: UnsafeRawBufferPointer, id: Identifier) throws(MessageError) -> TripChange {
    try unsafe readBody(bytes, .tripChange) { (tape, span) throws(ValidationError) in
      try tape.tripChange(span, id: id)
    }
  }

  /// Reads the end of a share: the body of `POST /v1/trips/{id}/shares`; nil where it ends with its trip.
  public func readShareExpiry(_ bytes: UnsafeRawBufferPointer, time: TimeFormat) throws(MessageError) -> Timestamp? {
    try unsafe readBody(bytes, .share) { (tape, span) throws(ValidationError) in try tape.shareExpiry(span, time) }
  }

  /// Reads criteria for drivers: the body of `POST /v1/trips/{id}/offers`.
  ///
  /// - Throws: as `read`.
  public func readOfferCriteria(_ bytes: UnsafeRawBufferPointer) throws(MessageError) -> OfferCriteria {
    try unsafe readBody(bytes, .offers) { (tape, span) throws(ValidationError) in try tape.offerCriteria(span) }
  }

  /// Reads the body of `POST /v1/notifications`.
  ///
  /// - Throws: as `read`; `unknown_channel` for a channel that has no notifications.
  public func readNotification(_ bytes: UnsafeRawBufferPointer) throws(MessageError) -> NotificationPost {
    try unsafe readBody(bytes) { (tape, span) throws(ValidationError) in try tape.notificationPost(span) }
  }

  /// Reads polygons as GeoJSON: the body of `POST /v1/drivers/within`.
  ///
  /// - Throws: as `read`; a polygon's fault is given with its ring and edges.
  public func readPolygons(_ bytes: UnsafeRawBufferPointer) throws(MessageError) -> MultiPolygon {
    try unsafe readBody(bytes) { (tape, span) throws(ValidationError) in try tape.polygons(at: 0, .unknown, span) }
  }

  /// Reads a fence: the body of `PUT /v1/fences/{id}`.
  ///
  /// - Throws: as `read`; a polygon's fault is given with its ring and edges.
  public func readFence(_ bytes: UnsafeRawBufferPointer, id: Identifier) throws(MessageError) -> Fence {
    try unsafe readBody(bytes, .fence) { (tape, span) throws(ValidationError) in try tape.fence(span, id: id) }
  }

  /// Reads a phone app's request in JSON. An empty body, which some apps send, is a report without a fix.
  ///
  /// - Throws: `bad_json`, and `too_large` beyond a limit.
  /// - Precondition: the format is one in JSON, not `osmAnd`.
  public func readPhone(_ bytes: UnsafeRawBufferPointer, _ format: PhoneFormat) throws(MessageError) -> PhoneReport {
    guard bytes.count > 0 else { return PhoneReport(format) }
    let report = try unsafe readBody(bytes) { (tape, span) in
      switch format {
      case .ownTracks: tape.ownTracks(span)
      case .traccar: tape.traccar(span)
      case .overland: tape.overland(span)
      case .osmAnd: preconditionFailure("OsmAnd sends parameters")
      }
    }
    guard report.fixes.count <= LocationBatch.maximumCount else {
      throw MessageError(code: .tooLarge, text: "expected at most \(LocationBatch.maximumCount) points")
    }
    return report
  }

  /// Reads one message of the hub to a client. Unknown members are ignored, and a message with an unknown type or
  /// keyword is `.unknown`, since a newer hub may send it.
  ///
  /// - Throws: `bad_json`, `too_large` or `bad_message`, which a client can only log: the hub sends none.
  public func readServer(
    _ bytes: UnsafeRawBufferPointer, time: TimeFormat, isValidUTF8: Bool = true
  ) throws(MessageError) -> ServerEnvelope {
    let span = unsafe bytes.assumingMemoryBound(to: UInt8.self).span
    try unsafe parse(&serverTape.pointee, span, isValidUTF8: isValidUTF8)
    let envelope = unsafe serverTape.pointee.envelopeMembers()
    let messageID = unsafe serverTape.pointee.messageID(envelope, span)
    do throws(ValidationError) {
      try unsafe serverTape.pointee.checkDuplicates()
      return try unsafe serverTape.pointee.serverEnvelope(envelope, span, time)
    } catch {
      throw MessageError(error, messageID: messageID)
    }
  }

  /// Reads the body of a request, which is no message and has no id. `known`: the members that it may have; nil for
  /// any.
  private func readBody<Body>(
    _ bytes: UnsafeRawBufferPointer, _ known: BodyMembers? = nil,
    _ body: (borrowing JSONTape, Span<UInt8>) throws(ValidationError) -> Body
  ) throws(MessageError) -> Body {
    let span = unsafe bytes.assumingMemoryBound(to: UInt8.self).span
    try unsafe parse(&tape.pointee, span, isValidUTF8: false)
    if let known, let text = unsafe tape.pointee.unknownMember(besides: known, span) {
      throw MessageError(code: .badMessage, text: text)
    }
    do throws(ValidationError) {
      try unsafe tape.pointee.checkDuplicates()
      return try unsafe body(tape.pointee, span)
    } catch {
      throw MessageError(error, messageID: nil)
    }
  }

  @inline(__always)
  private func parse(_ tape: inout JSONTape, _ span: Span<UInt8>, isValidUTF8: Bool) throws(MessageError) {
    do throws(JSONError) {
      try tape.parse(span)
      if !isValidUTF8 { try checkUTF8(span) }
    } catch {
      throw MessageError(error, limits: tape.limits)
    }
  }

  /// RFC 8259 §8.1: JSON between systems is UTF-8.
  private func checkUTF8(_ span: Span<UInt8>) throws(JSONError) {
    do {
      _ = try UTF8Span(validating: span)
    } catch {
      throw JSONError(.encoding, at: error.byteOffsets.lowerBound)
    }
  }
}

extension MessageError {
  init(_ failure: ValidationError, messageID: MessageID?) {
    let text = failure.member == .unknown ? "\(failure.expected)" : "\(failure.member): \(failure.expected)"
    self.init(code: failure.code, text: text + (failure.polygonFault?.text ?? ""), messageID: messageID)
    checkedPositions = Int(failure.checkedPositions)
  }

  init(_ error: JSONError, limits: JSONLimits) {
    self.init(code: error.reason.code, text: "\(error.reason.text(limits)), at byte \(error.offset)")
  }
}

extension ValidationError.PolygonFault {
  var text: String {
    let edges = first < 0 ? "" : ", edges \(first) and \(second)"
    return " (polygon \(polygon), ring \(ring)\(edges), from 0)"
  }
}

extension JSONError.Reason {
  var code: ErrorCode {
    switch self {
    case .encoding, .truncated, .syntax, .number, .control, .escape, .surrogate, .trailing: .badJSON
    case .depth, .members, .tokens, .bytes: .tooLarge
    }
  }

  func text(_ limits: JSONLimits) -> String {
    switch self {
    case .encoding: "not UTF-8"
    case .truncated: "the text ends within a value"
    case .syntax: "not JSON"
    case .number: "not a JSON number"
    case .control: "a control character in a string, which must be escaped"
    case .escape: "not an escape of JSON"
    case .surrogate: "half of a surrogate pair"
    case .trailing: "something behind the value"
    case .depth: "nested deeper than \(limits.depth)"
    case .members: "more than \(limits.members) members in one object"
    case .tokens: "more than \(limits.tokens) values"
    case .bytes: "longer than \(limits.bytes) bytes"
    }
  }
}
