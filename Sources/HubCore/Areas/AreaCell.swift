// One cell that is watched: who is in it, and what the next tick tells.
//
// A cell has its drivers in the order of a rank that stays the same, of which it shows the first: so whom a crowded
// cell shows changes only as drivers come and go.
import HubGeo
import HubMessages

/// Whom a cell is for, and so what is told of it.
enum AreaAudience: UInt8, CaseIterable {
  /// All drivers, as they are.
  case ops
  /// Riders: what `PublicAudience` shows.
  case everybody
  /// For ops, how many drivers are in each of the cells in it.
  case counts
  /// For other hubs of the cluster: all drivers of this one.
  case peers
}

/// One cell that is watched by an audience.
struct AreaCell {
  /// Whose places are looked through for those that were there before, one after the other.
  enum FillSource {
    case online, offline, guests
  }

  struct Departure {
    var driver: UInt32
    /// The name that it was shown under.
    var name: Identifier
  }

  var cell: GeohashCell
  var audience: AreaAudience
  /// Its channel in the channel table.
  var channel: Int
  /// By rank, then by driver.
  var members = AreaMembers()
  /// What the next tick tells.
  var changed: [UInt32] = []
  var left: [Departure] = []
  var counts = BlockCounts()
  var isTouched = false
  /// While the drivers that were there before anybody watched are still being looked up: the next key of the index, or
  /// `allFound`.
  var fillKey: UInt64?
  private(set) var fillsFrom = FillSource.online
  /// Sessions that wait for the whole cell, and their channel.
  var waiting: [(session: SessionRef, channel: ChannelHandle)] = []
  /// The whole cell, made when it was asked for first, until a tick changes it. In parts, as it is sent.
  var full: [Publication]?
  /// Nobody watches any more: its members are still being let go.
  var isOver = false

  init(cell: GeohashCell, audience: AreaAudience, channel: Int) {
    self.cell = cell
    self.audience = audience
    self.channel = channel
    fillKey = cell.firstKey
  }

  /// Beyond all keys: those in the cell are found, and only to be put into it.
  static let allFound = UInt64.max
  /// Who left, up to here. Of more, as when a network fails, the cell is told as a whole: then its size has a limit
  /// too.
  static let publishedDepartures = AreaUpdate.maximumDrivers

  /// How many drivers it shows at most.
  static func shownLimit(_ audience: AreaAudience) -> Int {
    switch audience {
    case .everybody: 100
    case .ops: HubLimits.opsDriversPerCell
    case .counts: 0
    case .peers: .max
    }
  }

  /// Some that were there have been found; `next` is where to go on, nil where a source has no more.
  mutating func goOnFilling(at next: UInt64?, hasGuests: Bool) {
    fillKey = next ?? cell.firstKey
    if next != nil { return }
    if fillsFrom == .online, audience != .everybody {
      fillsFrom = .offline
    } else if fillsFrom != .guests, hasGuests, audience != .peers {
      fillsFrom = .guests
    } else {
      fillKey = AreaCell.allFound
    }
  }

  /// The middle of a field that a member of this cell is shown in. Precondition: the cell is riders', so that it has
  /// the bits of the field's number that a member leaves out.
  func middle(ofField low: UInt32) -> Coordinate {
    PublicGrid.middle(of: PublicGrid.field(key: cell.firstKey) & ~0xFFFF_FFFF | UInt64(low))
  }

  var shownCount: Int { min(members.count, AreaCell.shownLimit(audience)) }

  /// A driver that is counted has moved, or counts as something else.
  mutating func recount(from before: UInt32, to field: UInt32) {
    counts.remove(before)
    counts.add(field, tells: true)
  }

  /// One that was shown is not any more. One too many says that there were others.
  mutating func noteDeparture(_ departure: Departure) {
    if left.count <= AreaCell.publishedDepartures { left.append(departure) }
  }

  /// Of those that are shown one moved, or came. Once a tick is enough; whoever has no room is told of when it gets
  /// some.
  mutating func noteChange(at slot: AreaMembers.Slot, tick: UInt32) {
    guard members.isAmongFirst(AreaCell.shownLimit(audience), slot), members.note(slot, tick: tick) else { return }
    changed.append(members[slot].driver)
  }
}

extension GeohashCell {
  /// The Morton keys of the places in it (see `GridPoint.mortonCode`).
  var firstKey: UInt64 { bits << UInt64(60 - 5 * precision) }
  var lastKey: UInt64 { firstKey | ((1 << UInt64(60 - 5 * precision)) - 1) }

  func contains(key: UInt64) -> Bool { key >> UInt64(60 - 5 * precision) == bits }
}

extension AreaAudience {
  /// The channel of a cell.
  func channel(of cell: GeohashCell) -> Channel {
    switch self {
    case .ops, .everybody, .peers: .area(cell)
    case .counts: .countsBlock(cell)
    }
  }
}
