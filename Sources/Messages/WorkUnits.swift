// The cost of a message in units of its sender's rate (protocol/rates.md): the same for the hub, which charges it, and
// the client library, which keeps within it.

/// What messages and answers cost, in units of the rate.
public enum WorkUnits {
  /// Bytes of a message (without its frame; of a compressed one its text, or the compressed bytes or the work of its
  /// blocks where these are more), fixes of a batch, and positions of a polygon or route that cost one more unit. Each
  /// is rounded down, and only the largest of the three counts.
  public static let bytes = 4096
  public static let fixes = 50
  public static let positions = 50

  /// Vehicles of a page that cost one unit, in a feed of one vehicle type.
  public static let vehicles = 50

  /// For a message by its bytes alone: 1 or more.
  @inlinable public static func of(bytes: Int) -> Int { 1 &+ bytes / WorkUnits.bytes }

  /// For a message with so many fixes and positions.
  @inlinable public static func of(bytes: Int, fixes: Int = 0, positions: Int = 0) -> Int {
    1 &+ max(bytes / WorkUnits.bytes, fixes / WorkUnits.fixes, positions / WorkUnits.positions)
  }

  /// Bytes of an answer, and of missed events on a channel, that are free for a rider.
  public static let freeAnswerBytes = 16 * 1024

  /// The cost of an answer for a rider: 0 or more. Counts the bytes of its frames, with the longest header for each,
  /// and once more the compressed bytes.
  @inlinable public static func ofAnswer(bytes: Int) -> Int { max(0, bytes &- freeAnswerBytes) / WorkUnits.bytes }

  /// Cells of a view that cost one more unit, beyond the first unit; rounded down.
  public static let cells = 16

  /// The cost of cells that a session did not watch before: 0 or more.
  @inlinable public static func of(newCells count: Int) -> Int { max(0, count &- 1) / WorkUnits.cells }

  /// The cost of new cells of a view. Each block of counts is charged like `cells` cells.
  public static func of(newCells count: Int, on channel: Channel) -> Int {
    of(newCells: channel.isOfCounts ? count * cells : count)
  }

  /// Records of the journal that cost one unit; rounded down.
  public static let records = 100

  /// The cost of so many records that were read for an answer: 0 or more.
  public static func of(records count: Int) -> Int { count / records }

  /// For a client's message of so many bytes. O(its polygons).
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
