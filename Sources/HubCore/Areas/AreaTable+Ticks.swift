// What a tick does: it looks at each driver of whom something changed, puts it into the cells that it is in now, and
// tells of each cell that changed.
//
//     a fix, a status, a trip's end → note(driver)                once a tick for each driver
//     a tick begins → look at each noted driver                   which cells it is in, left, came into
//                   → one publication for each cell that changed   for all watchers on all outlets
//
// A driver is looked at once a tick, for all cells at a time: so a move between two cells is in the same tick of both.
// The work is done in slices, since a hub's turn is short and a city is large; the outlets send what a tick brought
// when all of it is there (AreaTable+Publishing.swift). Who begins to watch, or was too slow, asks for the whole cell,
// and gets what has changed since from then on.
import HubBytes
import HubGeo
import HubMessages

/// What areas are given with each turn.
struct AreaContext {
  let audience: PublicAudience
  let now: Moment
  /// Drivers that the turn may look at, name or let go of.
  let budget: Int
}

extension AreaTable {
  static var tickNanoseconds: Int64 { 1_000_000_000 }

  /// Something about a driver has changed that those who watch areas see: its place, its status, its presence.
  @inline(__always)
  mutating func note(_ driver: Int, _ area: inout DriverArea) {
    guard hasWatchers, !area.isNoted else { return }
    area.isNoted = true
    noted.append(UInt32(driver))
  }

  // MARK: Ticks

  /// Does the next slice of what is to be done, and publishes what comes of it; true where there is more. For where a
  /// tick is due at some time: `nextTick` is not `.max`.
  mutating func advance(
    _ drivers: inout Drivers, _ trips: borrowing Trips, _ channels: inout Channels, _ context: AreaContext
  ) -> Bool {
    let now = context.now
    if phase == .resting, now.uptime >= nextTick { beginTick(at: now) }
    // A part is for those who begin to watch: they are served even where ticks take all the time that there is.
    var share = max(1, context.budget / 4)
    var budget = context.budget - share
    show(&drivers, trips, &channels, context, &share)
    budget += share
    if phase == .looking, rename(&drivers, context, &budget) {
      while budget > 0, let driver = nextToLookAt() { budget -= look(at: Int(driver), &drivers, context) }
    }
    if phase == .publishing { publish(drivers, trips, &channels, now, &budget) }
    show(&drivers, trips, &channels, context, &budget)
    letGo(&drivers, &budget)
    restIfIdle()
    return phase != .resting || isAskedFor || !ending.isEmpty
  }

  private mutating func beginTick(at now: Moment) {
    let hour = PublicAudience.hour(of: second)
    second = now.timestamp.wholeSecond
    beginTick(at: now.uptime)
    if PublicAudience.hour(of: second) != hour, precisions(.everybody) != 0 { renamed = 0 }
  }

  /// A new hour: looks at every driver that riders see, so that all have their new names in the same tick, also those
  /// from whom nothing came. True when that is done.
  private mutating func rename(_ drivers: inout Drivers, _ context: AreaContext, _ budget: inout Int) -> Bool {
    while budget > 0, let first = renamed {
      // To see that nobody watches a driver takes a fraction of what it takes to look at one.
      let end = min(first + 8, drivers.endIndex)
      budget -= 1
      for driver in first..<end where isShown(to: .everybody, first: drivers[areaOf: driver].first) {
        budget -= look(at: driver, &drivers, context)
      }
      renamed = end < drivers.endIndex ? end : nil
    }
    return renamed == nil
  }

  // MARK: Drivers

  @inline(__always)
  private func pseudonym(_ driver: Int, _ drivers: inout Drivers, _ audience: PublicAudience) -> UInt64 {
    audience.pseudonym(of: drivers[driver].id, lastTripEnded: drivers[driver].lastTripEnded, at: second)
  }

  /// What the members of a cell know of a driver there: the field that riders see it in, or as what it is counted.
  @inline(__always)
  private func field(_ key: UInt64, _ driver: borrowing Driver, in cell: Int) -> UInt32 {
    switch cells[cell].audience {
    case .everybody: UInt32(truncatingIfNeeded: PublicGrid.field(key: key))
    case .ops: 0
    case .counts:
      BlockCounts.field(
        key, precision: cells[cell].cell.precision, .init(driver.status, isOnline: !driver.isStale))
    }
  }

  /// Which cells a driver is in, after what has changed since it was looked at last. Gives what that costs of the
  /// turn's budget: most are in one cell or two.
  private mutating func look(at driver: Int, _ drivers: inout Drivers, _ context: AreaContext) -> Int {
    drivers[areaOf: driver].isNoted = false
    let position = drivers.isPresent(driver, at: context.now.uptime) ? drivers[driver].position : nil
    let isAvailable = position != nil && !drivers[driver].isStale && drivers[driver].status == .available
    var pseudonym = drivers[areaOf: driver].pseudonym
    if isAvailable, precisions(.everybody) != 0 { pseudonym = self.pseudonym(driver, &drivers, context.audience) }
    let isRenamed = pseudonym != drivers[areaOf: driver].pseudonym
    // A rounded place is in the same cell as the place itself.
    let key = position.map { GridPoint($0.coordinate).mortonCode }
    var count = keepOrLeave(driver, &drivers, key: key, isAvailable: isAvailable && !isRenamed)
    drivers[areaOf: driver].pseudonym = pseudonym
    guard let key else { return 1 + count / 3 }
    count += join(driver, &drivers, key: key, .ops)
    count += join(driver, &drivers, key: key, .counts)
    if isAvailable { count += join(driver, &drivers, key: key, .everybody) }
    return 1 + count / 3
  }

  /// Goes through the cells that the driver was in; gives how many these are.
  private mutating func keepOrLeave(
    _ driver: Int, _ drivers: inout Drivers, key: UInt64?, isAvailable: Bool
  ) -> Int {
    var count = 0
    var link = drivers[areaOf: driver].first
    while link != DriverArea.none {
      let cell = Int(node(link).cell)
      link = node(link).next
      count += 1
      let audience = cells[cell].audience
      let rank = drivers[driver].areaRank
      if let key, audience != .everybody || isAvailable, cells[cell].cell.contains(key: key) {
        let slot = cells[cell].members.find(rank: rank, driver: UInt32(driver)).slot
        // Riders are not told of a fix that shows them nothing new: when it came would tell one driver from another.
        let (before, field) = (cells[cell].members[slot].field, field(key, drivers[driver], in: cell))
        let isMoved = cells[cell].members.move(slot, to: field)
        guard isMoved || audience == .ops else { continue }
        if audience == .counts { cells[cell].recount(from: before, to: field) }
        cells[cell].noteChange(at: slot, tick: UInt32(truncatingIfNeeded: tick))
        touch(cell)
      } else {
        leave(UInt32(driver), rank: rank, cell, name: drivers[driver].areaName(audience))
        unlink(cell, first: &drivers[areaOf: driver].first)
      }
    }
    return count
  }

  /// Puts the driver into the watched cells at a key that it is not in yet; gives how many are watched there.
  private mutating func join(_ driver: Int, _ drivers: inout Drivers, key: UInt64, _ audience: AreaAudience) -> Int {
    var count = 0
    var rest = precisions(audience)
    while rest != 0 {
      let precision = rest.trailingZeroBitCount
      rest &= rest - 1
      guard let cell = GeohashCell(bits: key >> UInt64(60 - 5 * precision), precision: precision),
        let found = find(cell, audience)
      else { continue }
      join(driver, &drivers, found, key: key, tells: true)
      count += 1
    }
    return count
  }

  private mutating func join(_ driver: Int, _ drivers: inout Drivers, _ cell: Int, key: UInt64, tells: Bool) {
    guard !isMember(of: cell, first: drivers[areaOf: driver].first) else { return }
    let audience = cells[cell].audience
    let displaced = join(
      UInt32(driver), rank: drivers[driver].areaRank, field: field(key, drivers[driver], in: cell), cell,
      first: &drivers[areaOf: driver].first, tells: tells)
    guard let displaced else { return }
    let name = drivers[Int(displaced)].areaName(audience)
    cells[cell].noteDeparture(.init(driver: displaced, name: name))
  }

  // MARK: Cells that begin and end

  /// Works for those who wait for whole cells: looks up who is in one that nobody watched before, and names all of
  /// them.
  private mutating func show(
    _ drivers: inout Drivers, _ trips: borrowing Trips, _ channels: inout Channels, _ context: AreaContext,
    _ budget: inout Int
  ) {
    fill(&drivers, context, &budget)
    publishSnapshots(drivers, trips, &channels, context.now, &budget)
  }

  /// Looks up who is in a cell that nobody watched before.
  private mutating func fill(_ drivers: inout Drivers, _ context: AreaContext, _ budget: inout Int) {
    while budget > 0, let first = filling.first {
      let cell = Int(first)
      while budget > 0, let driver = found.popLast() {
        fill(cell, with: Int(driver), &drivers, context)
        budget -= 1
      }
      guard budget > 0 else { return }
      guard let key = cells[cell].fillKey else { preconditionFailure("it is being filled") }
      if key == AreaCell.allFound {
        endFilling(cell)
        continue
      }
      let (through, isOffline) = (cells[cell].cell.lastKey, cells[cell].isFillingOffline)
      let next =
        isOffline
        ? drivers.staleIndex.drivers(from: key, through: through, limit: budget, into: &found)
        : drivers.index.drivers(from: key, through: through, limit: budget, into: &found)
      if next == nil, !isOffline, cells[cell].audience != .everybody {
        cells[cell].isFillingOffline = true
        cells[cell].fillKey = cells[cell].cell.firstKey
      } else {
        cells[cell].fillKey = next ?? AreaCell.allFound
      }
      budget -= 4 + found.count / 4
    }
  }

  /// One that was found there a turn ago may have gone, or joined with a tick.
  private mutating func fill(_ cell: Int, with driver: Int, _ drivers: inout Drivers, _ context: AreaContext) {
    guard drivers.isPresent(driver, at: context.now.uptime), let place = drivers[driver].position?.coordinate else {
      return
    }
    let key = GridPoint(place).mortonCode
    guard cells[cell].cell.contains(key: key) else { return }
    if cells[cell].audience == .everybody {
      guard !drivers[driver].isStale, drivers[driver].status == .available else { return }
      // Where riders see it already, they do by the name that it has.
      if !isShown(to: .everybody, first: drivers[areaOf: driver].first) {
        drivers[areaOf: driver].pseudonym = pseudonym(driver, &drivers, context.audience)
      }
    }
    join(driver, &drivers, cell, key: key, tells: false)
  }

  /// Lets go of the drivers of cells that nobody watches any more.
  private mutating func letGo(_ drivers: inout Drivers, _ budget: inout Int) {
    while budget > 0, let last = ending.last {
      let cell = Int(last)
      while budget > 0, let member = cells[cell].members.popLast() {
        unlink(cell, first: &drivers[areaOf: Int(member.driver)].first)
        budget -= 1
      }
      guard cells[cell].members.isEmpty else { return }
      ending.removeLast()
      remove(cell)
      budget -= 1
    }
  }
}

extension Driver {
  /// Which of a crowd are shown: the same ones from tick to tick.
  @inline(__always)
  var areaRank: UInt32 { UInt32(truncatingIfNeeded: hash &* Mix64.golden >> 32) }

  /// The name that an audience knows the driver by.
  @inline(__always)
  func areaName(_ audience: AreaAudience) -> Identifier {
    switch audience {
    case .everybody: PublicAudience.name(area.pseudonym)
    case .ops, .counts: id
    }
  }
}
