// A hub among hubs: the other hubs, their channels that sessions here follow, and the channels here that they follow.
//
// A state machine without I/O, with time as input, between four sides: the hub (its outputs in, inputs out), the bus
// (frames), the ledger (questions and answers) and the clock. It belongs to the thread of the cluster's outlet; a turn
// is
//
//     take what the bus, the ledger and the hub have → `turn` → the hub gets `inputs` → `flush`
//
// A peer is a client of the owner, by the contract: it subscribes, gets an answer and numbered events, and after a gap
// it subscribes again with `since`. That is the only recovery: for a lost frame, a hub that restarted, a bus node that
// failed and a reader that was too slow.
public import HubBackplane
public import HubBytes
public import HubCore
public import HubMessages

/// This hub's identity among the others.
public struct ClusterIdentity: Sendable {
  public var name: String
  /// Its address for other hubs and operators.
  public var address: String
  public var version: String
  public var keys: FrameKeys
  public var tokenKey = TokenKeyProof()
  /// A digest of its ledgers (`Rendezvous.digest`), which must be the same at all hubs.
  public var ledgers: UInt64 = 0

  public init(name: String, address: String, version: String, keys: FrameKeys) {
    self.name = name
    self.address = address
    self.version = version
    self.keys = keys
  }

  /// Whether a text may be a hub's name: 1–32 letters, digits, `-`, `_` and `.`.
  public static func isName(_ text: String) -> Bool {
    FrameHead.nameBytes.contains(text.utf8.count)
      && text.utf8.allSatisfy { $0.isLetter || $0.isDigit || "-_.".utf8.contains($0) }
  }
}

/// A hub among hubs, as a state machine; see the head of this file for its four sides.
public struct ClusterNode: ~Copyable {
  let context: ClusterContext
  private var asked: [UInt64: ClusterContext.Purpose] = [:]
  private var lastTicket: UInt64 = 0
  private var renewsAt = Int64.min
  /// This hub has renewed its record since the ledger came up.
  private var hasRenewed = false
  var following: Following
  var interest: Interest
  var claims: Claims
  var forwarding: Forwarding
  var asking: Asking
  var revoking: Revoking
  var familyQuestions: FamilyQuestions
  var watching: Watching
  var feeds: Feeds
  var trips: TripFeeds
  /// The last reported reason why the ledger cannot be used.
  private var ledgerFault: String?
  /// The last sent list of the bus nodes that this hub does not hear, and when (uptime, ns).
  private var saidUnheard: (nodes: UInt64, at: Int64) = (0, .min)
  private var gathering = StateGathering()
  /// The peer whose output the bus gets first: the next one after each flush in which it had room for some only.
  private var firstPeer = 0

  /// `openSessions` says how many sessions an id has open at this hub, in each role that has any.
  public init(
    _ identity: ClusterIdentity, limits: ClusterLimits = ClusterLimits(), outlet: UInt32, now: Moment,
    openSessions: @escaping @Sendable (Identifier) -> [Role: Int] = { _ in [:] }
  ) {
    precondition(ClusterIdentity.isName(identity.name), "a name of 1–32 letters, digits, - _ .")
    context = ClusterContext(identity, limits: limits, outlet: outlet, now: now, openSessions: openSessions)
    following = Following(context)
    interest = Interest(context)
    claims = Claims(context)
    forwarding = Forwarding(context)
    asking = Asking(context)
    revoking = Revoking(context)
    familyQuestions = FamilyQuestions(context)
    watching = Watching(context)
    feeds = Feeds(context)
    trips = TripFeeds(context)
  }

  /// Inputs for the hub; the node's driver takes them.
  public var inputs: HubInputs {
    _read { yield context.inputs }
    _modify { yield &context.inputs }
  }

  /// What operators should read in the log since the last call.
  public mutating func takeNotices() -> [ClusterNotice] {
    defer { context.notices.removeAll() }
    return context.notices
  }

  // MARK: The turn

  /// Sets the time; it must not decrease.
  public mutating func begin(now: Moment) { context.now = now }

  /// After all input: handles what is due by the clock.
  public mutating func turn() {
    renew()
    claims.claim()
    following.retry()
    forwarding.retry()
    asking.endOverdue()
    feeds.endOverdueHistory()
    feeds.sendFleet(interest)
    familyQuestions.retry()
    restartPeers()
    if trips.chooseCounter(), following.follows[.trips] != nil { following.locate(.trips) }
    trips.gather()
    watching.ask()
    revoking.askForPage()
    keepAlive()
  }

  /// When `turn` is due without further input (uptime, ns).
  public var nextTurn: Int64 {
    if context.peers.contains(where: { $0.takesFleet }) { return context.now.uptime }
    return min(context.now.uptime + context.limits.aliveTime / 2, gathering.due)
  }

  /// Until when outputs of the hub may gather before the next turn (uptime, ns): a stream of states, which are not sent
  /// before.
  public var gathersUntil: Int64 { min(gathering.until, context.now.uptime + context.limits.gatherSleep) }

  /// Sends pending frames, and asks pending questions.
  public mutating func flush(_ bus: any Bus, _ ledger: any Ledger) {
    context.counters.isBusUp = bus.isUp
    for (index, nodes) in context.unheard { bus.note(unheard: nodes, by: context.peers[index].name) }
    context.unheard.removeAll()
    sayUnheard(bus.unheard)
    gathering.begin(context.gatherTime, now: context.now.uptime)
    let (count, framesBefore) = (context.peers.count, context.counters.framesOut)
    var isTooMuch = false
    for index in 0..<count {
      let peer = context.peers[(firstPeer + index) % count]
      guard peer.hasOutput, peer.incarnation > 0 else { continue }
      if bus.isUp, !flush(peer, bus) { isTooMuch = true }
      context.counters.overflows += peer.boundOutput()
    }
    if isTooMuch, context.counters.framesOut > framesBefore { firstPeer = (firstPeer + 1) % count }
    gathering.end()
    let batch = context.questions
    context.questions.removeAll(keepingCapacity: true)
    for (question, purpose) in batch {
      lastTicket += 1
      if ledger.ask(question, ticket: lastTicket) {
        asked[lastTicket] = purpose
      } else if case .claim(let channel) = purpose {
        claims.postpone(channel)
      } else {
        handle(answer: .unknown, to: purpose)
      }
    }
  }

  /// Sends peers the nodes of the bus that this hub does not hear: at once, and again while there are any, since what
  /// peers send there is lost.
  private mutating func sayUnheard(_ nodes: UInt64) {
    let now = context.now.uptime
    guard nodes != 0, nodes != saidUnheard.nodes || now - saidUnheard.at >= context.limits.aliveTime else {
      saidUnheard.nodes = nodes
      return
    }
    saidUnheard = (nodes, now)
    for peer in context.peers where peer.isMember { peer.append(.unheard) { $0.append(varint: nodes) } }
  }

  /// False where the bus has no room for all that is due.
  private mutating func flush(_ peer: Peer, _ bus: any Bus) -> Bool {
    var head = FrameHead(
      lane: .control, from: context.identity.name, fromIncarnation: context.incarnation, to: peer.name,
      toIncarnation: peer.incarnation, number: 0, clock: context.time.milliseconds)
    let (keys, states) = (context.identity.keys, peer.stateCount)
    if peer.hasStates { gathering.noteStates() }
    let withStates = gathering.isDue || peer.isHalfFull
    var frames = 0
    if bus.hasRoom(for: context.limits.frameBytes, to: peer.name) {
      frames = peer.flush(now: context.now.uptime, withStates: withStates) { lane, number, records in
        (head.lane, head.number) = (lane, number)
        let frame = Frame.make(head, records, keys)
        context.counters.bytesOut += UInt64(frame.count)
        return bus.send(frame, to: peer.name, lane: lane)
      }
    }
    let isLeft = withStates && peer.hasStates
    if isLeft { gathering.noteLeft() }
    context.counters.framesOut += UInt64(frames)
    context.counters.statesOut += UInt64(states - peer.stateCount)
    return !isLeft && peer.controlBytes == 0
  }

  // MARK: Members

  private mutating func renew() {
    guard context.isLedgerUp, context.now.uptime >= renewsAt else { return }
    renewsAt = context.now.uptime + context.limits.renewal
    switch context.phase {
    case .superseded: return
    case .outside: return context.questions.append((.incarnation, .incarnation))
    case .member: break
    }
    let (identity, counters) = (context.identity, self.counters)
    let member = MemberRecord(
      name: identity.name, incarnation: context.incarnation, address: identity.address, version: identity.version,
      status: MemberStatus(
        lag: counters.lag, cellsWatched: counters.cellsWatched, cellsAsked: counters.cellsAsked,
        ledgers: identity.ledgers))
    context.questions.append((.renew(member, leaseMilliseconds: context.limits.lease / 1_000_000), .renewal))
    context.questions.append((.members, .members))
    claims.queueDeferred()
  }

  /// The questions of a hub that ends in order: the others need not wait for its lease to end.
  public mutating func leave() {
    guard context.phase == .member else { return }
    context.questions.append((.leave(name: context.identity.name, incarnation: context.incarnation), .nothing))
  }

  private mutating func handle(members: [MemberRecord]) {
    let isFirst = !context.knowsMembers
    context.knowsMembers = true
    if context.isFullOfPeers { forgetPeers() }
    var (present, hasLost) = (Set<String>(), false)
    for member in members where member.name != context.identity.name {
      // The engine's other users may write what they like there. Without an incarnation nothing could be sent to it,
      // and all would wait.
      guard ClusterIdentity.isName(member.name), member.incarnation > 0, let index = context.peer(member.name) else {
        continue
      }
      present.insert(member.name)
      if member.incarnation > context.peers[index].incarnation { begin(index, member.incarnation) }
      join(index)
      guard let ledgers = member.status?.ledgers, ledgers != context.identity.ledgers else { continue }
      if !context.peers[index].hasOtherLedgers { context.notices.append(.ledgersDiffer(member.name)) }
      context.peers[index].hasOtherLedgers = true
    }
    for (index, peer) in context.peers.enumerated() where peer.isMember && !present.contains(peer.name) {
      // A hub that is heard is present, even if the ledger has forgotten it.
      guard context.now.uptime - peer.heard >= context.limits.silence else { continue }
      peer.isMember = false
      following.lost(index)
      releaseInterest(of: index)
      peer.append(.lost)  // it may be there after all: then it asks for its channels anew
      context.notices.append(.peerLeft(peer.name))
      hasLost = true
    }
    // Its last revocations may have reached this hub alone, and the others cannot get them from it any more.
    if hasLost { for (index, peer) in context.peers.enumerated() where peer.isMember { revoking.announce(to: index) } }
    guard isFirst else { return }
    following.membersAreKnown()
    forwarding.membersAreKnown()
  }

  /// Hubs that have left make room for others.
  private mutating func forgetPeers() {
    let (now, limits) = (context.now.uptime, context.limits)
    for (index, peer) in context.peers.enumerated() where !peer.isMember && now - peer.heard >= limits.lease {
      following.forget(index)
      releaseInterest(of: index)
      watching.lose(of: index)
      context.forget(index)
    }
  }

  /// A peer becomes a member, if it was not.
  mutating func join(_ index: Int) {
    let peer = context.peers[index]
    guard !peer.isMember else { return }
    peer.isMember = true
    peer.wantsRestart = true  // questions to it were given up, and it may have answered them since
    revoking.announce(to: index)
    watching.askForAll(peer)
    peer.heard = context.now.uptime
    context.notices.append(.peerJoined(peer.name, incarnation: peer.incarnation))
  }

  /// A peer's process was replaced: all agreements with it are void.
  mutating func begin(_ index: Int, _ incarnation: UInt64) {
    releaseInterest(of: index)
    watching.lose(of: index)
    context.peers[index].begin(incarnation)
    context.peers[index].wantsRestart = true
    revoking.announce(to: index)
  }

  /// Drops a peer's interest in this hub's channels and cells.
  mutating func releaseInterest(of index: Int) {
    interest.releaseAll(of: index)
    watching.end(by: index)
  }

  /// Requests again, in parts, what is followed at peers of which something was missed.
  private mutating func restartPeers() {
    guard context.phase == .member else { return }
    for (index, peer) in context.peers.enumerated() where peer.incarnation > 0 {
      if peer.wantsRestart, context.now.uptime - peer.restarted >= context.limits.restartTime { restart(index) }
      following.resume(index)
    }
  }

  private mutating func restart(_ index: Int) {
    let peer = context.peers[index]
    peer.wantsRestart = false
    peer.restarted = context.now.uptime
    context.counters.restarts += 1
    peer.append(.restart)
    watching.askForAll(peer)
    peer.fleet = .none
    peer.trips.lose()
    context.repeatEnded(to: index)
    following.restart(index)
  }

  private mutating func keepAlive() {
    guard context.phase == .member else { return }
    let (now, limits) = (context.now.uptime, context.limits)
    for peer in context.peers where peer.isMember {
      let isSilent = now - peer.heard >= limits.silence
      if isSilent != peer.isSilent {
        peer.isSilent = isSilent
        context.notices.append(isSilent ? .peerSilent(peer.name) : .peerHeard(peer.name))
      }
      // Losses of one lane have to be noticed whatever the other carries.
      let hasRested = peer.lastSent.map { now - $0 >= limits.aliveTime }
      // A peer that watches areas has to notice that the last frame of states is missing.
      let isDue = !peer.watched.isEmpty && now - peer.lastAliveSent >= limits.aliveTime
      guard isDue || hasRested[0], peer.controlBytes == 0 else { continue }
      peer.lastAliveSent = now
      // Frames on their way would be reported missing.
      let saysNumber = isDue || hasRested[1] && !peer.hasOutput
      peer.append(.alive) { if saysNumber { $0.append(varint: peer.stateNumber) } }
    }
  }

  // MARK: The ledger

  /// Handles an answer of the ledger, or that it became usable or unusable.
  public mutating func take(ledger event: LedgerEvent) {
    switch event {
    case .up(let node, let warnings):
      context.ledgerIsUp()
      ledgerFault = nil
      (renewsAt, hasRenewed) = (.min, false)
      writeBack()
      context.notices.append(.ledgerUp(node, warnings: warnings))
    case .down(let node, let reason):
      // Also at the start, and where it is another reason than before.
      if context.isLedgerUp || ledgerFault == nil {
        context.notices.append(.ledgerDown(node, reason: reason))
        ledgerFault = reason
      } else if ledgerFault != reason, context.note(.ledgerDown(node, reason: reason), seldom: .ledgerDown) {
        ledgerFault = reason
      }
      context.isLedgerUp = false
    case .memory(let memory):
      (context.counters.ledgerMemory, context.counters.ledgerMemoryLimit) = (memory.used, memory.limit)
    case .answer(let ticket, let answer):
      if let purpose = asked.removeValue(forKey: ticket) { handle(answer: answer, to: purpose) }
    }
  }

  private mutating func handle(answer: LedgerAnswer, to purpose: ClusterContext.Purpose) {
    if case .refused(let reason) = answer {
      context.counters.ledgerRefused += 1
      context.note(.ledgerRefused(reason), seldom: .ledgerRefused)
    }
    switch purpose {
    case .nothing: break
    case .incarnation:
      guard case .incarnation(let number) = answer, context.phase == .outside else { return }
      context.incarnation = number
      context.phase = .member
      renewsAt = .min
      context.notices.append(.joined(incarnation: number))
    case .renewal:
      if case .superseded(let other) = answer { supersede(by: other) }
      guard case .renewed(let wasKnown) = answer else { return }
      if hasRenewed, !wasKnown { writeBack() }
      hasRenewed = true
    case .members: if case .members(let members) = answer { handle(members: members) }
    case .claim(let channel): claims.handle(claim: answer, of: channel)
    case .release(let channel):
      claims.handle(release: answer, of: channel)
      following.check(channel)
    case .disclaim(let channel): following.check(channel)
    case .locate(let channel): following.handle(location: answer, of: channel)
    case .waiting(let channel): following.handle(waiting: answer, of: channel)
    case .request(let token, let stage): forwarding.handle(answer: answer, to: stage, of: token)
    case .question(let token): asking.handle(owner: answer, of: token)
    case .tokens(let token): familyQuestions.handle(claim: answer, of: token)
    }
  }
}
