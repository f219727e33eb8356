// What is told of areas: at each tick one publication for each cell that changed, and a cell as a whole for those who
// begin to watch it or have fallen behind.
//
// Both are put together over as many turns as their drivers take (AreaUpdateBuilder). Between two turns a fix may come,
// a cell may lose its last watcher, its record may be another's. What holds nevertheless:
//
// - A tick's publications are of one state: who is in which cell changes only while a tick looks at drivers, and it
//   tells of cells when it has looked at all. The outlets send them when the last one is there.
// - Whoever moves or changes meanwhile is noted and told of with the next tick, wherever an update had it.
// - A whole cell is told with what it had before a tick, and then the tick's changes follow; or with all of a tick's
//   changes. One that was begun before a tick changed the cell and is not done when the publishing begins is begun
//   anew.
import HubGeo
import HubMessages

extension AreaTable {
  // MARK: Ticks

  /// Tells of the cells that changed, and behind the last one that it was the last.
  mutating func publish(
    _ drivers: borrowing Drivers, _ trips: borrowing Trips, _ channels: inout Channels, _ now: Moment,
    _ budget: inout Int
  ) {
    while budget > 0 {
      guard var builder = takeNextToPublish() else { return endPublishing(&channels) }
      guard name(&builder, drivers, trips, &budget) else {
        publishing = builder
        return
      }
      budget -= 1 + builder.counts.count / 16
      guard builder.isFull || !builder.named.isEmpty || !builder.left.isEmpty || !builder.counts.isEmpty else {
        continue
      }
      let channel = ChannelHandle(index: UInt32(cells[Int(builder.area.index)].channel))
      for update in publications(builder, tick: tick, &channels, now) {
        publishedTo.formUnion(channels.publish(areaUpdate: update, on: channel))
      }
    }
  }

  /// The tick's last update is published: the outlets that got one may send.
  private mutating func endPublishing(_ channels: inout Channels) {
    while let outlet = publishedTo.popFirst() { channels.emit(.areaTickEnded(due: tickDue), to: UInt32(outlet)) }
  }

  // MARK: Whole cells

  /// A session begins to watch, or has fallen behind: it gets a cell as it is, now or when that is put together.
  mutating func show(_ channel: ChannelHandle, to session: SessionRef, _ channels: inout Channels) {
    guard let cell = channels.area(Int(channel.index)) else { return }  // the session has left it meanwhile
    if let full = cells[cell].full {
      channels.emit(.areaSnapshot(session, channel, full), to: session.outlet)
    } else {
      ask(cell, session, channel)
    }
  }

  /// Puts whole cells together, and tells those who wait for them.
  mutating func publishSnapshots(
    _ drivers: borrowing Drivers, _ trips: borrowing Trips, _ channels: inout Channels, _ now: Moment,
    _ budget: inout Int
  ) {
    while budget > 0, var builder = takeNextAsked() {
      guard name(&builder, drivers, trips, &budget) else {
        showing = builder
        return
      }
      let full = publications(builder, tick: publishedTick, &channels, now)
      for (session, channel) in answer(Int(builder.area.index), full) {
        channels.emit(.areaSnapshot(session, channel, full), to: session.outlet)
        budget -= 1
      }
    }
  }

  // MARK: Names

  /// Names drivers of an update, as many as there is budget for; true when all are.
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
        // Who has come back within the tick, under the same name, is among the others.
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

  /// Where a driver stands among the members of a cell; nil where the cell does not show it.
  @inline(__always)
  private func shownSlot(_ driver: UInt32, _ drivers: borrowing Drivers, _ cell: Int) -> AreaMembers.Slot? {
    let (slot, isThere) = cells[cell].members.find(rank: rank(of: driver, drivers), driver: driver)
    let limit = AreaCell.shownLimit(cells[cell].audience)
    return isThere && cells[cell].members.isAmongFirst(limit, slot) ? slot : nil
  }

  /// A driver of a cell as its audience sees it; nil where the audience may not any more, which the next tick tells.
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
    case .everybody:
      guard (guest?.seen.status ?? drivers[Int(number)].status) == .available else { return nil }
      return AreaUpdate.Driver(
        driverID: areaName(number, .everybody, drivers),
        coordinate: cells[cell].middle(ofField: cells[cell].members[slot].field), heading: nil, speed: nil,
        status: .available, timestamp: second)
    }
  }

  /// What ops are shown of it besides, and other hubs.
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

  /// What was put together, in updates of as many drivers as one may list. All that follow the first add to it.
  private func publications(
    _ builder: AreaUpdateBuilder, tick: UInt64, _ channels: inout Channels, _ now: Moment
  ) -> [Publication] {
    let index = Int(builder.area.index)
    let cell = cells[index].cell
    if cells[index].audience == .counts {
      let update = CountsUpdate(block: cell, tick: tick, isFull: builder.isFull, cells: builder.counts)
      return [channels.publication(.countsUpdate(update), on: .countsBlock(cell), at: now.timestamp)]
    }
    let rest = cells[index].members.count - cells[index].shownCount
    var update = AreaUpdate(
      cell: cell, tick: tick, isFull: builder.isFull, drivers: builder.named, left: builder.left,
      more: rest > 0 ? rest : nil)
    update.details = builder.details
    if channels.isInCluster { update.keepArrived() }
    // The order in which a cell keeps its drivers stays the same when they change names.
    if cells[index].audience == .everybody { update.sortByName() }
    return update.parts.map { channels.publication(.areaUpdate($0), on: .area(cell), at: now.timestamp) }
  }
}

extension AreaUpdate {
  /// Of a driver that was another hub's a moment ago, or is from now on, one has left and the other has come.
  fileprivate mutating func keepArrived() {
    if left.isEmpty || drivers.isEmpty { return }
    let arrived = Set(drivers.lazy.map(\.driverID))
    left.removeAll { arrived.contains($0) }
  }

  /// Itself, or updates of as many drivers as one may list: the first says whether it is all and who left.
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
