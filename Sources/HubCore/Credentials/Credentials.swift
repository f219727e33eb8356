// Tokens that the hub makes, and revocations. Each method decides, changes the state here and writes its records; the
// caller publishes nothing before they are stored.
import HubBytes
import HubMessages

struct Credentials: ~Copyable {
  let limits: HubLimits
  var families = Slab<TokenFamily>()
  private(set) var familyOfID: [InlineText: Int] = [:]
  private var familiesOfSubject: [Identifier: [Int]] = [:]
  var revocations = Slab<KeptRevocation>()
  private(set) var revocationOfName: [RevokedName: Int] = [:]
  /// Revocations of ended families, of this hub and others.
  private(set) var endedFamilies = 0
  private(set) var endedElsewhere = 0
  private var trail = AuditTrail()
  /// Changes of the revocations since the last `takeChange`.
  var change = RevocationChange(number: 1)

  init(limits: HubLimits) { self.limits = limits }

  func countEntries(into counters: inout HubCounters) {
    counters.set(.tokenFamilies, families.count + endedFamilies)
    counters.set(.revocations, revocations.count - endedFamilies)
  }

  /// The changes since the last call; nil for none.
  mutating func takeChange() -> RevocationChange? {
    if change.added.isEmpty, change.removed.isEmpty {
      change.isOfPeers = false  // a peer's revocation was known: the next change is another one's
      return nil
    }
    defer { change = RevocationChange(number: change.number + 1) }
    return change
  }

  // MARK: Questions

  /// Decides, and records the question for the audit. Where nothing can be stored, a change is refused, so that no
  /// client gets tokens that the hub forgets, or loses those that it counts as used.
  mutating func answer(
    _ question: CredentialQuestion, _ source: AuditSource?, at now: Moment, _ storage: inout HubStorage,
    _ deadlines: inout Deadlines, counting counters: inout HubCounters
  ) -> CredentialAnswer {
    let answer: CredentialAnswer
    if storage.hasRoom || question.needsNoRoom {
      do throws(ErrorReply) {
        answer = try decide(question, at: now, &storage, &deadlines, &counters)
      } catch {
        answer = .refused(error)
      }
    } else {
      if case .refresh(let id, _, _) = question { extendGrace(of: id, at: now, storage) }
      counters.refusedForStorage += 1
      answer = .refused(
        ErrorReply(
          code: .storageFull, message: "this hub cannot store that now; send it again",
          retryAfter: ErrorReply.storageRetryAfter))
    }
    if let source {
      write(AuditEntry(source, about: question.target, status: answer.status), at: now, &storage, &counters)
    }
    return answer
  }

  private mutating func decide(
    _ question: CredentialQuestion, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines,
    _ counters: inout HubCounters
  ) throws(ErrorReply) -> CredentialAnswer {
    switch question {
    case .begin(let family, _): return try begin(family, at: now, &storage, &deadlines, &counters)
    case .refresh(let id, let subject, let serial):
      return try refresh(id, of: subject, serial, at: now, &storage, &deadlines, &counters)
    case .families(let subject):
      let found = (familiesOfSubject[subject] ?? []).map { families[$0] }
      return .families(
        found.filter { $0.refreshEnds > now.timestamp }.sorted {
          ($0.rotated, $0.id.description) > ($1.rotated, $1.id.description)
        }, isComplete: true)
    case .end(let subject): return .ended(endFamilies(of: subject, at: now, &storage, &deadlines))
    case .sessions: return .sessions([:], isComplete: false)  // the loops count sessions
    case .extend(let all, let isOfPeers):
      return try extend(all, isOfPeers: isOfPeers, at: now, &storage, &deadlines, &counters)
    case .revoke(let revocation): return try revoke(revocation, at: now, &storage, &deadlines, &counters)
    case .revocations(let start, let limit): return page(from: start, limit: limit)
    case .unrevoke(let name):
      guard let index = revocationOfName[name] else {
        throw ErrorReply(code: .notFound, message: "this hub has no such revocation")
      }
      remove(revocation: index)
      storage.write(.unrevoked(name))
      return .unrevoked
    }
  }

  /// Records a request that was refused earlier.
  mutating func write(
    _ entry: AuditEntry, at now: Moment, _ storage: inout HubStorage, _ counters: inout HubCounters
  ) {
    counters.count(entry)
    if let audit = trail.admit(entry, isStorable: storage.isOn && storage.hasRoom, at: now) {
      storage.write(.audit(audit))
    } else {
      counters.auditLeftOut += 1
    }
  }

  // MARK: Families

  private mutating func begin(
    _ family: TokenFamily, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines,
    _ counters: inout HubCounters
  ) throws(ErrorReply) -> CredentialAnswer {
    guard !isRevoked(family.subject, family.id, at: now.timestamp) else {
      throw ErrorReply(code: .forbidden, message: "tokens of this sub, or of this Idempotency-Key, are revoked")
    }
    if let known = familyOfID[family.id] {
      if families[known].refreshEnds > now.timestamp {
        return .family(try repeated(families[known], by: family), isNew: false)
      }
      forget(family: known, &storage)
    }
    // A family that ends leaves a revocation for a while, whose room is reserved.
    guard families.count + endedFamilies < limits.tokenFamilies else {
      counters.count(full: .tokenFamilies)
      throw ErrorReply(
        code: .storageFull, message: "token family limit reached (\(limits.tokenFamilies))")
    }
    let others = familiesOfSubject[family.subject] ?? []
    if others.count >= HubLimits.tokenFamiliesPerSubject,
      let oldest = others.min(by: { families[$0].rotated < families[$1].rotated })
    {
      counters.count(.tokenFamiliesPerSubject)
      end(oldest, at: now, &storage, &deadlines)
    }
    storage.write(.tokenFamily(family))
    insert(family, at: now, &deadlines)
    return .family(family, isNew: true)
  }

  /// The family for a request that is repeated with the same key since its answer was lost. Throws after a refresh:
  /// then the answer had arrived, and a second asker would share the tokens.
  private func repeated(_ known: TokenFamily, by family: TokenFamily) throws(ErrorReply) -> TokenFamily {
    guard known.subject == family.subject, known.role == family.role, known.claims == family.claims else {
      throw ErrorReply(
        code: .invalidTransition, message: "other tokens were asked for with this Idempotency-Key")
    }
    guard known.serial == 1 else {
      throw ErrorReply(
        code: .invalidTransition, message: "the tokens of this Idempotency-Key have been refreshed: \(known.id)")
    }
    return known
  }

  private mutating func refresh(
    _ id: InlineText, of subject: Identifier, _ serial: UInt64, at now: Moment, _ storage: inout HubStorage,
    _ deadlines: inout Deadlines, _ counters: inout HubCounters
  ) throws(ErrorReply) -> CredentialAnswer {
    guard let index = familyOfID[id], families[index].subject == subject, families[index].refreshEnds > now.timestamp
    else { throw ErrorReply(code: .unauthorized, message: "the refresh token has ended, or was ended") }
    guard !isRevoked(subject, id, at: now.timestamp) else {
      throw ErrorReply(code: .unauthorized, message: "the refresh token was revoked")
    }
    let newest = families[index].serial
    if serial &+ 1 == newest {  // a peer may send any number
      let ticket = families[index].ticket
      if ticket > storage.storedThrough || ticket > 0 && storage.unanswered.contains(ticket) {
        // The answer has not been sent.
        beginGrace(of: index, at: now, &deadlines)
        if ticket <= storage.storedThrough { families[index].ticket = 0 }
      }
      if now.uptime < families[index].graceEnds { return .family(families[index], isNew: false) }
    }
    guard serial == newest else {
      counters.tokensReused += 1
      end(index, at: now, &storage, &deadlines)
      throw ErrorReply(
        code: .unauthorized, message: "the refresh token was used before: all tokens of its family have ended")
    }
    rotate(index, to: serial + 1, at: now.timestamp)
    beginGrace(of: index, at: now, &deadlines)
    storage.write(.tokensRotated(id, serial: serial + 1, at: now.timestamp))
    families[index].ticket = storage.newest
    return .family(families[index], isNew: false)
  }

  mutating func rotate(_ index: Int, to serial: UInt64, at time: Timestamp) {
    families[index].serial = serial
    families[index].rotated = time
    families[index].lastAccessEnds = max(families[index].lastAccessEnds, families[index].accessEnds)
  }

  /// The answer to the previous token was delayed: its grace begins when it is sent.
  private mutating func extendGrace(of id: InlineText, at now: Moment, _ storage: borrowing HubStorage) {
    guard let index = familyOfID[id], families[index].ticket > storage.storedThrough else { return }
    families[index].graceEnds = now.uptime + HubLimits.refreshGrace
  }

  /// Ends the family and its access tokens.
  private mutating func end(
    _ index: Int, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines
  ) {
    let (id, ends) = (families[index].id, families[index].lastAccessEnds + HubLimits.revocationMarginMilliseconds)
    storage.write(.tokenFamilyEnded(id))
    remove(family: index)
    if let known = revocationOfName[.tokenID(id)] {
      guard let until = revocations[known].revocation.inForceUntil, until < ends else { return }
      remove(revocation: known)
    }
    let revocation = Revocation(.tokenID(id), until: ends, cause: .endedFamily)
    storage.write(.revocation(revocation))
    insert(revocation, at: now, &deadlines)
  }

  /// Ends families of a `sub`: all, or those that a revocation covers. Gives their number.
  mutating func endFamilies(
    of id: Identifier, by end: Revocation? = nil, at now: Moment, _ storage: inout HubStorage, _ due: inout Deadlines
  ) -> Int {
    let ended = (familiesOfSubject[id] ?? []).filter { end?.ends(families[$0]) ?? true }
    for family in ended { self.end(family, at: now, &storage, &due) }
    return ended.count
  }

  private mutating func insert(_ family: TokenFamily, at now: Moment, _ deadlines: inout Deadlines) {
    let index = register(family)
    deadlines.arm(.tokenFamily, families.handle(of: index), at: now.look(at: family.refreshEnds))
  }

  mutating func register(_ family: TokenFamily) -> Int {
    let index = families.insert(family)
    familyOfID[family.id] = index
    familiesOfSubject[family.subject, default: []].append(index)
    return index
  }

  mutating func remove(family index: Int) {
    let (id, subject) = (families[index].id, families[index].subject)
    familyOfID[id] = nil
    familiesOfSubject[subject]?.removeAll { $0 == index }
    if familiesOfSubject[subject]?.isEmpty == true { familiesOfSubject[subject] = nil }
    families.remove(
      index, leaving: TokenFamily(id: id, subject: subject, role: .rider, claims: [], created: families[index].created))
  }

  // MARK: Revocations

  func isRevoked(_ subject: Identifier, _ id: InlineText, at now: Timestamp) -> Bool {
    [.subject(subject), .tokenID(id)].contains { (name: RevokedName) in
      revocationOfName[name].map { revocations[$0].revocation.inForceUntil.map { $0 > now } ?? true } ?? false
    }
  }

  private mutating func revoke(
    _ revocation: Revocation, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines,
    _ counters: inout HubCounters
  ) throws(ErrorReply) -> CredentialAnswer {
    if let index = revocationOfName[revocation.name] {
      let known = revocations[index].revocation
      // A revocation that ended a family, after a theft for instance, lasts as long as its access tokens would.
      let isCovered = known.cause != .backEnd && !revocation.outlasts(known)
      if isCovered || known.until == revocation.until { return .revoked(known, isNew: false) }
      replace(index, by: revocation, at: now, &storage, &deadlines)
      return .revoked(revocation, isNew: true)
    } else if revocationsOfBackEnds >= limits.revocations {
      counters.count(full: .revocations)
      throw .revocationsFull(limits)
    }
    storage.write(.revocation(revocation))
    insert(revocation, at: now, &deadlines)
    return .revoked(revocation, isNew: true)
  }

  /// Replaced in place, so that a repeatedly changed end has one deadline.
  mutating func replace(
    _ index: Int, by revocation: Revocation, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines
  ) {
    if storage.hasRoom { storage.write(.revocation(revocation)) }
    count(revocations[index].revocation.cause, by: -1)
    revocations[index].revocation = revocation
    count(revocation.cause, by: 1)
    change.added.append(revocation)
    hold(index, at: now, &deadlines)
  }

  mutating func insert(_ revocation: Revocation, at now: Moment, _ deadlines: inout Deadlines) {
    let index = register(revocation)
    change.added.append(revocation)
    hold(index, at: now, &deadlines)
  }

  /// Keeps a revocation for its remaining time in uptime; one of an ended family at least an access token's lifetime.
  mutating func hold(
    _ index: Int, at now: Moment, atLeast least: Int64 = 0, _ deadlines: inout Deadlines
  ) {
    guard let until = revocations[index].revocation.inForceUntil else { return }
    let lifetime = HubLimits.accessTokenMilliseconds + HubLimits.revocationMarginMilliseconds
    let shortest = revocations[index].revocation.cause == .backEnd ? least : lifetime
    let milliseconds = min(max(until.milliseconds - now.timestamp.milliseconds, shortest), .max / 2_000_000)
    revocations[index].holdsUntil = now.uptime + milliseconds * 1_000_000
    arm(index, at: now, &deadlines)
  }

  mutating func arm(_ index: Int, at now: Moment, _ deadlines: inout Deadlines) {
    guard !revocations[index].isArmed, let until = revocations[index].revocation.inForceUntil else { return }
    revocations[index].isArmed = true
    let look = max(now.look(at: until), min(revocations[index].holdsUntil, now.uptime + Moment.longestLook))
    deadlines.arm(.revocation, revocations.handle(of: index), at: look)
  }

  mutating func register(_ revocation: Revocation) -> Int {
    let index = revocations.insert(KeptRevocation(revocation: revocation))
    revocationOfName[revocation.name] = index
    count(revocation.cause, by: 1)
    return index
  }

  private mutating func count(_ cause: RevocationCause, by change: Int) {
    switch cause {
    case .backEnd: break
    case .endedFamily: endedFamilies += change
    case .endedElsewhere: endedElsewhere += change
    }
  }

  mutating func remove(revocation index: Int) {
    let gone = revocations[index].revocation
    revocationOfName[gone.name] = nil
    count(gone.cause, by: -1)
    revocations.remove(index, leaving: KeptRevocation(revocation: gone))
    change.removed.append(gone.name)
  }
}
