// The record of the fixes of one message: the driver, the time of arrival, and the trip's progress after the last fix.
// Effects and not inputs, as in DurableRecord.swift: a restarted hub continues from there without filtering again.
//
//     driver id, optional trip id, arrival (hub's wall clock), state of tracking (StoredTracking.swift)
//     optional progress of the trip
//     optional published time of the newest published fix, where it is not the fix's own
//     number of fixes 2, fixes (StoredFix.swift)
//
// Unsafe island: the caller keeps the bytes while a record exists, and the reader has checked that they are all there.
import HubBytes
import HubGeo
public import HubMessages

/// A record of fixes in the bytes of a journal, which must stay valid while it is used.
@safe
public struct FixesRecord {
  public let driverID: Identifier
  /// The trip that the message named, while it was active.
  public let tripID: Identifier?
  /// When the message came, by the hub's clock.
  public let received: Timestamp
  let tracking: StoredTracking
  let progress: TripProgress?
  /// The published time of the newest published fix, where it is not the fix's own (Tracking/ClockChange.swift).
  let published: Timestamp?
  private let fixes: UnsafeRawBufferPointer

  /// Reads the record at the start of `bytes`, which begin with its length, as `DurableKeys.forEach` gives the offset.
  /// Throws where it is damaged or of another kind.
  public init(_ bytes: UnsafeRawBufferPointer) throws(RecordError) {
    var reader = unsafe RecordReader(bytes)
    self = try reader.record { (kind, reader) throws(RecordError) in
      guard kind == RecordKind.fixes.rawValue else { throw reader.failure(.kind(kind)) }
      return try FixesRecord(from: &reader)
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    (driverID, tripID) = (try reader.read(), try reader.read())
    (received, tracking) = (try reader.read(), try reader.read())
    (progress, published) = (try reader.read(), try reader.read())
    let count = Int(try reader.read() as UInt16)
    guard count > 0 else { throw reader.failure(.fix) }
    unsafe fixes = unsafe try reader.take(count * StoredFix.size)
    for index in 0..<count where unsafe !StoredFix.isValid(bytes(of: index)) { throw reader.failure(.fix) }
  }

  /// At least 1.
  public var count: Int { unsafe fixes.count / StoredFix.size }

  /// In the order in which the hub accepted them: by time, for those of a batch.
  public subscript(index: Int) -> StoredFix {
    guard let fix = unsafe StoredFix(self.bytes(of: index)) else { preconditionFailure("it was read once") }
    return fix
  }

  /// The time of a fix alone, in ms since 1970.
  func milliseconds(of index: Int) -> Int64 { unsafe StoredFix.milliseconds(of: bytes(of: index)) }

  /// The position of the newest fix that was published; nil where none was.
  var newestPosition: Position? {
    guard let index = (0..<count).last(where: { unsafe StoredFix.isPublished(bytes(of: $0)) }) else { return nil }
    return unsafe StoredFix.position(of: bytes(of: index)).map {
      Position($0, at: Timestamp(milliseconds: milliseconds(of: index)), published: published)
    }
  }

  func bytes(of index: Int) -> UnsafeRawBufferPointer {
    precondition(index >= 0 && index < count)
    return unsafe UnsafeRawBufferPointer(rebasing: fixes[index * StoredFix.size..<(index + 1) * StoredFix.size])
  }
}

/// The effects of a record of fixes.
struct DurableFixes: Equatable {
  var driverID: Identifier
  var tripID: Identifier?
  var received: Timestamp
  var tracking: StoredTracking
  var progress: TripProgress?
  /// The newest position that was published, if one was.
  var newest: Position?
  /// The time at which it was published, where that differs from its own.
  var published: Timestamp?

  init(_ record: FixesRecord) {
    driverID = record.driverID
    tripID = record.tripID
    received = record.received
    tracking = record.tracking
    progress = record.progress
    published = record.published
    newest = record.newestPosition
  }
}

extension FixesRecord {
  /// Inserts into `found` those of `times` (both ascending, ms since 1970) at which `driver` has a fix in the record at
  /// the start of `bytes`. False for another kind of record.
  public static func times(
    ofDriver driver: Identifier, in bytes: UnsafeRawBufferPointer, within times: [Int64], into found: inout [Int64]
  ) -> Bool {
    let record: FixesRecord
    do throws(RecordError) { record = unsafe try FixesRecord(bytes) } catch { return false }
    guard record.driverID == driver else { return true }  // two ids may have one key
    for index in 0..<record.count {
      let time = record.milliseconds(of: index)
      guard times.containsAscending(time) else { continue }
      let place = found.lowerBound(time)
      if place == found.count || found[place] != time { found.insert(time, at: place) }
    }
    return true
  }
}
