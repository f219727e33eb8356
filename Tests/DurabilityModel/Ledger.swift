// What all clients saw and were promised, and whether all of it can be true at once. Knows nothing of how the hub
// works.
import HubBytes
import HubCore
import HubGeo
import HubMessages

/// A promise that was not kept.
struct Violation: Error {
  var text: String
}

struct Ledger {
  /// The outcome of a message that a client keeps until it is answered.
  enum Outcome: Equatable {
    case pending, acked
    /// A `requested` for a trip that was there already: acknowledged, and it changes nothing.
    case repeated
    case refused(ErrorCode)
  }

  struct Move {
    let trip: Int
    let status: TripStatus
    /// The sender's time of the move, which no other has: the event that the move causes carries it.
    let mark: Timestamp
    let message: MessageID
    var outcome = Outcome.pending
    /// Journalled data was given up since: nothing is promised any more.
    var isForgiven = false
    /// It is no move but a change of the trip.
    var change: TripChange?
    /// Where the trip begins, and whom the hub is to offer it to.
    var offer: (pickup: Coordinate, criteria: OfferCriteria)?
  }

  /// A driver does not want a trip.
  struct Decline {
    let trip: Int
    let message: MessageID
  }

  struct Batch {
    let driver: Int
    let trip: Int?
    let fixes: [Fix]
    let message: MessageID
    var outcome = Outcome.pending
    /// The incarnation of the hub that acked it first.
    var ackedIn: UInt64?
  }

  /// A fix that is acknowledged as stored.
  struct PromisedFix {
    let driver: Int
    /// ms since 1970
    let time: Int64
  }

  /// A trip's reported state, right behind an event.
  private struct ReportedState {
    var epoch: Int
    var topic: Int
    var sequence: UInt64
    var status: TripStatus
  }

  let topics: Int
  var moves: [Move] = []
  var batches: [Batch] = []
  var declines: [Decline] = []
  private var epochs: [InlineText] = []
  /// By epoch, topic and number.
  private var events: [[[UInt64: Publication]]] = []
  /// By epoch, topic and mark: the number of the event that a move caused.
  private var causes: [[[Timestamp: UInt64]]] = []
  private var reportedStates: [ReportedState] = []
  private(set) var promisedFixes: [PromisedFix] = []
  /// Who has accepted which trip, by the lists of the end.
  private var takenBy: [Identifier: Identifier] = [:]

  init(topics: Int) { self.topics = topics }

  private mutating func index(of epoch: InlineText) -> Int {
    if let index = epochs.lastIndex(of: epoch) { return index }
    epochs.append(epoch)
    events.append(Array(repeating: [:], count: topics))
    causes.append(Array(repeating: [:], count: topics))
    return epochs.count - 1
  }

  // MARK: What was seen

  /// Somebody saw an event: it is the one that everybody sees under its number, and the only one of its move.
  mutating func see(_ event: Publication, _ sequence: UInt64, topic: Int, epoch: InlineText) throws(Violation) {
    let epoch = index(of: epoch)
    if let known = events[epoch][topic].updateValue(event, forKey: sequence), known != event {
      throw Violation(text: "\(event.channel): event \(sequence) was \(known.body), now it is \(event.body)")
    }
    guard case .tripUpdate(let update) = event.body, Self.isMark(update.timestamp) else { return }
    if let other = causes[epoch][topic].updateValue(sequence, forKey: update.timestamp), other != sequence {
      throw Violation(text: "\(event.channel): one move made the events \(other) and \(sequence)")
    }
  }

  /// A client received this state of a trip, right behind event `sequence`.
  mutating func see(_ status: TripStatus, behind sequence: UInt64, topic: Int, epoch: InlineText) {
    reportedStates.append(
      ReportedState(epoch: index(of: epoch), topic: topic, sequence: sequence, status: status))
  }

  /// Marks are times that nothing else in the simulated world has.
  static func isMark(_ time: Timestamp) -> Bool { time.milliseconds % 10 == 7 }

  // MARK: What was promised

  mutating func answer(move: Int, _ outcome: Outcome) throws(Violation) {
    let before = moves[move].outcome
    if before == .acked, outcome != .acked, !moves[move].isForgiven {
      throw Violation(text: "\(moves[move].message) was acked, and sent again it gets \(outcome)")
    }
    moves[move].outcome = outcome
  }

  mutating func answer(batch: Int, _ answer: Ack.Batch, incarnation: UInt64) throws(Violation) {
    if batches[batch].ackedIn == incarnation, answer.accepted > 0 {
      throw Violation(text: "\(batches[batch].message) was acked, and sent again \(answer.accepted) of it are new")
    }
    if batches[batch].ackedIn == nil { batches[batch].ackedIn = incarnation }
    batches[batch].outcome = .acked
    for (at, fix) in batches[batch].fixes.enumerated() where !answer.rejected.contains(where: { $0.index == at }) {
      promise(batches[batch].driver, fix.timestamp)
    }
  }

  mutating func refuse(batch: Int, _ code: ErrorCode) { batches[batch].outcome = .refused(code) }

  mutating func promise(_ driver: Int, _ time: Timestamp) {
    promisedFixes.append(PromisedFix(driver: driver, time: time.milliseconds))
  }

  /// Part of the journal was given up, as was asked for.
  mutating func forgive() {
    for move in moves.indices { moves[move].isForgiven = true }
    promisedFixes.removeAll()
  }

  // MARK: The end

  /// `list` is everything on a channel in the newest epoch, from the first event on.
  mutating func check(complete list: [Publication], topic: Int, trip: Int?, epoch: InlineText) throws(Violation) {
    let epoch = index(of: epoch)
    for (sequence, event) in events[epoch][topic] where sequence > list.count {
      throw Violation(text: "event \(sequence) of \(event.channel) was seen and is gone: \(event.body)")
    }
    for reported in reportedStates where reported.epoch == epoch && reported.topic == topic {
      var status: TripStatus?
      for event in list.prefix(Int(reported.sequence)) {
        if case .tripUpdate(let update) = event.body { status = update.status }
      }
      if status != reported.status {
        throw Violation(text: "the trip was reported as \(reported.status) behind event \(reported.sequence)")
      }
    }
    if let trip {
      try checkMoves(of: trip, list)
      try checkAccepted(list)
    }
    try checkOffers(list)
    try checkFence(list)
    try checkPresence(list)
  }

  /// On a driver's channel offline and online take turns, whatever has died between them: offline first.
  private func checkPresence(_ list: [Publication]) throws(Violation) {
    var isOffline = false
    for event in list {
      guard case .driver = event.channel, case .notification(let made) = event.body,
        made.kind == .driverOffline || made.kind == .driverOnline
      else { continue }
      if isOffline == (made.kind == .driverOffline) {
        throw Violation(text: "\(event.channel): \(made.kind.name) again, event \(made.sequence)")
      }
      isOffline = made.kind == .driverOffline
    }
  }

  /// On a fence's channel enters and exits of a driver take turns, whatever has died between them.
  private func checkFence(_ list: [Publication]) throws(Violation) {
    var inside: Set<Identifier> = []
    for event in list {
      guard case .fence = event.channel, case .notification(let made) = event.body, let driver = made.driverID else {
        continue
      }
      let isRight = made.kind == .fenceEnter ? inside.insert(driver).inserted : inside.remove(driver) != nil
      if !isRight { throw Violation(text: "\(event.channel): \(made.kind.name) of \(driver), event \(made.sequence)") }
    }
  }

  /// The first `accepted` has the trip, whatever has died behind it.
  private mutating func checkAccepted(_ list: [Publication]) throws(Violation) {
    for event in list {
      guard case .tripUpdate(let update) = event.body, update.status == .accepted, !update.isChange,
        let driver = update.driverID
      else { continue }
      if let other = takenBy.updateValue(driver, forKey: update.tripID) {
        throw Violation(text: "\(event.channel): accepted by \(other), and by \(driver)")
      }
    }
  }

  /// On a driver's channel a trip is offered once, one at a time, and then withdrawn once or taken: whatever has died
  /// between them. Where its places change while the offer is open, it comes again, and ends when it would have. Its
  /// token may let a driver take a trip whose offer holds no more.
  private func checkOffers(_ list: [Publication]) throws(Violation) {
    var (made, open, ends): (Set<Identifier>, Identifier?, Timestamp?) = ([], nil, nil)
    for event in list {
      guard case .driver(let driver) = event.channel else { continue }
      if case .tripUpdate(let update) = event.body, update.status == .accepted, update.driverID == driver,
        update.tripID == open
      {
        open = nil
      }
      guard case .offer(let offer) = event.body else { continue }
      switch offer.state {
      case .made(let terms):
        if open == offer.tripID, ends == terms.expires { continue }
        guard made.insert(offer.tripID).inserted else {
          throw Violation(text: "\(event.channel): \(offer.tripID) is offered twice, event \(offer.sequence)")
        }
        if let open { throw Violation(text: "\(event.channel): \(offer.tripID) is offered, and \(open) still is") }
        (open, ends) = (offer.tripID, terms.expires)
      case .withdrawn(let reason):
        // One that was made before the numbers began anew.
        if open == nil, !made.contains(offer.tripID) { continue }
        guard open == offer.tripID else {
          throw Violation(
            text: "\(event.channel): \(offer.tripID) is withdrawn (\(reason.name)), event \(offer.sequence)")
        }
        open = nil
      }
    }
  }

  private func checkMoves(of trip: Int, _ list: [Publication]) throws(Violation) {
    var marks: [Timestamp] = []
    for event in list { if case .tripUpdate(let update) = event.body { marks.append(update.timestamp) } }
    for move in moves where move.trip == trip && !move.isForgiven {
      let count = marks.count { $0 == move.mark }
      switch move.outcome {
      case .acked: if count != 1 { throw Violation(text: "\(move.message) was acked and has \(count) events") }
      case .repeated:
        if count != 0 {
          throw Violation(text: "\(move.message) asked for a trip that was there, and has \(count) events")
        }
      case .refused(let code):
        if count != 0 { throw Violation(text: "\(move.message) was refused (\(code)) and has \(count) events") }
      case .pending: throw Violation(text: "\(move.message) was never answered")
      }
    }
  }
}
