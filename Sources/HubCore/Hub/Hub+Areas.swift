// Live areas: what moves on a part of the map, told once a second for each cell to all who watch it. The table of areas
// does the work (AreaTable+Ticks.swift); here its channels are made, and what it tells is handed to the loops.
import HubGeo
import HubMessages

extension Hub {
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
    if let known = areas.channel(of: cell, audience) {
      channels.addSubscriber(known, loop: loop)
      return known
    }
    guard areas.count < role.share(of: limits.areas), let channel = channels.insert(area: .area(cell), for: role)
    else { return nil }
    channels.setArea(channel, areas.insert(cell, audience, channel: channel, at: now))
    channels.addSubscriber(channel, loop: loop)
    return channel
  }

  /// Something about a driver has changed that those who watch areas see: its place, its status, its presence.
  @inline(__always)
  mutating func noteArea(_ driver: Int) { areas.note(driver, &drivers[driver].area) }

  /// Does the next slice of what is to be done; true where there is more.
  mutating func advanceAreas() -> Bool {
    let context = AreaContext(audience: audience, now: now, budget: limits.areaDriversPerTurn)
    let hasMore = areas.advance(&drivers, context, number: &publicationNumber)
    emitAreas()
    return hasMore
  }

  /// Sessions begin to watch, or have fallen behind: they get cells as they are.
  mutating func tellWhole(_ session: SessionRef, _ handles: [ChannelHandle]) {
    for handle in handles {
      guard let area = channels.area(Int(handle.index)) else { continue }  // the session has left it meanwhile
      areas.show(area, to: session, handle)
    }
    emitAreas()
  }

  /// Hands over what areas have come to: a cell's update to the loops that watch it, and behind a tick's last one to
  /// these loops that they may send.
  private mutating func emitAreas() {
    for output in areas.takeOutputs() {
      switch output {
      case .whole(let session, let channel, let full): emit(.wholeArea(session, channel, full), to: session.loop)
      case .update(let channel, let publication):
        var outlets = channels.outlets(Int(channel.index))
        areas.toldOutlets.formUnion(outlets)
        while let outlet = outlets.popFirst() {
          emit(.areaUpdate(channel, publication), to: UInt32(outlet))
          counters.deliveries += 1
        }
      case .tickEnded:
        var outlets = areas.toldOutlets
        areas.toldOutlets = OutletSet()
        while let outlet = outlets.popFirst() { emit(.areaTickEnded, to: UInt32(outlet)) }
      }
    }
  }
}
