// The values of binary messages, with the same checks as in JSON.
import HubBytes
import HubGeo

extension BinaryInput {
  // MARK: Numbers

  /// A value of 0 or more, sent as a whole number of hundredths.
  @inline(__always)
  mutating func hundredths(_ key: JSONKey) throws(ValidationError) -> Double {
    Double(try varint(key)) / FixedPoint.hundredths
  }

  /// Seconds, sent as a whole number of milliseconds.
  mutating func duration(_ key: JSONKey) throws(ValidationError) -> Double {
    Double(try varint(key)) / FixedPoint.milliseconds
  }

  @inline(__always)
  mutating func heading() throws(ValidationError) -> Double {
    guard let degrees = HubMessages.heading(of: Double(try word16(.heading)) / FixedPoint.hundredths) else {
      throw ValidationError(.invalidLocation, .heading, "expected 0…360 degrees")
    }
    return degrees
  }

  /// The speed of a published position.
  @inline(__always)
  mutating func speed() throws(ValidationError) -> Double {
    let value = try hundredths(.speed)
    guard value <= DriverLocation.maximumSpeed else {
      throw ValidationError(.speed, "expected 0…1000 metres per second")
    }
    return value
  }

  /// A double; others than finite ones are refused.
  mutating func number(_ key: JSONKey) throws(ValidationError) -> Double {
    let value = Double(bitPattern: try word64(key))
    guard value.isFinite else { throw ValidationError(key, "expected a finite number") }
    return value
  }

  mutating func nonNegative(_ key: JSONKey) throws(ValidationError) -> Double {
    let value = try number(key)
    guard let known = known(value) else { throw ValidationError(key, "expected 0 or more") }
    return known
  }

  mutating func smallCount(_ key: JSONKey) throws(ValidationError) -> Int {
    guard let small = Int(exactly: try varint(key)) else { throw ValidationError(key, "expected a smaller number") }
    return small
  }

  /// The number of elements. Each has a byte or more, so the count is bounded by the message's size.
  mutating func listCount(_ key: JSONKey) throws(ValidationError) -> Int {
    let count = try varint(key)
    guard count <= UInt64(left) else { throw ValidationError(key, "the message ends within it") }
    return Int(count)
  }

  // MARK: Times and places

  /// Milliseconds since 1970 in six bytes.
  @inline(__always)
  mutating func timestamp(_ key: JSONKey) throws(ValidationError) -> Timestamp {
    let low = UInt64(try word32(key))
    return try accepted(Int64(low | UInt64(try word16(key)) &<< 32), key)
  }

  /// A time from a client. One before `Timestamp.earliestFromClients` is refused with `early`.
  @inline(__always)
  mutating func clientTimestamp(_ key: JSONKey, early: ErrorCode) throws(ValidationError) -> Timestamp {
    let timestamp = try timestamp(key)
    try checkEarly(timestamp, key, early)
    return timestamp
  }

  /// Refuses a time before `Timestamp.earliestFromClients`.
  @inline(__always)
  func checkEarly(_ timestamp: Timestamp, _ key: JSONKey, _ code: ErrorCode) throws(ValidationError) {
    guard timestamp >= Timestamp.earliestFromClients else {
      throw ValidationError(
        code, key, "is before 2000-01-01: expected milliseconds since 1970, whatever the URL's time= says")
    }
  }

  /// Checks a time (ms since 1970) that was computed from parts of a message.
  @inline(__always)
  func accepted(_ milliseconds: Int64, _ key: JSONKey) throws(ValidationError) -> Timestamp {
    let timestamp = Timestamp(milliseconds: milliseconds)
    guard Timestamp.accepted.contains(timestamp) else {
      throw ValidationError(key, "expected a time from 1970 to 9999")
    }
    return timestamp
  }

  @inline(__always)
  mutating func coordinate() throws(ValidationError) -> Coordinate {
    let latitude = Int32(bitPattern: try word32(.latitude))
    return try coordinate(Int64(latitude), Int64(Int32(bitPattern: try word32(.longitude))))
  }

  /// The coordinate at so many steps of 1e-7°; throws where it is out of range.
  @inline(__always)
  func coordinate(_ latitude: Int64, _ longitude: Int64) throws(ValidationError) -> Coordinate {
    guard
      let place = Coordinate(
        latitude: Double(latitude) / FixedPoint.degrees, longitude: Double(longitude) / FixedPoint.degrees)
    else { throw outOfRange(latitude) }
    return place
  }

  @inline(never)
  private func outOfRange(_ latitude: Int64) -> ValidationError {
    abs(Double(latitude)) > 90 * FixedPoint.degrees
      ? ValidationError(.invalidLocation, .latitude, "expected −90…90 degrees")
      : ValidationError(.invalidLocation, .longitude, "expected −180…180 degrees")
  }

  mutating func box(_ key: JSONKey) throws(ValidationError) -> BoundingBox {
    var sides = InlineArray<4, Double>(repeating: 0)  // west, south, east, north
    for index in 0..<4 { sides[index] = Double(Int32(bitPattern: try word32(key))) / FixedPoint.degrees }
    guard let box = BoundingBox(south: sides[1], west: sides[0], north: sides[3], east: sides[2]) else {
      throw ValidationError(
        .invalidLocation, key, "expected west and east −180…180, south and north −90…90 in that order")
    }
    return box
  }

  mutating func cell(_ key: JSONKey) throws(ValidationError) -> GeohashCell {
    let precision = Int(try byte(key))
    guard GeohashCell.precisions.contains(precision),
      let cell = GeohashCell(bits: try word(bytes: (5 * precision + 7) / 8, key), precision: precision)
    else { throw ValidationError(key, "expected a geohash of 1–12 characters") }
    return cell
  }

  /// A block, whose cells are counted.
  mutating func block(_ key: JSONKey) throws(ValidationError) -> GeohashCell {
    let block = try cell(key)
    guard Channel.areaPrecisions.contains(block.precision + CountsUpdate.depth) else {
      throw ValidationError(.unknownChannel, key, "expected a block of 1 to 6 characters")
    }
    return block
  }

  // MARK: Texts

  /// A length of 1–64 and as many characters, or 0 and a pseudonym's eight bytes.
  @inline(__always)
  mutating func identifier(_ key: JSONKey) throws(ValidationError) -> Identifier {
    let length = Int(try byte(key))
    guard length > 0 else { return Identifier(pseudonym: try word64(key)) }
    guard let id = try unsafe run(length, key, { unsafe Identifier($0) }) else {
      throw ValidationError(key, "expected 1–64 of A–Z a–z 0–9 . _ -")
    }
    return id
  }

  /// A length of 0–64 and as many bytes.
  mutating func text(_ key: JSONKey, atMost limit: Int = InlineText.capacity) throws(ValidationError) -> InlineText {
    let length = Int(try byte(key))
    guard length <= limit, let text = try unsafe run(length, key, { unsafe $0.isUTF8 ? InlineText($0) : nil }) else {
      throw ValidationError(key, limit == 32 ? "expected up to 32 bytes of UTF-8" : "expected up to 64 bytes of UTF-8")
    }
    return text
  }

  /// A length of 1–64 and as many bytes.
  mutating func filledText(_ key: JSONKey, atMost limit: Int = InlineText.capacity) throws(ValidationError)
    -> InlineText
  {
    let text = try text(key, atMost: limit)
    guard !text.isEmpty else { throw ValidationError(key, "expected 1–64 bytes of UTF-8") }
    return text
  }

  mutating func tags() throws(ValidationError) -> [InlineText] {
    let count = Int(try byte(.tags))
    guard count <= DriverStatusReport.maximumTags else { throw ValidationError(.tags, "expected up to 8 texts") }
    var tags: [InlineText] = []
    for _ in 0..<count { tags.append(try filledText(.tags)) }
    return tags
  }

  /// A length of any size and as many bytes.
  mutating func longText(_ key: JSONKey) throws(ValidationError) -> String {
    let count = try listCount(key)
    guard let text = try unsafe run(count, key, { unsafe $0.isUTF8 ? String(decoding: $0, as: UTF8.self) : nil }) else {
      throw ValidationError(key, "expected UTF-8")
    }
    return text
  }

  /// Begins with a number n: if odd, the id is the decimal digits of n / 2; if even, n / 2 bytes of the id follow.
  @inline(__always)
  mutating func messageID(_ key: JSONKey) throws(ValidationError) -> MessageID {
    let head = try varint(key)
    if head & 1 == 1 { return MessageID(number: head >> 1) }
    guard head <= UInt64(2 * InlineText.capacity),
      let id = try unsafe run(Int(head >> 1), key, { unsafe $0.isUTF8 ? MessageID($0) : nil })
    else { throw ValidationError(key, "expected 1–64 bytes of UTF-8, or a number") }
    return id
  }

  // MARK: Keywords and channels

  mutating func keyword<W: WireEnum>(_ key: JSONKey) throws(ValidationError) -> W {
    let raw = try byte(key)
    guard let word = W(rawValue: raw) else {
      if passesUnknownKeywords, let first = W(rawValue: 0) {
        hasUnknownKeyword = true
        return first
      }
      var failure = ValidationError(key, "no keyword has this number")
      failure.isUnknownKeyword = true
      throw failure
    }
    return word
  }

  /// Reads an optional keyword; nil where this version does not know it.
  mutating func knownKeyword<W: WireEnum>(_ key: JSONKey) throws(ValidationError) -> W? { W(rawValue: try byte(key)) }

  /// Reads an optional part of a message; nil where it has a keyword that this version does not know.
  mutating func knownPart<T>(
    _ read: (inout BinaryInput) throws(ValidationError) -> T
  ) throws(ValidationError) -> T? {
    let before = hasUnknownKeyword
    hasUnknownKeyword = false
    let value = try read(&self)
    let isKnown = !hasUnknownKeyword
    hasUnknownKeyword = before
    return isKnown ? value : nil
  }

  mutating func channel() throws(ValidationError) -> Channel {
    switch try byte(.channel) {
    case 0: return .trip(try identifier(.channel))
    case 1: return .driver(try identifier(.channel))
    case 2: return .fence(try identifier(.channel))
    case 3:
      let cell = try cell(.channel)
      guard Channel.areaPrecisions.contains(cell.precision) else {
        throw ValidationError(.unknownChannel, .channel, "expected an area of 3 to 8 characters")
      }
      return .area(cell)
    case 4:
      let place = try coordinate()
      let radius = try number(.channel)
      guard radius > 0 else {
        throw ValidationError(.unknownChannel, .channel, "expected a radius of more than 0 metres")
      }
      return .nearby(place, radiusMeters: radius)
    case 5: return .fleet
    case 6: return .trips
    case 7: return .raw(try identifier(.channel))
    case 8: return .box(try box(.channel))
    case 9: return .counts(try box(.channel))
    case 10: return .countsBlock(try block(.channel))
    case 11: return .stats
    case _:
      throw ValidationError(.unknownChannel, .channel, "expected a kind of channel: 0 to 11")
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Whether these bytes are UTF-8 (RFC 3629). Most texts are ASCII, which is checked a word at a time.
  @inline(__always)
  fileprivate var isUTF8: Bool {
    let span = unsafe assumingMemoryBound(to: UInt8.self).span
    var all: UInt64 = 0
    var i = 0
    while i < span.count {
      all |= span.word(at: i)
      i += 8
    }
    if all & 0x8080_8080_8080_8080 == 0 { return true }
    do {
      _ = try UTF8Span(validating: span)
      return true
    } catch {
      return false
    }
  }
}
