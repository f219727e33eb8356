// What clients do of their own accord.
import HubBytes
import HubCore
import HubGeo
import HubJournal
import HubMessages
import HubTransport
import HubTransportSupport
import HubWebSocket

extension World {
  // MARK: Doing

  /// A client does one thing.
  mutating func act(_ number: Int) {
    let isDriver = clients[number].actor.role == .driver
    if isDriver, oneIn(2) { measure(number) }
    if isDriver, oneIn(6) { answerOffer(number) }
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
    guard let link = open(number, clients[number].actor, dialect(of: number)) else { return }
    clients[number].link = link
    diary.note("client connects to loop", number, link.loop)
  }

  /// A connection to any loop, on which the upgrade was asked for; nil without a hub.
  mutating func open(_ number: Int, _ actor: HubCore.Actor, _ dialect: Dialect = Dialect()) -> Link? {
    guard let link = dial(number, dialect) else { return nil }
    link.request(actor)
    return link
  }

  mutating func dial(_ number: Int, _ dialect: Dialect = Dialect()) -> Link? {
    guard let incarnation else { return nil }
    let loop = pick(incarnation.networks.count)
    // By its address the hub knows a driver's other phone.
    let address = World.addresses[number < 0 ? World.clientCount : number]
    guard let far = incarnation.networks[loop].connectToListener(from: address) else { return nil }
    return Link(client: number, loop: loop, far, dialect, seed: random.next())
  }

  /// Of the clients some speak binary, some have their messages compressed, some write times as text.
  private func dialect(of number: Int) -> Dialect {
    Dialect(
      isBinary: number % 2 == 1 && starts % 2 == 1, time: number == 2 ? .rfc3339 : .unixMilliseconds,
      compression: number >= World.drivers ? compression : nil)
  }

  /// A client closes its connection, and the hub notices.
  mutating func hangUp(_ number: Int) {
    clients[number].link?.drop(losing: false, reset: oneIn(2))
    clients[number].lose()
  }

  private mutating func send(_ message: ClientMessage, _ messageID: MessageID, _ link: Link) {
    let clock = now.timestamp.milliseconds + clients[link.client].clockOffset
    link.send(message, messageID, at: Timestamp(milliseconds: clock))
  }

  private mutating func subject(_ subject: Subject) -> MessageID {
    subjects.append(subject)
    return Names.message(subjects.count - 1)
  }

  /// Everything that is not answered and was not sent on this connection, in order.
  mutating func sendKept(_ number: Int, _ link: Link) {
    for index in clients[number].kept.indices where !clients[number].kept[index].isSent {
      switch clients[number].kept[index].subject {
      case .move(let index):
        let move = ledger.moves[index]
        // A change has its mark in the envelope.
        link.send(World.message(move, clients, by: clients[number].actor), move.message, at: move.mark)
      case .batch(let index):
        let batch = ledger.batches[index]
        let content = LocationBatch(
          tripID: batch.trip.map { Names.trips[$0] }, fixes: batch.fixes.map { .success($0) })
        send(.locationBatch(content), batch.message, link)
      case .decline(let index):
        let decline = ledger.declines[index]
        send(.offerDecline(OfferDecline(tripID: Names.trips[decline.trip])), decline.message, link)
      }
      clients[number].kept[index].isSent = true
    }
  }

  /// What a client says to make a move, or a change.
  private static func message(_ move: Ledger.Move, _ clients: [Client], by actor: HubCore.Actor) -> ClientMessage {
    if let change = move.change { return .tripChange(change) }
    // Who asks for a trip names its driver; the rider is the first.
    let isRequest = move.status == .requested
    let named = move.trip % 3 == 2 && actor.role == .rider ? nil : clients[move.trip % World.drivers].actor.id
    let driver = !isRequest ? nil : actor.role == .driver ? actor.id : named
    let rider = isRequest && actor.role == .ops ? clients[World.drivers].actor.id : nil
    var report = TripStatusReport(
      tripID: Names.trips[move.trip], status: move.status, timestamp: move.mark, driverID: driver, riderID: rider)
    if let offer = move.offer {
      (report.driverID, report.pickup, report.offer) = (nil, offer.pickup, offer.criteria)
    }
    return .tripStatus(report)
  }

  // MARK: Offers

  /// A rider has a trip offered to the drivers around one of them.
  private mutating func offer(_ number: Int, _ trip: Int, _ status: TripStatus) -> (Coordinate, OfferCriteria)? {
    guard clients[number].actor.role == .rider, trip >= 2, status == .requested, oneIn(2) else { return nil }
    var criteria = OfferCriteria()
    (criteria.radiusMeters, criteria.atOnce, criteria.seconds) = (100_000, 1 + pick(2), 5 + pick(10))
    // In thousandths, which both codecs have exactly.
    let latitude =
      (World.latitude(of: pick(World.drivers), at: Names.origin + time) * 1000 + Double(pick(20))).rounded() / 1000
    return (Coordinate(latitude: latitude, longitude: 13)!, criteria)
  }

  /// A driver takes a trip that it is offered, says that it does not want it, or says nothing.
  private mutating func answerOffer(_ driver: Int) {
    guard clients[driver].kept.count < 4, let trip = clients[driver].offers.last else { return }
    if oneIn(3) {
      let index = ledger.declines.count
      ledger.declines.append(Ledger.Decline(trip: trip, message: subject(.kept(.decline(index)))))
      clients[driver].kept.append(Client.Kept(subject: .decline(index)))
      diary.note("driver declines trip", driver, trip)
    } else {
      makeMove(driver, trip, .accepted)
    }
    clients[driver].offers.removeAll { $0 == trip }
  }

  // MARK: Fences

  /// Ops put a fence somewhere on a driver's way, or there where it was another: over HTTP, so no link has to do with
  /// it.
  private mutating func putFence() {
    let number = pick(World.fences)
    let meters = Double(time) / 1000 * 5 + Double(pick(80)) - 20
    let latitude = 10 + Double(number % World.drivers) * World.degreesApart + meters / 111_195
    let body = "{\"circle\":{\"latitude\":\(latitude),\"longitude\":13,\"radius\":\(5 + pick(30))}}"
    guard let link = dial(-1) else { return }
    let head = """
      PUT /v1/fences/\(Names.fences[number])?role=ops&id=ops-0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r
      Content-Length: \(body.utf8.count)\r\n\r\n
      """
    link.send(raw: Array((head + body).utf8))
    visitors.append(Visitor(.fence, clients[World.ops].actor, link))
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
      guard let index = World.order.firstIndex(of: known), index + 1 < World.order.count else { return }
      status = World.order[index + 1]
    }
    if oneIn(8) { status = oneIn(3) ? .cancelled : World.order[pick(World.order.count)] }
    makeMove(number, trip, status)
  }

  private mutating func makeMove(_ number: Int, _ trip: Int, _ status: TripStatus) {
    let index = ledger.moves.count
    let message = subject(.kept(.move(index)))
    // A place that no other change has: each acked one has an event.
    let elsewhere = Coordinate(latitude: Double(index % 80_000) / 1000, longitude: 13)
    let change =
      clients[number].known[trip] != nil && oneIn(5) ? TripChange(tripID: Names.trips[trip], dropoff: elsewhere) : nil
    // A time that nothing else has: see `Ledger.isMark`.
    let mark = Timestamp(milliseconds: Names.origin + Int64(index) * 10 + 7)
    let offer = offer(number, trip, status)
    ledger.moves.append(
      Ledger.Move(trip: trip, status: status, mark: mark, message: message, change: change, offer: offer))
    clients[number].kept.append(Client.Kept(subject: .move(index)))
    diary.note("client moves trip to", number, trip, Int(status.rawValue), index)
  }

  /// A move that was acked is sent again, by the one who sent it: it changes nothing and gets the same ack.
  private mutating func repeatMove(_ number: Int) {
    guard theme != .days, let kept = lastAcked[number] else { return }
    guard !clients[number].kept.contains(where: { $0.subject == .move(kept) }) else { return }
    clients[number].kept.append(Client.Kept(subject: .move(kept)))
    reach[.repeated] += 1
  }

  /// Sends an acked batch once more: each of its fixes is a duplicate.
  private mutating func repeatBatch(_ number: Int) {
    guard let index = lastAckedBatch[number] else { return }
    guard !clients[number].kept.contains(where: { $0.subject == .batch(index) }) else { return }
    clients[number].kept.append(Client.Kept(subject: .batch(index)))
    reach[.repeated] += 1
  }

  // MARK: Fixes

  /// The trip that a driver's fixes name, as far as it knows.
  func tripDriven(by driver: Int) -> Int? {
    (0..<World.trips).first { trip in
      guard trip % World.drivers == driver, let status = clients[driver].known[trip] else { return false }
      return status != .completed && status != .cancelled
    }
  }

  /// Where a driver is at a time (ms since 1970): it goes north, from where it began.
  static func latitude(of driver: Int, at time: Int64) -> Double {
    10 + Double(driver) * degreesApart + Double(time - Names.origin) / 1000 * 5 / 111_195
  }

  /// The phone measures where it is. It goes north at 5 m/s, so that each fix is where the last ones lead.
  mutating func measure(_ driver: Int) {
    let clock = (Names.origin + time) / 10 * 10 + clients[driver].clockOffset / 10 * 10 + 1
    guard clock > clients[driver].lastFixTime else { return }
    clients[driver].lastFixTime = clock
    let latitude = World.latitude(of: driver, at: clock)
    let place = Coordinate(latitude: latitude, longitude: 13)!
    fixes.append(Fix(coordinate: place, timestamp: Timestamp(milliseconds: clock), accuracy: 5))
    guard let link = clients[driver].link, clients[driver].isOpen, !oneIn(3) else {
      return clients[driver].backlog.append(fixes.count - 1)
    }
    clients[driver].unconfirmed.append(fixes.count - 1)
    let update = LocationUpdate(tripID: tripDriven(by: driver).map { Names.trips[$0] }, fix: fixes[fixes.count - 1])
    send(.locationUpdate(update), Names.anyMessage, link)
  }

  /// What was measured and not sent live becomes a batch, which is kept until its ack.
  mutating func makeBatch(_ driver: Int) {
    guard !clients[driver].backlog.isEmpty, clients[driver].kept.count < 4 else { return }
    let count = min(clients[driver].backlog.count, 1 + pick(8))
    let content = clients[driver].backlog.prefix(count).map { fixes[$0] }
    clients[driver].backlog.removeFirst(count)
    let index = ledger.batches.count
    let message = subject(.kept(.batch(index)))
    ledger.batches.append(
      Ledger.Batch(driver: driver, trip: tripDriven(by: driver), fixes: content, message: message))
    clients[driver].kept.append(Client.Kept(subject: .batch(index)))
    diary.note("driver makes batch of fixes", driver, index, count)
  }

  private mutating func sendPing(_ driver: Int, _ link: Link) {
    guard clients[driver].ping == nil else { return }
    let message = subject(.other)
    clients[driver].ping = (message, clients[driver].unconfirmed.count)
    send(.ping(Ping()), message, link)
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
    send(.subscribe(Subscribe(channel: Names.channels[topic], resume: resume)), subject(.subscribe(topic)), link)
    diary.note("client subscribes to topic since", number, topic, Int(resume?.since ?? 0))
  }

  private mutating func leave(_ number: Int, _ link: Link) {
    let topic = pick(World.topics)
    guard clients[number].views[topic].phase == .on else { return }
    clients[number].views[topic].isWanted = false
    send(.unsubscribe(.channel(Names.channels[topic])), subject(.other), link)
  }
}
