// A trip or token family that the ledger has as one hub's to begin, and that this hub has no room for: it gives the
// claim back. Otherwise the same request at a hub that has room would be sent to this one again.
import HubMessages

extension Channels {
  /// A request about a trip is refused. A trip that it would have begun, and for which this hub has no room, may begin
  /// at another one.
  mutating func noteRefused(_ request: TripRequest?, _ refusal: ErrorReply, _ trips: borrowing Trips) {
    guard isInCluster, refusal.isForWantOfRoom, let trip = request?.beginning?.tripID, trips.find(trip) == nil
    else { return }
    sendToCluster(.tripRefused(trip))
  }

  /// A question about tokens is answered. Tokens of a key for which this hub has no room may be made by another one, if
  /// this one does not know of any that have ended.
  mutating func note(
    _ answer: CredentialAnswer, to question: CredentialQuestion, _ credentials: borrowing Credentials, at now: Timestamp
  ) {
    guard isInCluster, case .refused(let refusal) = answer, refusal.isForWantOfRoom,
      case .begin(let family, isKeyed: true) = question, !credentials.remembers(family, at: now)
    else { return }
    sendToCluster(.tokensRefused(family.word))
  }
}

extension ErrorReply {
  /// Whether another hub may decide otherwise.
  fileprivate var isForWantOfRoom: Bool { code == .storageFull || code == .rateLimited }
}
