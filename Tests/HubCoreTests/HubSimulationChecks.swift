// Hands one input to the simulated hub and judges what came out. Plain comparisons and a thrown failure, not #expect: a
// run makes hundreds of thousands of them.
import HubGeo
import HubMessages

@testable import HubCore

/// What came out for one input, counted.
struct Tally {
  var replies: [Reply] = []
  /// By topic and loop.
  var positions: [[Int]]
  var moves: [[Int]]
  var newest: Int64?
  /// Publications on trips' channels, and the topic.
  var onTrips: [(number: UInt64, topic: Int)] = []
  var subscribed = 0
  var others: [HubOutput] = []
  /// The last of each session.
  var advice: [SessionRef: SamplingAdvice] = [:]

  init(loops: Int) {
    positions = Array(repeating: Array(repeating: 0, count: loops), count: Cast.topics)
    moves = positions
  }
}

extension Simulation {
  /// One input (or none, a turn in which only time has passed) through the hub.
  func hand(_ input: SimulatedInput?) throws(SimulationFailure) {
    lastCounters = hub.counters
    let session = input?.session
    if case .released(let topic)? = input?.kind {
      let loop = releasingLoop(input!)
      model.subscribers[topic][loop] -= 1
    }
    let wasAdmitted = try judgeBefore(input)
    hub.process(input.map { [$0.input] } ?? [], now: now)
    var tally = Tally(loops: loops.count)
    for loop in loops.indices {
      let list = hub.drain(loop)
      for output in list { try look(at: output, loop: loop, input, &tally) }
      loops[loop].outputs += list
    }
    try checkCounters()
    for (session, advice) in tally.advice { try judgeSampling(advice, session) }
    try judgeAfter(input, session, wasAdmitted, tally)
    noteParties(tally)
    try judgeClaims(tally)
    try expireTrips()
    try forgetTrips()
  }

  /// The hub cancels a trip that nobody has moved or driven for 24 h, within two seconds after that, and no other.
  private func expireTrips() throws(SimulationFailure) {
    for trip in 0..<Cast.trips {
      guard let state = model.trips[trip], state.ended == nil, let index = hub.trips.find(Cast.tripIDs[trip]) else {
        continue
      }
      let silence = uptime - state.heard
      if hub.trips[index].ended == nil {
        if silence > 86_402_000_000_000 { throw fail("trip \(trip) continues after \(silence) ns of silence") }
      } else {
        if silence < 86_400_000_000_000 { throw fail("trip \(trip) ended after \(silence) ns of silence") }
        model.trips[trip]!.status = .cancelled
        model.trips[trip]!.ended = uptime
      }
    }
  }

  /// Gives the loops the owners of the publications' trips, for their checks.
  private func noteParties(_ tally: Tally) {
    for (number, topic) in tally.onTrips {
      let parties = model.trip(ofTopic: topic)?.parties
      for loop in loops.indices { loops[loop].parties[number] = parties }
    }
    for trip in 0..<Cast.trips where model.trips[trip] != nil && model.trips[trip]!.base == nil {
      guard let channel = hub.channels.find(.trip(Cast.tripIDs[trip])) else { continue }
      model.trips[trip]!.base = hub.channels.sequence(channel) - UInt64(hub.channels.record(channel).events.count)
    }
  }

  /// Loops get a trip's present owner only.
  private func judgeClaims(_ tally: Tally) throws(SimulationFailure) {
    for case .channelClaimed(_, let channel, let driver) in tally.others {
      let topic = Cast.topicOfChannel[channel] ?? Cast.fleet
      guard let claimed = model.trip(ofTopic: topic)?.driver, Cast.driverIDs[claimed] == driver else {
        throw fail("\(channel) was claimed by \(driver)")
      }
      reached.claims += 1
    }
  }

  private func releasingLoop(_ input: SimulatedInput) -> Int {
    guard case .released(let loop, _) = input.input else { return 0 }
    return Int(loop)
  }

  // MARK: Every output

  private func look(
    at output: HubOutput, loop: Int, _ input: SimulatedInput?, _ tally: inout Tally
  ) throws(SimulationFailure) {
    mix(UInt64(loop))
    switch output {
    case .delivery(let delivery): try look(at: delivery, loop: loop, &tally)
    case .subscribed(_, let handle, let answer, let missed, let isParty):
      mix(answer.sequence)
      mix(UInt64(missed.count))
      tally.subscribed += 1
      try judgeSubscribed(handle, answer, missed, isParty, loop: loop, input)
    case .reply(let session, let reply):
      mix(UInt64(session.slot))
      if case .error(let error) = reply { mix(UInt64(error.code.rawValue)) }
      if case .sampling(let advice) = reply { tally.advice[session] = advice } else { tally.replies.append(reply) }
    case .subscriptionRefused, .unsubscribed, .channelEnded, .channelClaimed, .named, .notified, .admitted, .conflict,
      .full,
      .replaced:
      tally.others.append(output)
    case .shareEnded: throw fail("nobody shares a trip")
    case .channelRestarted, .cluster: throw fail("the hub is by itself")
    case .credentials, .revoked: throw fail("nobody asks about tokens")
    case .watching, .areaSnapshot, .areaUpdate, .areaTickEnded, .viewEnded: throw fail("nobody watches an area")
    case .queryResult(_, .drivers(let list), _): for report in list.drivers { mix(report.distance?.bitPattern ?? 0) }
    case .queryResult, .trips(_, .refused, _), .trips(_, .shares, _), .trips(_, .shared, _), .trips(_, .unshared, _),
      .trips(_, .offers, _), .trips(_, .offersStopped, _),
      .fences:
      break
    case .trips(_, .trip(let report, _), _): mix(report.created.milliseconds.magnitude)
    case .trips(_, .list(let page), _):
      for report in page.trips { mix(report.created.milliseconds.magnitude) }
      mix(page.next?.number ?? 0)
    }
  }

  private func look(at delivery: Delivery, loop: Int, _ tally: inout Tally) throws(SimulationFailure) {
    mix(delivery.publication.number)
    guard let topic = model.handles.firstIndex(of: delivery.channel), model.subscribers[topic][loop] > 0 else {
      throw fail("\(delivery.publication.channel) went to loop \(loop), which does not listen")
    }
    guard delivery.publication.channel == Cast.channels[topic] else {
      throw fail("wrong channel on handle of \(topic)")
    }
    if topic >= Cast.drivers, topic < Cast.fleet {
      if model.trip(ofTopic: topic)?.isOver(uptime) == true {
        throw fail("\(delivery.publication.channel) continues after its grace")
      }
      tally.onTrips.append((delivery.publication.number, topic))
    }
    let newest = model.sequences[topic][loop]
    switch delivery.publication.body {
    case .driverLocation(let location):
      mix(location.coordinate.latitude.bitPattern)
      mix(UInt64(bitPattern: location.timestamp.milliseconds))
      guard location.after == newest else { throw fail("position after \(location.after), events up to \(newest)") }
      guard delivery.conflationKey != 0, location.age >= 0 else {
        throw fail("a position without a key, or of the future")
      }
      tally.positions[topic][loop] += 1
      try checkOrder(of: location, topic: topic)
      tally.newest = location.timestamp.milliseconds
    case .areaUpdate, .rawFix, .countsUpdate, .stats, .offer: throw fail("nobody asked for that")
    case .etaUpdate(let update):
      guard update.after == newest, delivery.conflationKey != 0, update.eta >= 0, update.distance >= 0 else {
        throw fail("an ETA after \(update.after), events up to \(newest)")
      }
    case .tripUpdate, .notification:
      guard let sequence = delivery.publication.sequence, sequence == newest + 1 else {
        throw fail("\(delivery.publication.channel): event \(delivery.publication.sequence ?? 0) after \(newest)")
      }
      guard delivery.conflationKey == 0 else { throw fail("an event may not be dropped for a newer one") }
      model.sequences[topic][loop] = sequence
      if delivery.publication.move != nil { tally.moves[topic][loop] += 1 }
    }
  }

  /// No position is older than one that was published before, in one life of the driver's record.
  private func checkOrder(of location: DriverLocation, topic: Int) throws(SimulationFailure) {
    guard let driver = Cast.driverIDs.firstIndex(of: location.driverID), let index = hub.drivers.find(location.driverID)
    else { throw fail("a position of nobody") }
    let life = hub.drivers.handle(of: index)
    let time = location.timestamp.milliseconds
    if let last = model.positions[driver], last.life == life, time < last.time {
      // A confirmed leap publishes two for one input, on each channel: the older one again is in order there.
      throw fail("driver \(driver): position of \(time) after that of \(last.time) on \(Cast.channels[topic])")
    }
  }

  private func judgeSubscribed(
    _ handle: ChannelHandle, _ answer: Subscribed, _ missed: [Publication], _ isParty: Bool, loop: Int,
    _ input: SimulatedInput?
  ) throws(SimulationFailure) {
    guard case .subscribe(let topic, let resume, let actor, let grant)? = input?.kind else {
      throw fail("subscribed without being asked")
    }
    guard model.mayFollow(actor, topic, grant, uptime: uptime) else {
      throw fail("\(Cast.actors[actor]) may not follow \(answer.channel)")
    }
    let trip = model.trip(ofTopic: topic)
    guard isParty == (trip?.parties.has(actor) ?? false) else { throw fail("isParty is \(isParty)") }
    if let known = model.handles[topic], known != handle, model.subscribers[topic].contains(where: { $0 > 0 }) {
      throw fail("\(answer.channel) changed its handle")
    }
    for other in 0..<Cast.topics where other != topic && model.handles[other] == handle {
      if model.subscribers[other].contains(where: { $0 > 0 }) { throw fail("two channels with one handle") }
      model.handles[other] = nil
    }
    model.handles[topic] = handle
    if model.subscribers[topic][loop] > 0, model.sequences[topic][loop] != answer.sequence {
      throw fail("\(answer.channel) at \(answer.sequence), loop \(loop) was sent \(model.sequences[topic][loop])")
    }
    model.subscribers[topic][loop] += 1
    model.sequences[topic][loop] = answer.sequence
    let since = resume.flatMap { $0.epoch == HubBench.epoch ? $0.since : nil }
    if answer.recovered {
      guard let since, since <= answer.sequence else { throw fail("recovered what nobody asked for") }
      guard missed.compactMap(\.sequence) == Array((since + 1)..<(answer.sequence + 1)) else {
        throw fail("\(answer.channel): since \(since), at \(answer.sequence), got \(missed.compactMap(\.sequence))")
      }
      try judgeNewestState(behind: missed, answer, topic: topic)
    } else if !missed.isEmpty {
      throw fail("missed events without recovery")
    } else if since == answer.sequence {
      throw fail("who has seen everything is recovered")
    }
    // For as long as the trip is known, which is 24 h from its end, its events are.
    if keepsAllEvents, let since, let base = trip?.base, since >= base, since <= answer.sequence, !answer.recovered {
      throw fail("\(answer.channel): not recovered since \(since), its first event was \(base + 1)")
    }
    if trip?.isOver(uptime) == true, answer.recovered, !missed.isEmpty { reached.recoveredAfterEnd += 1 }
    try judge(answer.snapshot, topic: topic)
  }

  /// Behind the events comes the newest position, where a snapshot would have had one; and it comes only there.
  private func judgeNewestState(
    behind missed: [Publication], _ answer: Subscribed, topic: Int
  ) throws(SimulationFailure) {
    guard answer.snapshot?.position == nil, answer.snapshot?.eta == nil else {
      throw fail("recovered, and a state in the snapshot too")
    }
    var missed = missed[...]
    if case .etaUpdate(let update) = missed.last?.body {
      missed = missed.dropLast()
      guard update.after == answer.sequence, missed.last?.sequence == nil else {
        throw fail("an ETA that is not behind a position and all events")
      }
    }
    guard missed.dropLast().allSatisfy({ $0.sequence != nil }) else { throw fail("a state among the missed events") }
    guard let last = missed.last, case .driverLocation(let position) = last.body else { return }
    guard position.after == answer.sequence else { throw fail("recovered state after \(position.after)") }
    var snapshot = answer.snapshot ?? Subscribed.Snapshot()
    snapshot.position = position
    try judge(snapshot, topic: topic)
  }

  private func judge(_ snapshot: Subscribed.Snapshot?, topic: Int) throws(SimulationFailure) {
    if topic >= Cast.drivers, topic < Cast.fleet {
      let trip = model.trips[topic - Cast.drivers]
      guard snapshot?.trip?.status == trip?.status else {
        throw fail("snapshot says \(String(describing: snapshot?.trip))")
      }
      if trip?.isOver(uptime) == true, snapshot?.position != nil { throw fail("a closed trip has a position") }
    }
    guard let position = snapshot?.position, let driver = Cast.driverIDs.firstIndex(of: position.driverID) else {
      return
    }
    guard let last = model.positions[driver], last.time == position.timestamp.milliseconds else {
      throw fail("a snapshot with a position that was not the newest")
    }
    if topic >= Cast.drivers, last.trip != topic - Cast.drivers {
      throw fail("a snapshot with a position of another trip")
    }
  }

  /// Advice goes to the driver's own session, says something new, and is what the hub holds it to.
  private func judgeSampling(_ advice: SamplingAdvice, _ session: SessionRef) throws(SimulationFailure) {
    guard let driver = model.sessions.firstIndex(of: session), let index = hub.drivers.find(Cast.driverIDs[driver])
    else {
      throw fail("advice to nobody")
    }
    guard Double(hub.drivers[index].samplingInterval) == advice.interval, hub.drivers[index].samplingAdvised == uptime
    else {
      throw fail("driver \(driver) was sent \(advice.interval) s, not \(hub.drivers[index].samplingInterval)")
    }
  }

  private func forgetTrips() throws(SimulationFailure) {
    for trip in 0..<Cast.trips where model.trips[trip] != nil && hub.trips.find(Cast.tripIDs[trip]) == nil {
      guard let ended = model.trips[trip]?.ended, uptime >= ended + 86_400_000_000_000 else {
        throw fail("trip \(trip) was forgotten early")
      }
      model.trips[trip] = nil
    }
  }

  func mix(_ value: UInt64) { digest = (digest ^ value) &* 0x0000_0100_0000_01B3 }
}
