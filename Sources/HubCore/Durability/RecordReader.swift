// Durable records from bytes. The bytes have passed their check sum, so what does not fit is a newer program's or our
// own mistake; it is refused all the same. The values are those of RecordValues.swift.
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
    let kind: UInt8 = try read()
    guard kind == RecordKind.fixes.rawValue else { throw failure(.kind(kind)) }
    let record = try fixes()
    guard offset == end else { throw failure(.surplus) }
    return record
  }

  private mutating func begin() throws(RecordError) {
    position = offset
    end = bytes.count
    let length = Int(try read() as UInt32)
    guard length <= bytes.count - offset else { throw failure(.short) }
    end = offset + length
  }

  private mutating func readRecord() throws(RecordError) -> DurableRecord {
    let kind: UInt8 = try read()
    switch RecordKind(rawValue: kind) {
    case .epoch:  // any bits
      return .epoch(try read(), seed: try read(), pseudonymKey: SipKey(try read(), try read()))
    case .trip: return .trip(try read())
    case .tripForgotten: return .tripForgotten(try read())
    case .eta: return .eta(try read(), try read())
    case .tripUpdate: return .event(try event(.tripUpdate))
    case .tripChange: return .event(try event(.tripChange))
    case .notification: return .event(try event(.notification))
    case .fenceNotification: return .event(try event(.fenceNotification))
    case .postedNotification: return .event(try event(.postedNotification))
    case .channel: return .channel(try read(), sequence: try count())
    case .channelForgotten: return .channelForgotten(try read())
    case .highestSequence: return .highestSequence(try count())
    case .fixes: return .fixes(DurableFixes(try fixes()))
    case .driver: return .driver(try read())
    case .driverOffline: return .driverOffline(try read(), at: try read())
    case .driverForgotten: return .driverForgotten(try read())
    case .highestTripNumber: return .highestTripNumber(try count())
    case .fence: return .fence(try read())
    case .fenceDeleted: return .fenceDeleted(try read())
    case .stay: return .stay(try read())
    case .stayEnded: return .stayEnded(driver: try read(), fence: try read())
    case .pair: return .pair(try read())
    case .pairEnded: return .pairEnded(fence: try read(), driver: try read(), other: try read())
    case nil: throw failure(.kind(kind))
    }
  }

  private mutating func fixes() throws(RecordError) -> FixesRecord {
    let (driver, trip): (Identifier, Identifier?) = (try read(), try read())
    let (received, tracking): (Timestamp, StoredTracking) = (try read(), try read())
    let (progress, published): (TripProgress?, Timestamp?) = (try read(), try read())
    let count = Int(try read() as UInt16)
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

  func failure(_ fault: RecordError.Fault) -> RecordError { RecordError(fault: fault, offset: offset) }

  /// The next bytes.
  mutating func take(_ count: Int) throws(RecordError) -> UnsafeRawBufferPointer {
    guard count <= end - offset else { throw failure(.short) }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  /// The bytes of a text that has its length before it.
  mutating func takeText() throws(RecordError) -> UnsafeRawBufferPointer { try take(Int(try read() as UInt16)) }
}
