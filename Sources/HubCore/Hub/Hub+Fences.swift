// Fences: questions of ops over HTTP, and publications about drivers at fences. The fences decide (Fences.swift); their
// answers are stored before they are sent.
public import HubMessages

extension Hub {
  // MARK: Drivers at fences

  /// Checks a published position against fences. While nothing can be stored this is left to a later position.
  mutating func watchFences(_ position: Position, driver: Int) {
    guard storage.hasRoom else { return }
    let crossings = fences.update(position, of: driver, among: drivers, counting: &counters)
    if !crossings.isEmpty { publish(crossings) }
  }

  /// Records crossings and publishes them on each channel concerned, in one order.
  @inline(never)
  mutating func publish(_ crossings: [Crossing]) {
    for crossing in crossings {
      if let record = crossing.record { storage.write(record) }
      if crossing.audience == .nobody { continue }
      counters.fenceEvents[Int(crossing.kind.rawValue)] += 1
      let made = fences.notification(of: crossing, driver: drivers[crossing.driver].id)
      func body(_ sequence: UInt64) -> Publication.Body { .notification(made.numbered(sequence)) }
      if crossing.audience.hasFence, let channel = eventChannel(ofFence: crossing.notice.fenceID) {
        publishEvent(on: channel, body)
      }
      if crossing.audience.hasDriver { publishOfDriver(crossing.driver, onTrip: crossing.audience == .all, body) }
    }
  }

  /// Adjusts stays and pairs to a driver's clock that was set back. Without room in the journal the driver's fixes are
  /// not recorded either: a restarted hub detects the change again and moves them itself.
  mutating func moveFenceTimes(of driver: Int, back milliseconds: Int64) {
    for record in fences.moveTimes(of: driver, back: milliseconds, among: drivers) where storage.hasRoom {
      storage.write(record)
    }
  }

  // MARK: Questions

  /// Adds a fence before anybody is connected; an equal one stays. Throws where there is no room.
  public mutating func begin(with fence: Fence) throws(ErrorReply) {
    _ = try answer(.put(fence, FenceCovering(fence)))
  }

  mutating func answer(_ session: SessionRef, _ question: FenceQuestion) {
    do throws(ErrorReply) {
      emitStored(.fences(session, try answer(question)), to: session.outlet)
    } catch {
      // A refusal for want of storage must not wait for storage.
      emit(.fences(session, .refused(error)), to: session.outlet)
    }
  }

  private mutating func answer(_ question: FenceQuestion) throws(ErrorReply) -> FenceAnswer {
    if fences.isChanged(by: question) { try requireRoom("this hub cannot store fences now; send it again") }
    let (answer, change) = try fences.answer(question, at: now.timestamp, counting: &counters)
    switch change {
    case .put(let fence): storage.write(.fence(fence))
    case .deleted(let fence):
      if channels.find(.fence(fence.id)) != nil, let channel = eventChannel(ofFence: fence.id) {
        let last = FenceWords.deleted(fence, at: now.timestamp)
        publishEvent(on: channel) { .notification(last.numbered($0)) }
        channels.forgetEvents(of: channel, &storage)
      }
      storage.write(.fenceDeleted(fence.id))
    case nil: break
    }
    return answer
  }
}
