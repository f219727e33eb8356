// What each kind of input must bring about in the simulated hub: asked before it is handed over, and judged by what
// came out.
import HubMessages

@testable import HubCore

extension Simulation {
  /// What must be known before the hub changes: whether fixes will be let through, what a move will get.
  func judgeBefore(_ input: SimulatedInput?) throws(SimulationFailure) -> SimulationModel.Verdict? {
    var hasRoom = hub.trips.count < limits.trips
    switch input?.kind {
    case .move(let actor, let trip, let report, let message, let isGranted):
      // A driver that begins trips is known by that.
      let (role, id) = (Cast.actors[actor].role, Cast.actors[actor].id)
      if role == .driver, hub.drivers.find(id) == nil, hub.drivers.count >= limits.drivers { hasRoom = false }
      return model.judge(actor: actor, trip: trip, report, message: message, isGranted: isGranted, hasRoom: hasRoom)
    case .fixes(let driver, let trip, let isGranted, _):
      guard hub.drivers.find(Cast.driverIDs[driver]) != nil || hub.drivers.count < limits.drivers else { return nil }
      if let session = input?.session, model.sessions[driver] != session { return nil }
      guard let trip else { return .moved }
      let isLet = model.admitFixes(driver: driver, trip: trip, isGranted: isGranted, hasRoom: hasRoom, uptime: uptime)
      return isLet ? .moved : .refused(isGranted && model.trips[trip] == nil ? .storageFull : .forbidden)
    case .connecting, .disconnected, .subscribe, .unsubscribe, .released, .other, nil: return nil
    }
  }

  func judgeAfter(
    _ input: SimulatedInput?, _ session: SessionRef?, _ verdict: SimulationModel.Verdict?, _ tally: Tally
  ) throws(SimulationFailure) {
    switch input?.kind {
    case .fixes(let driver, let trip, _, let count): try judgeFixes(driver, trip, count, verdict, tally)
    case .move(let actor, let trip, let report, let message, _):
      try judgeMove(trip, verdict, tally)
      if verdict == .moved { model.apply(actor: actor, trip: trip, report, message: message, uptime: uptime) }
      try judgeMoveEvents(trip, verdict, tally)
    case .connecting(let driver): try judgeConnecting(driver, session, tally)
    case .subscribe(let topic, _, let actor, let grant): try judgeSubscribe(topic, actor, grant, tally)
    case .disconnected(let driver): if model.sessions[driver] == session { model.sessions[driver] = nil }
    case .released, .unsubscribe, .other, nil:
      let published = tally.positions.contains { $0.contains { $0 > 0 } }
      if published { throw fail("a position without a fix") }
    }
  }

  /// Each accepted fix makes exactly one publication, on each of its channels, for each loop that listens; others none.
  private func judgeFixes(
    _ driver: Int, _ trip: Int?, _ count: Int, _ verdict: SimulationModel.Verdict?, _ tally: Tally
  ) throws(SimulationFailure) {
    let counters = hub.counters
    let accepted = Int(counters.fixesAccepted - lastCounters.fixesAccepted)
    guard counters.fixesReceived - lastCounters.fixesReceived == UInt64(count) else {
      throw fail("fixes were not counted")
    }
    let orphaned = counters.fixesOrphaned - lastCounters.fixesOrphaned
    let forbidden = counters.fixesForbidden - lastCounters.fixesForbidden
    guard orphaned == (verdict == nil ? UInt64(count) : 0) else { throw fail("orphaned \(orphaned) of \(count)") }
    guard forbidden == (verdict == .refused(.forbidden) ? UInt64(count) : 0) else {
      throw fail("forbidden \(forbidden)")
    }
    let isOver = trip.flatMap { model.trips[$0] }?.isOver(uptime) ?? false
    for loop in loops.indices {
      for topic in 0..<Cast.topics {
        let isOnTrip = trip.map { topic == Cast.topic(ofTrip: $0) } ?? false
        let goesHere = topic == driver || topic == Cast.fleet || (isOnTrip && !isOver)
        let expected = goesHere && model.subscribers[topic][loop] > 0 ? accepted : 0
        guard tally.positions[topic][loop] == expected else {
          throw fail("\(tally.positions[topic][loop]) positions on \(Cast.channels[topic]), not \(expected)")
        }
      }
    }
    guard accepted > 0, let index = hub.drivers.find(Cast.driverIDs[driver]), let position = hub.drivers[index].position
    else {
      return
    }
    let life = hub.drivers.handle(of: index)
    if let last = model.positions[driver], last.life == life, last.time >= position.timestamp.milliseconds {
      throw fail("the newest position of driver \(driver) is not newer")
    }
    model.positions[driver] = (life, position.timestamp.milliseconds, isOver ? nil : trip)
    if let trip, !isOver { model.trips[trip]?.heard = uptime }
  }

  private func judgeMove(_ trip: Int, _ verdict: SimulationModel.Verdict?, _ tally: Tally) throws(SimulationFailure) {
    guard tally.replies.count == 1 else { throw fail("\(tally.replies.count) answers to a trip_status") }
    switch (tally.replies[0], verdict) {
    case (.ack, .moved), (.ack, .repeated): break
    case (.error(let error), .refused(let code)) where error.code == code:
      if code == .invalidTransition, error.status != model.trips[trip]?.status { throw fail("details.status is wrong") }
    default: throw fail("expected \(String(describing: verdict)), got \(tally.replies[0])")
    }
  }

  private func judgeMoveEvents(_ trip: Int, _ verdict: SimulationModel.Verdict?, _ tally: Tally)
    throws(SimulationFailure)
  {
    let driver = model.trips[trip]?.driver.flatMap { hub.drivers.find(Cast.driverIDs[$0]) == nil ? nil : $0 }
    for loop in loops.indices {
      for topic in 0..<Cast.topics {
        let goesHere = verdict == .moved && (topic == Cast.topic(ofTrip: trip) || topic == driver)
        let expected = goesHere && model.subscribers[topic][loop] > 0 ? 1 : 0
        guard tally.moves[topic][loop] == expected else {
          throw fail("\(tally.moves[topic][loop]) trip_updates on \(Cast.channels[topic]), not \(expected)")
        }
      }
    }
  }

  /// `subscribed`, or why not; and a trip that is over lets go again at once.
  private func judgeSubscribe(
    _ topic: Int, _ actor: Int, _ grant: ChannelGrant, _ tally: Tally
  ) throws(SimulationFailure) {
    var refusal: ErrorCode?
    var isEnded = false
    for output in tally.others {
      if case .subscriptionRefused(_, let error) = output { refusal = error.code }
      if case .channelEnded(_, Cast.channels[topic], .tripEnded) = output { isEnded = true }
    }
    guard tally.subscribed == (refusal == nil ? 1 : 0) else { throw fail("\(tally.subscribed) answers to subscribe") }
    if !model.mayFollow(actor, topic, grant, uptime: uptime) {
      reached.forbidden += 1
      guard refusal == .forbidden else { throw fail("\(Cast.channels[topic]) was not refused") }
    } else if refusal != nil {
      guard refusal == .rateLimited, hub.channels.count == limits.channels else { throw fail("refused: \(refusal!)") }
    } else if model.trip(ofTopic: topic)?.isOver(uptime) == true, !isEnded {
      throw fail("a closed trip keeps a subscriber")
    }
  }

  private func judgeConnecting(_ driver: Int, _ session: SessionRef?, _ tally: Tally) throws(SimulationFailure) {
    var replaced: SessionRef?
    for case .replaced(let old, _) in tally.others { replaced = old }
    for output in tally.others {
      switch output {
      case .admitted(let admitted, _) where admitted == session:
        if replaced != model.sessions[driver] { throw fail("the older session was not closed") }
        model.sessions[driver] = session
        return
      case .conflict(_, let wait) where model.sessions[driver] != nil && wait > 0 && wait <= 30: return
      case .full where hub.drivers.count == limits.drivers: return
      case .replaced: break
      case .admitted, .conflict, .full, .delivery, .subscribed, .subscriptionRefused, .unsubscribed, .channelEnded,
        .channelClaimed, .named, .notified, .reply, .queryResult, .trips, .fences, .watching, .areaSnapshot,
        .areaUpdate, .areaTickEnded, .shareEnded, .viewEnded, .channelRestarted, .cluster, .credentials, .revoked:
        throw fail("unexpected answer to a driver: \(output)")
      }
    }
    throw fail("a driver got no answer")
  }
}
