// The three formats of timestamps on the wire (`time=` of the URL), read and written.
public import HubBytes

extension Timestamp {
  /// Reads a date and time by RFC 3339 §5.6: any offset, any number of digits of a second, rounded to milliseconds.
  ///
  /// A leap second (`:60`, RFC 3339 §5.7: only as the last second of a month, UTC) is read as the second after it,
  /// since Unix time has none.
  ///
  /// - Returns: nil for an invalid text, a date that does not exist, or a time outside `accepted`. No allocation.
  public init?(rfc3339 bytes: UnsafeRawBufferPointer) {
    guard let milliseconds = unsafe Timestamp.milliseconds(rfc3339: bytes) else { return nil }
    let made = Timestamp(milliseconds: milliseconds)
    guard Timestamp.accepted.contains(made) else { return nil }
    self = made
  }

  /// Milliseconds since 1970 of a date and time by RFC 3339 in any year from 0 on; nil for an invalid text.
  static func milliseconds(rfc3339 bytes: UnsafeRawBufferPointer) -> Int64? {
    // full-date "T" partial-time: 2025-11-21T10:15:30
    guard bytes.count >= 20, unsafe bytes[4] == UInt8(ascii: "-"), unsafe bytes[7] == UInt8(ascii: "-"),
      unsafe bytes[10] | 0x20 == UInt8(ascii: "t"), unsafe bytes[13] == UInt8(ascii: ":"),
      unsafe bytes[16] == UInt8(ascii: ":"),
      let century = unsafe twoDigits(bytes, 0), let yearOfCentury = unsafe twoDigits(bytes, 2),
      let month = unsafe twoDigits(bytes, 5), let day = unsafe twoDigits(bytes, 8),
      let date = CivilDate(year: century * 100 + yearOfCentury, month: month, day: day),
      let hour = unsafe twoDigits(bytes, 11), hour <= 23, let minute = unsafe twoDigits(bytes, 14), minute <= 59,
      let second = unsafe twoDigits(bytes, 17), second <= 60
    else { return nil }

    var i = 19
    guard let fraction = unsafe Timestamp.fraction(bytes, &i), let offset = unsafe Timestamp.offset(bytes, &i),
      i == bytes.count
    else { return nil }
    let seconds = date.daysSince1970 * 86_400 + hour * 3600 + minute * 60 + second - offset * 60
    if second == 60 {
      let (days, rest) = seconds.quotientAndRemainder(dividingBy: 86_400)
      guard rest == 0, CivilDate(daysSince1970: days).day == 1 else { return nil }
    }
    return Int64(seconds * 1000 + fraction)
  }

  /// Reads a number in the format of a connection: milliseconds since 1970, or seconds since 2001.
  ///
  /// - Returns: nil outside `accepted`, for a number that is not finite, and where the format is not a number.
  public init?(number: Double, format: TimeFormat) {
    let milliseconds: Double
    switch format {
    case .unixMilliseconds: milliseconds = number
    case .apple: milliseconds = number * 1000 + Double(TimeFormat.appleEpochMilliseconds)
    case .rfc3339: return nil
    }
    // Rounded to the nearest: no accepted time is negative, so adding a half and truncating does it. NaN fails, too.
    let range = Timestamp.accepted
    guard milliseconds >= Double(range.lowerBound.milliseconds) - 0.5,
      milliseconds < Double(range.upperBound.milliseconds) + 0.5
    else { return nil }
    self.init(milliseconds: Int64(milliseconds + 0.5))
  }

  /// Reads a member of a JSON object: a number in the format, or a text by RFC 3339 in any format.
  ///
  /// - Returns: nil for any other value, and for a time outside `accepted`.
  package init?(_ value: JSONValue, as format: TimeFormat) {
    if let number = value.number {
      self.init(number: number, format: format)
    } else if var text = value.string {
      let made = text.withUTF8 { unsafe Timestamp(rfc3339: UnsafeRawBufferPointer($0)) }
      guard let made else { return nil }
      self = made
    } else {
      return nil
    }
  }

  /// time-secfrac, in milliseconds (1000 where it rounds up to the next second); 0 where it is absent.
  private static func fraction(_ bytes: UnsafeRawBufferPointer, _ i: inout Int) -> Int? {
    guard i < bytes.count, unsafe bytes[i] == UInt8(ascii: ".") else { return 0 }
    let start = i + 1
    i = start
    var milliseconds = 0
    while i < bytes.count {
      let digit = unsafe Int(bytes[i] &- UInt8(ascii: "0"))
      guard digit <= 9 else { break }
      switch i - start {
      case 0: milliseconds = digit * 100
      case 1: milliseconds += digit * 10
      case 2: milliseconds += digit
      case 3: milliseconds += digit >= 5 ? 1 : 0
      default: break  // too small to matter
      }
      i += 1
    }
    return i > start ? milliseconds : nil
  }

  /// time-offset, in minutes east of UTC.
  private static func offset(_ bytes: UnsafeRawBufferPointer, _ i: inout Int) -> Int? {
    guard i < bytes.count else { return nil }
    let sign = unsafe bytes[i]
    if sign | 0x20 == UInt8(ascii: "z") {
      i += 1
      return 0
    }
    guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"), i + 6 <= bytes.count,
      unsafe bytes[i + 3] == UInt8(ascii: ":"), let hours = unsafe twoDigits(bytes, i + 1), hours <= 23,
      let minutes = unsafe twoDigits(bytes, i + 4), minutes <= 59
    else { return nil }
    i += 6
    return (hours * 60 + minutes) * (sign == UInt8(ascii: "-") ? -1 : 1)
  }
}

/// The value of the two decimal digits at `i`, nil for other bytes. Precondition: both bytes are there.
private func twoDigits(_ bytes: UnsafeRawBufferPointer, _ i: Int) -> Int? {
  let tens = unsafe bytes[i] &- UInt8(ascii: "0")
  let ones = unsafe bytes[i + 1] &- UInt8(ascii: "0")
  guard tens <= 9, ones <= 9 else { return nil }
  return Int(tens) * 10 + Int(ones)
}

extension ByteRoom {
  /// Appends a JSON value: a number, or, for `rfc3339`, a string with milliseconds, UTC (`"2025-11-21T10:15:30.123Z"`).
  /// At most 26 bytes.
  ///
  /// - Precondition: for `rfc3339`, the year is 0…9999 (all of `Timestamp.accepted` is).
  mutating func append(_ timestamp: Timestamp, as format: TimeFormat) {
    switch format {
    case .unixMilliseconds:
      append(integer: timestamp.milliseconds)
    case .apple:
      let milliseconds = timestamp.milliseconds - TimeFormat.appleEpochMilliseconds
      if milliseconds < 0 { append(UInt8(ascii: "-")) }
      append(scaled: milliseconds.magnitude, decimals: 3)
    case .rfc3339:
      append(UInt8(ascii: "\""))
      append(rfc3339: timestamp)
      append(UInt8(ascii: "\""))
    }
  }

  /// Appends an RFC 3339 date and time with milliseconds, UTC, without quotation marks: 24 bytes.
  ///
  /// - Precondition: the year is 0…9999.
  mutating func append(rfc3339 timestamp: Timestamp) {
    let dayLength: Int64 = 86_400_000
    var days = timestamp.milliseconds / dayLength
    var rest = timestamp.milliseconds % dayLength
    if rest < 0 {
      rest += dayLength
      days -= 1
    }
    let date = CivilDate(daysSince1970: Int(days))
    precondition((0...9999).contains(date.year), "RFC 3339 has years of four digits")
    let millisecond = UInt64(rest)
    append(padded: UInt64(date.year), width: 4)
    append(UInt8(ascii: "-"))
    append(padded: UInt64(date.month), width: 2)
    append(UInt8(ascii: "-"))
    append(padded: UInt64(date.day), width: 2)
    append(UInt8(ascii: "T"))
    append(padded: millisecond / 3_600_000, width: 2)
    append(UInt8(ascii: ":"))
    append(padded: millisecond / 60_000 % 60, width: 2)
    append(UInt8(ascii: ":"))
    append(padded: millisecond / 1000 % 60, width: 2)
    append(UInt8(ascii: "."))
    append(padded: millisecond % 1000, width: 3)
    append(UInt8(ascii: "Z"))
  }
}

extension ByteBuffer {
  /// Appends a JSON value: a number, or, for `rfc3339`, a string with milliseconds, UTC (`"2025-11-21T10:15:30.123Z"`).
  ///
  /// - Precondition: for `rfc3339`, the year is 0…9999 (all of `Timestamp.accepted` is).
  /// - Complexity: O(1), without allocation but for the buffer's growth.
  public mutating func append(_ timestamp: Timestamp, as format: TimeFormat) {
    withRoom(for: MessageLimits.timestampBytes) { $0.append(timestamp, as: format) }
  }

  /// Appends an RFC 3339 date and time with milliseconds, UTC, without quotation marks: 24 bytes.
  ///
  /// - Precondition: the year is 0…9999.
  public mutating func append(rfc3339 timestamp: Timestamp) {
    withRoom(for: MessageLimits.timestampBytes) { $0.append(rfc3339: timestamp) }
  }
}
