// The channel `trips` over hubs: one hub counts the events of all trips, for the sessions of all.
//
//     a, which counts                     b                          c
//     its own, and those of b and c ←──── b's own, numbered by b
//                                   ←────────────────────────────── c's own, numbered by c
//     all, numbered by a           ─────→ b's sessions ───────────→ c's sessions
//
// Which hub it is, each works out by itself from the members: the one whose name weighs most (rendezvous hashing). So
// it stays the same one while that is there. Two that think so at once do no harm: an answer says which of the two
// streams it begins, and who wants the other one asks again. A stream is followed like any channel, with `since`
// after whatever was missed. Where that does not bring all, the hub that counts says so to whoever follows it, as a
// new one does.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

struct TripFeeds {
  /// Which hub counts.
  enum Counter: Equatable {
    case unknown, here
    case peer(Int)
  }

  fileprivate(set) var counter = Counter.unknown
  /// Somebody has asked for the channel, so that there is one.
  fileprivate var isBegun = false

  /// How much a hub's name weighs: its FNV-1a, 64 bits.
  static func weight(of name: String) -> UInt64 {
    name.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }
}

/// A peer's own trips, as the hub that counts follows them.
struct PeerTrips {
  /// The newest event that came.
  fileprivate var point: ResumePoint?
  /// What follows comes by itself; else it is asked for, at this time (uptime, ns).
  fileprivate var isTelling = false
  fileprivate var asksAt = Int64.min

  /// What follows does not come any more: it is asked for at once.
  mutating func lose() { (isTelling, asksAt) = (false, .min) }
}

extension ClusterNode {
  /// Finds which hub counts, and asks the others for their trips where it is this one.
  mutating func gatherTrips() {
    let counter = tripCounter()
    if counter != trips.counter { change(to: counter) }
    guard counter == .here, trips.isBegun else { return }
    for index in peers.indices where peers[index].isMember && peers[index].incarnation > 0 {
      guard !peers[index].trips.isTelling, now.uptime >= peers[index].trips.asksAt else { continue }
      peers[index].trips.asksAt = now.uptime + limits.answerTime
      let (request, time) = (Subscribe(channel: .trips, resume: peers[index].trips.point), now.timestamp)
      peers[index].append(.resume, limits) { $0.append(request, ClusterOutput.unasked, at: time) }
    }
  }

  private func tripCounter() -> TripFeeds.Counter {
    guard phase == .member, knowsMembers else { return .unknown }
    var (counter, weight) = (TripFeeds.Counter.here, TripFeeds.weight(of: identity.name))
    for index in peers.indices where peers[index].isMember && peers[index].weight > weight {
      (counter, weight) = (.peer(index), peers[index].weight)
    }
    return counter
  }

  private mutating func change(to counter: TripFeeds.Counter) {
    let wasHere = trips.counter == .here
    trips.counter = counter
    if wasHere {
      trips.isBegun = false
      for index in peers.indices {
        releaseTrips(of: index)
        peers[index].trips = PeerTrips()
      }
    }
    if wasHere || counter == .here { inputs.append(.cluster(.countTrips(counter == .here))) }
    if following.follows[.trips] != nil { locate(.trips) }
  }

  /// The hub that counts, as the ledger would say it.
  var tripsOwner: LedgerAnswer {
    switch trips.counter {
    case .unknown: .unknown
    case .here: .owner(identity.name)
    case .peer(let index): .owner(peers[index].name)
    }
  }

  /// The hub has the channel, and counts in it.
  mutating func beginTrips() { trips.isBegun = true }

  // MARK: From peers

  /// A peer's answer to who follows its trips, or the trips that it counts. False for what is an answer like others.
  mutating func takeTrips(
    _ answer: Subscribed, _ missed: [Publication], isCounted: Bool, from index: Int
  ) -> Bool {
    guard trips.counter == .here else {
      if isCounted { return false }
      releaseTrips(of: index)
      takeMoved(.trips, from: index, isNews: false)
      return true
    }
    if isCounted {  // it has not learnt yet that this hub does, or the other way round
      releaseTrips(of: index)
      return true
    }
    let known = peers[index].trips.point
    let isSame = known?.epoch == answer.epoch
    for event in missed where isSame { relayTrip(event, from: index) }
    // Asked twice and answered twice, the second one leads from the first.
    if peers[index].trips.point?.since != answer.sequence || !isSame { inputs.append(.cluster(.countTrips(true))) }
    peers[index].trips.point = ResumePoint(since: answer.sequence, epoch: answer.epoch)
    peers[index].trips.isTelling = true
    return true
  }

  /// An event of a peer's trip. False for what comes from the hub that counts.
  mutating func takeTrip(_ event: Publication, from index: Int) -> Bool {
    guard trips.counter == .here else { return false }
    if peers[index].trips.isTelling { relayTrip(event, from: index) }
    return true
  }

  private mutating func relayTrip(_ event: Publication, from index: Int) {
    guard let sequence = event.sequence, let point = peers[index].trips.point else { return }
    if sequence == point.since + 1 {
      peers[index].trips.point?.since = sequence
      relay(event)
    } else if sequence > point.since {
      peers[index].wantsRestart = true
    }
  }

  private mutating func releaseTrips(of index: Int) {
    let time = now.timestamp
    peers[index].append(.released, limits) { $0.append(.trips, at: time) }
    forgetNames(of: .trips, at: index)
  }
}
