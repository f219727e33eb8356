// `location_update`, nine in ten of all messages, straight from its text: no tape, one look at each byte.
//
// It reads what encoders write: members in any order, without white space, names and strings without escapes, no
// unknown ones. Anything else is left to the tape, which reads all of JSON and gives the errors. So nothing is refused
// here, and what is accepted here has passed the same checks by the same functions: `scanNumber`, `Coordinate`,
// `Timestamp`, `Identifier`, `MessageID`, `known`, `heading(of:)`. Tests compare both readers (PlainUpdateTests,
// fuzz_messages): white space before a message selects the tape.
//
// Members are stored directly in the caller's envelope: collecting and then copying them would be 300 bytes more.
import HubBytes
import HubGeo

/// Reads the envelope and the fix, with members in any order.
///
/// Every function gives the index behind what it read, or nil to leave it to the tape.
enum PlainUpdate {
  /// Reads the message; false where it is another one or not in the plain form; then the envelope's content is
  /// undefined. O(bytes), no allocation.
  @inline(__always)
  static func read(
    _ bytes: Span<UInt8>, _ time: TimeFormat, _ keys: borrowing JSONKeyTable, into envelope: inout UpdateEnvelope
  ) -> Bool {
    guard bytes.count <= MessageLimits.plainBytes else { return false }
    return takeEnvelope(bytes, time, keys, &envelope) == bytes.count
  }

  private static func takeEnvelope(
    _ bytes: Span<UInt8>, _ time: TimeFormat, _ keys: borrowing JSONKeyTable, _ envelope: inout UpdateEnvelope
  ) -> Int? {
    var seen = MemberSet()
    var i = 0
    var separator = UInt8(ascii: "{")
    var previous = JSONKey.unknown
    while bytes.has(separator, at: i) {
      separator = UInt8(ascii: ",")
      let name = keys.member(bytes, at: i &+ 1, after: previous, depth: 1)
      previous = name.key
      guard seen.insert(name.key),
        let end = takeEnvelopeMember(name.key, bytes, name.value, time, keys, &envelope)
      else { return nil }
      i = end
    }
    guard seen.contains(.type), seen.contains(.payload), seen.contains(.timestamp), seen.contains(.messageId) else {
      return nil
    }
    return bytes.has(UInt8(ascii: "}"), at: i) ? i &+ 1 : nil
  }

  @inline(__always)
  private static func takeEnvelopeMember(
    _ key: JSONKey, _ bytes: Span<UInt8>, _ i: Int, _ time: TimeFormat, _ keys: borrowing JSONKeyTable,
    _ envelope: inout UpdateEnvelope
  ) -> Int? {
    switch key {
    case .payload:
      return takePayload(bytes, i, time, keys, &envelope.update)
    case .timestamp:
      return takeTimestamp(bytes, i, time, &envelope.timestamp)
    case .type:
      return bytes.isSpelled("\"location_update\"", at: i) ? i &+ 17 : nil
    case .messageId:
      guard let string = bytes.plainString(at: i), let id = MessageID(string.text) else { return nil }
      envelope.messageID = id
      return string.end
    default: return nil
    }
  }

  private static func takePayload(
    _ bytes: Span<UInt8>, _ start: Int, _ time: TimeFormat, _ keys: borrowing JSONKeyTable,
    _ update: inout LocationUpdate
  ) -> Int? {
    // Resets members of the message before that this one may lack.
    update.tripID = nil
    update.fix.forgetWhatMayBeAbsent()
    var (latitude, longitude) = (Double.nan, Double.nan)
    var seen = MemberSet()
    var i = start
    var separator = UInt8(ascii: "{")
    var previous = JSONKey.unknown
    while bytes.has(separator, at: i) {
      separator = UInt8(ascii: ",")
      let name = keys.member(bytes, at: i &+ 1, after: previous, depth: 2)
      previous = name.key
      guard seen.insert(name.key) else { return nil }
      if name.key.isNumberOfFix {
        guard let number = scanNumber(bytes, from: name.value) else {
          guard let end = takeNull(name.key, bytes, name.value) else { return nil }
          i = end
          continue
        }
        switch name.key {
        case .latitude: latitude = number.value
        case .longitude: longitude = number.value
        default: guard store(number.value, name.key, &update.fix) else { return nil }
        }
        i = number.end
      } else {
        guard let end = takeOther(name.key, bytes, name.value, time, &update) else { return nil }
        i = end
      }
    }
    // NaN stands for an absent coordinate.
    guard seen.contains(.timestamp), let place = Coordinate(latitude: latitude, longitude: longitude) else {
      return nil
    }
    update.fix.coordinate = place
    return bytes.has(UInt8(ascii: "}"), at: i) ? i &+ 1 : nil
  }

  @inline(never)
  private static func takeOther(
    _ key: JSONKey, _ bytes: Span<UInt8>, _ i: Int, _ time: TimeFormat, _ update: inout LocationUpdate
  ) -> Int? {
    switch key {
    case .timestamp:
      return takeTimestamp(bytes, i, time, &update.fix.timestamp)
    case .tripId:
      guard let found = bytes.plainIdentifier(at: i) else { return nil }
      update.tripID = found.id
      return found.end
    case .source:
      guard let text = bytes.plainText(at: i) else { return nil }
      update.fix.source = unsafe bytes.extracting(text).withUnsafeBytes { unsafe FixSource(spelled: $0) }
      return update.fix.source == nil ? nil : text.upperBound + 1
    default: return nil
    }
  }

  /// Stores a number; false for an invalid one.
  @inline(__always)
  private static func store(_ value: Double, _ key: JSONKey, _ fix: inout Fix) -> Bool {
    guard value.isFinite else { return false }
    switch key {
    case .accuracy: fix.accuracy = known(value)
    case .speed: fix.speed = known(value)
    case .heading:
      guard let known = known(value) else { return true }
      guard let degrees = HubMessages.heading(of: known) else { return false }
      fix.heading = degrees
    case .altitude: fix.altitude = value
    case .headingAccuracy: fix.headingAccuracy = known(value)
    case .speedAccuracy: fix.speedAccuracy = known(value)
    case .batteryLevel:
      guard value <= 1 else { return false }
      fix.batteryLevel = known(value)
    default: return false
    }
    return true
  }

  /// Browsers write null for an absent number: ignored.
  @inline(never)
  private static func takeNull(_ key: JSONKey, _ bytes: Span<UInt8>, _ i: Int) -> Int? {
    switch key {
    case .accuracy, .heading, .speed, .altitude, .headingAccuracy, .speedAccuracy, .batteryLevel:
      return bytes.isSpelled("null", at: i) ? i + 4 : nil
    default: return nil
    }
  }

  @inline(__always)
  private static func takeTimestamp(
    _ bytes: Span<UInt8>, _ i: Int, _ time: TimeFormat, _ timestamp: inout Timestamp
  ) -> Int? {
    if time == .unixMilliseconds, let whole = scanWholeNumber(bytes, from: i) {
      timestamp = Timestamp(milliseconds: Int64(truncatingIfNeeded: whole.value))
      return timestamp >= Timestamp.earliestFromClients && timestamp <= Timestamp.accepted.upperBound
        ? whole.end : nil
    }
    return takeUnusualTimestamp(bytes, i, time, &timestamp)
  }

  @inline(never)
  private static func takeUnusualTimestamp(
    _ bytes: Span<UInt8>, _ i: Int, _ time: TimeFormat, _ timestamp: inout Timestamp
  ) -> Int? {
    let read: Timestamp?
    let end: Int
    switch time {
    case .unixMilliseconds, .apple:
      guard let number = scanNumber(bytes, from: i) else { return nil }
      (read, end) = (Timestamp(number: number.value, format: time), number.end)
    case .rfc3339:
      guard let text = bytes.plainText(at: i) else { return nil }
      (read, end) = unsafe (
        bytes.extracting(text).withUnsafeBytes { unsafe Timestamp(rfc3339: $0) }, text.upperBound + 1
      )
    }
    guard let read, read >= Timestamp.earliestFromClients else { return nil }
    timestamp = read
    return end
  }
}

/// The members that an object has had so far. All keys that this file reads have raw values below 64.
private struct MemberSet {
  private var bits: UInt64 = 0

  /// False for a duplicate.
  @inline(__always)
  mutating func insert(_ key: JSONKey) -> Bool {
    let bit = MemberSet.bit(key)
    guard bits & bit == 0 else { return false }
    bits |= bit
    return true
  }

  @inline(__always)
  func contains(_ key: JSONKey) -> Bool { bits & MemberSet.bit(key) != 0 }

  @inline(__always)
  private static func bit(_ key: JSONKey) -> UInt64 { 1 &<< UInt64(key.rawValue) }
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

extension Fix {
  @inline(__always)
  fileprivate mutating func forgetWhatMayBeAbsent() {
    accuracy = nil
    heading = nil
    speed = nil
    altitude = nil
    headingAccuracy = nil
    speedAccuracy = nil
    source = nil
    batteryLevel = nil
  }
}

extension Span where Element == UInt8 {
  /// The text of the string at `start`, without its quotation marks; nil where it has escapes.
  @inline(__always)
  fileprivate func plainText(at start: Int) -> Range<Int>? {
    guard start < count, self[start] == UInt8(ascii: "\"") else { return nil }
    let end = plainEnd(from: start + 1)
    return end < count && self[end] == UInt8(ascii: "\"") ? start + 1..<end : nil
  }
}
