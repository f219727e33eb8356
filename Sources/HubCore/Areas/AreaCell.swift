// A watched cell: its drivers, and what the next tick publishes.
//
// A cell orders its drivers by a rank that does not change and shows the first of them. So the drivers that a crowded
// cell shows change only when drivers enter or leave it.
import HubGeo
import HubMessages

/// The audience of a cell, which decides what is published of it.
enum AreaAudience: UInt8, CaseIterable {
  /// All drivers, as they are.
  case ops
  /// Available drivers only, as `PublicAudience` shows them.
  case riders
  /// For ops: only how many drivers are in each small cell of a block.
  case counts
  /// For other hubs of the cluster: all drivers of this one.
  case peers
}

/// One cell that is watched by an audience.
struct AreaCell {
  /// Where drivers that were in the cell before anybody watched it are looked up, one source after the other.
  enum FillSource {
    case online, offline, guests
  }

  struct Departure {
    var driver: UInt32
    /// The name under which it was shown.
    var name: Identifier
  }

  var cell: GeohashCell
  var audience: AreaAudience
  /// Its channel in the channel table.
  var channel: Int
  /// By rank, then by driver.
  var members = AreaMembers()
  /// What the next tick publishes.
  var changed: [UInt32] = []
  var left: [Departure] = []
  var counts = BlockCounts()
  var isTouched = false
  /// The next key of the index while the drivers that were there before anybody watched are still looked up; `allFound`
  /// when only inserting them is left.
  var fillKey: UInt64?
  private(set) var fillsFrom = FillSource.online
  /// Sessions that wait for a snapshot of the cell.
  var waiting: [SessionRef] = []
  /// The channels keep its snapshot: made at the first request, outdated when a tick changes the cell.
  var hasSnapshot = false
  /// Nobody watches any more; its members are still being removed.
  var isOver = false

  init(cell: GeohashCell, audience: AreaAudience, channel: Int) {
    self.cell = cell
    self.audience = audience
    self.channel = channel
    fillKey = cell.firstKey
  }

  /// Beyond all keys: all drivers in the cell are found and only have to be inserted.
  static let allFound = UInt64.max
  /// Departures that are listed. With more, as when a network fails, a snapshot is published instead, which limits the
  /// size.
  static let publishedDepartures = AreaUpdate.maximumDrivers

  /// The number of drivers that it shows at most.
  static func shownLimit(_ audience: AreaAudience) -> Int {
    switch audience {
    case .riders: PublicAudience.maximumDrivers
    case .ops: HubLimits.opsDriversPerCell
    case .counts: 0
    case .peers: .max
    }
  }

  /// Some earlier drivers have been found; `next` is the key to continue from, nil where the source has no more.
  mutating func continueFilling(at next: UInt64?, hasGuests: Bool) {
    fillKey = next ?? cell.firstKey
    if next != nil { return }
    if fillsFrom == .online, audience != .riders {
      fillsFrom = .offline
    } else if fillsFrom != .guests, hasGuests, audience != .peers {
      fillsFrom = .guests
    } else {
      fillKey = AreaCell.allFound
    }
  }

  /// The centre of a field in which a member of this cell is shown. Precondition: it is a cell for riders, whose number
  /// has the bits that members leave out.
  func middle(ofField low: UInt32) -> Coordinate {
    PublicGrid.middle(of: PublicGrid.field(key: cell.firstKey) & ~0xFFFF_FFFF | UInt64(low))
  }

  var shownCount: Int { min(members.count, AreaCell.shownLimit(audience)) }

  /// A counted driver has moved to another cell or changed its status.
  mutating func recount(from before: UInt32, to field: UInt32) {
    counts.remove(before)
    counts.add(field, publishes: true)
  }

  /// A driver that was shown is not shown any more. One entry beyond the limit says that there were others.
  mutating func noteDeparture(_ departure: Departure) {
    if left.count <= AreaCell.publishedDepartures { left.append(departure) }
  }

  /// A shown driver moved or arrived. Noted once a tick; a driver beyond the limit is noted when it moves up.
  mutating func noteChange(at slot: AreaMembers.Slot, tick: UInt32) {
    guard members.isAmongFirst(AreaCell.shownLimit(audience), slot), members.note(slot, tick: tick) else { return }
    changed.append(members[slot].driver)
  }
}

extension GeohashCell {
  /// The range of Morton keys (`GridPoint.mortonCode`) of coordinates in the cell.
  var firstKey: UInt64 { bits << UInt64(60 - 5 * precision) }
  var lastKey: UInt64 { firstKey | ((1 << UInt64(60 - 5 * precision)) - 1) }

  func contains(key: UInt64) -> Bool { key >> UInt64(60 - 5 * precision) == bits }
}

extension AreaAudience {
  /// The channel of a cell.
  func channel(of cell: GeohashCell) -> Channel {
    switch self {
    case .ops, .riders, .peers: .area(cell)
    case .counts: .countsBlock(cell)
    }
  }
}
