// Shares of a trip: who makes and ends them, and whom they let see it. They lie in the trip, are stored with it and end
// with it; the hub signs nothing, so what a link's token says is not its business.
import HubBytes
import HubMessages

extension Trip {
  /// Whether an actor is the holder of a share that still holds. An id of a holder that is in no list sees nothing.
  func isShared(with actor: Actor, at time: Timestamp) -> Bool {
    shares.contains { $0.holder == actor.id && ($0.expires.map { time < $0 } ?? true) }
  }

  /// Throws where an actor may not make or end shares of it.
  func checkSharing(by actor: Actor) throws(ErrorReply) {
    guard !TripShare.isHolder(actor.id), actor.role != .driver, party(of: actor) != .stranger else {
      throw ErrorReply(code: .forbidden, message: "only the trip's rider and ops share it")
    }
  }
}

extension Trip {
  /// A further share, in the place of those that have expired. Throws where the trip has enough of them, or is over.
  mutating func share(_ share: TripShare, at time: Timestamp) throws(ErrorReply) {
    guard !status.isFinal else {
      throw ErrorReply(code: .invalidTransition, message: "the trip is over", status: status)
    }
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

  /// Ends a share; gives it, or nil where there is none.
  mutating func endShare(_ id: Identifier) -> TripShare? {
    guard let index = shares.firstIndex(where: { $0.id == id }) else { return nil }
    return shares.remove(at: index)
  }
}

extension Hub {
  /// Makes, ends or lists shares; stored before it is answered.
  mutating func answer(
    _ question: TripShareQuestion, of id: Identifier, by actor: Actor
  ) throws(ErrorReply) -> TripAnswer {
    let trip: Int
    if actor.role == .ops {
      trip = try trips.findKnown(id)
    } else {
      // The same words whether or not there is such a trip.
      guard let found = trips.find(id), !isOver(found) else {
        throw ErrorReply(code: .forbidden, message: "only the trip's rider and ops share it")
      }
      trip = found
    }
    try trips[trip].checkSharing(by: actor)
    switch question {
    case .list: return .shares(trips[trip].shares)
    case .begin(let share):
      try requireRoom("this hub cannot store shares now; send it again")
      try trips.share(trip, share, at: now.timestamp)
      recordTrip(trip, isUpdate: false)
      return .shared(share, of: id)
    case .end(let share):
      try requireRoom("this hub cannot store that now; send it again")
      guard let ended = trips.endShare(share, of: trip) else {
        throw ErrorReply(code: .notFound, message: "this trip has no such share")
      }
      recordTrip(trip, isUpdate: false)
      if let channel = trips[trip].channel {
        let handle = ChannelHandle(index: UInt32(channel))
        channels.emit(.shareEnded(handle, channels.name(channel), of: ended.holder), toSubscribersOf: channel)
      }
      return .unshared
    }
  }
}

extension TripShare: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(id, created, expires) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(id: try reader.read(), created: try reader.read(), expires: try reader.read())
  }
}
