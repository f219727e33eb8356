// The names of members, looked up once during parsing, so that decoders compare small integers.
import HubBytes

/// A member name of the protocol. The cases are spelled as on the wire, with one exception.
enum JSONKey: UInt8, CaseIterable {
  /// Any other name: its member is checked and ignored.
  case unknown
  // The envelope.
  case type, payload, timestamp, messageId
  // Fixes and positions.
  case tripId, latitude, longitude, accuracy, heading, speed, altitude, source
  case headingAccuracy, speedAccuracy, batteryLevel, locations, coordinate, horizontal
  case driverId, confidence, age, after
  // Drivers and trips.
  case status, vehicleType, tags, location, expectedStatus, previousStatus, pickup, dropoff, riderId, route
  case summary, distance, approach, track, duration, waiting, fixes, gaps, gapDuration
  case target, eta, arrivalTime, basis
  // Channels.
  case channel, since, epoch, sequence, recovered, snapshot, trip, position, reason
  case viewId, cells, cell, tick, full, left, history, eventsOnly
  // Notifications.
  case kind, title, body, data
  // Replies.
  case replyTo, sessionId, role, id, heartbeatInterval, serverTime, limits, maxMessageBytes, maxBatch, rate
  case sampling, interval, minDistance, accepted, duplicates, rejected, index, code
  case storedThrough, message, retryAfter, details
  // Queries.
  case radius, limit, bbox, polygon, maxAge, stale, geometry, coordinates, drivers, more, predicted, online
  case created, updated, ended, timeSource
  // Control rooms' maps.
  case verdict, offset, precision, blocks
  case available, onTrip, unavailable, background, offline
  // Fences.
  case fenceId, otherId, circle, corridor, width, others, dwell, speedLimit, inside
  // Credentials.
  case token, expires
  // Offers.
  case offer, expiresAt

  /// The name on the wire.
  fileprivate var name: String { self == .onTrip ? "on_trip" : "\(self)" }
}

/// Finds the key of a name: open addressing in 1,024 slots, built once for each reader. It first tries the name that
/// followed the previous one last time, since an app writes the members of all its messages in one order.
@safe
struct JSONKeyTable: ~Copyable {
  private struct Known {
    var name: PackedName
    var key: JSONKey
    // `"name":` as two words, the masks of the bits in use, and its length in bytes. For a longer name the words match
    // no text, since UTF-8 has no byte 0xFF.
    var first = UInt64.max
    var second: UInt64 = 0
    var firstMask = UInt64.max
    var secondMask: UInt64 = 0
    var memberLength = 0

    init(_ key: JSONKey) {
      let text = Array(key.name.utf8)
      precondition(text.count <= PackedName.capacity)
      name = PackedName(text.span)
      self.key = key
      let member = Array("\"\(key.name)\":".utf8)
      guard key != .unknown, member.count <= 16 else { return }
      memberLength = member.count
      first = member.span.word(at: 0)
      firstMask = member.count >= 8 ? .max : (1 << UInt64(8 * member.count)) - 1
      guard member.count > 8 else { return }
      second = member.span.word(at: 8)
      secondMask = member.count >= 16 ? .max : (1 << UInt64(8 * (member.count - 8))) - 1
    }
  }

  // Unsafe island: an InlineArray would be copied, 2.7 KB, at every access (Swift 6.3). All slots, names and followers
  // are initialised; indices are masked or a key's raw value, and so are the values of slots.
  private static let known = JSONKey.allCases.map(Known.init)
  private static let bits = 10
  private static let followerCount = 4 * 128
  private let slots: UnsafeMutablePointer<UInt8>
  private let names: UnsafeMutablePointer<Known>
  /// For each depth (of four) and key: the key that followed it last time.
  private let followers: UnsafeMutablePointer<UnsafeMutablePointer<Known>>

  init() {
    let count = JSONKey.allCases.count
    let slotCount = 1 << JSONKeyTable.bits
    precondition(count <= JSONMembers.capacity, "each key has its slot")
    precondition(count < slotCount / 2, "half of the slots or more stay empty, so that every search ends")
    unsafe slots = .allocate(capacity: slotCount)
    unsafe slots.initialize(repeating: 0, count: slotCount)
    unsafe names = .allocate(capacity: count)
    unsafe followers = .allocate(capacity: JSONKeyTable.followerCount)
    unsafe followers.initialize(repeating: names, count: JSONKeyTable.followerCount)
    for known in JSONKeyTable.known {
      unsafe (names + Int(known.key.rawValue)).initialize(to: known)
      if known.key != .unknown { unsafe slots[emptySlot(for: known.name)] = known.key.rawValue }
    }
  }

  deinit {
    unsafe slots.deallocate()
    unsafe names.deallocate()
    unsafe followers.deallocate()
  }

  private func emptySlot(for name: PackedName) -> Int {
    var slot = JSONKeyTable.slot(of: name)
    while unsafe slots[slot] != 0 { slot = JSONKeyTable.slot(behind: slot) }
    return slot
  }

  /// The key of the name that ends with the first quotation mark from `start` on, and its bytes; `.unknown` for a name
  /// outside the protocol. About 25 instructions where the guess is right, else 70.
  ///
  /// - Parameters:
  ///   - previous: the key before it in its object, `.unknown` for the first.
  ///   - depth: of the object.
  @inline(__always)
  func key(_ bytes: Span<UInt8>, quotedFrom start: Int, after previous: JSONKey, depth: Int) -> (JSONKey, length: Int) {
    let next = unsafe follower(of: previous, depth: depth)
    if let known = unsafe expected(bytes, at: start &- 1, next) {
      return unsafe (known.pointee.key, known.pointee.name.length)
    }
    return unsafe search(bytes, quotedFrom: start, next)
  }

  /// The key of the member whose name's quotation mark is at `start`, with a colon right behind the name; gives where
  /// the member's value begins. About 25 instructions where the guess is right.
  @inline(__always)
  func member(_ bytes: Span<UInt8>, at start: Int, after previous: JSONKey, depth: Int) -> (key: JSONKey, value: Int) {
    let next = unsafe follower(of: previous, depth: depth)
    if let known = unsafe expected(bytes, at: start, next) {
      return unsafe (known.pointee.key, start &+ known.pointee.memberLength)
    }
    guard start < bytes.count, bytes[start] == UInt8(ascii: "\"") else { return (.unknown, start) }
    let (key, length) = unsafe search(bytes, quotedFrom: start &+ 1, next)
    guard key != .unknown else { return (.unknown, start) }
    let colon = start &+ length &+ 2
    guard colon < bytes.count, bytes[colon] == UInt8(ascii: ":") else { return (.unknown, start) }
    return (key, colon &+ 1)
  }

  @inline(__always)
  private func follower(
    of previous: JSONKey, depth: Int
  ) -> UnsafeMutablePointer<UnsafeMutablePointer<Known>> {
    unsafe followers + ((depth & 3) << 7 | Int(previous.rawValue & 127))
  }

  /// The name that came here last time, if `"name":` is here again.
  @inline(__always)
  private func expected(
    _ bytes: Span<UInt8>, at start: Int, _ next: UnsafeMutablePointer<UnsafeMutablePointer<Known>>
  ) -> UnsafeMutablePointer<Known>? {
    guard let (first, second) = bytes.twoWords(at: start) else { return nil }
    let known = unsafe next.pointee
    let firstDifference = unsafe (first ^ known.pointee.first) & known.pointee.firstMask
    let secondDifference = unsafe (second ^ known.pointee.second) & known.pointee.secondMask
    return unsafe firstDifference | secondDifference == 0 ? known : nil
  }

  @inline(never)
  private func search(
    _ bytes: Span<UInt8>, quotedFrom start: Int, _ next: UnsafeMutablePointer<UnsafeMutablePointer<Known>>
  ) -> (JSONKey, length: Int) {
    let name = PackedName(bytes, quotedFrom: start)
    let key = key(of: name)
    unsafe next.pointee = names + Int(key.rawValue)
    return (key, name.length)
  }

  /// The key of `name`, `.unknown` for a name outside the protocol.
  func key(of name: PackedName) -> JSONKey {
    var slot = JSONKeyTable.slot(of: name)
    while unsafe slots[slot] != 0 {
      let known = unsafe names + Int(slots[slot])
      if unsafe known.pointee.name.isSameName(as: name) { return unsafe known.pointee.key }
      slot = JSONKeyTable.slot(behind: slot)
    }
    return .unknown
  }

  @inline(__always)
  private static func slot(of name: PackedName) -> Int {
    Int(truncatingIfNeeded: name.hash >> UInt64(64 - bits))
  }

  @inline(__always)
  private static func slot(behind slot: Int) -> Int { (slot &+ 1) & (1 << bits - 1) }
}
