// What sessions of this hub follow at other hubs: unanswered questions, and a record for each followed channel.
//
//     locating ─owner known→ asked ─answer→ live        a lost frame, a new process: asked again, with `since`
//         ↑───────── moved, not there ──────────┘
//
// A state that was published after an event which has not arrived yet waits for the event: the lanes are separate, and
// a session that got the state first would count the event as missing.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

struct Following {
  enum State {
    /// The ledger is asked for its owner.
    case locating
    /// It has no known owner: it is looked for again after a while.
    case unowned
    case asked(peer: Int)
    case live(peer: Int)
  }

  /// The holder of a share of a trip, whose validity its owner is asked for.
  struct Holder {
    let actor: Actor
    let grant: ChannelGrant
    /// The question to the owner that has no answer yet.
    var question: UInt64?
  }

  /// A channel of another hub.
  struct Follow {
    var state = State.locating
    /// The newest event, and whose numbers they are; nil where sessions have those of different hubs.
    var point: ResumePoint?
    /// From where its owner was asked once more, since its last answer was to an older question.
    var askedFrom: ResumePoint?
    /// A hub has answered as its owner, and has not revoked that since.
    var isOwned = false
    /// The hub that the ledger named last has answered that it does not have it.
    var isDenied = false
    /// Sessions' questions on the way.
    var questions: Set<UInt64> = []
    /// Owners' answers to sessions that the hub has not handled: it does not count these as followers yet.
    var unhandled = 0
    /// The hub follows it, for its sessions or for itself.
    var isFollowed = false
    /// Sessions follow it; else the hub itself does, which wants the events alone.
    var wantsStates = false
    /// A position or ETA, by its kind, that waits for an event.
    var held: [Publication] = []
    /// Of a trip: holders of shares that were accepted.
    var holders: [Identifier: Holder] = [:]
    /// When its owner is looked for again (uptime, ns).
    var retriesAt: Int64?

    var peer: Int? {
      switch state {
      case .locating, .unowned: nil
      case .asked(let peer), .live(let peer): peer
      }
    }
  }

  var follows: [Channel: Follow] = [:]
  /// Channels without an owner that sessions are subscribed to here. The hub that begins one announces it; if that, or
  /// the ledger's list of waiting hubs, may be lost, the ledger is asked again.
  private(set) var waiting: Set<Channel> = []
  /// Channels of `waiting` for which the ledger is still to be asked.
  private var checked: [Channel] = []
  /// The ledger is to be asked for all of `waiting`; and when it was last (uptime, ns).
  var checksWaiting = false
  private var waitingCheckedAt = Int64.min / 2
  /// Since when the ledger has not been asked again for what waits, which it forgets after a day (uptime, ns).
  private var waitingNotedAt: Int64 = 0
  /// Sessions' questions.
  var pending = PendingQuestions<SubscribeInput>()
  private var retries = TimedQueue<Channel>()
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }

  var count: Int { follows.count }

  /// It has no known owner, and the ledger is not being asked.
  func isUnowned(_ channel: Channel) -> Bool {
    switch follows[channel]?.state {
    case nil, .unowned?: true
    case .locating?, .asked?, .live?: false
    }
  }

  /// Its owner is looked for again after a while.
  mutating func retryLater(_ channel: Channel) {
    guard follows[channel] != nil else { return }
    leaveOwner(of: channel)
    follows[channel]?.state = .unowned
    guard follows[channel]?.retriesAt == nil else { return }
    let time = context.now.uptime + context.limits.answerTime
    follows[channel]?.retriesAt = time
    retries.append(channel, at: time)
  }

  /// Ignores what the last owner still publishes, before the owner is looked for: it may never say that it lost it.
  private func leaveOwner(of channel: Channel) {
    if let index = follows[channel]?.peer { context.peers[index].forget(channel, at: context.time) }
  }

  private mutating func nextRetry(now: Int64) -> Channel? {
    while let channel = retries.next(now: now) {
      // A channel that was dropped, and is followed again, has a time of its own.
      guard let time = follows[channel]?.retriesAt, time <= now else { continue }
      follows[channel]?.retriesAt = nil
      return channel
    }
    return nil
  }
}

extension Following {
  // MARK: From the hub

  /// A session wants a channel that is not here.
  mutating func subscribe(_ input: SubscribeInput) {
    guard context.phase == .member || context.isStarting else { return context.refuse(input, .unreachable) }
    guard pending.count < context.limits.pending else { return context.refuse(input, .overloaded) }
    let channel = input.request.channel
    let isUnowned = isUnowned(channel)
    let token = insert(input)
    if isUnowned { locate(channel) } else if let index = follows[channel]?.peer { ask(index, token) }
  }

  private mutating func insert(_ input: SubscribeInput) -> UInt64 {
    let token = pending.insert(input)
    pending.wait(token, until: context.now.uptime + context.limits.answerTime)
    follows[input.request.channel, default: Following.Follow()].questions.insert(token)
    return token
  }

  /// Sessions of the hub are subscribed to what another hub has, or the hub itself wants it.
  mutating func follow(_ channel: Channel, from point: ResumePoint?, eventsOnly: Bool) {
    let isAnswered = follows[channel].map { $0.isFollowed && $0.isOwned } == true
    follows[channel, default: Following.Follow()].isFollowed = true
    waiting.remove(channel)
    let isForHub = eventsOnly && follows[channel]?.unhandled == 0
    follows[channel]?.wantsStates = !isForHub
    if isForHub { follows[channel]?.holders.removeAll() }
    // The owner cannot continue this hub's numbers: all sessions get those of the owner, if they are not under way.
    if let point, !isAnswered { follows[channel]?.point = point }
    locate(channel)
  }

  /// The hub has handled an owner's answer to a session.
  mutating func followed(_ channel: Channel) { follows[channel]?.unhandled -= 1 }

  /// The hub has no session any more that follows a channel.
  mutating func unfollow(_ channel: Channel) {
    if let follow = follows[channel], follow.unhandled > 0 { return }
    follows[channel]?.isFollowed = false
    waiting.remove(channel)
    dropUnused(channel)
  }

  /// Sessions are subscribed here to a channel that no hub has: the ledger notes that, or names an owner by then.
  mutating func wait(_ channel: Channel) {
    if channel != .trips, waiting.insert(channel).inserted { checked.append(channel) }
  }

  /// The ledger has released this hub's trip or driver: it is asked again, to note that sessions here wait for it.
  mutating func check(_ channel: Channel) {
    var names = [channel]
    if case .driver(let id) = channel { names.append(.raw(id)) }
    if case .raw(let id) = channel { names.append(.driver(id)) }
    checked += names.filter { waiting.contains($0) }
  }

  /// A trip or driver is here.
  mutating func begin(_ channel: Channel) {
    waiting.remove(channel)
    if case .driver(let id) = channel { waiting.remove(.raw(id)) }
  }

  /// Nobody follows or asks for it: its owner need not send it.
  mutating func dropUnused(_ channel: Channel) {
    guard let follow = follows[channel], !follow.isFollowed, follow.questions.isEmpty else { return }
    follows[channel] = nil
    if let index = follow.peer { context.release(channel, at: index) }
  }

  // MARK: Owners

  mutating func locate(_ channel: Channel) {
    // Asked when the other hubs are known, or else when this one works alone.
    if context.isStarting { return retryLater(channel) }
    leaveOwner(of: channel)
    follows[channel, default: Following.Follow()].state = .locating
    if channel == .trips { return handle(location: context.tripsOwner, of: channel) }
    guard let key = channel.ledgerKey else { preconditionFailure("only trips and drivers have owners") }
    // Only what sessions here were let into is noted, and this hub's drivers: a name that nobody may follow, or that a
    // driver's fix has made up, must not take the ledger's room.
    let isNoted = follows[channel].map { $0.isFollowed && ($0.wantsStates || channel.isOfDriver) } == true
    let question = isNoted ? LedgerQuestion.locate(key: key, asker: context.identity.name) : .owner(key: key)
    context.questions.append((question, .locate(channel)))
  }

  /// The other hubs are known now: asks postponed questions.
  mutating func membersAreKnown() {
    for channel in channels(at: nil) where isUnowned(channel) { locate(channel) }
  }

  /// A hub is gone: its drivers may move to any other. (Its trips are there when it returns.) It may have been the only
  /// one that knew who waits for what it has begun.
  mutating func lost(_ index: Int) {
    checksWaiting = true
    for channel in channels(at: index) where channel.isOfDriver { retryLater(channel) }
  }

  /// A hub's index may be reused.
  mutating func forget(_ index: Int) { for channel in channels(at: index) { retryLater(channel) } }

  /// In a fixed order, so that runs are deterministic. Nil: those of no peer.
  private func channels(at index: Int?) -> [Channel] {
    follows.filter { $0.value.peer == index }.map { (name: "\($0.key)", channel: $0.key) }
      .sorted { $0.name < $1.name }.map(\.channel)
  }

  mutating func handle(location answer: LedgerAnswer, of channel: Channel) {
    guard let follow = follows[channel], case .locating = follow.state else { return }
    switch answer {
    case .owner(let name?) where name != context.identity.name:
      follows[channel]?.isDenied = false
      // The hub may not know this yet, if the ledger could not be asked; it has to know even if the owner is not there.
      if waiting.remove(channel) != nil || follow.isFollowed {
        context.inputs.append(.cluster(.begunElsewhere(channel)))
      }
      guard let index = context.member(name) else { return waitForOwner(channel, .unreachable) }
      follows[channel]?.state = .asked(peer: index)
      for token in follow.questions where isOfSession(token) { ask(index, token) }
      if follow.isFollowed { askAnew(index, channel) }
    case .owner: nobodyOwns(channel)
    case .unknown, .refused: waitForOwner(channel, nil)
    case .incarnation, .renewed, .superseded, .done, .members, .claimed, .held: break
    }
  }

  /// A channel without an owner: sessions are subscribed here until it begins, as far as they may. If sessions have an
  /// owner's numbers, and it has not revoked its ownership, the ledger has forgotten the owner: new questions wait for
  /// the owner, too, since numbers from here would differ.
  private mutating func nobodyOwns(_ channel: Channel) {
    if let follow = follows[channel], follow.isFollowed, follow.isOwned, channel != .trips {
      return waitForOwner(channel, .unreachable)
    }
    for token in follows[channel]?.questions.sorted() ?? [] {
      guard let input = takePending(token), input.session != .nobody else { continue }
      context.inputs.append(.cluster(.subscribeHere(input)))
      if follows[channel]?.isFollowed == true { follows[channel]?.point = nil }
    }
    guard follows[channel]?.isFollowed == true else {
      follows[channel] = nil
      return
    }
    retryLater(channel)
    noteUnowned(channel, isKnown: true)
  }

  private func noteUnowned(_ channel: Channel, isKnown: Bool) {
    context.inputs.append(.cluster(.unowned(channel, isKnown: isKnown, isDenied: follows[channel]?.isDenied == true)))
  }

  /// Its owner is not known, or not there: sessions' questions wait for the next attempt, or are refused.
  mutating func waitForOwner(_ channel: Channel, _ refusal: ErrorReply?) {
    if let refusal {
      for token in follows[channel]?.questions ?? [] { refuse(token, refusal) }
    }
    guard follows[channel] != nil else { return }
    retryLater(channel)
    if context.isAlone { noteUnowned(channel, isKnown: false) }
    dropUnused(channel)
  }

  // MARK: Questions to owners

  mutating func ask(_ index: Int, _ token: UInt64) {
    guard var input = pending[token] else { return }
    guard context.peers[index].isMember else { return refuse(token, .unreachable) }
    // Other sessions of this hub may want positions, even if this one does not.
    input.request.isEventsOnly = false
    context.peers[index].append(.subscribe) { $0.append(input, token: token, at: context.time) }
  }

  mutating func askAnew(_ index: Int, _ channel: Channel) {
    guard let follow = follows[channel] else { return }
    // A new subscriber wants positions as soon as it is accepted.
    let wantsStates = follow.wantsStates || follow.questions.contains(where: isOfSession)
    context.resume(Subscribe(channel: channel, resume: follow.point, isEventsOnly: !wantsStates), at: index)
    // That a share has ended may be what was missed, also since its owner was asked last.
    for (id, holder) in follow.holders.sorted(by: { "\($0.key)" < "\($1.key)" }) {
      if let before = holder.question { _ = takePending(before) }
      let question = SubscribeInput(
        session: .nobody, actor: holder.actor, messageID: ClusterOutput.unsolicited,
        request: Subscribe(channel: channel),
        grant: holder.grant)
      let token = insert(question)
      follows[channel]?.holders[id]?.question = token
      ask(index, token)
    }
  }

  /// A question is answered, one way or the other.
  mutating func takePending(_ token: UInt64) -> SubscribeInput? {
    guard let input = pending.finish(token) else { return nil }
    follows[input.request.channel]?.questions.remove(token)
    if input.session == .nobody { follows[input.request.channel]?.holders[input.actor.id]?.question = nil }
    return input
  }

  mutating func refuse(_ token: UInt64, _ error: ErrorReply) {
    guard let input = takePending(token) else { return }
    if input.session != .nobody { context.refuse(input, error) }
    dropUnused(input.request.channel)
  }

  /// Whether it checks the share of a holder who sees the trip: it is repeated until the owner's disk lets it answer.
  private func isOfHolder(_ input: SubscribeInput) -> Bool {
    guard input.session == .nobody, let follow = follows[input.request.channel] else { return false }
    return follow.isFollowed && follow.holders[input.actor.id] != nil
  }

  /// A hub may have begun a channel that is waited for, unnoticed here; or the ledger has forgotten who waits.
  private mutating func checkWaiting() {
    let (now, limits) = (context.now.uptime, context.limits)
    if waiting.isEmpty { (checksWaiting, waitingNotedAt) = (false, now) }
    if now - waitingNotedAt >= limits.ownerTime / 2 { checksWaiting = true }
    if checksWaiting, now - waitingCheckedAt >= limits.waitingTime {
      (checksWaiting, waitingCheckedAt, waitingNotedAt) = (false, now, now)
      checked = waiting.map { (name: "\($0)", channel: $0) }.sorted { $0.name > $1.name }.map(\.channel)
    }
    for channel in checked.suffix(limits.resumesPerTurn) {
      guard waiting.contains(channel), let key = channel.ledgerKey else { continue }
      context.questions.append((.locate(key: key, asker: context.identity.name), .waiting(channel)))
    }
    checked.removeLast(min(checked.count, limits.resumesPerTurn))
  }

  mutating func handle(waiting answer: LedgerAnswer, of channel: Channel) {
    switch answer {
    case .owner(let name?) where name != context.identity.name:
      if waiting.remove(channel) != nil { context.inputs.append(.cluster(.begunElsewhere(channel))) }
    case .unknown, .refused: checksWaiting = true
    case .incarnation, .renewed, .superseded, .done, .members, .owner, .claimed, .held: break
    }
  }

  /// The ledger can be asked again, and may have forgotten who waits.
  mutating func beginLedger() { (checksWaiting, waitingCheckedAt) = (true, .min / 2) }

  /// Asks again what has no answer in time, and for what has no owner.
  mutating func retry() {
    checkWaiting()
    while let token = pending.nextOverdue(now: context.now.uptime) {
      guard let input = pending[token], isOfHolder(input) || pending.repeats(token, atMost: context.limits.attempts)
      else {
        refuse(token, .unreachable)
        continue
      }
      let channel = input.request.channel
      pending.wait(token, until: context.now.uptime + context.limits.answerTime)
      if let index = follows[channel]?.peer { ask(index, token) } else { locate(channel) }
    }
    for _ in 0..<context.limits.resumesPerTurn {
      guard let channel = nextRetry(now: context.now.uptime) else { return }
      if isUnowned(channel) { locate(channel) }
    }
  }

  /// Requests again a part of the channels.
  mutating func resume(_ index: Int) {
    let peer = context.peers[index]
    let channels = peer.resumes.suffix(context.limits.resumesPerTurn)
    peer.resumes.removeLast(channels.count)
    for channel in channels where follows[channel]?.peer == index { askAnew(index, channel) }
  }

  /// What is followed at a peer is asked for anew: the channels of sessions in parts, with their shares (`resume`).
  mutating func restart(_ index: Int) {
    context.peers[index].resumes = follows.filter { $0.value.peer == index && $0.value.isFollowed }.map(\.key)
    for token in follows.values.lazy.filter({ $0.peer == index }).flatMap(\.questions)
    where isOfSession(token) { ask(index, token) }
  }
}

extension Channel {
  /// Whether it goes where a driver goes.
  fileprivate var isOfDriver: Bool {
    switch self {
    case .driver, .raw: true
    case .trip, .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .stats: false
    }
  }
}
