// Shares of a trip: who makes and ends them, and their holders' access. They are kept and stored in the trip and end
// with it; the hub signs no share, so the content of a link's token does not matter here.
//
// An ended share stays in the list with an expiry in the past, since another hub may repeat its creation late.
import HubBytes
import HubMessages

extension Trip {
  /// Whether an actor holds a valid share. A holder's id that is in no list has no access.
  func isShared(with actor: Actor, at time: Timestamp) -> Bool {
    shares.contains { $0.holder == actor.id && $0.isValid(at: time) }
  }

  /// Whether an actor may make, end and see shares of it.
  fileprivate func mayShare(_ actor: Actor) -> Bool {
    !actor.isShareHolder && actor.role != .driver && party(of: actor) != .stranger
  }
}

extension Trip {
  /// Adds a share and removes expired ones. Throws where the trip has enough of them, or has ended.
  mutating func share(_ share: TripShare, at time: Timestamp) throws(ErrorReply) {
    guard !status.isFinal else {
      throw ErrorReply(code: .invalidTransition, message: "the trip is over", status: status)
    }
    if shares.contains(where: { $0.id == share.id }) { return }  // repeated by another hub
    shares.removeAll { !$0.isEnded && !$0.isValid(at: time) }
    guard shares.count(where: { !$0.isEnded }) < HubLimits.sharesPerTrip else {
      throw ErrorReply(
        ownLimit: "a trip has at most \(HubLimits.sharesPerTrip) shares: end one of them", retryAfter: nil)
    }
    guard sharesMade < HubLimits.sharesMadePerTrip else {
      throw ErrorReply(ownLimit: "a trip is shared at most \(HubLimits.sharesMadePerTrip) times", retryAfter: nil)
    }
    sharesMade += 1
    shares.append(share)
  }

  /// Ends a share, and gives it. Throws where there is none.
  mutating func endShare(_ id: Identifier) throws(ErrorReply) -> TripShare {
    guard let index = shares.firstIndex(where: { $0.id == id && !$0.isEnded }) else {
      throw ErrorReply(code: .notFound, message: "this trip has no such share")
    }
    shares[index].expires = TripShare.ended
    return shares[index]
  }
}

extension TripShare {
  /// The expiry of a share that was ended: earlier than any clock shows.
  fileprivate static let ended = Timestamp(milliseconds: 0)

  /// Somebody has ended it.
  var isEnded: Bool { expires == TripShare.ended }

  fileprivate func isValid(at time: Timestamp) -> Bool { expires.map { time < $0 } ?? true }
}

extension Trips {
  /// The trip whose shares an actor asks about. Throws where the actor has no rights to them, with the same text
  /// whether or not there is such a trip; ops learn that there is none.
  func findShared(_ id: Identifier, by actor: Actor, at uptime: Int64) throws(ErrorReply) -> Int {
    let found = actor.role == .ops ? try findKnown(id) : find(id)
    guard let trip = found, actor.role == .ops || !self[trip].isOver(at: uptime), self[trip].mayShare(actor) else {
      throw ErrorReply(code: .forbidden, message: "only the trip's rider and ops share it")
    }
    return trip
  }
}

extension Trips {
  /// Makes or ends a share; gives the answer, and the holder of an ended share.
  mutating func change(
    _ question: TripShareQuestion, of trip: Int, at time: Timestamp
  ) throws(ErrorReply) -> (answer: TripAnswer, ended: Identifier?) {
    switch question {
    case .list: return (.shares(self[trip].shares.filter { !$0.isEnded }), nil)
    case .begin(let new):
      try slab[trip].share(new, at: time)
      return (.shared(new, of: self[trip].id), nil)
    case .end(let id): return (.unshared, try slab[trip].endShare(id).holder)
    }
  }
}

extension TripShare: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(id, created, expires) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(id: try reader.read(), created: try reader.read(), expires: try reader.read())
  }
}
