// Publishing of areas: at each tick one publication for each cell that changed, and snapshots for sessions that begin
// to watch or have fallen behind.
//
// Both are built over as many turns as their drivers take (AreaUpdateBuilder). Between two turns a fix may come, a cell
// may lose its last watcher, and its record may be reused. These invariants hold:
//
// - A tick's publications are of one state: members of cells change only while a tick looks at drivers, and it
//   publishes after it has looked at all. Outlets send them when the last one is there.
// - A driver that changes meanwhile is noted for the next tick, whatever this one published of it.
// - A snapshot has the state before a tick, whose changes follow, or all of the tick's changes. A snapshot that is
//   unfinished when a tick that changed its cell begins to publish is started again.
// - No snapshot is sent while drivers are being renamed at a full hour: someone with two such snapshots would see which
//   old names went as which new ones came. Subscribers wait until all are renamed.
import HubGeo
import HubMessages

extension AreaTable {
  // MARK: Ticks

  /// Publishes the cells that changed, and then the tick's end.
  mutating func publish(_ drivers: borrowing Drivers, _ trips: borrowing Trips, _ budget: inout Int) {
    while budget > 0 {
      guard var builder = takeNextToPublish() else { return steps.append(.tickEnded(due: tickDue)) }
      guard name(&builder, drivers, trips, &budget) else {
        publishing = builder
        return
      }
      budget -= 1 + builder.counts.count / 16
      guard builder.isFull || !builder.named.isEmpty || !builder.left.isEmpty || !builder.counts.isEmpty else {
        continue
      }
      steps.append(.update(parts(of: builder, tick: tick), on: cells[Int(builder.area.index)].channel))
    }
  }

  // MARK: Whole cells

  /// A session begins to watch, or has fallen behind: it gets the cell's snapshot, now or when that is built.
  mutating func show(_ cell: Int, to session: SessionRef) {
    if cells[cell].hasSnapshot {
      steps.append(.keptSnapshot(cells[cell].channel, to: session))
    } else {
      ask(cell, session)
    }
  }

  /// Builds snapshots and sends them to the sessions that wait.
  mutating func publishSnapshots(_ drivers: borrowing Drivers, _ trips: borrowing Trips, _ budget: inout Int) {
    while budget > 0, renamed == nil, var builder = takeNextAsked() {
      guard name(&builder, drivers, trips, &budget) else {
        showing = builder
        return
      }
      let cell = Int(builder.area.index)
      let (parts, sessions) = (parts(of: builder, tick: publishedTick), answer(cell))
      steps.append(
        .snapshot(parts, on: cells[cell].channel, to: sessions, isCurrent: cells[cell].hasSnapshot))
      budget -= sessions.count
    }
  }

  // MARK: Names

  /// Adds drivers to an update, as many as the budget allows; true when all are added.
  private func name(
    _ builder: inout AreaUpdateBuilder, _ drivers: borrowing Drivers, _ trips: borrowing Trips, _ budget: inout Int
  ) -> Bool {
    let cell = Int(builder.area.index)
    while budget > 0 {
      guard let step = builder.next() else { return true }
      budget -= 1
      switch step {
      case .driver(let driver):
        if let slot = shownSlot(driver, drivers, cell),
          let shown = shown(driver, drivers, as: slot, in: cell)
        {
          builder.add(shown, details(driver, drivers, trips, in: cell))
        }
      case .departure(let departure):
        // A driver that came back within the tick under the same name is among the others.
        if shownSlot(departure.driver, drivers, cell) != nil,
          areaName(departure.driver, cells[cell].audience, drivers) == departure.name
        {
          continue
        }
        builder.add(departed: departure.name)
      }
    }
    return builder.isDone
  }

  /// The slot of a driver among a cell's members; nil where the cell does not show it.
  @inline(__always)
  private func shownSlot(_ driver: UInt32, _ drivers: borrowing Drivers, _ cell: Int) -> AreaMembers.Slot? {
    let (slot, isThere) = cells[cell].members.find(rank: rank(of: driver, drivers), driver: driver)
    let limit = AreaCell.shownLimit(cells[cell].audience)
    return isThere && cells[cell].members.isAmongFirst(limit, slot) ? slot : nil
  }

  /// A driver as the cell's audience sees it; nil where it is hidden by now, which the next tick publishes.
  ///
  /// Ops see the newest position. Riders see the field in which the last tick found the driver, and that tick's second.
  @inline(__always)
  private func shown(
    _ number: UInt32, _ drivers: borrowing Drivers, as slot: AreaMembers.Slot, in cell: Int
  ) -> AreaUpdate.Driver? {
    let guest = shownGuest(number)
    switch cells[cell].audience {
    case .counts: return nil
    case .ops, .peers:
      if let guest { return guest.seen }
      guard let position = drivers[Int(number)].position else { preconditionFailure("who is in a cell has a position") }
      return AreaUpdate.Driver(
        driverID: drivers[Int(number)].id, coordinate: position.coordinate, heading: position.heading,
        speed: position.speed, status: drivers[Int(number)].status, timestamp: position.published,
        timeSource: position.timeSource)
    case .riders:
      guard (guest?.seen.status ?? drivers[Int(number)].status) == .available else { return nil }
      return AreaUpdate.Driver(
        driverID: areaName(number, .riders, drivers),
        coordinate: cells[cell].middle(ofField: cells[cell].members[slot].field), heading: nil, speed: nil,
        status: .available, timestamp: second)
    }
  }

  /// The further members that ops and other hubs get.
  private func details(
    _ number: UInt32, _ drivers: borrowing Drivers, _ trips: borrowing Trips, in cell: Int
  ) -> AreaUpdate.Details? {
    let audience = cells[cell].audience
    guard audience == .ops || audience == .peers else { return nil }
    if let guest = shownGuest(number) { return guest.details }
    let driver = Int(number)
    guard let position = drivers[driver].position else { return nil }
    let trip = drivers[driver].positionTrip.flatMap { trips.current($0) }
    var details = AreaUpdate.Details(
      tripID: trip.flatMap { trips[$0].status.isFinal ? nil : trips[$0].id }, accuracy: position.accuracy,
      confidence: position.confidence, vehicleType: drivers.vehicleType(of: driver))
    details.isOnline = drivers.isOnline(driver, at: uptime)
    if audience == .peers { details.lastTripEnded = drivers[driver].lastTripEnded }
    return details
  }

  /// The result, in updates of at most `maximumDrivers`; each continues the one before it.
  private func parts(of builder: AreaUpdateBuilder, tick: UInt64) -> [Publication.Body] {
    let index = Int(builder.area.index)
    let cell = cells[index].cell
    if cells[index].audience == .counts {
      return [.countsUpdate(CountsUpdate(block: cell, tick: tick, isFull: builder.isFull, cells: builder.counts))]
    }
    let rest = cells[index].members.count - cells[index].shownCount
    var update = AreaUpdate(
      cell: cell, tick: tick, isFull: builder.isFull, drivers: builder.named, left: builder.left,
      more: rest > 0 ? rest : nil)
    update.details = builder.details
    if isInCluster { update.keepArrived() }
    // A cell's order does not change with the drivers' names.
    if cells[index].audience == .riders { update.sortByName() }
    return update.parts.map { .areaUpdate($0) }
  }
}

extension AreaUpdate {
  /// Where a driver has just changed between hubs, one record has left and the other arrived: only the arrival counts.
  fileprivate mutating func keepArrived() {
    if left.isEmpty || drivers.isEmpty { return }
    let arrived = Set(drivers.lazy.map(\.driverID))
    left.removeAll { arrived.contains($0) }
  }

  /// The update itself, or parts of at most `maximumDrivers`: the first has `isFull` and the departures.
  fileprivate var parts: [AreaUpdate] {
    guard drivers.count > AreaUpdate.maximumDrivers else { return [self] }
    return stride(from: 0, to: drivers.count, by: AreaUpdate.maximumDrivers).map { start in
      let range = start..<min(start + AreaUpdate.maximumDrivers, drivers.count)
      var part = self
      part.drivers = Array(drivers[range])
      if !details.isEmpty { part.details = Array(details[range]) }
      if start > 0 { (part.isFull, part.left) = (false, []) }
      return part
    }
  }
}
