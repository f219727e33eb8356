// Clients' messages in binary (protocol/binary.md): bytes in, a checked value out, or an error that says what would be
// right. A `location_update`, nine in ten of all messages, is read from front to back without an allocation.
//
// Bytes behind the last member of a message are ignored, like unknown members of JSON: a newer client may send more.
import HubBytes
import HubGeo

/// Reads messages of clients (`locationhub.v1.binary`).
public enum BinaryReader {
  /// Reads one message.
  ///
  /// - Parameters:
  ///   - bytes: the whole message; used during the call only.
  ///   - tripBefore: the trip that this connection's last `location_update` with a trip named.
  /// - Throws: `unknown_type`, `too_large` beyond a limit, `bad_message` for what is malformed, and `invalid_location`
  ///   or `unknown_channel` for a member's value. The error has the message's id, if that could be read.
  /// - Complexity: O(bytes). A `location_update` allocates nothing.
  public static func read(
    _ bytes: UnsafeRawBufferPointer, tripBefore: Identifier?
  ) throws(MessageError) -> ClientEnvelope {
    var messageID: MessageID?
    do throws(ValidationError) {
      guard bytes.count <= MessageLimits.bytes else {
        throw ValidationError(.tooLarge, .unknown, "the message is longer than 262,144 bytes")
      }
      var input = unsafe BinaryInput(bytes)
      let first = try input.byte(.type)
      if first & binaryFrequentBit != 0 {
        let id = try input.messageID(.messageId)
        messageID = id
        return try input.locationUpdate(first & ~binaryFrequentBit, id, tripBefore: tripBefore)
      }
      guard let type = BinaryClientType(rawValue: first) else {
        throw ValidationError(.unknownType, .type, "expected 1 to 10, or 128 and more")
      }
      let id = try input.messageID(.messageId)
      messageID = id
      let timestamp = try input.timestamp(.timestamp)
      if type == .locationBatch { _ = try input.sendingTime(timestamp.milliseconds) }
      if type == .tripChange { try input.checkEarly(timestamp, .timestamp, .badMessage) }  // its event has this time
      return ClientEnvelope(messageID: id, timestamp: timestamp, message: try input.clientMessage(type))
    } catch {
      throw MessageError(error, messageID: messageID)
    }
  }
}

extension BinaryInput {
  // MARK: Fixes

  @inline(__always)
  fileprivate mutating func locationUpdate(
    _ flags: UInt8, _ messageID: MessageID, tripBefore: Identifier?
  ) throws(ValidationError) -> ClientEnvelope {
    let trip: Identifier?
    switch TripNaming(rawValue: flags >> FixFlags.tripShift) {
    case .some(.none): trip = nil
    case .asBefore:
      guard let tripBefore else { throw ValidationError(.tripId, "no fix of this connection has named a trip before") }
      trip = tripBefore
    case .inline: trip = try identifier(.tripId)
    case nil: throw ValidationError(.tripId, "expected 0, 1 or 2")
    }
    let more = try moreFlags(flags)
    var fix = Fix(
      coordinate: try coordinate(), timestamp: try clientTimestamp(.timestamp, early: .invalidLocation))
    let sent = try sendingTime(fix.timestamp.milliseconds &+ (try zigzag(.timestamp)))
    if let fault = try readMembers(flags, more, into: &fix) { throw fault }
    return ClientEnvelope(
      messageID: messageID, timestamp: sent, message: .locationUpdate(LocationUpdate(tripID: trip, fix: fix)))
  }

  /// The envelope's time of a message with fixes, in ms since 1970: it shows the offset of the phone's clock, so it is
  /// checked as those of the fixes are.
  @inline(__always)
  fileprivate func sendingTime(_ milliseconds: Int64) throws(ValidationError) -> Timestamp {
    try checkEarly(Timestamp(milliseconds: milliseconds), .timestamp, .invalidLocation)
    return try accepted(milliseconds, .timestamp)
  }

  /// The second byte of flags, if there is one.
  @inline(__always)
  private mutating func moreFlags(_ flags: UInt8) throws(ValidationError) -> UInt8 {
    guard flags & FixFlags.more != 0 else { return 0 }
    let more = try byte(.source)
    guard more & FixFlags.reserved == 0 else { throw ValidationError(.source, "its two highest bits are reserved") }
    return more
  }

  /// Reads the other members of a fix. Returns, instead of throwing, the fault of an invalid value that it could skip.
  @inline(__always)
  private mutating func readMembers(
    _ flags: UInt8, _ more: UInt8, into fix: inout Fix
  ) throws(ValidationError) -> ValidationError? {
    var fault: ValidationError?
    if flags & FixFlags.accuracy != 0 { fix.accuracy = try hundredths(.accuracy) }
    if flags & FixFlags.heading != 0 {
      fix.heading = HubMessages.heading(of: Double(try word16(.heading)) / FixedPoint.hundredths)
      if fix.heading == nil { fault = ValidationError(.invalidLocation, .heading, "expected 0…360 degrees") }
    }
    if flags & FixFlags.speed != 0 { fix.speed = try hundredths(.speed) }
    if flags & FixFlags.altitude != 0 { fix.altitude = Double(try zigzag(.altitude)) / FixedPoint.hundredths }
    guard more != 0 else { return fault }
    if more & FixFlags.source != 0 {
      fix.source = FixSource(rawValue: more & FixFlags.source - 1)
      if fix.source == nil { fault = ValidationError(.source, "expected 1 to 5: gps, wifi, cellular, fused or cached") }
    }
    if more & FixFlags.headingAccuracy != 0 { fix.headingAccuracy = try hundredths(.headingAccuracy) }
    if more & FixFlags.speedAccuracy != 0 { fix.speedAccuracy = try hundredths(.speedAccuracy) }
    if more & FixFlags.batteryLevel != 0 {
      fix.batteryLevel = try hundredths(.batteryLevel)
      if fix.batteryLevel ?? 0 > 1 { fault = ValidationError(.batteryLevel, Fix.batteryRange) }
    }
    return fault
  }

  // MARK: Batches

  mutating func locationBatch() throws(ValidationError) -> LocationBatch {
    var batch = LocationBatch(fixes: [])
    if try byte(.tripId) & 1 != 0 { batch.tripID = try identifier(.tripId) }
    let count = try listCount(.locations)
    guard count >= 1 else { throw ValidationError(.locations, "expected 1–500 fixes") }
    guard count <= LocationBatch.maximumCount else {
      throw ValidationError(.tooLarge, .locations, "expected 1–500 fixes")
    }
    batch.fixes.reserveCapacity(count)
    var before = FixSteps()
    for _ in 0..<count { batch.fixes.append(try batchedFix(&before)) }
    return batch
  }

  /// Its coordinate and time are differences from the fix before. An invalid fix keeps its index with the reason, so
  /// that the others are accepted.
  private mutating func batchedFix(_ before: inout FixSteps) throws(ValidationError) -> Result<Fix, ErrorCode> {
    let flags = try byte(.locations)
    if flags == FixFlags.none { return .failure(.badMessage) }
    guard flags >> FixFlags.tripShift == 0 else {
      throw ValidationError(.locations, "its three highest bits are reserved")
    }
    let more = try moreFlags(flags)
    before.latitude &+= try zigzag(.latitude)
    before.longitude &+= try zigzag(.longitude)
    before.milliseconds &+= try zigzag(.timestamp)
    let timestamp = Timestamp(milliseconds: before.milliseconds)
    let place = Coordinate(
      latitude: Double(before.latitude) / FixedPoint.degrees, longitude: Double(before.longitude) / FixedPoint.degrees)
    guard let origin = Coordinate(latitude: 0, longitude: 0) else { preconditionFailure("0, 0 is a place") }
    var fix = Fix(coordinate: place ?? origin, timestamp: timestamp)
    let fault = try readMembers(flags, more, into: &fix)
    if place == nil || timestamp < Timestamp.earliestFromClients { return .failure(.invalidLocation) }
    guard Timestamp.accepted.contains(timestamp) else { return .failure(.badMessage) }
    return fault.map { .failure($0.code) } ?? .success(fix)
  }
}

/// The coordinate and time of a fix in steps, from which the next one of its batch is computed.
struct FixSteps {
  var latitude: Int64 = 0
  var longitude: Int64 = 0
  var milliseconds: Int64 = 0
}
