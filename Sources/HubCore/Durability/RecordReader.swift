// Durable records from bytes. The bytes have passed their check sum, so what does not fit is a newer program's or our
// own mistake; it is refused all the same, and never guessed.
import HubBytes
import HubGeo
import HubMessages

/// Why bytes are no durable record.
public struct RecordError: Error, Equatable, CustomStringConvertible {
  public enum Fault: Equatable, Sendable {
    case short
    case kind(UInt8)
    case number, status, identifier, text, coordinate, distance, timestamp, channel, optional, fix, surplus
    /// The record makes no sense where it stands.
    case order
  }

  public var fault: Fault
  /// Bytes from the start of what was read.
  public var offset: Int

  public var description: String { "record at byte \(offset): \(fault)" }
}

/// Reads one record after the other.
struct RecordReader: ~Copyable {
  private let bytes: UnsafeRawBufferPointer
  private var offset = 0
  /// Where the record begins that was read last.
  private(set) var position = 0
  /// Where the record that is being read ends.
  private var end = 0

  /// `bytes` must stay valid while the reader is used.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// The next record; nil behind the last one.
  mutating func next() throws(RecordError) -> DurableRecord? {
    guard offset < bytes.count else { return nil }
    try begin()
    let record = try readRecord()
    guard offset == end else { throw failure(.surplus) }
    return record
  }

  /// The next record, which must be one of fixes.
  mutating func nextFixes() throws(RecordError) -> FixesRecord {
    try begin()
    let kind = try number(UInt8.self)
    guard kind == RecordKind.fixes.rawValue else { throw failure(.kind(kind)) }
    let record = try fixes()
    guard offset == end else { throw failure(.surplus) }
    return record
  }

  private mutating func begin() throws(RecordError) {
    position = offset
    end = bytes.count
    let length = Int(try number(UInt32.self))
    guard length <= bytes.count - offset else { throw failure(.short) }
    end = offset + length
  }

  private mutating func readRecord() throws(RecordError) -> DurableRecord {
    let kind = try number(UInt8.self)
    switch RecordKind(rawValue: kind) {
    case .epoch:  // any bits
      return .epoch(
        try text(), seed: try number(UInt64.self),
        pseudonymKey: SipKey(try number(UInt64.self), try number(UInt64.self)))
    case .trip: return .trip(try trip())
    case .tripForgotten: return .tripForgotten(try identifier())
    case .eta: return .eta(try identifier(), try eta())
    case .tripUpdate, .tripChange, .notification, .fenceNotification, .postedNotification:
      return .event(try event(RecordKind(rawValue: kind)))
    case .channel: return .channel(try channel(), sequence: try count())
    case .channelForgotten: return .channelForgotten(try channel())
    case .highestSequence: return .highestSequence(try count())
    case .fixes: return .fixes(DurableFixes(try fixes()))
    case .driver: return .driver(try driver())
    case .driverOffline: return .driverOffline(try identifier(), at: try timestamp())
    case .driverForgotten: return .driverForgotten(try identifier())
    case .highestTripNumber: return .highestTripNumber(try count())
    case .fence: return .fence(try fence())
    case .fenceDeleted: return .fenceDeleted(try identifier())
    case .stay: return .stay(try stay())
    case .stayEnded: return .stayEnded(driver: try identifier(), fence: try identifier())
    case .pair: return .pair(try pair())
    case .pairEnded: return .pairEnded(fence: try identifier(), driver: try identifier(), other: try identifier())
    case nil: throw failure(.kind(kind))
    }
  }

  private mutating func trip() throws(RecordError) -> DurableTrip {
    var trip = DurableTrip(
      id: try identifier(), number: try count(), created: try timestamp(), updated: try timestamp(),
      begunBy: try role(), status: try status(), changed: try timestamp(), recentMoves: [])
    if try isPresent() { trip.driverID = try identifier() }
    if try isPresent() { trip.riderID = try identifier() }
    if try isPresent() { trip.pickup = try coordinate() }
    if try isPresent() { trip.dropoff = try coordinate() }
    if try isPresent() { trip.route = try route() }
    trip.progress = try TripProgress(from: &self)
    if try isPresent() { trip.ended = try timestamp() }
    for _ in 0..<(try number(UInt8.self)) { trip.recentMoves.append(try number(UInt64.self)) }
    if try isPresent() { trip.eta = try eta() }
    return trip
  }

  private mutating func role() throws(RecordError) -> Role {
    guard let role = Role(rawValue: try number(UInt8.self)) else { throw failure(.status) }
    return role
  }

  private mutating func eta() throws(RecordError) -> DurableETA {
    guard let target = TripTarget(rawValue: try number(UInt8.self)),
      let basis = ETABasis(rawValue: try number(UInt8.self))
    else { throw failure(.status) }
    return DurableETA(target: target, basis: basis, meters: try distance(), arrival: try timestamp())
  }

  private mutating func fixes() throws(RecordError) -> FixesRecord {
    let driver = try identifier()
    let trip = try isPresent() ? try identifier() : nil
    let received = try timestamp()
    let tracking = try tracking()
    let progress = try isPresent() ? try TripProgress(from: &self) : nil
    let published = try isPresent() ? try timestamp() : nil
    let count = Int(try number(UInt16.self))
    guard count > 0 else { throw failure(.fix) }
    let fixes = try take(count * StoredFix.size)
    for index in 0..<count {
      guard StoredFix(UnsafeRawBufferPointer(rebasing: fixes[(index * StoredFix.size)...])) != nil else {
        throw failure(.fix)
      }
    }
    return FixesRecord(
      driverID: driver, tripID: trip, received: received, tracking: tracking, progress: progress, published: published,
      fixes: fixes)
  }

  private mutating func driver() throws(RecordError) -> DurableDriver {
    let id = try identifier()
    guard let status = DriverStatus(rawValue: try number(UInt8.self)), status != .onTrip else {
      throw failure(.status)
    }
    var profile = DriverProfile(vehicleType: try isPresent() ? try text() : nil)
    for _ in 0..<(try number(UInt8.self)) { profile.tags.append(try text()) }
    let newest = try isPresent() ? try timestamp() : nil
    let published = try isPresent() ? try timestamp() : nil
    var driver = DurableDriver(
      id: id, status: status, profile: profile, newest: newest, published: published, heard: try timestamp())
    driver.isOffline = try isPresent()
    driver.lastTripEnded = try timestamp().milliseconds
    if try isPresent() { driver.tripID = try identifier() }
    driver.isPositionOnTrip = try isPresent()
    if try isPresent() {
      let time = try timestamp()
      guard let position = StoredPosition(try take(StoredPosition.size), at: 0) else { throw failure(.fix) }
      driver.position = Position(position, at: time)
      if let published { driver.position?.published = published }
    }
    driver.tracking = try tracking()
    return driver
  }

  private mutating func tracking() throws(RecordError) -> StoredTracking {
    guard let tracking = StoredTracking(try take(StoredTracking.size)) else { throw failure(.fix) }
    return tracking
  }

  mutating func route() throws(RecordError) -> Route {
    let polyline = try longText()
    do throws(Route.Fault) {
      return try Route(polyline: polyline)
    } catch {
      throw failure(.text)
    }
  }

  private mutating func leg() throws(RecordError) -> Notification.Leg {
    guard let target = TripTarget(rawValue: try number(UInt8.self)) else { throw failure(.status) }
    return Notification.Leg(target: target, distance: try distance(), eta: try finite(in: 0...1e15))
  }

  private mutating func event(_ kind: RecordKind?) throws(RecordError) -> Publication {
    let channel = try channel()
    let sequence = try count()
    let number = try count()
    let published = try timestamp()
    let body: Publication.Body
    if kind == .tripUpdate || kind == .tripChange {
      var update = try tripUpdate(sequence)
      if kind == .tripChange { try readChange(into: &update) }
      body = .tripUpdate(update)
    } else {
      var made = try notification(sequence)
      if kind == .fenceNotification { made.fence = try fenceNotice() }
      if kind == .postedNotification { try readPost(into: &made) }
      body = .notification(made)
    }
    return Publication(channel: channel, number: number, timestamp: published, body: body)
  }

  private mutating func tripUpdate(_ sequence: UInt64) throws(RecordError) -> TripUpdate {
    let id = try identifier()
    let status = try status()
    let previous = try isPresent() ? try self.status() : nil
    let driver = try isPresent() ? try identifier() : nil
    let timestamp = try timestamp()
    let location = try isPresent() ? try coordinate() : nil
    let summary = try isPresent() ? try TripSummary(from: &self) : nil
    return TripUpdate(
      tripID: id, status: status, previousStatus: previous, driverID: driver, timestamp: timestamp, location: location,
      summary: summary, sequence: sequence)
  }

  private mutating func readChange(into update: inout TripUpdate) throws(RecordError) {
    if try isPresent() { update.pickup = try coordinate() }
    if try isPresent() { update.dropoff = try coordinate() }
    if try isPresent() { update.route = try route().polyline }
    guard update.isChange else { throw failure(.optional) }
  }

  private mutating func notification(_ sequence: UInt64) throws(RecordError) -> Notification {
    guard let kind = Notification.Kind(rawValue: try number(UInt8.self)) else { throw failure(.status) }
    let title = try longText()
    let body = try longText()
    let driver = try isPresent() ? try identifier() : nil
    let leg = try isPresent() ? try leg() : nil
    return Notification(kind: kind, title: title, body: body, driverID: driver, leg: leg, sequence: sequence)
  }

  private mutating func readPost(into notification: inout Notification) throws(RecordError) {
    if try isPresent() { notification.content = try longText() }
    guard try isPresent() else {
      if notification.content == nil { throw failure(.optional) }
      return
    }
    guard let id = MessageID(try take(Int(try number(UInt16.self)))) else { throw failure(.text) }
    notification.messageID = id
  }

  // MARK: Members

  func failure(_ fault: RecordError.Fault) -> RecordError { RecordError(fault: fault, offset: offset) }

  private mutating func take(_ count: Int) throws(RecordError) -> UnsafeRawBufferPointer {
    guard count <= end - offset else { throw failure(.short) }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  mutating func number<Number: FixedWidthInteger & BitwiseCopyable>(
    _: Number.Type
  ) throws(RecordError) -> Number {
    Number(littleEndian: try take(MemoryLayout<Number>.size).loadUnaligned(as: Number.self))
  }

  /// A number that something was counted with: it never comes near to overflowing.
  mutating func count() throws(RecordError) -> UInt64 {
    let count = try number(UInt64.self)
    guard count < 1 << 62 else { throw failure(.number) }
    return count
  }

  mutating func text() throws(RecordError) -> InlineText {
    guard let text = InlineText(try take(Int(try number(UInt16.self)))) else { throw failure(.text) }
    return text
  }

  private mutating func longText() throws(RecordError) -> String {
    guard let text = String(validating: try take(Int(try number(UInt32.self))), as: UTF8.self) else {
      throw failure(.text)
    }
    return text
  }

  mutating func identifier() throws(RecordError) -> Identifier {
    guard let identifier = Identifier(try take(Int(try number(UInt16.self)))) else { throw failure(.identifier) }
    return identifier
  }

  private mutating func status() throws(RecordError) -> TripStatus {
    guard let status = TripStatus(rawValue: try number(UInt8.self)) else { throw failure(.status) }
    return status
  }

  mutating func timestamp() throws(RecordError) -> Timestamp {
    let timestamp = Timestamp(milliseconds: try number(Int64.self))
    guard Timestamp.accepted.contains(timestamp) else { throw failure(.timestamp) }
    return timestamp
  }

  mutating func coordinate() throws(RecordError) -> Coordinate {
    let latitude = Double(bitPattern: try number(UInt64.self))
    let longitude = Double(bitPattern: try number(UInt64.self))
    guard let coordinate = Coordinate(latitude: latitude, longitude: longitude) else { throw failure(.coordinate) }
    return coordinate
  }

  /// Metres.
  mutating func distance() throws(RecordError) -> Double {
    let meters = Double(bitPattern: try number(UInt64.self))
    guard meters >= 0, meters < 1e9 else { throw failure(.distance) }
    return meters
  }

  mutating func isPresent() throws(RecordError) -> Bool {
    switch try number(UInt8.self) {
    case 0: return false
    case 1: return true
    default: throw failure(.optional)
    }
  }

  private mutating func channel() throws(RecordError) -> Channel {
    switch Unicode.Scalar(try number(UInt8.self)) {
    case "t": return .trip(try identifier())
    case "d": return .driver(try identifier())
    case "f": return .fence(try identifier())
    default: throw failure(.channel)
    }
  }
}
