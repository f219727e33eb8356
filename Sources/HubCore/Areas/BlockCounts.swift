// How many drivers of each status are in the cells of a block, and which of these changed since the last tick.
//
// A block is kept like a watched cell, with all its drivers as members. Each member has the number of its cell within
// the block and its status, so a driver that moves is subtracted from one cell and added to another. A tick costs as
// much as the cells that changed, whatever the number of drivers and watchers.
import HubGeo
import HubMessages

struct BlockCounts {
  /// The statuses that are counted.
  enum CountedStatus: UInt32, CaseIterable {
    case available, onTrip, unavailable, background, offline

    init(_ status: DriverStatus, isOnline: Bool) {
      guard isOnline else {
        self = .offline
        return
      }
      switch status {
      case .available: self = .available
      case .onTrip: self = .onTrip
      case .unavailable: self = .unavailable
      case .background: self = .background
      }
    }
  }

  private typealias Counts = InlineArray<5, UInt32>

  /// By the cell's number within the block; empty cells have no entry.
  private var counts: [UInt16: Counts] = [:]
  private var changed: Set<UInt16> = []

  // MARK: Members

  private static let statusBits: UInt32 = 3

  /// The value of a member of a block of `precision` characters at a Morton key: its cell's number, and in the lowest
  /// bits its status.
  static func field(_ key: UInt64, precision: Int, _ status: CountedStatus) -> UInt32 {
    let depth = UInt64(5 * CountsUpdate.depth)
    let cell = key >> (60 - UInt64(5 * precision) - depth) & (1 << depth - 1)
    return UInt32(truncatingIfNeeded: cell) << statusBits | status.rawValue
  }

  /// Counts a driver; `publishes`: false for one that was there before anybody watched.
  mutating func add(_ field: UInt32, publishes: Bool) { count(field, by: 1, publishes: publishes) }

  mutating func remove(_ field: UInt32) { count(field, by: -1, publishes: true) }

  private mutating func count(_ field: UInt32, by step: Int, publishes: Bool) {
    let cell = UInt16(truncatingIfNeeded: field >> BlockCounts.statusBits)
    let status = Int(field & (1 << BlockCounts.statusBits - 1))
    var all = counts[cell] ?? Counts(repeating: 0)
    all[status] = UInt32(Int(all[status]) + step)
    let isEmpty = CountedStatus.allCases.allSatisfy { all[Int($0.rawValue)] == 0 }
    counts[cell] = isEmpty ? nil : all
    if publishes { changed.insert(cell) }
  }

  // MARK: Updates

  /// The cells that changed since the last call, in order; empty ones with zeros.
  mutating func takeChanged(of block: GeohashCell) -> [CountsUpdate.Cell] {
    defer { changed = [] }
    return changed.sorted().compactMap { cell($0, of: block) }
  }

  /// All cells that are not empty, in order.
  func all(of block: GeohashCell) -> [CountsUpdate.Cell] { counts.keys.sorted().compactMap { cell($0, of: block) } }

  private func cell(_ number: UInt16, of block: GeohashCell) -> CountsUpdate.Cell? {
    let bits = block.bits << UInt64(5 * CountsUpdate.depth) | UInt64(number)
    guard let cell = GeohashCell(bits: bits, precision: block.precision + CountsUpdate.depth) else { return nil }
    var made = CountsUpdate.Cell(cell)
    guard let all = counts[number] else { return made }
    func count(_ status: CountedStatus) -> Int { Int(all[Int(status.rawValue)]) }
    made.available = count(.available)
    made.onTrip = count(.onTrip)
    made.unavailable = count(.unavailable)
    made.background = count(.background)
    made.offline = count(.offline)
    return made
  }
}
