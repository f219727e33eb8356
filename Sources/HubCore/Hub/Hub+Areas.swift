// Live areas: drivers on a part of the map, published once a second for each cell to all who watch it. The table of
// areas does the work (AreaTable+Ticks.swift).
import HubMessages

extension Hub {
  /// Notes a change that watchers of areas see: position, status or presence.
  @inline(__always)
  mutating func noteArea(_ driver: Int) { areas.note(driver) }

  mutating func publishAreas() { channels.carryOut(areas.takeSteps(), at: now.timestamp) }

  /// Answers a session that wants to watch an area, or the cells near a coordinate; refuses an empty one.
  mutating func watch(_ input: SubscribeInput) throws(ErrorReply) {
    let isPeer = input.session.outlet == channels.clusterOutlet
    let view = try areas.view(input.request, for: input.actor.role, isPeer: isPeer, limit: limits.areas)
    guard let view, let opened = channels.open(view, for: input) else { throw counters.refuseAreas() }
    for (channel, area) in zip(opened, areas.watch(view, on: opened, at: now)) { channels.setArea(channel, area) }
    publishAreas()
    channels.answer(input, view, opened)
  }

  /// Sends the snapshots of cells to a session, now or when they are built.
  mutating func show(_ cells: [ChannelHandle], to session: SessionRef) {
    for cell in cells {
      // The session may have left it meanwhile.
      if let area = channels.area(Int(cell.index)) { areas.show(area, to: session) }
    }
    publishAreas()
  }
}
