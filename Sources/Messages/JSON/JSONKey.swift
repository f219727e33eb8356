// The names of members, looked up once while a message is parsed, so that decoders compare small integers.

/// A member name that the protocol knows. The cases are spelled as the names are on the wire.
enum JSONKey: UInt8, CaseIterable {
  /// Any other name: its member is checked and passed over.
  case unknown
  // The envelope.
  case type, payload, timestamp, messageId
  // Fixes and positions.
  case tripId, latitude, longitude, accuracy, heading, speed, altitude, source
  case headingAccuracy, speedAccuracy, batteryLevel, locations, coordinate, horizontal
  case driverId, confidence, age, after
  // Drivers and trips.
  case status, vehicleType, tags, location, expectedStatus, previousStatus, pickup, dropoff, riderId, route
  // Channels.
  case channel, since, epoch, sequence, recovered, snapshot, trip, position, reason
  // Notifications.
  case kind, title, body, data
  // Replies.
  case replyTo, sessionId, role, id, heartbeatInterval, serverTime, limits, maxMessageBytes, maxBatch, rate
  case sampling, interval, minDistance, accepted, duplicates, rejected, index, code
  case storedThrough, message, retryAfter, details
  // Credentials.
  case token
}

/// Up to 24 bytes of a name as three words, unused bytes zero, with the hash of the whole name.
struct PackedName {
  static let capacity = 24

  var first: UInt64 = 0
  var second: UInt64 = 0
  var third: UInt64 = 0
  var length = 0
  var hash: UInt64 = 0

  init() {}

  /// Reads the name at `range`. O(length), a word at a time.
  @inline(__always)
  init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    length = range.count
    first = PackedName.word(bytes, range.lowerBound, range.upperBound)
    var state = PackedName.mix(UInt64(truncatingIfNeeded: length), first)
    if length > 8 {
      second = PackedName.word(bytes, range.lowerBound + 8, range.upperBound)
      state = PackedName.mix(state, second)
    }
    if length > 16 {
      third = PackedName.word(bytes, range.lowerBound + 16, range.upperBound)
      state = PackedName.mix(state, third)
      var start = range.lowerBound + PackedName.capacity
      while start < range.upperBound {
        state = PackedName.mix(state, PackedName.word(bytes, start, range.upperBound))
        start += 8
      }
    }
    hash = state
  }

  func isSameName(as other: PackedName) -> Bool {
    length == other.length && first == other.first && second == other.second && third == other.third
  }

  /// Up to eight bytes from `start` on, the first one lowest, none from `end` on.
  @inline(__always)
  private static func word(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> UInt64 {
    let count = min(end - start, 8)
    if count <= 0 { return 0 }
    if start + 8 <= bytes.count {
      let loaded = UInt64(littleEndian: bytes.bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self))
      return loaded & (UInt64.max >> UInt64(64 - 8 * count))
    }
    var word: UInt64 = 0
    for i in 0..<count { word |= UInt64(bytes[start + i]) << UInt64(8 * i) }
    return word
  }

  @inline(__always)
  private static func mix(_ state: UInt64, _ word: UInt64) -> UInt64 {
    let product = (state ^ word) &* 0x9E37_79B9_7F4A_7C15  // 2^64 / golden ratio
    return product ^ (product >> 32)
  }
}

/// Finds the key of a name: open addressing in 256 slots, built once for each reader.
struct JSONKeyTable: ~Copyable {
  // Unsafe island: an InlineArray would be copied, 2.7 KB of it, at every look (Swift 6.3). All 256 slots and all names
  // are initialised; a slot's index is masked to eight bits, and what stands in a slot is a key's raw value.
  private static let mask = 255
  private let slots: UnsafeMutablePointer<UInt8>
  private let names: UnsafeMutablePointer<PackedName>

  init() {
    let count = JSONKey.allCases.count
    precondition(count < JSONKeyTable.mask / 2, "half of the slots or more stay empty, so that every search ends")
    slots = .allocate(capacity: JSONKeyTable.mask + 1)
    slots.initialize(repeating: 0, count: JSONKeyTable.mask + 1)
    names = .allocate(capacity: count)
    names.initialize(repeating: PackedName(), count: count)
    for key in JSONKey.allCases where key != .unknown {
      let text = Array("\(key)".utf8)
      precondition(text.count <= PackedName.capacity)
      let name = PackedName(text.span, 0..<text.count)
      names[Int(key.rawValue)] = name
      var slot = Int(truncatingIfNeeded: name.hash) & JSONKeyTable.mask
      while slots[slot] != 0 { slot = (slot + 1) & JSONKeyTable.mask }
      slots[slot] = key.rawValue
    }
  }

  deinit {
    slots.deallocate()
    names.deallocate()
  }

  /// The key of `name`, `.unknown` where the protocol has no such member.
  @inline(__always)
  func key(of name: PackedName) -> JSONKey {
    var slot = Int(truncatingIfNeeded: name.hash) & JSONKeyTable.mask
    while slots[slot] != 0 {
      let raw = slots[slot]
      if names[Int(raw)].isSameName(as: name), let key = JSONKey(rawValue: raw) { return key }
      slot = (slot + 1) & JSONKeyTable.mask
    }
    return .unknown
  }
}
