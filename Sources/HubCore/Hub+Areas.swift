// Live areas: what moves on a part of the map, told once a second for each cell to all who watch it.
//
//     a fix, a status, a trip's end → noteArea(driver)            once a tick for each driver
//     a tick begins → look at each noted driver                   which cells it is in, left, came into
//                   → one publication for each cell that changed   for all watchers on all loops
//
// A driver is looked at once a tick, for all cells at a time: so a move between two cells is in the same tick of both. The
// work is done in slices, since a hub's turn is short and a city is large; the loops send what a tick brought when all of
// it is there. Who begins to watch, or was too slow, asks for the whole cell, and gets what has changed since from then on.
import Bytes
import Geo
import Messages

extension Hub {
  private static var tickNanoseconds: Int64 { 1_000_000_000 }
  /// Drivers that one turn looks at, names or lets go: some 100 µs, where all of them are far from each other in memory. The
  /// last cell that it tells of may be a crowd of 1,000 more.
  private static var driversPerTurn: Int { 128 }

  // MARK: Watching

  /// A session wants to watch an area, or the cells near a place.
  mutating func watchArea(_ input: SubscribeInput) {
    let audience: Audience = input.actor.role == .ops ? .ops : .everybody
    guard let cells = AreaCovering.cells(of: input.request.channel, audience) else {
      return refuseSubscription(input, .badMessage, "an area there has too many cells: take a smaller radius, or area:")
    }
    var handles: [ChannelHandle] = []
    for cell in cells {
      guard let channel = watch(cell, audience, loop: Int(input.session.loop)) else {
        counters.tableLimitHits += 1
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
  private mutating func watch(_ cell: GeohashCell, _ audience: Audience, loop: Int) -> Int? {
    if let known = areas.find(cell, audience) {
      channels.addSubscriber(areas.cells[known].channel, loop: loop)
      return areas.cells[known].channel
    }
    guard areas.hasRoom, let channel = channels.insert(area: .area(cell)) else { return nil }
    if areas.nextTick == .max { areas.nextTick = now.uptime + Self.tickNanoseconds }
    let index = areas.insert(cell, audience, channel: channel)
    channels.setArea(channel, index)
    channels.addSubscriber(channel, loop: loop)
    return channel
  }

  /// Sessions begin to watch, or have fallen behind: they get cells as they are.
  mutating func tellWhole(_ session: SessionRef, _ handles: [ChannelHandle]) {
    for handle in handles {
      guard let area = channels.area(Int(handle.index)) else { continue }  // the session has left it meanwhile
      if areas.cells[area].fillKey != nil {
        areas.cells[area].waiting.append((session, handle))
      } else {
        emit(.wholeArea(session, handle, whole(area)), to: session.loop)
      }
    }
  }

  private mutating func whole(_ area: Int) -> Publication {
    if let full = areas.cells[area].full { return full }
    let (cell, shown) = (areas.cells[area].cell, areas.cells[area].shownCount)
    var drivers: [AreaUpdate.Driver] = []
    drivers.reserveCapacity(shown)
    areas.cells[area].members.forEach(ofFirst: shown) { drivers.append(shownDriver($0, area)) }
    let update = AreaUpdate(
      cell: cell, tick: areas.toldTick, isFull: true, drivers: drivers, more: more(area))
    let full = areaPublication(update)
    areas.cells[area].full = full
    return full
  }

  private func more(_ area: Int) -> Int? {
    let rest = areas.cells[area].members.count - areas.cells[area].shownCount
    return rest > 0 ? rest : nil
  }

  private mutating func areaPublication(_ update: AreaUpdate) -> Publication {
    publicationNumber += 1
    return Publication(
      channel: .area(update.cell), number: publicationNumber, timestamp: now.timestamp, body: .areaUpdate(update))
  }

  // MARK: What changes

  /// Something about a driver has changed that those who watch areas see: its place, its status, its presence.
  @inline(__always)
  mutating func noteArea(_ driver: Int) {
    guard areas.hasWatchers, !drivers[driver].isAreaNoted else { return }
    drivers[driver].isAreaNoted = true
    areas.noted.append(UInt32(driver))
  }

  /// The name that an audience knows a driver by.
  private func areaName(_ driver: UInt32, _ audience: Audience) -> Identifier {
    switch audience {
    case .everybody: PublicAudience.name(drivers[Int(driver)].pseudonym)
    case .ops: drivers[Int(driver)].id
    }
  }

  private func newestPseudonym(_ driver: Int) -> UInt64 {
    audience.pseudonym(
      of: drivers[driver].id, lastTripEnded: drivers[driver].lastTripEnded, at: now.timestamp)
  }

  /// Which of a crowd are shown: the same ones from tick to tick.
  private func areaRank(_ driver: Int) -> UInt64 { drivers[driver].hash &* 0x9E37_79B9_7F4A_7C15 }

  private func shownDriver(_ driver: UInt32, _ area: Int) -> AreaUpdate.Driver {
    let audience = areas.cells[area].audience
    guard let position = drivers[Int(driver)].position else { preconditionFailure("who is in a cell has a position") }
    let isPublic = audience == .everybody
    return AreaUpdate.Driver(
      driverID: areaName(driver, audience),
      coordinate: isPublic ? PublicGrid.snapped(position.coordinate) : position.coordinate,
      heading: isPublic ? position.heading.map(PublicAudience.rounded(heading:)) : position.heading,
      speed: isPublic ? position.speed?.rounded() : position.speed, status: drivers[Int(driver)].status,
      timestamp: position.timestamp)
  }

  /// Which cells a driver is in, after what has changed since it was looked at last.
  private mutating func lookAtArea(_ driver: Int) {
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
    keepOrLeave(driver, key: key, isAvailable: isAvailable && !isRenamed)
    drivers[driver].pseudonym = pseudonym
    guard let key else { return }
    join(driver, key: key, .ops)
    if isAvailable { join(driver, key: key, .everybody) }
  }

  /// Goes through the cells that the driver was in.
  private mutating func keepOrLeave(_ driver: Int, key: UInt64?, isAvailable: Bool) {
    var node = drivers[driver].firstArea
    while node != AreaTable.none {
      let area = Int(areas.node(node).cell)
      node = areas.node(node).next
      let audience = areas.cells[area].audience
      if let key, audience == .ops || isAvailable, areas.cells[area].cell.contains(key: key) {
        let place = areas.cells[area].members.find(rank: areaRank(driver), driver: UInt32(driver)).place
        areas.cells[area].noteChange(at: place, tick: UInt32(truncatingIfNeeded: areas.tick))
        areas.cells[area].full = nil
        areas.touch(area)
      } else {
        let name = areaName(UInt32(driver), audience)
        areas.leave(UInt32(driver), rank: areaRank(driver), area, name: name)
        areas.unlink(area, first: &drivers[driver].firstArea)
      }
    }
  }

  /// Puts the driver into the watched cells at a key that it is not in yet.
  private mutating func join(_ driver: Int, key: UInt64, _ audience: Audience) {
    var rest = areas.precisions(audience)
    while rest != 0 {
      let precision = rest.trailingZeroBitCount
      rest &= rest - 1
      guard let cell = GeohashCell(bits: key >> UInt64(60 - 5 * precision), precision: precision),
        let area = areas.find(cell, audience)
      else { continue }
      join(driver, area, tells: true)
    }
  }

  private mutating func join(_ driver: Int, _ area: Int, tells: Bool) {
    guard !areas.isMember(of: area, first: drivers[driver].firstArea) else { return }
    let displaced = areas.join(
      UInt32(driver), rank: areaRank(driver), area, first: &drivers[driver].firstArea, tells: tells)
    guard let displaced else { return }
    let name = areaName(displaced, areas.cells[area].audience)
    areas.cells[area].left.append(.init(driver: displaced, name: name))
  }

  // MARK: Ticks

  /// Does the next slice of what is to be done; true where there is more.
  mutating func advanceAreas() -> Bool {
    guard areas.nextTick != .max else { return false }
    if areas.phase == .resting, now.uptime >= areas.nextTick { beginTick() }
    var budget = Self.driversPerTurn
    if areas.phase == .looking {
      while budget > 0, let driver = areas.nextToLookAt() {
        lookAtArea(Int(driver))
        budget -= 1
      }
    }
    if areas.phase == .telling { tellAreas(&budget) }
    fillAreas(&budget)
    letGoOfAreas(&budget)
    if !areas.isActive, areas.phase == .resting, areas.noted.isEmpty { areas.nextTick = .max }
    return areas.phase != .resting || !areas.filling.isEmpty || !areas.ending.isEmpty
  }

  private mutating func beginTick() {
    areas.beginTick()
    areas.nextTick += Self.tickNanoseconds
    // A hub that slept does not catch up.
    if areas.nextTick <= now.uptime { areas.nextTick = now.uptime + Self.tickNanoseconds }
  }

  /// Tells the cells that changed; and the loops, behind the last one, that they may send.
  private mutating func tellAreas(_ budget: inout Int) {
    while budget > 0 {
      guard let change = areas.nextToTell() else {
        var loops = areas.loopsTold
        while loops != 0 {
          emit(.areaTickEnded, to: UInt32(loops.trailingZeroBitCount))
          loops &= loops - 1
        }
        return
      }
      budget -= 1 + tell(change.area, changed: change.changed, left: change.left)
    }
  }

  /// One publication of what has changed in a cell. Gives how many drivers it names.
  private mutating func tell(_ area: Int, changed: [UInt32], left departures: [AreaCell.Departure]) -> Int {
    var drivers: [AreaUpdate.Driver] = []
    drivers.reserveCapacity(min(changed.count, AreaCell.shownLimit(areas.cells[area].audience)))
    for driver in changed where isShown(driver, area) { drivers.append(shownDriver(driver, area)) }
    var left: [Identifier] = []
    // Who has come back within the tick, under the same name, is among the others.
    for departure in departures
    where !isShown(departure.driver, area)
      || areaName(departure.driver, areas.cells[area].audience) != departure.name
    {
      left.append(departure.name)
    }
    guard !drivers.isEmpty || !left.isEmpty else { return 0 }
    let update = AreaUpdate(
      cell: areas.cells[area].cell, tick: areas.tick, isFull: false, drivers: drivers, left: left, more: more(area))
    let publication = areaPublication(update)
    let channel = areas.cells[area].channel
    var loops = channels.loops(channel)
    areas.loopsTold |= loops
    while loops != 0 {
      emit(
        .areaUpdate(ChannelHandle(index: UInt32(channel)), publication), to: UInt32(loops.trailingZeroBitCount))
      counters.deliveries += 1
      loops &= loops - 1
    }
    return drivers.count + left.count
  }

  private func isShown(_ driver: UInt32, _ area: Int) -> Bool {
    let (place, isThere) = areas.cells[area].members.find(rank: areaRank(Int(driver)), driver: driver)
    return isThere && areas.cells[area].members.isAmongFirst(AreaCell.shownLimit(areas.cells[area].audience), place)
  }

  // MARK: Cells that begin and end

  /// Looks up who is in a cell that nobody watched before.
  private mutating func fillAreas(_ budget: inout Int) {
    while budget > 0, let first = areas.filling.first {
      let area = Int(first)
      guard let key = areas.cells[area].fillKey else { preconditionFailure("it is being filled") }
      areaScratch.removeAll(keepingCapacity: true)
      let next = index.drivers(
        from: key, through: areas.cells[area].cell.lastKey, limit: budget, into: &areaScratch)
      budget -= max(areaScratch.count, 16)
      for driver in areaScratch { fill(area, with: Int(driver)) }
      areas.cells[area].fillKey = next
      guard next == nil else { continue }
      areas.filling.removeFirst()
      let waiting = areas.cells[area].waiting
      areas.cells[area].waiting = []
      budget -= areas.cells[area].shownCount
      for (session, handle) in waiting { emit(.wholeArea(session, handle, whole(area)), to: session.loop) }
    }
  }

  private mutating func fill(_ area: Int, with driver: Int) {
    guard drivers[driver].position != nil else { return }
    if areas.cells[area].audience == .everybody {
      guard drivers[driver].status == .available else { return }
      // Where riders see it already, they do by the name that it has.
      if !areas.isShown(to: .everybody, first: drivers[driver].firstArea) {
        drivers[driver].pseudonym = newestPseudonym(driver)
      }
    }
    join(driver, area, tells: false)
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
