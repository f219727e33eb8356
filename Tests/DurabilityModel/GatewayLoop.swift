// A loop of the gateway without sockets: who listens to which channel, and what the hub's outputs become on each
// connection. It does what Gateway's SessionLoop does with them, and nothing else.
import HubCore
import HubMessages

final class GatewayLoop {
  private struct Slot {
    var generation: UInt32 = 0
    var link: Link?
    var isDriver = false
    var channels: [ChannelHandle] = []
  }

  let number: Int
  private var slots: [Slot] = []
  /// By channel: the slots that listen.
  private var listeners: [[Int]] = []
  /// For the hub.
  var inputs: [HubInput] = []
  /// From the hub, not looked at yet.
  var outputs = Pipe<HubOutput>()

  init(number: Int) { self.number = number }

  var links: [Link] { slots.compactMap(\.link) }

  // MARK: Connections

  func open(client: Int, _ actor: Actor) -> Link {
    let slot = slots.firstIndex { $0.link == nil } ?? slots.count
    if slot == slots.count { slots.append(Slot()) }
    slots[slot].generation += 1
    let session = SessionRef(outlet: UInt32(number), slot: UInt32(slot), generation: slots[slot].generation)
    let link = Link(client: client, loop: number, session: session)
    slots[slot].link = link
    slots[slot].isDriver = actor.role == .driver
    if slots[slot].isDriver {
      inputs.append(.driverConnecting(session, actor.id))
    } else {
      link.downward.append(.admitted)
    }
    return link
  }

  /// The hub's side of a connection ends.
  func close(_ link: Link) {
    let slot = Int(link.session.slot)
    guard slots[slot].link === link else { return }
    for handle in slots[slot].channels.reversed() { drop(slot, handle) }
    if slots[slot].isDriver { inputs.append(.driverDisconnected(link.session)) }
    slots[slot].link = nil
    link.isHungUp = true
  }

  private func slot(of session: SessionRef) -> Int? {
    let slot = Int(session.slot)
    return slots[slot].link != nil && slots[slot].generation == session.generation ? slot : nil
  }

  // MARK: Outputs

  /// Looks at the next outputs, at most `count` of them.
  func drain(_ count: Int) {
    for _ in 0..<count {
      guard let output = outputs.take() else { return }
      handle(output)
    }
  }

  private func handle(_ output: HubOutput) {
    switch output {
    case .delivery(let delivery):
      for slot in listeners(of: delivery.channel) {
        slots[slot].link?.downward.append(.publication(delivery.publication))
      }
    case .subscribed(let session, let handle, let answer, let missed, _):
      subscribed(session, handle, answer, missed)
    case .subscriptionRefused(let session, let error): tell(session, .reply(.error(error)))
    case .unsubscribed(let session, let message, let handle, let name):
      guard let slot = slot(of: session) else { return }
      drop(slot, handle)
      tell(session, .reply(.unsubscribed(Unsubscribed(replyTo: message, channel: name, reason: .asked))))
    case .channelEnded(let handle, let name, let reason):
      for slot in listeners(of: handle) {
        drop(slot, handle)
        let end = Unsubscribed(replyTo: nil, channel: name, reason: reason)
        slots[slot].link?.downward.append(.reply(.unsubscribed(end)))
      }
    case .reply(let session, let reply): tell(session, .reply(reply))
    case .admitted(let session, _): tell(session, .admitted)
    case .conflict(let session, _), .full(let session), .replaced(let session, _):
      guard let slot = slot(of: session), let link = slots[slot].link else { return }
      link.downward.append(.closed)
      close(link)
    case .channelClaimed, .named, .notified, .queryResult, .trips, .fences, .watching, .wholeArea, .areaUpdate,
      .areaTickEnded,
      .viewEnded:
      break  // nobody here has a grant that ends, or asks
    }
  }

  private func subscribed(_ session: SessionRef, _ handle: ChannelHandle, _ answer: Subscribed, _ missed: [Publication])
  {
    guard let slot = slot(of: session), let link = slots[slot].link else {
      return inputs.append(.released(outlet: UInt32(number), handle))
    }
    let index = Int(handle.index)
    while listeners.count <= index { listeners.append([]) }
    if listeners[index].contains(slot) {
      inputs.append(.released(outlet: UInt32(number), handle))
    } else {
      listeners[index].append(slot)
      slots[slot].channels.append(handle)
    }
    link.downward.append(.reply(.subscribed(answer)))
    for publication in missed { link.downward.append(.publication(publication)) }
  }

  private func tell(_ session: SessionRef, _ message: Downward) {
    if let slot = slot(of: session) { slots[slot].link?.downward.append(message) }
  }

  private func listeners(of handle: ChannelHandle) -> [Int] {
    let index = Int(handle.index)
    return index < listeners.count ? listeners[index] : []
  }

  private func drop(_ slot: Int, _ handle: ChannelHandle) {
    guard let place = slots[slot].channels.firstIndex(of: handle) else { return }
    slots[slot].channels.remove(at: place)
    listeners[Int(handle.index)].removeAll { $0 == slot }
    inputs.append(.released(outlet: UInt32(number), handle))
  }
}
