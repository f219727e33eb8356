// Live areas: what moves on a part of the map, published once a second for each cell to all who watch it. The table of
// areas does the work (AreaTable+Ticks.swift).
import HubMessages

extension Hub {
  /// A session wants to watch an area, or the cells near a place.
  mutating func watchArea(_ input: SubscribeInput) throws(ErrorReply) {
    let (request, role) = (input.request, input.actor.role)
    let isPeer = input.session.outlet == channels.clusterOutlet
    guard let (audience, cells) = AreaCovering.watched(by: role, request, isPeer: isPeer) else {
      throw ErrorReply(code: .badMessage, message: AreaCovering.refusal(of: request))
    }
    let handles = areas.watch(
      cells, audience, role, limit: limits.areas, outlet: input.session.outlet, &channels, at: now)
    guard let handles else {
      counters.count(full: .areas)
      throw ErrorReply(code: .rateLimited, message: "this hub's table of areas is full", retryAfter: 60)
    }
    var answer = Subscribed(
      replyTo: input.messageID, channel: request.channel, sequence: 0, epoch: channels.epoch, recovered: false,
      snapshot: nil)
    answer.viewID = request.viewID
    answer.cells = cells
    emit(.watching(input.session, answer, handles), to: input.session.outlet)
  }

  /// Something about a driver has changed that those who watch areas see: its place, its status, its presence.
  @inline(__always)
  mutating func noteArea(_ driver: Int) { areas.note(driver, &drivers[areaOf: driver]) }
}
