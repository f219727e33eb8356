// Shares of a trip: who makes and ends them, and whom they let see it. They lie in the trip, are stored with it and end
// with it; the hub signs nothing, so what a link's token says is not its business.
import HubBytes
import HubMessages

extension Trip {
  /// Whether an actor is the holder of a share that still holds. An id of a holder that is in no list sees nothing.
  func isShared(with actor: Actor, at time: Timestamp) -> Bool {
    shares.contains { $0.holder == actor.id && ($0.expires.map { time < $0 } ?? true) }
  }

  /// Whether an actor may make, end and see shares of it.
  fileprivate func mayShare(_ actor: Actor) -> Bool {
    !TripShare.isHolder(actor.id) && actor.role != .driver && party(of: actor) != .stranger
  }
}

extension Trip {
  /// A further share, in the place of those that have expired. Throws where the trip has enough of them, or is over.
  mutating func share(_ share: TripShare, at time: Timestamp) throws(ErrorReply) {
    guard !status.isFinal else {
      throw ErrorReply(code: .invalidTransition, message: "the trip is over", status: status)
    }
    if shares.contains(where: { $0.id == share.id }) { return }  // asked for again, by another hub
    shares.removeAll { $0.expires.map { $0 <= time } ?? false }
    guard shares.count < HubLimits.sharesPerTrip else {
      throw Trip.enough("a trip has at most \(HubLimits.sharesPerTrip) shares: end one of them")
    }
    guard sharesMade < HubLimits.sharesMadePerTrip else {
      throw Trip.enough("a trip is shared at most \(HubLimits.sharesMadePerTrip) times")
    }
    sharesMade += 1
    shares.append(share)
  }

  private static func enough(_ message: String) -> ErrorReply {
    var refusal = ErrorReply(code: .rateLimited, message: message)
    refusal.isOwnLimit = true
    return refusal
  }

  /// Ends a share; gives it. Throws where there is none.
  mutating func endShare(_ id: Identifier) throws(ErrorReply) -> TripShare {
    guard let index = shares.firstIndex(where: { $0.id == id }) else {
      throw ErrorReply(code: .notFound, message: "this trip has no such share")
    }
    return shares.remove(at: index)
  }
}

extension Trips {
  /// The trip whose shares an actor asks about. Throws where the actor has no say in them, in the same words whether or
  /// not there is such a trip; ops are told that there is none.
  func findShared(_ id: Identifier, by actor: Actor, at uptime: Int64) throws(ErrorReply) -> Int {
    let found = actor.role == .ops ? try findKnown(id) : find(id)
    guard let trip = found, actor.role == .ops || !self[trip].isOver(at: uptime), self[trip].mayShare(actor) else {
      throw ErrorReply(code: .forbidden, message: "only the trip's rider and ops share it")
    }
    return trip
  }
}

extension Trips {
  /// Makes or ends a share; gives the answer, and whose share has ended.
  mutating func change(
    _ question: TripShareQuestion, of trip: Int, at time: Timestamp
  ) throws(ErrorReply) -> (answer: TripAnswer, ended: Identifier?) {
    switch question {
    case .list: return (.shares(self[trip].shares), nil)
    case .begin(let new):
      try share(trip, new, at: time)
      return (.shared(new, of: self[trip].id), nil)
    case .end(let id): return (.unshared, try endShare(id, of: trip).holder)
    }
  }
}

extension TripShare: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(id, created, expires) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(id: try reader.read(), created: try reader.read(), expires: try reader.read())
  }
}
