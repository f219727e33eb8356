// A tick: it looks at each driver that changed, moves it to its present cells, and publishes each cell that changed.
//
//     a fix, a status, a trip's end → note(driver)                once a tick for each driver
//     a tick begins → look at each noted driver                   which cells it is in, left, entered
//                   → one publication for each cell that changed   for all watchers on all outlets
//
// A driver is looked at once a tick for all cells, so a move between two cells is in the same tick of both. The work is
// done in slices, since a hub's turn is short and a city is large; outlets send a tick when all of it is there
// (AreaTable+Publishing.swift). A session that begins to watch, or was too slow, gets a snapshot and then the changes.
import HubBytes
import HubGeo
import HubMessages

/// What areas need in each turn.
struct AreaContext {
  let audience: PublicAudience
  let now: Moment
  /// Drivers that the turn may look at, name or remove.
  let budget: Int
}

extension AreaTable {
  static var tickNanoseconds: Int64 { 1_000_000_000 }

  /// Notes a change that watchers of areas see: position, status or presence.
  @inline(__always)
  mutating func note(_ driver: Int) {
    guard hasWatchers, !own[driver].isNoted else { return }
    own[driver].isNoted = true
    noted.append(UInt32(driver))
  }

  /// Whether a driver of this hub is in a watched cell, or in one that is being removed. If so, the next tick looks at
  /// it.
  mutating func noteShown(_ driver: Int) -> Bool {
    guard own[driver].first != DriverArea.none else { return false }
    note(driver)
    return true
  }

  // MARK: Ticks

  /// Does the next slice of the work, whose results are steps; true where more is left. Call it when `nextTick` is not
  /// `.max`.
  mutating func advance(_ drivers: borrowing Drivers, _ trips: borrowing Trips, _ context: AreaContext) -> Bool {
    let now = context.now
    uptime = now.uptime
    if phase == .resting, now.uptime >= nextTick { beginTick(at: now) }
    // Part of the time is for new watchers, however long ticks take.
    var share = max(1, context.budget / 4)
    var budget = context.budget - share
    show(drivers, trips, context, &share)
    budget += share
    if phase == .looking, rename(drivers, context, &budget) {
      while budget > 0, let number = nextToLookAt() { budget -= look(at: number, drivers, context) }
    }
    if phase == .publishing { publish(drivers, trips, &budget) }
    show(drivers, trips, context, &budget)
    sweepGuests(drivers, &budget)
    removeEnded(&budget)
    restIfIdle()
    return phase != .resting || isAskedFor || !ending.isEmpty || !guests.sweeps.isEmpty
  }

  private mutating func beginTick(at now: Moment) {
    let hour = PublicAudience.hour(of: second)
    second = now.timestamp.wholeSecond
    beginTick(at: now.uptime)
    if PublicAudience.hour(of: second) != hour, precisions(.riders) != 0 { (renamed, showing) = (0, nil) }
  }

  /// At a new hour: looks at every driver that riders see, so that all change names in the same tick, with or without a
  /// new fix. True when done.
  private mutating func rename(_ drivers: borrowing Drivers, _ context: AreaContext, _ budget: inout Int) -> Bool {
    let count = numberCount(drivers)
    while budget > 0, let first = renamed {
      // Skipping a driver that nobody watches costs a fraction of looking at one, so eight count as one unit.
      let end = min(first + 8, count)
      budget -= 1
      for index in first..<end {
        let number = number(at: index, drivers)
        guard isShown(to: .riders, first: area(of: number).first) else { continue }
        budget -= look(at: number, drivers, context)
      }
      renamed = end < count ? end : nil
    }
    return renamed == nil
  }

  // MARK: Drivers

  @inline(__always)
  private func pseudonym(_ driver: borrowing AreaDriver, _ audience: PublicAudience) -> UInt64 {
    audience.pseudonym(of: driver.id, lastTripEnded: driver.lastTripEnded, at: second)
  }

  /// What a cell's member records of a driver: the field that shows it to riders, or its cell and status for counts.
  @inline(__always)
  private func field(_ key: UInt64, _ driver: borrowing AreaDriver, in cell: Int) -> UInt32 {
    switch cells[cell].audience {
    case .riders: UInt32(truncatingIfNeeded: PublicGrid.field(key: key))
    case .ops, .peers: 0
    case .counts:
      BlockCounts.field(key, precision: cells[cell].cell.precision, .init(driver.status, isOnline: driver.isOnline))
    }
  }

  /// Updates which cells a driver is in. Gives the cost in units of the turn's budget: mostly one or two cells.
  private mutating func look(at number: UInt32, _ drivers: borrowing Drivers, _ context: AreaContext) -> Int {
    var area = area(of: number)
    area.isNoted = false
    setArea(area, of: number)
    let driver = areaDriver(number, drivers)
    var cost = updateCells(driver, drivers, context)
    // A driver may have a record here and one as a guest: which of the two is shown may have changed.
    if let twin = twin(of: driver, drivers) {
      cost += updateCells(areaDriver(twin, drivers), drivers, context)
    }
    endLooking(at: number)
    return cost
  }

  private mutating func updateCells(_ driver: AreaDriver, _ drivers: borrowing Drivers, _ context: AreaContext) -> Int {
    var area = area(of: driver.number)
    let before = area
    if driver.isAvailable, precisions(.riders) != 0 { area.pseudonym = pseudonym(driver, context.audience) }
    let isRenamed = area.pseudonym != before.pseudonym
    // A rounded position is in the same cell as the exact one.
    var count = keepOrLeave(
      driver, &area, isAvailable: driver.isAvailable && !isRenamed, PublicAudience.name(before.pseudonym))
    if let key = driver.key {
      count += join(driver, &area, drivers, key: key, .ops)
      count += join(driver, &area, drivers, key: key, .counts)
      if driver.isAvailable { count += join(driver, &area, drivers, key: key, .riders) }
    }
    if let key = driver.ownKey { count += join(driver, &area, drivers, key: key, .peers) }
    setArea(area, of: driver.number)
    return 1 + count / 3
  }

  /// Goes through the cells that the driver was in, known to riders by `name`; gives their number.
  private mutating func keepOrLeave(
    _ driver: borrowing AreaDriver, _ area: inout DriverArea, isAvailable: Bool, _ name: @autoclosure () -> Identifier
  ) -> Int {
    var count = 0
    var link = area.first
    while link != DriverArea.none {
      let cell = Int(node(link).cell)
      link = node(link).next
      count += 1
      let audience = cells[cell].audience
      if let key = driver.key(for: audience), audience != .riders || isAvailable,
        cells[cell].cell.contains(key: key)
      {
        let slot = cells[cell].members.find(rank: driver.rank, driver: driver.number).slot
        // Riders get no update for a fix that shows nothing new: its time would distinguish the driver.
        let (before, field) = (cells[cell].members[slot].field, field(key, driver, in: cell))
        let isMoved = cells[cell].members.move(slot, to: field)
        guard isMoved || audience == .ops || audience == .peers else { continue }
        if audience == .counts { cells[cell].recount(from: before, to: field) }
        cells[cell].noteChange(at: slot, tick: UInt32(truncatingIfNeeded: tick))
        touch(cell)
      } else {
        leave(driver.number, rank: driver.rank, cell, name: audience == .riders ? name() : driver.id)
        unlink(cell, first: &area.first)
      }
    }
    return count
  }

  /// Inserts the driver into the watched cells at a key; gives their number.
  private mutating func join(
    _ driver: borrowing AreaDriver, _ area: inout DriverArea, _ drivers: borrowing Drivers, key: UInt64,
    _ audience: AreaAudience
  ) -> Int {
    var count = 0
    var rest = precisions(audience)
    while rest != 0 {
      let precision = rest.trailingZeroBitCount
      rest &= rest - 1
      guard let cell = GeohashCell(bits: key >> UInt64(60 - 5 * precision), precision: precision),
        let found = find(cell, audience)
      else { continue }
      join(driver, &area, drivers, found, key: key, publishes: true)
      count += 1
    }
    return count
  }

  private mutating func join(
    _ driver: borrowing AreaDriver, _ area: inout DriverArea, _ drivers: borrowing Drivers, _ cell: Int, key: UInt64,
    publishes: Bool
  ) {
    guard !isMember(of: cell, first: area.first) else { return }
    let displaced = join(
      driver.number, rank: driver.rank, field: field(key, driver, in: cell), cell, first: &area.first,
      publishes: publishes)
    guard let displaced else { return }
    let name = areaName(displaced, cells[cell].audience, drivers)
    cells[cell].noteDeparture(.init(driver: displaced, name: name))
  }

  // MARK: Cells that begin and end

  /// Works on snapshots: looks up the drivers of newly watched cells and names them.
  private mutating func show(
    _ drivers: borrowing Drivers, _ trips: borrowing Trips, _ context: AreaContext, _ budget: inout Int
  ) {
    fill(drivers, context, &budget)
    publishSnapshots(drivers, trips, &budget)
  }

  /// Looks up the drivers of a newly watched cell.
  private mutating func fill(_ drivers: borrowing Drivers, _ context: AreaContext, _ budget: inout Int) {
    while budget > 0, let first = filling.first {
      let cell = Int(first)
      if cells[cell].isOver {
        stopFilling()
        continue
      }
      while budget > 0, let number = found.popLast() {
        fill(cell, with: number, drivers, context)
        budget -= 1
      }
      guard budget > 0 else { return }
      guard let key = cells[cell].fillKey else { preconditionFailure("it is being filled") }
      if key == AreaCell.allFound {
        endFilling(cell)
        continue
      }
      let through = cells[cell].cell.lastKey
      let next =
        switch cells[cell].fillsFrom {
        case .online: drivers.index.drivers(from: key, through: through, limit: budget, into: &found)
        case .offline: drivers.staleIndex.drivers(from: key, through: through, limit: budget, into: &found)
        case .guests: guests.numbers(from: key, through: through, limit: budget, into: &found)
        }
      cells[cell].continueFilling(at: next, hasGuests: !guests.isEmpty)
      budget -= 4 + found.count / 4
    }
  }

  /// A driver that was found a turn ago may have left, or have been inserted by a tick.
  private mutating func fill(_ cell: Int, with number: UInt32, _ drivers: borrowing Drivers, _ context: AreaContext) {
    let driver = areaDriver(number, drivers)
    let audience = cells[cell].audience
    guard let key = driver.key(for: audience), cells[cell].cell.contains(key: key) else { return }
    var area = area(of: number)
    if audience == .riders {
      guard driver.isAvailable else { return }
      // Riders who see it already know it by this name.
      if !isShown(to: .riders, first: area.first) { area.pseudonym = pseudonym(driver, context.audience) }
    }
    join(driver, &area, drivers, cell, key: key, publishes: false)
    setArea(area, of: number)
  }

  /// Removes the drivers of cells that nobody watches any more.
  private mutating func removeEnded(_ budget: inout Int) {
    while budget > 0, let last = ending.last {
      let cell = Int(last)
      while budget > 0, let member = cells[cell].members.popLast() {
        var area = area(of: member.driver)
        unlink(cell, first: &area.first)
        setArea(area, of: member.driver)
        budget -= 1
      }
      guard cells[cell].members.isEmpty else { return }
      ending.removeLast()
      remove(cell)
      budget -= 1
    }
  }
}
