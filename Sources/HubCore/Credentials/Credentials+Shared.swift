// Revocations that the hubs of a cluster share. Each hub keeps all in its own journal, and what two hubs know of a
// token is brought together by one rule: it is revoked until the later of the ends that it was given. So it does not
// matter in which order hubs hear of what, nor how often, and a hub that was away brings nothing back that others have
// forgotten; but nothing is taken back before its end either.
import HubMessages

extension Credentials {
  /// Gives how the first one is kept. Of peers it takes twice as many as of its own back ends, and also where nothing
  /// can be stored now: a token that was revoked elsewhere is refused all the same.
  mutating func extend(
    _ all: [Revocation], isOfPeers: Bool, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines,
    _ counters: inout HubCounters
  ) throws(ErrorReply) -> CredentialAnswer {
    var isNew = false
    for revocation in all {
      if isOfPeers, let until = revocation.until, until + HubLimits.longestLookMilliseconds < now.timestamp { continue }
      if let index = revocationOfName[revocation.name] {
        guard let end = revocations[index].revocation.until, revocation.until.map({ $0 > end }) ?? true else {
          continue
        }
        replace(index, by: revocation, at: now, &storage, &deadlines)
      } else {
        guard revocations.count - endedFamilies < limits.revocations * (isOfPeers ? 2 : 1) else {
          counters.count(full: .revocations)
          if isOfPeers { continue }
          throw .revocationsFull(limits)
        }
        if storage.hasRoom { storage.write(.revocation(revocation)) }
        insert(revocation, at: now, &deadlines)
      }
      isNew = true
    }
    change.isOfPeers = isOfPeers
    guard let first = all.first, let index = revocationOfName[first.name] else { return .ended(0) }
    return .revoked(revocations[index].revocation, isNew: isNew)
  }
}

extension CredentialQuestion {
  /// Another hub asks.
  var isOfPeers: Bool { if case .extend(_, let isOfPeers) = self { isOfPeers } else { false } }
}

extension ErrorReply {
  static func revocationsFull(_ limits: HubLimits) -> ErrorReply {
    ErrorReply(code: .storageFull, message: "this hub has \(limits.revocations) revocations, as many as it may")
  }
}
