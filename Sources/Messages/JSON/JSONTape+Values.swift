// Access for decoders: the members of an object, and their values as the types of the protocol.
import HubBytes
import HubGeo

/// A fault of a message whose JSON is valid. Its text is composed later, when a `MessageError` is made of it.
struct ValidationError: Error {
  var code: ErrorCode
  /// The member at fault, `.unknown` for the message or element itself.
  var member: JSONKey
  /// What would be right.
  var expected: StaticString
  /// True for a string that is no keyword of this version, but may be one of a newer version.
  var isUnknownKeyword = false
  /// The element of polygons at fault, if any.
  var polygonFault: PolygonFault?
  /// The number of checked positions of polygons (see `MessageError`).
  var checkedPositions: Int32 = 0

  /// Numbers from 0; an edge is −1 where none is at fault.
  struct PolygonFault {
    var polygon: Int32
    var ring: Int32
    var first: Int32
    var second: Int32
  }

  init(_ code: ErrorCode, _ member: JSONKey, _ expected: StaticString) {
    self.code = code
    self.member = member
    self.expected = expected
  }

  /// A `bad_message`.
  init(_ member: JSONKey, _ expected: StaticString) {
    self.init(.badMessage, member, expected)
  }
}

/// The indices of an object's known members on the tape. Token 0 is the message itself, so 0 means "absent".
struct JSONMembers {
  /// The limit of keys (`JSONKeyTable` checks it).
  static let capacity = 128

  fileprivate var indices = InlineArray<128, UInt16>(repeating: 0)

  /// The index of the value, also of null; 0 for an absent member.
  @inline(__always)
  subscript(key: JSONKey) -> Int { Int(indices[Int(key.rawValue)]) }
}

/// A set of keywords, spelled by `name`; raw values count from 0.
protocol WireEnum: RawRepresentable where RawValue == UInt8 {
  var name: StaticString { get }
}

extension WireEnum {
  /// The keyword with this spelling; nil where there is none.
  @inline(__always)
  init?(spelled text: UnsafeRawBufferPointer) {
    var raw: UInt8 = 0
    while let word = Self(rawValue: raw) {
      if unsafe text.isSpelled(word.name) {
        self = word
        return
      }
      raw += 1
    }
    return nil
  }
}

extension UnsafeRawBufferPointer {
  /// Whether these bytes spell `word`.
  @inline(__always)
  func isSpelled(_ word: StaticString) -> Bool {
    unsafe count == word.utf8CodeUnitCount && assumingMemoryBound(to: UInt8.self).span.isSpelled(word, at: 0)
  }
}

extension Span where Element == UInt8 {
  /// Whether the bytes from `start` on spell `word`; compared eight at a time.
  @inline(__always)
  func isSpelled(_ word: StaticString, at start: Int) -> Bool {
    let length = word.utf8CodeUnitCount
    guard start >= 0, count &- start >= length else { return false }
    let other = unsafe UnsafeBufferPointer(start: word.utf8Start, count: length).span
    guard length > 8 else {
      // Shifts out the bytes behind the word.
      return length == 0 || (self.word(at: start) ^ other.word(at: 0)) &<< UInt64(64 &- 8 &* length) == 0
    }
    var i = 0
    while i &+ 8 < length {
      if self.word(at: start &+ i) != other.word(at: i) { return false }
      i &+= 8
    }
    // The last eight bytes, which may overlap earlier ones.
    return self.word(at: start &+ length &- 8) == other.word(at: length &- 8)
  }
}

extension Role: WireEnum {}
extension TripStatus: WireEnum {}
extension DriverStatus: WireEnum {}
extension Confidence: WireEnum {}
extension TimeSource: WireEnum {}
extension FixSource: WireEnum {}
extension ErrorCode: WireEnum {}
extension Notification.Kind: WireEnum {}
extension Unsubscribed.Reason: WireEnum {}
extension SamplingReason: WireEnum {}
extension TripTarget: WireEnum {}
extension RawFix.Verdict: WireEnum {}
extension ETABasis: WireEnum {}

/// A value that can't be negative: phones send −1 for unknown.
@inline(__always)
func known(_ value: Double) -> Double? {
  value >= 0 ? value + 0 : nil  // −0 becomes 0
}

/// A non-negative heading as 0 ≤ degrees < 360; nil beyond 360. Exactly 360 is north.
@inline(__always)
func heading(of value: Double) -> Double? {
  if value < 360 { return value }
  return value == 360 ? 0 : nil
}

extension JSONTape {
  /// The known members of the object at `index`. O(members).
  @inline(__always)
  func members(of index: Int) -> JSONMembers {
    var members = JSONMembers()
    let end = Int(self[index].next)
    var i = index + 1
    while i < end {
      members.indices[Int(self[i].key.rawValue)] = UInt16(truncatingIfNeeded: i + 1)
      i = Int(self[i + 1].next)
    }
    return members
  }

  /// The index of a member's value; nil where it is absent or null.
  @inline(__always)
  func present(_ members: JSONMembers, _ key: JSONKey) -> Int? {
    let index = members[key]
    return index == 0 || self[index].kind == .null ? nil : index
  }

  /// Whether the value at `index` is a string.
  @inline(__always)
  func isText(_ index: Int) -> Bool {
    self[index].kind == .string || self[index].kind == .unescaped
  }

  /// The members of a member that is an object.
  func object(_ members: JSONMembers, _ key: JSONKey) throws(ValidationError) -> JSONMembers? {
    guard let index = present(members, key) else { return nil }
    guard self[index].kind == .object else { throw ValidationError(key, "expected an object") }
    return self.members(of: index)
  }

  /// A number as sent; infinite where it is too large for a Double.
  @inline(__always)
  func anyNumber(_ members: JSONMembers, _ key: JSONKey) throws(ValidationError) -> Double? {
    guard let index = present(members, key) else { return nil }
    let token = self[index]
    guard token.kind == .number else { throw ValidationError(key, "expected a number") }
    return Double(bitPattern: token.bits)
  }

  @inline(__always)
  func number(_ members: JSONMembers, _ key: JSONKey) throws(ValidationError) -> Double? {
    guard let value = try anyNumber(members, key) else { return nil }
    guard value.isFinite else { throw ValidationError(key, "expected a number that a double holds") }
    return value
  }

  /// A number for which phones send −1 if unknown.
  @inline(__always)
  func nonNegative(_ members: JSONMembers, _ key: JSONKey) throws(ValidationError) -> Double? {
    try number(members, key).flatMap(known)
  }

  /// An integer from 0 on; exact over all 64 bits if written without fraction and exponent.
  func count(_ members: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>) throws(ValidationError) -> UInt64? {
    guard let value = try anyNumber(members, key) else { return nil }
    let start = Int(self[members[key]].source)
    if let end = scanNumber(bytes, from: start)?.end,
      let exact = unsafe bytes.extracting(start..<end).withUnsafeBytes({ unsafe parseUnsignedInteger($0) })
    {
      return exact
    }
    guard value >= 0, value <= 0x1p53, Double(UInt64(value)) == value else {
      throw ValidationError(key, "expected a whole number, 0 or more")
    }
    return UInt64(value)
  }

  /// A text of 1…`limit` bytes.
  @inline(__always)
  func inlineText(
    _ members: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>, atMost limit: Int = InlineText.capacity
  ) throws(ValidationError) -> InlineText? {
    guard let index = present(members, key) else { return nil }
    guard isText(index) else { throw ValidationError(key, "expected a string") }
    let count = Int(self[index].count)
    guard count >= 1, count <= limit, let text = unsafe withText(index, bytes, { unsafe InlineText($0) }) else {
      throw ValidationError(key, limit == 32 ? "expected a string of 1–32 bytes" : "expected a string of 1–64 bytes")
    }
    return text
  }

  @inline(__always)
  func identifier(_ members: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>) throws(ValidationError) -> Identifier? {
    guard let index = present(members, key) else { return nil }
    guard isText(index), let id = unsafe withText(index, bytes, { unsafe Identifier($0) }) else {
      throw ValidationError(key, "expected an id: a string of 1–64 of A-Z a-z 0-9 . _ -")
    }
    return id
  }

  func string(_ members: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>) throws(ValidationError) -> String? {
    guard let index = present(members, key) else { return nil }
    guard isText(index) else { throw ValidationError(key, "expected a string") }
    return unsafe withText(index, bytes) { unsafe String(decoding: $0, as: UTF8.self) }
  }

  func bool(_ members: JSONMembers, _ key: JSONKey) throws(ValidationError) -> Bool? {
    guard let index = present(members, key) else { return nil }
    switch self[index].kind {
    case .true: return true
    case .false: return false
    case .null, .number, .array, .object, .string, .unescaped: throw ValidationError(key, "expected true or false")
    }
  }

  /// A keyword of a set.
  @inline(__always)
  func keyword<W: WireEnum>(
    _ members: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>, _ expected: StaticString
  ) throws(ValidationError) -> W? {
    guard let index = present(members, key) else { return nil }
    guard isText(index) else { throw ValidationError(key, "expected a string") }
    if let word = unsafe withText(index, bytes, { unsafe W(spelled: $0) }) { return word }
    var failure = ValidationError(key, expected)
    failure.isUnknownKeyword = true
    throw failure
  }

  /// Whether the text at `index` is `word`.
  @inline(__always)
  func equals(_ index: Int, _ bytes: Span<UInt8>, _ word: StaticString) -> Bool {
    unsafe withText(index, bytes) { unsafe $0.isSpelled(word) }
  }

  /// A time from a client. One before `Timestamp.earliestFromClients` is refused with `early`.
  @inline(__always)
  func clientTimestamp(
    _ members: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>, _ format: TimeFormat, early: ErrorCode
  ) throws(ValidationError) -> Timestamp? {
    if let index = present(members, key), isEarly(index, bytes, format) {
      throw ValidationError(early, key, format.earlyExplanation)
    }
    return try timestamp(members, key, bytes, format)
  }

  /// Whether the value is a time before `Timestamp.earliestFromClients`; false if it is no time.
  private func isEarly(_ index: Int, _ bytes: Span<UInt8>, _ format: TimeFormat) -> Bool {
    let earliest = Timestamp.earliestFromClients.milliseconds
    let number = Double(bitPattern: self[index].bits)
    switch format {
    case .unixMilliseconds:
      return self[index].kind == .number && number < Double(earliest) - 0.5
    case .apple:
      let seconds = Double(earliest - TimeFormat.appleEpochMilliseconds) / 1000
      return self[index].kind == .number && number < seconds - 0.0005
    case .rfc3339:
      guard isText(index) else { return false }
      return unsafe withText(index, bytes) { unsafe Timestamp.milliseconds(rfc3339: $0).map { $0 < earliest } ?? false }
    }
  }

  /// A time in the years 1970 to 9999.
  @inline(__always)
  func timestamp(
    _ members: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>, _ format: TimeFormat
  ) throws(ValidationError) -> Timestamp? {
    guard let index = present(members, key) else { return nil }
    switch format {
    case .unixMilliseconds:
      guard self[index].kind == .number else {
        throw ValidationError(key, "expected milliseconds since 1970 as a number (time=unix_ms)")
      }
    case .apple:
      guard self[index].kind == .number else {
        throw ValidationError(key, "expected seconds since 2001-01-01T00:00:00Z as a number (time=apple)")
      }
    case .rfc3339:
      guard isText(index), let timestamp = unsafe withText(index, bytes, { unsafe Timestamp(rfc3339: $0) }) else {
        throw ValidationError(key, "expected an RFC 3339 string, years 1970 to 9999 (time=rfc3339)")
      }
      return timestamp
    }
    guard let timestamp = Timestamp(number: Double(bitPattern: self[index].bits), format: format) else {
      throw ValidationError(key, "expected a time in the years 1970 to 9999, in the format that the URL's time= says")
    }
    return timestamp
  }

  func channel(_ members: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Channel? {
    guard let index = present(members, .channel) else { return nil }
    guard isText(index) else { throw ValidationError(.channel, "expected a string") }
    guard let channel = unsafe withText(index, bytes, { unsafe Channel($0) }) else {
      throw unsafe ValidationError(
        .unknownChannel, .channel, withText(index, bytes, { unsafe Channel.expectation(of: $0) }))
    }
    return channel
  }

  /// `latitude` and `longitude`, both required.
  @inline(__always)
  func coordinate(_ members: JSONMembers) throws(ValidationError) -> Coordinate {
    let latitude = try required(anyNumber(members, .latitude), .latitude)
    let longitude = try required(anyNumber(members, .longitude), .longitude)
    guard let coordinate = Coordinate(latitude: latitude, longitude: longitude) else {
      let isLatitude = !(latitude >= -90 && latitude <= 90)
      throw isLatitude
        ? ValidationError(.invalidLocation, .latitude, "expected −90…90 degrees")
        : ValidationError(.invalidLocation, .longitude, "expected −180…180 degrees")
    }
    return coordinate
  }

  /// The coordinate of an object with `latitude` and `longitude`, rounded to the steps of the binary protocol, so that
  /// it does not change where the message is repeated in binary or forwarded to another hub.
  func place(_ members: JSONMembers, _ key: JSONKey) throws(ValidationError) -> Coordinate? {
    guard let object = try object(members, key) else { return nil }
    return try coordinate(object, of: key).inSteps
  }

  /// The coordinate of an object that is the member `key`; errors name that member.
  func coordinate(_ object: JSONMembers, of key: JSONKey) throws(ValidationError) -> Coordinate {
    do throws(ValidationError) { return try coordinate(object) } catch {
      guard error.code == .invalidLocation else { throw ValidationError(key, "expected latitude and longitude") }
      let isLatitude = error.member == .latitude
      throw ValidationError(
        .invalidLocation, key,
        isLatitude ? "expected a latitude of −90…90 degrees" : "expected a longitude of −180…180 degrees")
    }
  }

  /// Calls `body` with the index of each element of an array; never where the array is absent.
  func forEach(
    _ members: JSONMembers, _ key: JSONKey, _ body: (Int) throws(ValidationError) -> Void
  ) throws(ValidationError) {
    guard let list = present(members, key) else { return }
    guard self[list].kind == .array else { throw ValidationError(key, "expected an array") }
    var index = list + 1
    for _ in 0..<Int(self[list].count) {
      try body(index)
      index = Int(self[index].next)
    }
  }

  /// Calls `body` with the members of each element of an array of objects; never where the array is absent.
  func forEachObject(
    _ members: JSONMembers, _ key: JSONKey, _ body: (JSONMembers) throws(ValidationError) -> Void
  ) throws(ValidationError) {
    try forEach(members, key) { (index) throws(ValidationError) in
      guard self[index].kind == .object else { throw ValidationError(key, "expected objects") }
      try body(self.members(of: index))
    }
  }

  @inline(__always)
  func required<T>(_ value: T?, _ key: JSONKey) throws(ValidationError) -> T {
    guard let value else { throw ValidationError(key, "is missing") }
    return value
  }
}

extension TimeFormat {
  /// The error text for a time before 2000 from a client with this format.
  package var earlyExplanation: StaticString {
    switch self {
    case .unixMilliseconds:
      """
      is before 2000-01-01: expected milliseconds since 1970 (time=unix_ms); for seconds since 2001 the URL needs \
      time=apple
      """
    case .apple: "is before 2000-01-01: expected seconds since 2001-01-01T00:00:00Z, as the URL's time=apple says"
    case .rfc3339: "is before 2000-01-01: expected the time by the sender's clock (time=rfc3339)"
    }
  }
}
