// How many drivers of each status are in the cells of a block, and which of these changed since the last tick.
//
// A block is kept as a watched cell is, with all its drivers as members; each member has the number of its cell within
// the block and what it counts as, so that a driver that moves takes itself from the one cell and adds itself to the
// other. What a tick costs is the cells that changed, whoever and however many watch.
import HubGeo
import HubMessages

struct BlockCounts {
  /// What a driver counts as.
  enum Standing: UInt32, CaseIterable {
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

  /// By the cell's number within the block; empty cells have none.
  private var counts: [UInt16: Counts] = [:]
  private var changed: Set<UInt16> = []

  // MARK: Members

  private static let standingBits: UInt32 = 3

  /// What a member of a block of `precision` characters has, at the Morton key of its place: its cell's number, and
  /// what it counts as in the lowest bits.
  static func field(_ key: UInt64, precision: Int, _ standing: Standing) -> UInt32 {
    let depth = UInt64(5 * CountsUpdate.depth)
    let cell = key >> (60 - UInt64(5 * precision) - depth) & (1 << depth - 1)
    return UInt32(truncatingIfNeeded: cell) << standingBits | standing.rawValue
  }

  /// A driver comes; `tells` is false for who was there before anybody watched.
  mutating func add(_ field: UInt32, tells: Bool) { count(field, by: 1, tells: tells) }

  mutating func remove(_ field: UInt32) { count(field, by: -1, tells: true) }

  private mutating func count(_ field: UInt32, by step: Int, tells: Bool) {
    let cell = UInt16(truncatingIfNeeded: field >> BlockCounts.standingBits)
    let standing = Int(field & (1 << BlockCounts.standingBits - 1))
    var all = counts[cell] ?? Counts(repeating: 0)
    all[standing] = UInt32(Int(all[standing]) + step)
    let isEmpty = Standing.allCases.allSatisfy { all[Int($0.rawValue)] == 0 }
    counts[cell] = isEmpty ? nil : all
    if tells { changed.insert(cell) }
  }

  // MARK: Updates

  /// The cells that changed since this was asked last, in order; those that are empty by now have zeros.
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
    func count(_ standing: Standing) -> Int { Int(all[Int(standing.rawValue)]) }
    made.available = count(.available)
    made.onTrip = count(.onTrip)
    made.unavailable = count(.unavailable)
    made.background = count(.background)
    made.offline = count(.offline)
    return made
  }
}
