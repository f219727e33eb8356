// What is told of areas: at each tick one publication for each cell that changed, and a cell as a whole for those who
// begin to watch it or have fallen behind.
//
// Both are put together over as many turns as their drivers take (AreaNaming). Between two turns a fix may come, a cell
// may lose its last watcher, its record may be another's. What holds nevertheless:
//
// - A tick's publications are of one state: who is in which cell changes only while a tick looks at drivers, and it
//   tells of cells when it has looked at all. The loops send them when the last one is there.
// - Whoever moves or changes meanwhile is noted and told of with the next tick, wherever an update had it.
// - A whole cell is told with what it had before a tick, and then the tick's changes follow; or with all of a tick's
//   changes. One that was begun before a tick changed the cell and is not done when the telling begins is begun anew.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  // MARK: Ticks

  /// Tells of the cells that changed; and the loops, behind the last one, that they may send.
  mutating func tellAreas(_ budget: inout Int) {
    while budget > 0 {
      guard var naming = areas.takeNextToTell() else {
        var outlets = areas.toldOutlets
        while let outlet = outlets.popFirst() {
          emit(.areaTickEnded, to: UInt32(outlet))
        }
        return
      }
      guard name(&naming, &budget) else {
        areas.telling = naming
        return
      }
      budget -= 1
      tell(naming)
    }
  }

  /// A cell's update of a tick, to all loops that watch it.
  private mutating func tell(_ naming: AreaNaming) {
    guard naming.isFull || !naming.named.isEmpty || !naming.left.isEmpty else { return }
    let area = Int(naming.area.index)
    let publication = areaPublication(naming, tick: areas.tick)
    let channel = areas.cells[area].channel
    var outlets = channels.outlets(channel)
    areas.toldOutlets.formUnion(outlets)
    while let outlet = outlets.popFirst() {
      emit(
        .areaUpdate(ChannelHandle(index: UInt32(channel)), publication), to: UInt32(outlet))
      counters.deliveries += 1
    }
  }

  // MARK: Whole cells

  /// Sessions begin to watch, or have fallen behind: they get cells as they are.
  mutating func tellWhole(_ session: SessionRef, _ handles: [ChannelHandle]) {
    for handle in handles {
      guard let area = channels.area(Int(handle.index)) else { continue }  // the session has left it meanwhile
      if let full = areas.cells[area].full {
        emit(.wholeArea(session, handle, full), to: session.loop)
      } else {
        areas.ask(area, session, handle)
      }
    }
  }

  /// Puts whole cells together, and tells those who wait for them.
  mutating func tellWholeAreas(_ budget: inout Int) {
    while budget > 0, var naming = areas.takeNextAsked() {
      guard name(&naming, &budget) else {
        areas.showing = naming
        return
      }
      let area = Int(naming.area.index)
      let full = areaPublication(naming, tick: areas.toldTick)
      for (session, handle) in areas.answer(area, full) {
        emit(.wholeArea(session, handle, full), to: session.loop)
        budget -= 1
      }
    }
  }

  // MARK: Names

  /// Names drivers of an update, as many as there is budget for; true when all are.
  private mutating func name(_ naming: inout AreaNaming, _ budget: inout Int) -> Bool {
    let area = Int(naming.area.index)
    let audience = areas.cells[area].audience
    while budget > 0 {
      guard let step = naming.next() else { return true }
      budget -= 1
      switch step {
      case .driver(let driver):
        if let place = shownPlace(driver, area), let shown = shownDriver(Int(driver), area, place) {
          naming.add(shown)
        }
      case .departure(let departure):
        // Who has come back within the tick, under the same name, is among the others.
        if shownPlace(departure.driver, area) != nil, areaName(departure.driver, audience) == departure.name {
          continue
        }
        naming.add(departed: departure.name)
      }
    }
    return naming.isDone
  }

  /// Where a driver stands among the members of a cell; nil where the cell does not show it.
  @inline(__always)
  private func shownPlace(_ driver: UInt32, _ area: Int) -> AreaMembers.Place? {
    let (place, isThere) = areas.cells[area].members.find(rank: areaRank(Int(driver)), driver: driver)
    let limit = AreaCell.shownLimit(areas.cells[area].audience)
    return isThere && areas.cells[area].members.isAmongFirst(limit, place) ? place : nil
  }

  /// The name that an audience knows a driver by.
  @inline(__always)
  func areaName(_ driver: UInt32, _ audience: Audience) -> Identifier {
    switch audience {
    case .everybody: PublicAudience.name(drivers[Int(driver)].pseudonym)
    case .ops: drivers[Int(driver)].id
    }
  }

  /// A driver of a cell as its audience sees it; nil where the audience may not any more, which the next tick tells.
  ///
  /// Ops see the newest position. Riders see the field in which the last tick found the driver, and that tick's second.
  @inline(__always)
  private func shownDriver(_ driver: Int, _ area: Int, _ place: AreaMembers.Place) -> AreaUpdate.Driver? {
    guard let position = drivers[driver].position else { preconditionFailure("who is in a cell has a position") }
    let status = drivers[driver].activeTrips > 0 ? DriverStatus.onTrip : drivers[driver].reported
    let name = areaName(UInt32(driver), areas.cells[area].audience)
    switch areas.cells[area].audience {
    case .ops:
      return AreaUpdate.Driver(
        driverID: name, coordinate: position.coordinate, heading: position.heading, speed: position.speed,
        status: status, timestamp: position.published, timeSource: position.timeSource)
    case .everybody:
      guard status == .available else { return nil }
      return AreaUpdate.Driver(
        driverID: name, coordinate: areas.cells[area].middle(ofField: areas.cells[area].members[place].field),
        heading: nil, speed: nil, status: status, timestamp: areas.second)
    }
  }

  private mutating func areaPublication(_ naming: AreaNaming, tick: UInt64) -> Publication {
    let area = Int(naming.area.index)
    let cell = areas.cells[area].cell
    let rest = areas.cells[area].members.count - areas.cells[area].shownCount
    publicationNumber += 1
    var update = AreaUpdate(
      cell: cell, tick: tick, isFull: naming.isFull, drivers: naming.named, left: naming.left,
      more: rest > 0 ? rest : nil)
    // The order in which a cell keeps its drivers stays the same when they change names.
    if areas.cells[area].audience == .everybody { update.sortByName() }
    return Publication(
      channel: .area(cell), number: publicationNumber, timestamp: now.timestamp, body: .areaUpdate(update))
  }
}
