// The channels of watched cells, whose indices the area table keeps.
import HubMessages

extension Channels {
  /// Subscribes an outlet to the channels of a view's cells, creates missing ones, and returns all. Nil at the limit of
  /// channels: then nothing has changed.
  mutating func open(_ view: AreaView, for input: SubscribeInput) -> [Int]? {
    let outlet = Int(input.session.outlet)
    var opened: [Int] = []
    for (cell, known) in zip(view.cells, view.known) {
      let name = view.audience.channel(of: cell)
      guard let channel = known ?? table.insert(area: name, for: input.actor.role) else {
        for channel in opened { _ = table.removeSubscriber(channel, outlet: outlet) }
        return nil
      }
      table.addSubscriber(channel, outlet: outlet)
      opened.append(channel)
    }
    return opened
  }

  /// Answers a subscription of an area.
  mutating func answer(_ input: SubscribeInput, _ view: AreaView, _ opened: [Int]) {
    var answer = Subscribed(
      replyTo: input.messageID, channel: input.request.channel, sequence: 0, epoch: epoch, recovered: false,
      snapshot: nil)
    answer.viewID = input.request.viewID
    answer.cells = view.cells
    let handles = opened.map { ChannelHandle(index: UInt32($0)) }
    emit(.watching(input.session, answer, handles), to: input.session.outlet)
  }

  mutating func setArea(_ channel: Int, _ area: Int) { table.setArea(channel, area) }

  /// Carries out the area table's steps: updates, snapshots, ends of ticks, and changes of what is watched.
  mutating func carryOut(_ steps: [AreaStep], at time: Timestamp) {
    for step in steps {
      switch step {
      case .update(let parts, let channel):
        for part in parts { publish(areaUpdate: part, on: channel, at: time) }
      case .tickEnded(let due):
        while let outlet = updatedOutlets.popFirst() { emit(.areaTickEnded(due: due), to: UInt32(outlet)) }
      case .snapshot(let parts, let channel, let sessions, let isCurrent):
        let snapshot = parts.map { publication($0, on: table.name(channel), at: time) }
        if isCurrent { snapshots[channel] = snapshot }
        for session in sessions { emit(snapshot, of: channel, to: session) }
      case .keptSnapshot(let channel, let session):
        if let snapshot = snapshots[channel] { emit(snapshot, of: channel, to: session) }
      case .outdated(let channel): snapshots[channel] = nil
      case .watched(let cell): sendToCluster(.watched(cell))
      case .unwatched(let cell): sendToCluster(.unwatched(cell))
      }
    }
  }

  /// Publishes a cell's update to the outlets that watch it.
  private mutating func publish(areaUpdate body: Publication.Body, on channel: Int, at time: Timestamp) {
    let update = publication(body, on: table.name(channel), at: time)
    let outlets = table.outlets(channel)
    count(deliveries: outlets.count)
    emit(.areaUpdate(ChannelHandle(index: UInt32(channel)), update), toSubscribersOf: channel)
    updatedOutlets.formUnion(outlets)
  }

  private mutating func emit(_ snapshot: [Publication], of channel: Int, to session: SessionRef) {
    emit(.areaSnapshot(session, ChannelHandle(index: UInt32(channel)), snapshot), to: session.outlet)
  }
}
