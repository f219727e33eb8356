// `location_update`, nine in ten of all messages, straight from its text: no tape, one look at each byte.
//
// It takes what encoders write: members in any order, without white space, names and strings without escapes, none of
// them unknown. What is otherwise, in the least, it leaves to the tape, which reads all that JSON allows and says what
// is wrong. So nothing is refused here, and what is taken here has passed the same checks by the same functions:
// `scanNumber`, `Coordinate`, `Timestamp`, `Identifier`, `MessageID`, `known`, `heading(of:)`. That both ways give the same
// is tested (PlainUpdateTests, fuzz_messages): white space before a message sends it the other way.
import Bytes
import Geo

/// The members of the envelope and of the fix as they come, in whatever order.
///
/// Every function gives the index behind what it took, or nil for what is the tape's to read.
struct PlainUpdate: ~Copyable {
  private var messageID: MessageID?
  private var timestamp: Timestamp?
  private var tripID: Identifier?
  private var latitude = Double.nan
  private var longitude = Double.nan
  private var fixTime: Timestamp?
  private var accuracy: Double?
  private var heading: Double?
  private var speed: Double?
  private var altitude: Double?
  private var headingAccuracy: Double?
  private var speedAccuracy: Double?
  private var source: FixSource?
  private var batteryLevel: Double?

  /// Reads the message; false where it is another one or is not written in the plain way. O(bytes), no allocation.
  @inline(__always)
  static func read(
    _ bytes: Span<UInt8>, _ time: TimeFormat, _ keys: borrowing JSONKeyTable, into envelope: inout UpdateEnvelope
  ) -> Bool {
    guard bytes.count <= MessageLimits.plainBytes else { return false }
    var read = PlainUpdate()
    guard let end = read.takeEnvelope(bytes, time, keys), end == bytes.count else { return false }
    return read.store(&envelope)
  }

  /// Hands over what was read, member by member; false where something is missing.
  @inline(__always)
  private func store(_ envelope: inout UpdateEnvelope) -> Bool {
    guard let messageID, let timestamp, let fixTime,
      let coordinate = Coordinate(latitude: latitude, longitude: longitude)
    else { return false }
    envelope.messageID = messageID
    envelope.timestamp = timestamp
    envelope.update.tripID = tripID
    envelope.update.fix.coordinate = coordinate
    envelope.update.fix.timestamp = fixTime
    envelope.update.fix.accuracy = accuracy
    envelope.update.fix.heading = heading
    envelope.update.fix.speed = speed
    envelope.update.fix.altitude = altitude
    envelope.update.fix.headingAccuracy = headingAccuracy
    envelope.update.fix.speedAccuracy = speedAccuracy
    envelope.update.fix.source = source
    envelope.update.fix.batteryLevel = batteryLevel
    return true
  }

  private mutating func takeEnvelope(
    _ bytes: Span<UInt8>, _ time: TimeFormat, _ keys: borrowing JSONKeyTable
  ) -> Int? {
    var seen: UInt64 = 0
    var i = 0
    var separator = UInt8(ascii: "{")
    var previous = JSONKey.unknown
    while i < bytes.count, bytes[i] == separator {
      separator = UInt8(ascii: ",")
      let name = keys.member(bytes, at: i + 1, after: previous, depth: 1)
      previous = name.key
      let bit = UInt64(1) &<< UInt64(name.key.rawValue)
      guard seen & bit == 0 else { return nil }
      seen |= bit
      guard let end = takeEnvelopeMember(name.key, bytes, name.value, time, keys) else { return nil }
      i = end
    }
    // Without a type it could be anything; what else is missing is seen where it is used.
    guard seen & (1 << UInt64(JSONKey.type.rawValue)) != 0 else { return nil }
    return i < bytes.count && bytes[i] == UInt8(ascii: "}") ? i + 1 : nil
  }

  @inline(__always)
  private mutating func takeEnvelopeMember(
    _ key: JSONKey, _ bytes: Span<UInt8>, _ i: Int, _ time: TimeFormat, _ keys: borrowing JSONKeyTable
  ) -> Int? {
    switch key {
    case .payload:
      return takePayload(bytes, i, time, keys)
    case .timestamp:
      return PlainUpdate.takeTimestamp(bytes, i, time, &timestamp)
    case .type:
      guard bytes.count - i >= 17 else { return nil }
      return bytes.extracting(i..<i + 17).withUnsafeBytes { $0.isSpelled("\"location_update\"") } ? i + 17 : nil
    case .messageId:
      guard let text = bytes.plainText(at: i) else { return nil }
      messageID = bytes.extracting(text).withUnsafeBytes { MessageID($0) }
      return messageID == nil ? nil : text.upperBound + 1
    default: return nil
    }
  }

  private mutating func takePayload(
    _ bytes: Span<UInt8>, _ start: Int, _ time: TimeFormat, _ keys: borrowing JSONKeyTable
  ) -> Int? {
    var seen: UInt64 = 0
    var i = start
    var separator = UInt8(ascii: "{")
    var previous = JSONKey.unknown
    while i < bytes.count, bytes[i] == separator {
      separator = UInt8(ascii: ",")
      let name = keys.member(bytes, at: i + 1, after: previous, depth: 2)
      previous = name.key
      let bit = UInt64(1) &<< UInt64(name.key.rawValue)
      guard seen & bit == 0 else { return nil }
      seen |= bit
      guard
        let end = name.key.isNumberOfFix
          ? takeNumber(name.key, bytes, name.value) : takeOther(name.key, bytes, name.value, time)
      else { return nil }
      i = end
    }
    return i < bytes.count && bytes[i] == UInt8(ascii: "}") && i > start ? i + 1 : nil
  }

  @inline(never)
  private mutating func takeOther(_ key: JSONKey, _ bytes: Span<UInt8>, _ i: Int, _ time: TimeFormat) -> Int? {
    switch key {
    case .timestamp:
      return PlainUpdate.takeTimestamp(bytes, i, time, &fixTime)
    case .tripId:
      guard let text = bytes.plainText(at: i) else { return nil }
      tripID = bytes.extracting(text).withUnsafeBytes { Identifier($0) }
      return tripID == nil ? nil : text.upperBound + 1
    case .source:
      guard let text = bytes.plainText(at: i) else { return nil }
      source = bytes.extracting(text).withUnsafeBytes { FixSource(spelled: $0) }
      return source == nil ? nil : text.upperBound + 1
    default: return nil
    }
  }

  @inline(__always)
  private mutating func takeNumber(_ key: JSONKey, _ bytes: Span<UInt8>, _ i: Int) -> Int? {
    guard let number = scanNumber(bytes, from: i) else { return PlainUpdate.takeNull(key, bytes, i) }
    let value = number.value
    guard value.isFinite else { return nil }
    switch key {
    case .latitude: latitude = value
    case .longitude: longitude = value
    case .accuracy: accuracy = known(value)
    case .speed: speed = known(value)
    case .heading:
      guard let known = known(value) else { return number.end }
      guard let degrees = Messages.heading(of: known) else { return nil }
      heading = degrees
    case .altitude: altitude = value
    case .headingAccuracy: headingAccuracy = known(value)
    case .speedAccuracy: speedAccuracy = known(value)
    case .batteryLevel: batteryLevel = value
    default: return nil
    }
    return number.end
  }

  /// Browsers write null for a number that they don't have: it is as if the member were not there.
  @inline(never)
  private static func takeNull(_ key: JSONKey, _ bytes: Span<UInt8>, _ i: Int) -> Int? {
    switch key {
    case .accuracy, .heading, .speed, .altitude, .headingAccuracy, .speedAccuracy, .batteryLevel:
      guard bytes.count - i >= 4 else { return nil }
      return bytes.extracting(i..<i + 4).withUnsafeBytes { $0.isSpelled("null") } ? i + 4 : nil
    default: return nil
    }
  }

  @inline(__always)
  private static func takeTimestamp(
    _ bytes: Span<UInt8>, _ i: Int, _ time: TimeFormat, _ timestamp: inout Timestamp?
  ) -> Int? {
    switch time {
    case .unixMilliseconds, .apple:
      if time == .unixMilliseconds, let whole = scanWholeNumber(bytes, from: i) {
        timestamp = Timestamp(milliseconds: Int64(whole.value))
        return Timestamp.accepted.contains(Timestamp(milliseconds: Int64(whole.value))) ? whole.end : nil
      }
      guard let number = scanNumber(bytes, from: i) else { return nil }
      timestamp = Timestamp(number: number.value, format: time)
      return timestamp == nil ? nil : number.end
    case .rfc3339:
      guard let text = bytes.plainText(at: i) else { return nil }
      timestamp = bytes.extracting(text).withUnsafeBytes { Timestamp(rfc3339: $0) }
      return timestamp == nil ? nil : text.upperBound + 1
    }
  }
}

extension JSONKey {
  @inline(__always)
  fileprivate var isNumberOfFix: Bool {
    switch self {
    case .latitude, .longitude, .accuracy, .heading, .speed, .altitude, .headingAccuracy, .speedAccuracy, .batteryLevel:
      true
    default: false
    }
  }
}

extension Span where Element == UInt8 {
  /// Where the text of the string at `start` is, without its quotation marks; nil where it has escapes.
  @inline(__always)
  fileprivate func plainText(at start: Int) -> Range<Int>? {
    guard start < count, self[start] == UInt8(ascii: "\"") else { return nil }
    let end = plainEnd(from: start + 1)
    return end < count && self[end] == UInt8(ascii: "\"") ? start + 1..<end : nil
  }
}
