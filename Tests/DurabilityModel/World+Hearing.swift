// What clients make of what they hear, and how sessions end for them.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubWebSocket

extension World {
  /// So many bytes reach a client, and the end behind the last.
  mutating func hear(_ link: Link, _ count: Int) throws(Violation) {
    let number = link.client
    for heard in try link.hear(count, reader) {
      guard clients[number].link === link else { return }
      switch heard {
      case .message(.publication(let publication)): try hear(publication, number)
      case .message(.reply(let reply)): try hear(reply, number, link)
      case .message(.unknown(let type)): throw Violation(text: "client \(number) cannot read \(type)")
      case .closed(let code):
        try note(close: code, wasSlow: link.wasSlow)
        hangUp(number)
      case .refused(let status):
        // A driver whose sessions replace each other too often, or who has too many of them.
        guard status == .conflict || status == .tooManyRequests else {
          throw Violation(text: "client \(number) is refused with \(status.code)")
        }
        reach[.driverConflict] += 1
        hangUp(number)
      }
    }
    if link.isOver, clients[number].link === link { hangUp(number) }
  }

  /// A session was closed by the hub: for a reason that clients like these may give.
  private mutating func note(close code: CloseCode?, wasSlow: Bool) throws(Violation) {
    diary.note("closed with", Int(code?.rawValue ?? 0))
    switch code.flatMap({ CloseReason(rawValue: $0.rawValue) }) {
    case .replaced, .normal: reach[.replaced] += 1
    case .silentTooLong: reach[.silentTooLong] += 1
    case .slowConsumer where wasSlow: break  // the hub counts them
    case let reason: throw Violation(text: "closed with \(code?.rawValue ?? 0), \(String(describing: reason))")
    }
  }

  private mutating func hear(_ publication: Publication, _ number: Int) throws(Violation) {
    guard let topic = Names.topic(publication.channel) else { throw Violation(text: "\(publication.channel)?") }
    let sequence: UInt64
    switch publication.body {
    case .driverLocation(let location):
      reach[.positions] += 1
      return try clients[number].locate(location, topic)
    case .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: return
    case .tripUpdate(let update):
      sequence = update.sequence
      if let trip = Names.trips.firstIndex(of: update.tripID) { clients[number].known[trip] = update.status }
    case .notification(let notification):
      sequence = notification.sequence
      if notification.fence != nil { reach[.fenceEvents] += 1 }
      if notification.kind == .driverOffline { reach[.absences] += 1 }
    case .offer(let offer):
      sequence = offer.sequence
      hear(offer, number)
    }
    reach[.events] += 1
    diary.note("client hears event on topic", number, Int(sequence), topic)
    try clients[number].hear(event: sequence, topic)
    if let epoch = clients[number].views[topic].epoch {
      try ledger.see(publication, sequence, topic: topic, epoch: epoch)
    }
  }

  /// A driver remembers what it is offered; ops hear of it as well.
  private mutating func hear(_ offer: Offer, _ number: Int) {
    guard clients[number].actor.role == .driver, let trip = Names.trips.firstIndex(of: offer.tripID) else { return }
    clients[number].offers.removeAll { $0 == trip }
    switch offer.state {
    case .made:
      clients[number].offers.append(trip)
      reach[.offers] += 1
    case .withdrawn: reach[.offersWithdrawn] += 1
    }
  }

  private mutating func hear(_ reply: Reply, _ number: Int, _ link: Link) throws(Violation) {
    switch reply {
    case .sampling, .result: break
    case .connected:
      clients[number].isOpen = true
      if link.isBinary { reach[.binarySessions] += 1 }
      if link.isCompressed { reach[.compressedSessions] += 1 }
      for topic in 0..<World.topics where clients[number].views[topic].isWanted { ask(number, topic, link) }
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
    if answer.recovered { reach[.recovered] += 1 } else if hadEpoch { reach[.notRecovered] += 1 }
    guard let trip = answer.snapshot?.trip, topic < World.trips else { return }
    clients[number].known[topic] = trip.status
    // A trip whose events were all forgotten stands like this behind events that nobody can be shown.
    if answer.sequence > 0 { ledger.see(trip.status, behind: answer.sequence, topic: topic, epoch: answer.epoch) }
  }

  private mutating func hear(_ ack: Ack, _ number: Int) throws(Violation) {
    guard case .kept(let subject) = subjects[Names.number(ack.replyTo)] else { return }
    clients[number].finish(subject)
    reach[.acks] += 1
    switch subject {
    case .move(let index):
      if let trip = ack.trip {
        try ledger.answer(move: index, .repeated)
        clients[number].known[ledger.moves[index].trip] = trip.status
        return diary.note("move was made before", index)
      }
      try ledger.answer(move: index, .acked)
      lastAcked[number] = index
      if ledger.moves[index].trip >= 2, ledger.moves[index].status == .accepted { reach[.offersAccepted] += 1 }
      diary.note("move acked", index)
    case .batch(let index):
      guard let outcome = ack.batch else { throw Violation(text: "\(ack.replyTo): a batch without its count") }
      let count = outcome.accepted + outcome.duplicates + outcome.rejected.count
      guard count == ledger.batches[index].fixes.count else {
        throw Violation(text: "\(ack.replyTo): \(ledger.batches[index].fixes.count) fixes, \(count) answered")
      }
      try ledger.answer(batch: index, outcome, incarnation: starts)
      lastAckedBatch[number] = index
      reach[.duplicates] += outcome.duplicates
      diary.note("batch acked", index)
    case .decline: reach[.offersDeclined] += 1
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
        reach[.postponed] += 1
        clients[number].postpone(subject)
      default:
        clients[number].finish(subject)
        switch subject {
        case .move(let index):
          try ledger.answer(move: index, .refused(error.code))
          if let status = error.status { clients[number].known[ledger.moves[index].trip] = status }
        case .batch(let index): ledger.refuse(batch: index, error.code)
        case .decline: break  // of what was lost with the journal
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
    // Where the disk was full, a phone that sends the same times in several batches may be confirmed too much.
    for fix in sent where fixes[fix].timestamp <= through && reach[.full] + reach[.gone] == 0 {
      ledger.promise(number, fixes[fix].timestamp)
    }
    clients[number].unconfirmed = sent.filter { fixes[$0].timestamp > through } + later
  }
}
