// What clients do of their own accord, and what they make of what they hear.
import HubBytes
import HubCore
import HubGeo
import HubJournal
import HubMessages

extension World {
  // MARK: Doing

  /// A client does one thing.
  mutating func act(_ number: Int) {
    let isDriver = clients[number].actor.role == .driver
    if isDriver, oneIn(2) { measure(number) }
    guard let link = clients[number].link else { return connect(number) }
    guard clients[number].isOpen else { return }
    if number == World.ops, oneIn(3) { putFence() }
    switch pick(isDriver ? 12 : 8) {
    case 0..<3: makeMove(number)
    case 3: repeatMove(number)
    case 4, 5: subscribe(number, link)
    case 6: if oneIn(3) { leave(number, link) }
    case 7: break
    case 8: repeatBatch(number)
    case 9: sendPing(number, link)
    default: makeBatch(number)
    }
    sendKept(number, link)
  }

  mutating func connect(_ number: Int) {
    guard let life else { return }
    let link = life.loops[pick(life.loops.count)].open(client: number, clients[number].actor)
    clients[number].link = link
    diary.note("client connects", number)
  }

  private mutating func subject(_ subject: Subject) -> MessageID {
    subjects.append(subject)
    return Names.message(subjects.count - 1)
  }

  /// Everything that is not answered and was not sent on this connection, in order.
  mutating func sendKept(_ number: Int, _ link: Link) {
    for place in clients[number].kept.indices where !clients[number].kept[place].isSent {
      switch clients[number].kept[place].subject {
      case .move(let move): link.upward.append(.move(move))
      case .batch(let batch): link.upward.append(.batch(batch))
      }
      clients[number].kept[place].isSent = true
    }
  }

  // MARK: Fences

  /// Ops put a fence somewhere on a driver's way, or there where it was another: over HTTP, so no link has to do with
  /// it.
  private mutating func putFence() {
    guard let life else { return }
    let number = pick(World.fences)
    let meters = Double(time) / 1000 * 5 + Double(pick(80)) - 20
    let latitude = 10 + Double(number % World.drivers) * 20 + meters / 111_195
    let fence = Fence(
      id: Names.fences[number],
      shape: .area(
        .circle(Circle(center: Coordinate(latitude: latitude, longitude: 13)!, radiusMeters: Double(5 + pick(30)))!)))
    life.loops[0].inputs.append(
      .fences(SessionRef(outlet: 0, slot: 1 << 20, generation: 0), .put(fence, FenceCovering(fence))))
    diary.note("ops put fence", number)
  }

  // MARK: Moves

  private static let order: [TripStatus] = [
    .requested, .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed,
  ]

  /// Mostly the next move of a trip as the client knows it, else any.
  private mutating func makeMove(_ number: Int) {
    guard clients[number].kept.count < 4 else { return }
    let trip = pick(World.trips)
    var status = World.order[0]
    if let known = clients[number].known[trip] {
      guard let place = World.order.firstIndex(of: known), place + 1 < World.order.count else { return }
      status = World.order[place + 1]
    }
    if oneIn(8) { status = oneIn(3) ? .cancelled : World.order[pick(World.order.count)] }
    let place = ledger.moves.count
    let message = subject(.kept(.move(place)))
    // A place that no other change has: each acked one has an event.
    let elsewhere = Coordinate(latitude: Double(place % 80_000) / 1000, longitude: 13)
    let change =
      clients[number].known[trip] != nil && oneIn(5) ? TripChange(tripID: Names.trips[trip], dropoff: elsewhere) : nil
    // A time that nothing else has: see `Ledger.isMark`.
    let mark = Timestamp(milliseconds: Names.origin + Int64(place) * 10 + 7)
    ledger.moves.append(Ledger.Move(trip: trip, status: status, mark: mark, message: message, change: change))
    clients[number].kept.append(Client.Kept(subject: .move(place)))
    diary.note("client moves trip to", number, trip, Int(status.rawValue), place)
  }

  /// A move that was acked is sent again, by the one who sent it: it changes nothing and gets the same ack.
  private mutating func repeatMove(_ number: Int) {
    guard theme != .days, let kept = lastAcked[number] else { return }
    guard !clients[number].kept.contains(where: { $0.subject == .move(kept) }) else { return }
    clients[number].kept.append(Client.Kept(subject: .move(kept)))
    reach.repeated += 1
  }

  /// The same of a batch: each of its fixes is a duplicate.
  private mutating func repeatBatch(_ number: Int) {
    guard let place = lastAckedBatch[number] else { return }
    guard !clients[number].kept.contains(where: { $0.subject == .batch(place) }) else { return }
    clients[number].kept.append(Client.Kept(subject: .batch(place)))
    reach.repeated += 1
  }

  // MARK: Fixes

  /// The trip that a driver's fixes name, as far as it knows.
  func tripDriven(by driver: Int) -> Int? {
    (0..<World.trips).first { trip in
      guard trip % World.drivers == driver, let status = clients[driver].known[trip] else { return false }
      return status != .completed && status != .cancelled
    }
  }

  /// The phone measures where it is. It goes north at 5 m/s, so that each fix is where the last ones lead.
  mutating func measure(_ driver: Int) {
    let clock = (Names.origin + time) / 10 * 10 + clients[driver].clockOffset / 10 * 10 + 1
    guard clock > clients[driver].lastFixTime else { return }
    clients[driver].lastFixTime = clock
    let latitude = 10 + Double(driver) * 20 + Double(clock - Names.origin) / 1000 * 5 / 111_195
    let place = Coordinate(latitude: latitude, longitude: 13)!
    fixes.append(Fix(coordinate: place, timestamp: Timestamp(milliseconds: clock), accuracy: 5))
    guard let link = clients[driver].link, clients[driver].isOpen, !oneIn(3) else {
      return clients[driver].backlog.append(fixes.count - 1)
    }
    clients[driver].unconfirmed.append(fixes.count - 1)
    link.upward.append(.fix(fixes.count - 1))
  }

  /// What was measured and not sent live becomes a batch, which is kept until its ack.
  mutating func makeBatch(_ driver: Int) {
    guard !clients[driver].backlog.isEmpty, clients[driver].kept.count < 4 else { return }
    let count = min(clients[driver].backlog.count, 1 + pick(8))
    let content = clients[driver].backlog.prefix(count).map { fixes[$0] }
    clients[driver].backlog.removeFirst(count)
    let place = ledger.batches.count
    let message = subject(.kept(.batch(place)))
    ledger.batches.append(
      Ledger.Batch(driver: driver, trip: tripDriven(by: driver), fixes: content, message: message))
    clients[driver].kept.append(Client.Kept(subject: .batch(place)))
    diary.note("driver makes batch of fixes", driver, place, count)
  }

  private mutating func sendPing(_ driver: Int, _ link: Link) {
    guard clients[driver].ping == nil else { return }
    let message = subject(.other)
    clients[driver].ping = (message, clients[driver].unconfirmed.count)
    link.upward.append(.ping(message))
  }

  // MARK: Subscriptions

  private mutating func subscribe(_ number: Int, _ link: Link) {
    let topic = pick(World.topics)
    // A driver's channel is for the driver and ops.
    guard topic < World.trips || clients[number].actor.role == .ops || topic == World.trips + number else { return }
    clients[number].views[topic].isWanted = true
    ask(number, topic, link)
  }

  mutating func ask(_ number: Int, _ topic: Int, _ link: Link) {
    guard clients[number].views[topic].phase == .off else { return }
    let resume = clients[number].views[topic].resume
    clients[number].views[topic].phase = .asked
    link.upward.append(.subscribe(Names.channels[topic], resume, subject(.subscribe(topic))))
    diary.note("client subscribes to topic since", number, topic, Int(resume?.since ?? 0))
  }

  private mutating func leave(_ number: Int, _ link: Link) {
    let topic = pick(World.topics)
    guard clients[number].views[topic].phase == .on else { return }
    clients[number].views[topic].isWanted = false
    link.upward.append(.unsubscribe(Names.channels[topic], subject(.other)))
  }

  // MARK: Hearing

  /// Messages reach a client, in their order.
  mutating func hear(_ link: Link, _ count: Int) throws(Violation) {
    let number = link.client
    for _ in 0..<count {
      guard clients[number].link === link, let message = link.downward.take() else { return }
      switch message {
      case .admitted:
        clients[number].isOpen = true
        for topic in 0..<World.topics where clients[number].views[topic].isWanted { ask(number, topic, link) }
      case .closed: clients[number].lose()
      case .publication(let publication): try hear(publication, number)
      case .reply(let reply): try hear(reply, number)
      }
    }
    // The hub was killed, and all that had left it is read.
    if link.isHungUp, link.downward.isEmpty, clients[number].link === link { clients[number].lose() }
  }

  private mutating func hear(_ publication: Publication, _ number: Int) throws(Violation) {
    guard let topic = Names.topic(publication.channel) else { throw Violation(text: "\(publication.channel)?") }
    let sequence: UInt64
    switch publication.body {
    case .driverLocation(let location):
      reach.positions += 1
      return try clients[number].locate(location, topic)
    case .etaUpdate, .areaUpdate: return
    case .tripUpdate(let update):
      sequence = update.sequence
      if let trip = Names.trips.firstIndex(of: update.tripID) { clients[number].known[trip] = update.status }
    case .notification(let notification):
      sequence = notification.sequence
      if notification.fence != nil { reach.fenceEvents += 1 }
      if notification.kind == .driverOffline { reach.absences += 1 }
    }
    reach.events += 1
    diary.note("client hears event on topic", number, Int(sequence), topic)
    try clients[number].hear(event: sequence, topic)
    if let epoch = clients[number].views[topic].epoch {
      try ledger.see(publication, sequence, topic: topic, epoch: epoch)
    }
  }

  private mutating func hear(_ reply: Reply, _ number: Int) throws(Violation) {
    switch reply {
    case .connected, .sampling, .result: break
    case .ack(let ack): try hear(ack, number)
    case .error(let error): try hear(error, number)
    case .pong(let pong): hear(pong, number)
    case .subscribed(let answer): try hear(answer, number)
    case .unsubscribed(let end):
      guard let topic = Names.topic(end.channel) else { return }
      clients[number].views[topic].phase = .off
      // Its trip is over.
      if end.replyTo == nil { clients[number].views[topic].isWanted = false }
    }
  }

  private mutating func hear(_ answer: Subscribed, _ number: Int) throws(Violation) {
    guard let topic = Names.topic(answer.channel) else { throw Violation(text: "\(answer.channel)?") }
    diary.note(
      "client subscribed to topic at, recovered", number, topic, Int(answer.sequence), answer.recovered ? 1 : 0)
    let hadEpoch = clients[number].views[topic].epoch != nil
    try clients[number].subscribed(answer, topic, terms)
    if answer.recovered { reach.recovered += 1 } else if hadEpoch { reach.notRecovered += 1 }
    guard let trip = answer.snapshot?.trip, topic < World.trips else { return }
    clients[number].known[topic] = trip.status
    // A trip whose events were all forgotten stands like this behind events that nobody can be shown.
    if answer.sequence > 0 { ledger.see(trip.status, behind: answer.sequence, topic: topic, epoch: answer.epoch) }
  }

  private mutating func hear(_ ack: Ack, _ number: Int) throws(Violation) {
    guard case .kept(let subject) = subjects[Names.number(ack.replyTo)] else { return }
    clients[number].finish(subject)
    reach.acks += 1
    switch subject {
    case .move(let place):
      if let trip = ack.trip {
        try ledger.answer(move: place, .repeated)
        clients[number].known[ledger.moves[place].trip] = trip.status
        return diary.note("move was made before", place)
      }
      try ledger.answer(move: place, .acked)
      lastAcked[number] = place
      diary.note("move acked", place)
    case .batch(let place):
      guard let outcome = ack.batch else { throw Violation(text: "\(ack.replyTo): a batch without its count") }
      let count = outcome.accepted + outcome.duplicates + outcome.rejected.count
      guard count == ledger.batches[place].fixes.count else {
        throw Violation(text: "\(ack.replyTo): \(ledger.batches[place].fixes.count) fixes, \(count) answered")
      }
      try ledger.answer(batch: place, outcome, life: starts)
      lastAckedBatch[number] = place
      reach.duplicates += outcome.duplicates
      diary.note("batch acked", place)
    }
  }

  private mutating func hear(_ error: ErrorReply, _ number: Int) throws(Violation) {
    guard let message = error.replyTo, message != Names.anyMessage else { return }
    diary.note("error \(error.code) to message", Names.number(message))
    switch subjects[Names.number(message)] {
    case .other: break
    case .subscribe(let topic):
      clients[number].views[topic].phase = .off
      // Asked again later, where the hub could not store now what the answer would show.
      if error.code != .storageFull { clients[number].views[topic].isWanted = false }
    case .kept(let subject):
      switch error.code {
      case .storageFull, .rateLimited, .shuttingDown:
        reach.postponed += 1
        clients[number].postpone(subject)
      default:
        clients[number].finish(subject)
        switch subject {
        case .move(let place):
          try ledger.answer(move: place, .refused(error.code))
          if let status = error.status { clients[number].known[ledger.moves[place].trip] = status }
        case .batch(let place): ledger.refuse(batch: place, error.code)
        }
      }
    }
  }

  private mutating func hear(_ pong: Pong, _ number: Int) {
    guard let ping = clients[number].ping, ping.message == pong.replyTo else { return }
    clients[number].ping = nil
    guard let through = pong.storedThrough else { return }
    let sent = clients[number].unconfirmed.prefix(ping.fixes)
    let later = clients[number].unconfirmed.dropFirst(ping.fixes)
    // Where the disk was full, a phone that sends the same times in several batches may be told too much.
    for fix in sent where fixes[fix].timestamp <= through && reach.full + reach.gone == 0 {
      ledger.promise(number, fixes[fix].timestamp)
    }
    clients[number].unconfirmed = sent.filter { fixes[$0].timestamp > through } + later
  }
}
