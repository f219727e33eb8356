// A loop of the simulation: its connections, which of them listens to what, and what each has seen. It does with the
// hub's outputs what Gateway's SessionLoop+Delivery.swift does, and checks that no subscriber misses an event or sees
// one twice.
import Messages

@testable import HubCore

struct SimulatedLoop {
  struct Violation: Error { var text: String }

  struct Slot {
    enum Phase { case closed, admitting, open }
    var generation: UInt32 = 0
    var phase = Phase.closed
    var driver: Int?
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
  /// By topic and sequence: the number of the publication that had it.
  private var truth = [[UInt64: UInt64]](repeating: [:], count: Cast.topics)

  init(number: Int) { self.number = number }

  // MARK: Connections

  func reference(_ slot: Int) -> SessionRef {
    SessionRef(loop: UInt32(number), slot: UInt32(slot), generation: slots[slot].generation)
  }

  func isOpen(_ slot: Int) -> Bool { slots[slot].phase == .open }
  func openDriver(_ slot: Int) -> Int? { isOpen(slot) ? slots[slot].driver : nil }
  func remembered(_ slot: Int, _ topic: Int) -> UInt64? { slots[slot].views[topic] ?? slots[slot].remembered[topic] }

  mutating func openSlot(driver: Int) -> Int? {
    guard let slot = slots.firstIndex(where: { $0.phase == .closed }) else { return nil }
    slots[slot].generation += 1
    slots[slot].phase = .admitting
    slots[slot].driver = driver
    return slot
  }

  mutating func openViewer(_ slot: Int) {
    guard slots[slot].phase == .closed else { return }
    slots[slot].generation += 1
    slots[slot].phase = .open
    slots[slot].driver = nil
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
  }

  private mutating func leave(_ slot: Int, _ topic: Int) {
    slots[slot].remembered[topic] = slots[slot].views[topic]
    slots[slot].views[topic] = nil
    release(topic)
  }

  private mutating func release(_ topic: Int) {
    guard let handle = handleOfTopic[topic] else { return }
    inputs.append(
      SimulatedInput(kind: .released(topic: topic), session: nil, input: .released(loop: UInt32(number), handle)))
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
    for place in 0..<count { try handle(outputs[place]) }
    outputs.removeFirst(count)
  }

  private mutating func handle(_ output: HubOutput) throws(Violation) {
    switch output {
    case .delivery(let delivery): try deliver(delivery)
    case .subscribed(let session, let handle, let answer, let missed): try subscribed(session, handle, answer, missed)
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
    case .admitted(let session, _):
      if let slot = slot(of: session), slots[slot].phase == .admitting { slots[slot].phase = .open }
    case .conflict(let session, _), .full(let session), .replaced(let session):
      if let slot = slot(of: session) { close(slot) }
    case .named, .reply, .subscriptionRefused, .queryResult: break
    }
  }

  private mutating func subscribed(
    _ session: SessionRef, _ handle: ChannelHandle, _ answer: Subscribed, _ missed: [Publication]
  ) throws(Violation) {
    guard let topic = Cast.topicOfChannel[answer.channel] else { throw Violation(text: "no such channel") }
    topicOfHandle[handle.index] = topic
    handleOfTopic[topic] = handle
    guard let slot = slot(of: session), slots[slot].phase == .open else { return release(topic) }
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
      if let sequence {
        if sequence != seen + 1 { throw Violation(text: "\(channel): event \(sequence) after \(seen)") }
        slots[slot].views[topic] = sequence
      } else if case .driverLocation(let location) = delivery.publication.body, location.after != seen {
        throw Violation(text: "\(channel): position after \(location.after), subscriber at \(seen)")
      }
    }
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
