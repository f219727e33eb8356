// What a message costs of its sender's rate, in units (protocol/rates.md): the same sum for the hub, which
// charges it, and for the client library, which keeps within it.

/// Units of work.
public enum WorkUnits {
  /// Bytes of a message (of the inflated text, without its frame), fixes of a batch, and positions of a polygon or
  /// route that are one unit more. Each counts as far as it is whole, and only the largest of the three sums does.
  public static let bytes = 4096
  public static let fixes = 50
  public static let positions = 50

  /// Of a message by its bytes alone: 1 and more.
  @inlinable public static func of(bytes: Int) -> Int { 1 &+ bytes / WorkUnits.bytes }

  /// Of a message with so many fixes and positions.
  @inlinable public static func of(bytes: Int, fixes: Int = 0, positions: Int = 0) -> Int {
    1 &+ max(bytes / WorkUnits.bytes, fixes / WorkUnits.fixes, positions / WorkUnits.positions)
  }

  /// Bytes of an answer, and of what was missed on a channel, that cost a rider nothing.
  public static let freeAnswerBytes = 16 * 1024

  /// What an answer of so many bytes costs a rider: 0 and more. The bytes are those of its frames, with the longest
  /// header for each, and once more what they were compressed to.
  @inlinable public static func ofAnswer(bytes: Int) -> Int { max(0, bytes &- freeAnswerBytes) / WorkUnits.bytes }

  /// Cells of a view that are one unit more than it costs to ask for it; each whole number beyond the first.
  public static let cells = 16

  /// What so many cells cost that a view has and that its session did not watch before: 0 and more.
  @inlinable public static func of(newCells count: Int) -> Int { max(0, count &- 1) / WorkUnits.cells }

  /// Of a client's message of so many bytes. O(the polygons it has).
  public static func of(_ message: ClientMessage, bytes: Int) -> Int {
    switch message {
    case .locationBatch(let batch): of(bytes: bytes, fixes: batch.fixes.count)
    case .tripStatus(let report): of(bytes: bytes, positions: report.route?.count ?? 0)
    case .tripChange(let change): of(bytes: bytes, positions: change.route?.count ?? 0)
    case .query(.drivers(let search)): of(bytes: bytes, positions: search.area.positionCount)
    case .query(.driver), .query(.trip), .locationUpdate, .driverStatus, .offerDecline, .subscribe, .unsubscribe, .ping,
      .refresh:
      of(bytes: bytes)
    }
  }
}
