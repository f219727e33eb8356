// The channel `trips` over hubs: one hub counts the events of all trips, for the sessions of all.
//
//     a, which counts                     b                          c
//     its own, and those of b and c ←──── b's own, numbered by b
//                                   ←────────────────────────────── c's own, numbered by c
//     all, numbered by a           ─────→ b's sessions ───────────→ c's sessions
//
// Each hub computes which one counts from the members: the one whose name weighs most (rendezvous hashing), without
// those that it has never heard. So it stays the same while it is a member. Two that count at once do no harm: an
// answer names its stream, and a hub that wants the other one asks again. A stream is followed like any channel, with
// `since` after a gap. If that does not recover everything, the hub that counts notifies its followers, as a new one
// does.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

struct TripFeeds {
  /// The hub has begun the channel and counts in it, since a session has asked for it.
  fileprivate var isBegun = false
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }
}

/// A peer's own trips, as the hub that counts follows them.
struct PeerTrips {
  /// The newest event received.
  fileprivate var point: ResumePoint?
  /// The next events come unasked; else they are asked for, at this time (uptime, ns).
  fileprivate var isStreaming = false
  fileprivate var asksAt = Int64.min

  /// No more events come: they are asked for at once.
  mutating func lose() { (isStreaming, asksAt) = (false, .min) }
}

extension ClusterContext {
  /// The hub that counts, as an answer of the ledger.
  var tripsOwner: LedgerAnswer {
    switch tripCounter {
    case .unknown: .unknown
    case .here: .owner(identity.name)
    case .peer(let index): .owner(peers[index].name)
    }
  }

  fileprivate var weightiest: TripCounter {
    guard phase == .member, knowsMembers else { return .unknown }
    var (counter, weight) = (TripCounter.here, Peer.weight(of: identity.name))
    for index in peers.indices where peers[index].mayCount && peers[index].weight > weight {
      (counter, weight) = (.peer(index), peers[index].weight)
    }
    return counter
  }
}

extension TripFeeds {
  /// The hub has the channel, and counts in it.
  mutating func begin() { isBegun = true }

  /// Finds which hub counts; true where it is another one than before.
  mutating func chooseCounter() -> Bool {
    let (before, counter) = (context.tripCounter, context.weightiest)
    if counter == before { return false }
    context.tripCounter = counter
    if before == .here {
      isBegun = false
      for index in context.peers.indices {
        context.release(.trips, at: index)
        context.peers[index].trips = PeerTrips()
      }
    }
    if before == .here || counter == .here { context.inputs.append(.cluster(.numberTrips(counter == .here))) }
    return true
  }

  /// Asks the others for their trips where this hub counts.
  func gather() {
    guard context.tripCounter == .here, isBegun else { return }
    for (index, peer) in context.peers.enumerated() where peer.isMember && peer.incarnation > 0 {
      guard !peer.trips.isStreaming, context.now.uptime >= peer.trips.asksAt else { continue }
      peer.trips.asksAt = context.now.uptime + context.limits.answerTime
      context.resume(Subscribe(channel: .trips, resume: peer.trips.point), at: index)
    }
  }

  // MARK: From peers

  /// A peer's answer to a follower of its trips, or of the trips that it counts.
  enum Origin {
    case own, counted
    /// It does not count, and does not need to be followed.
    case unwanted
  }

  func receive(ownerAnswer found: OwnerAnswer, from index: Int) -> Origin {
    let (peer, answer) = (context.peers[index], found.answer)
    switch (isHere: context.tripCounter == .here, isCounted: found.isParty) {
    case (false, true): return .counted
    case (false, false):
      context.release(.trips, at: index)
      return .unwanted
    case (true, true):  // both count: one of them has not learnt yet that the other does
      context.release(.trips, at: index)
    case (true, false):
      let isSame = peer.trips.point?.epoch == answer.epoch
      for event in found.missed where isSame { relay(event, from: peer) }
      // If it was asked and answered twice, the second answer continues from the first: nothing is missing.
      if peer.trips.point?.since != answer.sequence || !isSame { context.inputs.append(.cluster(.numberTrips(true))) }
      peer.trips.point = ResumePoint(since: answer.sequence, epoch: answer.epoch)
      peer.trips.isStreaming = true
    }
    return .own
  }

  /// An event of a peer's trip, where this hub counts.
  func receive(event: Publication, from peer: Peer) {
    if peer.trips.isStreaming { relay(event, from: peer) }
  }

  private func relay(_ event: Publication, from peer: Peer) {
    guard let sequence = event.sequence, let point = peer.trips.point else { return }
    if sequence == point.since &+ 1 {
      peer.trips.point?.since = sequence
      context.relay(event)
    } else if sequence > point.since {
      peer.wantsRestart = true
    }
  }
}
