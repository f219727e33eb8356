// A loop of the simulation: its connections, which of them listens to what, and what each has seen. It does with the
// hub's outputs what Gateway's SessionLoop+Delivery.swift does, and checks that no subscriber misses an event or sees
// one twice.
import HubMessages

@testable import HubCore

struct SimulatedLoop {
  struct Violation: Error { var text: String }

  /// Who is behind a slot, and what its credential opens.
  struct Visitor {
    var actor: Int
    var isDevelopment: Bool
    /// Bit t: its token names trip t.
    var names: UInt64

    func grant(_ topic: Int) -> ChannelGrant {
      let role = Cast.actors[actor].role
      guard topic >= Cast.drivers, topic < Cast.fleet, role != .ops else { return .granted }
      if isDevelopment { return role == .driver ? .whileUnclaimed : .granted }
      return names & 1 << UInt64(topic - Cast.drivers) != 0 ? .granted : .onlyForParties
    }
  }

  struct Slot {
    enum Phase { case closed, admitting, open }
    var generation: UInt32 = 0
    var phase = Phase.closed
    var driver: Int?
    var visitor = Visitor(actor: 0, isDevelopment: false, names: 0)
    /// By topic: questions about it that the hub has not answered since the token was swapped.
    var reviews = [Int](repeating: 0, count: Cast.topics)
    /// By topic: the newest sequence that the session knows of, nil where it is not subscribed.
    var views = [UInt64?](repeating: nil, count: Cast.topics)
    /// By topic: what the person behind the slot remembers after leaving.
    var remembered = [UInt64?](repeating: nil, count: Cast.topics)
  }

  let number: Int
  var slots = [Slot](repeating: Slot(), count: Cast.slots)
  /// For the hub, not handed over yet.
  var inputs: [SimulatedInput] = []
  /// From the hub, not looked at yet.
  var outputs: [HubOutput] = []
  private var topicOfHandle: [UInt32: Int] = [:]
  private var handleOfTopic = [ChannelHandle?](repeating: nil, count: Cast.topics)
  /// By publication on a trip's channel: whose trip it was when it came out.
  var parties: [UInt64: SimulationModel.Parties] = [:]
  private(set) var keptAsParty: UInt64 = 0
  /// By topic and sequence: the number of the publication that had it.
  private var truth = [[UInt64: UInt64]](repeating: [:], count: Cast.topics)

  init(number: Int) { self.number = number }

  // MARK: Connections

  func reference(_ slot: Int) -> SessionRef {
    SessionRef(outlet: UInt32(number), slot: UInt32(slot), generation: slots[slot].generation)
  }

  func isOpen(_ slot: Int) -> Bool { slots[slot].phase == .open }
  func openDriver(_ slot: Int) -> Int? { isOpen(slot) ? slots[slot].driver : nil }
  func remembered(_ slot: Int, _ topic: Int) -> UInt64? { slots[slot].views[topic] ?? slots[slot].remembered[topic] }

  mutating func openSlot(driver: Int, _ visitor: Visitor) -> Int? {
    guard let slot = slots.firstIndex(where: { $0.phase == .closed }) else { return nil }
    slots[slot].generation += 1
    slots[slot].phase = .admitting
    slots[slot].driver = driver
    slots[slot].visitor = visitor
    return slot
  }

  mutating func openViewer(_ slot: Int, _ visitor: Visitor) {
    guard slots[slot].phase == .closed else { return }
    slots[slot].generation += 1
    slots[slot].phase = .open
    slots[slot].driver = nil
    slots[slot].visitor = visitor
  }

  mutating func refresh(_ slot: Int, names: UInt64) {
    guard isOpen(slot), !slots[slot].visitor.isDevelopment else { return }
    slots[slot].visitor.names = names
    for topic in 0..<Cast.topics where slots[slot].views[topic] != nil {
      guard let handle = handleOfTopic[topic] else { continue }
      let session = reference(slot)
      slots[slot].reviews[topic] += 1
      inputs.append(
        SimulatedInput(
          kind: .other, session: session, input: .name(session, Cast.actors[slots[slot].visitor.actor], handle)))
    }
  }

  mutating func close(_ slot: Int) {
    guard slots[slot].phase != .closed else { return }
    if let driver = slots[slot].driver {
      let session = reference(slot)
      inputs.append(
        SimulatedInput(kind: .disconnected(driver: driver), session: session, input: .driverDisconnected(session)))
    }
    for topic in 0..<Cast.topics where slots[slot].views[topic] != nil { leave(slot, topic) }
    slots[slot].phase = .closed
    slots[slot].driver = nil
    slots[slot].reviews = Slot().reviews
  }

  private mutating func leave(_ slot: Int, _ topic: Int) {
    slots[slot].remembered[topic] = slots[slot].views[topic]
    slots[slot].views[topic] = nil
    release(topic)
  }

  private mutating func release(_ topic: Int) {
    guard let handle = handleOfTopic[topic] else { return }
    inputs.append(
      SimulatedInput(kind: .released(topic: topic), session: nil, input: .released(outlet: UInt32(number), handle)))
  }

  private func slot(of session: SessionRef) -> Int? {
    let slot = Int(session.slot)
    guard slot < slots.count, slots[slot].generation == session.generation, slots[slot].phase != .closed else {
      return nil
    }
    return slot
  }

  // MARK: Draining

  /// Looks at the next `count` outputs.
  mutating func drain(_ count: Int) throws(Violation) {
    let count = min(count, outputs.count)
    for index in 0..<count { try handle(outputs[index]) }
    outputs.removeFirst(count)
  }

  private mutating func handle(_ output: HubOutput) throws(Violation) {
    switch output {
    case .delivery(let delivery): try deliver(delivery)
    case .subscribed(let session, let handle, let answer, let missed, let isParty):
      try subscribed(session, handle, answer, missed, isParty)
    case .unsubscribed(let session, _, let handle, let channel):
      guard let slot = slot(of: session), let topic = topicOfHandle[handle.index], slots[slot].views[topic] != nil,
        handleOfTopic[topic] == handle
      else { return }
      if Cast.channels[topic] != channel {
        throw Violation(text: "unsubscribed from \(channel) by the handle of \(topic)")
      }
      leave(slot, topic)
    case .channelEnded(let handle, let channel, _):
      guard let topic = topicOfHandle[handle.index] else { return }
      for slot in slots.indices where slots[slot].views[topic] != nil {
        if Cast.channels[topic] != channel { throw Violation(text: "\(channel) ended by the handle of \(topic)") }
        leave(slot, topic)
      }
    case .channelClaimed(let handle, let channel, let driver):
      guard let topic = topicOfHandle[handle.index], Cast.channels[topic] == channel else { return }
      for slot in slots.indices where slots[slot].views[topic] != nil {
        let visitor = slots[slot].visitor
        if visitor.grant(topic) == .whileUnclaimed, Cast.actors[visitor.actor].id != driver { leave(slot, topic) }
      }
    case .named(let session, _, let channel, let isParty):
      guard let slot = slot(of: session), let topic = Cast.topicOfChannel[channel] else { return }
      slots[slot].reviews[topic] -= 1
      if slots[slot].views[topic] == nil || slots[slot].visitor.grant(topic) != .onlyForParties { return }
      if isParty { keptAsParty += 1 } else { leave(slot, topic) }
    case .admitted(let session, _):
      if let slot = slot(of: session), slots[slot].phase == .admitting { slots[slot].phase = .open }
    case .conflict(let session, _), .full(let session), .replaced(let session, _):
      if let slot = slot(of: session) { close(slot) }
    case .reply, .notified, .subscriptionRefused, .queryResult, .trips, .fences, .credentials, .revoked, .watching,
      .areaSnapshot, .areaUpdate,
      .areaTickEnded, .shareEnded,
      .viewEnded, .channelRestarted, .cluster:
      break
    }
  }

  private mutating func subscribed(
    _ session: SessionRef, _ handle: ChannelHandle, _ answer: Subscribed, _ missed: [Publication], _ isParty: Bool
  ) throws(Violation) {
    guard let topic = Cast.topicOfChannel[answer.channel] else { throw Violation(text: "no such channel") }
    topicOfHandle[handle.index] = topic
    handleOfTopic[topic] = handle
    guard let slot = slot(of: session), slots[slot].phase == .open,
      isParty || slots[slot].visitor.grant(topic) != .onlyForParties
    else { return release(topic) }
    if let seen = slots[slot].views[topic] {
      // It saw everything live until now, so it is where the channel is.
      if seen != answer.sequence {
        throw Violation(text: "subscriber of \(answer.channel) at \(seen), hub at \(answer.sequence)")
      }
      release(topic)
    }
    for publication in missed where publication.sequence != nil { try compare(publication, topic) }
    slots[slot].views[topic] = answer.sequence
  }

  private mutating func deliver(_ delivery: Delivery) throws(Violation) {
    guard let topic = topicOfHandle[delivery.channel.index] else {
      throw Violation(text: "delivery on an unknown handle")
    }
    let channel = Cast.channels[topic]
    if delivery.publication.channel != channel {
      throw Violation(text: "\(delivery.publication.channel) came as \(channel)")
    }
    let sequence = delivery.publication.sequence
    if sequence != nil { try compare(delivery.publication, topic) }
    for slot in slots.indices {
      guard let seen = slots[slot].views[topic] else { continue }
      try checkEntitled(slot, topic, delivery.publication)
      if let sequence {
        if sequence != seen + 1 { throw Violation(text: "\(channel): event \(sequence) after \(seen)") }
        slots[slot].views[topic] = sequence
      } else if case .driverLocation(let location) = delivery.publication.body, location.after != seen {
        throw Violation(text: "\(channel): position after \(location.after), subscriber at \(seen)")
      }
    }
  }

  /// Nobody follows a trip that is not granted to it, nor its own; but for the while that a new token is looked into.
  private func checkEntitled(_ slot: Int, _ topic: Int, _ publication: Publication) throws(Violation) {
    guard topic >= Cast.drivers, topic < Cast.fleet, slots[slot].reviews[topic] == 0 else { return }
    guard let parties = parties[publication.number] else { throw Violation(text: "a publication of nobody's trip") }
    let visitor = slots[slot].visitor
    let isEntitled =
      switch visitor.grant(topic) {
      case .granted: true
      case .whileUnclaimed: parties.driver == nil || parties.driver == visitor.actor
      case .onlyForParties: parties.has(visitor.actor)
      }
    if !isEntitled { throw Violation(text: "\(Cast.actors[visitor.actor]) sees \(publication.channel)") }
  }

  /// An event that is seen again, live or recovered, is the same one.
  private mutating func compare(_ publication: Publication, _ topic: Int) throws(Violation) {
    guard let sequence = publication.sequence else { throw Violation(text: "a state was kept as an event") }
    let known = truth[topic].updateValue(publication.number, forKey: sequence)
    if let known, known != publication.number {
      throw Violation(
        text: "\(publication.channel): event \(sequence) is \(known) here and \(publication.number) there")
    }
  }
}
