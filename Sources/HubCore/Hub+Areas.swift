// Live areas: what moves on a part of the map, told once a second for each cell to all who watch it.
//
//     a fix, a status, a trip's end → noteArea(driver)            once a tick for each driver
//     a tick begins → look at each noted driver                   which cells it is in, left, came into
//                   → one publication for each cell that changed   for all watchers on all loops
//
// A driver is looked at once a tick, for all cells at a time: so a move between two cells is in the same tick of both.
// The work is done in slices, since a hub's turn is short and a city is large; the loops send what a tick brought when
// all of it is there (Hub+AreaUpdates.swift). Who begins to watch, or was too slow, asks for the whole cell, and gets
// what has changed since from then on.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  private static var tickNanoseconds: Int64 { 1_000_000_000 }

  // MARK: Watching

  /// A session wants to watch an area, or the cells near a place.
  mutating func watchArea(_ input: SubscribeInput) {
    let audience: Audience = input.actor.role == .ops ? .ops : .everybody
    guard let cells = AreaCovering.cells(of: input.request.channel, audience) else {
      return refuseSubscription(
        input, .badMessage,
        "so near to a pole the circle touches more than \(AreaCovering.mostCells) cells: take a smaller radius")
    }
    var handles: [ChannelHandle] = []
    for cell in cells {
      guard let channel = watch(cell, audience, input.actor.role, loop: Int(input.session.loop)) else {
        counters.count(full: .areas)
        for handle in handles { release(input.session.loop, handle) }
        return refuseSubscription(input, .rateLimited, "this hub's table of areas is full", retryAfter: 60)
      }
      handles.append(ChannelHandle(index: UInt32(channel)))
    }
    var answer = Subscribed(
      replyTo: input.messageID, channel: input.request.channel, sequence: 0, epoch: epoch, recovered: false,
      snapshot: nil)
    answer.viewID = input.request.viewID
    answer.cells = cells
    emit(.watching(input.session, answer, handles), to: input.session.loop)
  }

  /// The channel of a cell with one more subscriber; nil at a limit.
  private mutating func watch(_ cell: GeohashCell, _ audience: Audience, _ role: Role, loop: Int) -> Int? {
    if let known = areas.find(cell, audience) {
      channels.addSubscriber(areas.cells[known].channel, loop: loop)
      return areas.cells[known].channel
    }
    guard areas.cells.count < role.share(of: limits.areas),
      let channel = channels.insert(area: .area(cell), for: role)
    else { return nil }
    if areas.nextTick == .max {
      areas.nextTick = now.uptime + Self.tickNanoseconds
      areas.second = now.timestamp.wholeSecond
    }
    let index = areas.insert(cell, audience, channel: channel)
    channels.setArea(channel, index)
    channels.addSubscriber(channel, loop: loop)
    return channel
  }

  // MARK: What changes

  /// Something about a driver has changed that those who watch areas see: its place, its status, its presence.
  @inline(__always)
  mutating func noteArea(_ driver: Int) {
    guard areas.hasWatchers, !drivers[driver].isAreaNoted else { return }
    drivers[driver].isAreaNoted = true
    areas.noted.append(UInt32(driver))
  }

  @inline(__always)
  private func newestPseudonym(_ driver: Int) -> UInt64 {
    audience.pseudonym(
      of: drivers[driver].id, lastTripEnded: drivers[driver].lastTripEnded, at: areas.second)
  }

  /// Which of a crowd are shown: the same ones from tick to tick.
  @inline(__always)
  func areaRank(_ driver: Int) -> UInt32 {
    UInt32(truncatingIfNeeded: drivers[driver].hash &* 0x9E37_79B9_7F4A_7C15 >> 32)
  }

  /// The field that riders see a driver in, as the members of a cell know it.
  @inline(__always)
  private func areaField(_ key: UInt64, _ audience: Audience) -> UInt32 {
    switch audience {
    case .everybody: UInt32(truncatingIfNeeded: PublicGrid.field(key: key))
    case .ops: 0
    }
  }

  /// Which cells a driver is in, after what has changed since it was looked at last. Gives what that costs of the
  /// turn's budget: most are in one cell or two.
  private mutating func lookAtArea(_ driver: Int) -> Int {
    drivers[driver].isAreaNoted = false
    let position = drivers[driver].isStale ? nil : drivers[driver].position
    let isAvailable = position != nil && drivers[driver].status == .available
    var pseudonym = drivers[driver].pseudonym
    if isAvailable, areas.precisions(.everybody) != 0 {
      pseudonym = newestPseudonym(driver)
    }
    let isRenamed = pseudonym != drivers[driver].pseudonym
    // A rounded place is in the same cell as the place itself.
    let key = position.map { GridPoint($0.coordinate).mortonCode }
    var cells = keepOrLeave(driver, key: key, isAvailable: isAvailable && !isRenamed)
    drivers[driver].pseudonym = pseudonym
    guard let key else { return 1 + cells / 3 }
    cells += join(driver, key: key, .ops)
    if isAvailable { cells += join(driver, key: key, .everybody) }
    return 1 + cells / 3
  }

  /// Goes through the cells that the driver was in; gives how many these are.
  private mutating func keepOrLeave(_ driver: Int, key: UInt64?, isAvailable: Bool) -> Int {
    var count = 0
    var node = drivers[driver].firstArea
    while node != AreaTable.none {
      let area = Int(areas.node(node).cell)
      node = areas.node(node).next
      count += 1
      let audience = areas.cells[area].audience
      if let key, audience == .ops || isAvailable, areas.cells[area].cell.contains(key: key) {
        let place = areas.cells[area].members.find(rank: areaRank(driver), driver: UInt32(driver)).place
        // Riders are not told of a fix that shows them nothing new: when it came would tell one driver from another.
        let isMoved = areas.cells[area].members.move(place, to: areaField(key, audience))
        guard isMoved || audience == .ops else { continue }
        areas.cells[area].noteChange(at: place, tick: UInt32(truncatingIfNeeded: areas.tick))
        areas.touch(area)
      } else {
        let name = areaName(UInt32(driver), audience)
        areas.leave(UInt32(driver), rank: areaRank(driver), area, name: name)
        areas.unlink(area, first: &drivers[driver].firstArea)
      }
    }
    return count
  }

  /// Puts the driver into the watched cells at a key that it is not in yet; gives how many are watched there.
  private mutating func join(_ driver: Int, key: UInt64, _ audience: Audience) -> Int {
    var count = 0
    var rest = areas.precisions(audience)
    while rest != 0 {
      let precision = rest.trailingZeroBitCount
      rest &= rest - 1
      guard let cell = GeohashCell(bits: key >> UInt64(60 - 5 * precision), precision: precision),
        let area = areas.find(cell, audience)
      else { continue }
      join(driver, area, key: key, tells: true)
      count += 1
    }
    return count
  }

  private mutating func join(_ driver: Int, _ area: Int, key: UInt64, tells: Bool) {
    guard !areas.isMember(of: area, first: drivers[driver].firstArea) else { return }
    let displaced = areas.join(
      UInt32(driver), rank: areaRank(driver), field: areaField(key, areas.cells[area].audience), area,
      first: &drivers[driver].firstArea, tells: tells)
    guard let displaced else { return }
    let name = areaName(displaced, areas.cells[area].audience)
    areas.cells[area].noteDeparture(.init(driver: displaced, name: name))
  }

  // MARK: Ticks

  /// Does the next slice of what is to be done; true where there is more.
  mutating func advanceAreas() -> Bool {
    guard areas.nextTick != .max else { return false }
    if areas.phase == .resting, now.uptime >= areas.nextTick { beginTick() }
    // A part is for those who begin to watch: they are served even where ticks take all the time that there is.
    var share = max(1, limits.areaDriversPerTurn / 4)
    var budget = limits.areaDriversPerTurn - share
    showAreas(&share)
    budget += share
    if areas.phase == .looking, renameDrivers(&budget) {
      while budget > 0, let driver = areas.nextToLookAt() { budget -= lookAtArea(Int(driver)) }
    }
    if areas.phase == .telling { tellAreas(&budget) }
    showAreas(&budget)
    letGoOfAreas(&budget)
    if !areas.isActive, areas.phase == .resting, areas.noted.isEmpty { areas.nextTick = .max }
    return areas.phase != .resting || areas.isAskedFor || !areas.ending.isEmpty
  }

  private mutating func beginTick() {
    let hour = PublicAudience.hour(of: areas.second)
    areas.second = now.timestamp.wholeSecond
    areas.beginTick()
    if PublicAudience.hour(of: areas.second) != hour, areas.precisions(.everybody) != 0 { areas.renamed = 0 }
    areas.nextTick += Self.tickNanoseconds
    // A hub that slept does not catch up.
    if areas.nextTick <= now.uptime { areas.nextTick = now.uptime + Self.tickNanoseconds }
  }

  /// A new hour: looks at every driver that riders see, so that all have their new names in the same tick, also those
  /// from whom nothing came. True when that is done.
  private mutating func renameDrivers(_ budget: inout Int) -> Bool {
    while budget > 0, let first = areas.renamed {
      // To see that nobody watches a driver takes a fraction of what it takes to look at one.
      let end = min(first + 8, drivers.endIndex)
      budget -= 1
      for driver in first..<end where areas.isShown(to: .everybody, first: drivers[driver].firstArea) {
        budget -= lookAtArea(driver)
      }
      areas.renamed = end < drivers.endIndex ? end : nil
    }
    return areas.renamed == nil
  }

  // MARK: Cells that begin and end

  /// Works for those who wait for whole cells: looks up who is in one that nobody watched before, and names all of
  /// them.
  private mutating func showAreas(_ budget: inout Int) {
    fillAreas(&budget)
    tellWholeAreas(&budget)
  }

  /// Looks up who is in a cell that nobody watched before.
  private mutating func fillAreas(_ budget: inout Int) {
    while budget > 0, let first = areas.filling.first {
      let area = Int(first)
      while budget > 0, let driver = areas.found.popLast() {
        fill(area, with: Int(driver))
        budget -= 1
      }
      guard budget > 0 else { return }
      guard let key = areas.cells[area].fillKey else { preconditionFailure("it is being filled") }
      if key == AreaCell.allFound {
        areas.endFilling(area)
        continue
      }
      let next = index.drivers(
        from: key, through: areas.cells[area].cell.lastKey, limit: budget, into: &areas.found)
      areas.cells[area].fillKey = next ?? AreaCell.allFound
      budget -= 4 + areas.found.count / 4
    }
  }

  /// One that was found there a turn ago may have gone, or joined with a tick.
  private mutating func fill(_ area: Int, with driver: Int) {
    guard !drivers[driver].isStale, let place = drivers[driver].position?.coordinate else { return }
    let key = GridPoint(place).mortonCode
    guard areas.cells[area].cell.contains(key: key) else { return }
    if areas.cells[area].audience == .everybody {
      guard drivers[driver].status == .available else { return }
      // Where riders see it already, they do by the name that it has.
      if !areas.isShown(to: .everybody, first: drivers[driver].firstArea) {
        drivers[driver].pseudonym = newestPseudonym(driver)
      }
    }
    join(driver, area, key: key, tells: false)
  }

  /// Lets go of the drivers of cells that nobody watches any more.
  private mutating func letGoOfAreas(_ budget: inout Int) {
    while budget > 0, let last = areas.ending.last {
      let area = Int(last)
      while budget > 0, let member = areas.cells[area].members.popLast() {
        areas.unlink(area, first: &drivers[Int(member.driver)].firstArea)
        budget -= 1
      }
      guard areas.cells[area].members.isEmpty else { return }
      areas.ending.removeLast()
      areas.remove(area)
      budget -= 1
    }
  }
}
