// Shares of the trips of a simulated fleet: made and ended at any hub, each until that is answered.
import HubBackplaneSupport
import HubCore
import HubMessages

@testable import HubCluster

extension Fleet {
  /// Somebody shares a trip, gets what was shared, or ends it.
  func share() {
    let open = shares.indices.filter { shares[$0].isMade && !shares[$0].isEnding }
    guard let share = open.randomElement(using: &random), !oneIn(3) else { return beginShare() }
    if oneIn(3) {
      shares[share].isEnding = true
      return note("share \(share) is to end")
    }
    guard let name = anyHub() else { return }
    let holder = Follower(
      .trip(trips[shares[share].trip].id), slot: world.nextSlot(), role: .rider, id: "\(shares[share].made.holder)")
    world[name].followers.append(holder)
    shares[share].holders.append(holder)
    note("a holder of share \(share) comes to \(name)")
  }

  private func beginShare() {
    guard shares.count < 6, let trip = trips.indices.randomElement(using: &random), !trips[trip].isOver else { return }
    let made = TripShare(id: id("link\(shares.count)"), created: world.now.timestamp, expires: nil)
    shares.append(Share(trip: trip, made: made))
    note("\(trips[trip].id) is to have share \(shares.count - 1)")
  }

  /// Sends what is to be done about a share, if that has no answer in time.
  func send(share: Int) {
    let known = shares[share]
    guard !known.isMade || known.isEnding && !known.isOver, known.due <= world.now.uptime, let hub = anyHub() else {
      return
    }
    let session = world.session(world.nextSlot())
    (shares[share].session, shares[share].due) = (session, world.now.uptime + 4_000_000_000)
    let question = known.isMade ? TripShareQuestion.end(known.made.id) : .begin(known.made)
    world[hub].inputs.append(
      .trips(
        session, .shares(trips[known.trip].id, question, Actor(role: .ops, id: id("desk"))), replyTo: nil))
  }

  func hear(_ answer: TripAnswer, at session: SessionRef) {
    guard let share = shares.firstIndex(where: { $0.session == session }) else { return }
    note("share \(share): \(answer)")
    switch answer {
    case .shared: shares[share].isMade = true
    case .unshared: shares[share].isOver = true
    // It has ended before, and the answer was lost; or with its trip.
    case .refused(let error) where error.code == .notFound && shares[share].isMade: shares[share].isOver = true
    case .refused(let error) where error.code == .invalidTransition:
      (shares[share].isMade, shares[share].isEnding, shares[share].isOver) = (true, true, true)
    case .refused, .trip, .list, .shares, .offers, .offersStopped: break
    }
  }

  /// Holders of shares that have ended and still see the trip, and those of others that do not.
  func shareFaults() -> [String] {
    shares.enumerated().flatMap { index, share -> [String] in
      if isUnreachable(share.trip) { return [] }
      count(.shares)
      if share.isOver { count(.sharesEnded, share.holders.count) }
      return share.holders.flatMap { holder -> [String] in
        if share.isOver, holder.handle != nil { return ["a holder of share \(index), which has ended, sees its trip"] }
        if share.isMade, !share.isEnding, !trips[share.trip].isOver, holder.handle == nil {
          return ["a holder of share \(index) sees nothing: \(holder.refusals) \(holder.ended)"]
        }
        return holder.faults
      }
    }
  }
}
