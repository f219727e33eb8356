// Tokens in a cluster. A family of refresh tokens belongs to the hub that made it, which alone knows the used ones:
// others ask it. Each hub keeps all revocations in its own journal, and two hubs' states of a token are merged by one
// rule: it is revoked until the later of the two ends. So the order and number of messages do not matter, and a hub
// that was away does not restore what others have dropped; but no revocation ends early either.
import HubMessages

extension Credentials {
  /// Merges revocations, and returns the state of the first one. Peers' may fill twice the limit of own back ends', and
  /// are applied even where nothing can be stored: a token that was revoked elsewhere must be refused.
  mutating func extend(
    _ all: [Revocation], isOfPeers: Bool, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines,
    _ counters: inout HubCounters
  ) throws(ErrorReply) -> CredentialAnswer {
    var (isNew, endsAny) = (false, false)
    for revocation in all {
      if isOfPeers, let until = revocation.until, until + HubLimits.longestLookMilliseconds < now.timestamp { continue }
      if let index = revocationOfName[revocation.name] {
        guard revocation.outlasts(revocations[index].revocation) else { continue }
        replace(index, by: revocation, at: now, &storage, &deadlines)
      } else {
        guard hasRoom(for: revocation, isOfPeers: isOfPeers) else {
          counters.count(full: .revocations)
          if isOfPeers { continue }
          throw .revocationsFull(limits)
        }
        if storage.hasRoom { storage.write(.revocation(revocation)) }
        insert(revocation, at: now, &deadlines)
      }
      isNew = true
      guard case .families(let subject) = revocation.name else { continue }
      if endFamilies(of: subject, by: revocation, at: now, &storage, &deadlines) > 0 { endsAny = true }
    }
    change.isOfPeers = isOfPeers && !endsAny  // a hub announces those of its own families itself
    guard let first = all.first, let index = revocationOfName[first.name] else { return .ended(0) }
    return .revoked(revocations[index].revocation, isNew: isNew)
  }
}

extension Credentials {
  /// All revocations, for a component that begins to check tokens.
  func allRevocations() -> [Revocation] {
    (0..<revocations.endIndex).filter { revocations.isInUse($0) }.map { revocations[$0].revocation }
  }

  func page(from start: Int, limit: Int) -> CredentialAnswer {
    var found: [Revocation] = []
    var index = start
    while index < revocations.endIndex, found.count < limit {
      if revocations.isInUse(index) { found.append(revocations[index].revocation) }
      index += 1
    }
    let hasMore = (index..<max(index, revocations.endIndex)).contains { revocations.isInUse($0) }
    return .revocations(found, next: hasMore ? index : nil)
  }

  /// Revocations that back ends asked for.
  var revocationsOfBackEnds: Int { revocations.count - endedFamilies - endedElsewhere }

  private func hasRoom(for revocation: Revocation, isOfPeers: Bool) -> Bool {
    switch revocation.cause {
    case .backEnd, .endedFamily: revocationsOfBackEnds < limits.revocations * (isOfPeers ? 2 : 1)
    case .endedElsewhere: endedElsewhere < limits.tokenFamilies * 2
    }
  }

  /// Whether this hub answers a question without its cluster.
  func knows(_ question: CredentialQuestion) -> Bool {
    switch question {
    case .refresh(let family, _, _): familyOfID[family] != nil
    case .begin(let family, let isKeyed): !isKeyed || familyOfID[family.id] != nil
    case .families, .end, .sessions: false
    case .revoke, .revocations, .unrevoke, .extend: true
    }
  }

  /// Whether a family, or that it has ended, is known here.
  func remembers(_ family: TokenFamily, at now: Timestamp) -> Bool {
    familyOfID[family.id] != nil || isRevoked(family.subject, family.id, at: now)
  }

  /// Answers a question, or records the other hubs' answer.
  mutating func answer(
    _ request: CredentialRequest, _ found: CredentialAnswer?, at now: Moment, _ storage: inout HubStorage,
    _ deadlines: inout Deadlines, counting counters: inout HubCounters
  ) -> CredentialAnswer {
    guard let found else {
      return answer(request.question, request.source, at: now, &storage, &deadlines, counting: &counters)
    }
    var answer = found
    if case .end(let subject) = request.question, case .ended(_, isComplete: false) = found {
      // Hubs that did not answer get this revocation when they are back, from any hub that has it. None is kept where
      // all have answered: since clocks differ, it would also end a login made afterwards.
      let end = Revocation(endOfFamiliesOf: subject, at: now.timestamp)
      let kept = self.answer(
        .extend([end], isOfPeers: false), nil, at: now, &storage, &deadlines, counting: &counters)
      if case .refused = kept { answer = kept }
    }
    if let source = request.source {
      write(AuditEntry(source, about: request.question.target, status: answer.status), at: now, &storage, &counters)
    }
    return answer
  }
}

extension CredentialQuestion {
  /// Whether it is handled even if nothing can be stored: it changes nothing, or is a revocation of another hub.
  var needsNoRoom: Bool {
    switch self {
    case .extend(_, let isOfPeers): isOfPeers
    case .families, .sessions, .revocations: true
    case .begin, .refresh, .end, .revoke, .unrevoke: false
    }
  }
}

extension ErrorReply {
  static func revocationsFull(_ limits: HubLimits) -> ErrorReply {
    ErrorReply(code: .storageFull, message: "revocation limit reached (\(limits.revocations))")
  }
}
