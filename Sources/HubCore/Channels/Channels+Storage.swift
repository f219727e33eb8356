// What waits for storage: answers and events until they are stored, and inputs about channels whose events are not.
import HubMessages

extension Channels {
  /// Emits an output when everything so far is stored. Where storage fails, an answer is refused.
  mutating func emitStored(
    _ output: HubOutput, to outlet: UInt32, _ storage: inout HubStorage, counting counters: inout HubCounters
  ) {
    guard storage.hasUnstored else { return emit(output, to: outlet) }
    switch storage.condition {
    case .good: storage.hold(output, for: outlet)
    case .unavailable where output.isAnswer: refuse(waiting: output, to: outlet, counting: &counters)
    case .unavailable: storage.hold(output, for: outlet)
    }
  }

  mutating func emitStored(
    _ output: HubOutput, toSubscribersOf channel: Int, _ storage: inout HubStorage,
    counting counters: inout HubCounters
  ) {
    var outlets = table.outlets(channel)
    while let outlet = outlets.popFirst() { emitStored(output, to: UInt32(outlet), &storage, counting: &counters) }
  }

  /// Emits the answer to a subscription, or to its end, when all events of the channel so far are stored.
  mutating func emit(
    _ output: HubOutput, behindEventsOf channel: Int, to outlet: UInt32, _ storage: inout HubStorage,
    counting counters: inout HubCounters
  ) {
    guard table.eventTicket(channel) > storage.storedThrough else { return emit(output, to: outlet) }
    emitStored(output, to: outlet, &storage, counting: &counters)
  }

  /// Refuses a waiting output that cannot be stored.
  mutating func refuse(waiting output: HubOutput, to outlet: UInt32, counting counters: inout HubCounters) {
    if case .unsubscribed = output { return emit(output, to: outlet) }
    if case .subscribed(_, let channel, _, _, _) = output { _ = release(channel, of: outlet) }
    guard let refusal = output.refusedForStorage else { return }
    counters.refusedForStorage += 1
    emit(refusal, to: outlet)
  }

  /// Defers an input about a channel until the channel's events are stored; false where they are, and no earlier input
  /// waits.
  func parkIfUnstored(_ input: HubInput, for channel: Channel, _ storage: inout HubStorage) -> Bool {
    guard storage.isOn, storage.condition == .good else { return false }
    // It must not overtake parked inputs, which are handled in order when they are released.
    let isBehindOthers = storage.parked > 0 && !storage.isReleasing && table.find(channel) != nil
    guard isBehindOthers || isUnstored(channel, storage) && !isAnsweredBehindEvents(channel) else { return false }
    storage.park(input)
    return true
  }

  /// Whether a subscription to a known channel begins at once, and its answer waits for the events so far. A channel of
  /// events alone may have one in each group of the journal: a subscription that began only when all are stored might
  /// never. With state this is not possible, for what is published of it before the answer leaves would be lost.
  private func isAnsweredBehindEvents(_ channel: Channel) -> Bool {
    switch channel {
    case .trips, .fence: table.find(channel) != nil
    case .trip, .driver, .area, .nearby, .box, .counts, .countsBlock, .fleet, .raw, .stats: false
    }
  }

  /// Whether a channel's newest event is not stored. A new channel starts from the numbers of removed ones: their
  /// removal must be stored, or a restarted hub would reuse these numbers.
  func isUnstored(_ channel: Channel, _ storage: borrowing HubStorage) -> Bool {
    guard let index = table.find(channel) else { return storage.forgottenTicket > storage.storedThrough }
    return table.eventTicket(index) > storage.storedThrough
  }

  /// Whether a subscription would wait for the disk while the disk is full.
  func cannotStore(_ channel: Channel, _ storage: borrowing HubStorage) -> Bool {
    switch storage.condition {
    case .good: false
    case .unavailable: isUnstored(channel, storage)
    }
  }

  /// Emits what may leave after further records are stored, and gives the inputs that waited. Events come first: a
  /// session that subscribed between two events gets both as missed and must not get the second live as well.
  mutating func release(from storage: inout HubStorage) -> [HubInput] {
    var parked: [HubInput] = []
    while let next = storage.release() {
      switch next {
      case .output(let output, let outlet): emit(output, to: outlet)
      case .input(let input): parked.append(input)
      }
    }
    return parked
  }
}
