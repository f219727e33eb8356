// Live areas: what moves on a part of the map, published once a second for each cell to all who watch it. The table of
// areas does the work (AreaTable+Ticks.swift).
import HubGeo
import HubMessages

extension Hub {
  /// A session wants to watch an area, or the cells near a place.
  mutating func watchArea(_ input: SubscribeInput) {
    let request = input.request
    let audience: AreaAudience
    let covering: [GeohashCell]?
    if request.channel.isOfCounts {
      (audience, covering) = (.counts, AreaCovering.blocks(of: request.channel, precision: request.precision))
    } else if input.actor.role == .ops {
      (audience, covering) = (.ops, AreaCovering.cells(of: request.channel, precision: request.precision, .ops))
    } else {
      (audience, covering) = (.everybody, AreaCovering.cells(of: request.channel, .everybody))
    }
    guard let cells = covering else {
      return refuseSubscription(input, .badMessage, AreaCovering.refusal(of: request))
    }
    let handles = areas.watch(
      cells, audience, input.actor.role, limit: limits.areas, outlet: input.session.outlet, &channels, at: now)
    guard let handles else {
      counters.count(full: .areas)
      return refuseSubscription(input, .rateLimited, "this hub's table of areas is full", retryAfter: 60)
    }
    var answer = Subscribed(
      replyTo: input.messageID, channel: input.request.channel, sequence: 0, epoch: channels.epoch, recovered: false,
      snapshot: nil)
    answer.viewID = input.request.viewID
    answer.cells = cells
    emit(.watching(input.session, answer, handles), to: input.session.outlet)
  }

  /// Something about a driver has changed that those who watch areas see: its place, its status, its presence.
  @inline(__always)
  mutating func noteArea(_ driver: Int) { areas.note(driver, &drivers[areaOf: driver]) }
}
