// What sessions of this hub follow at others: their questions on the way, and a record for each channel that is
// followed.
//
//     locating ─owner known→ asked ─answer→ live        a lost frame, a new process: asked again, with `since`
//         ↑───────── moved, not there ──────────┘
//
// A state that was published behind an event which has not come yet waits for the event: the lanes are apart, and a
// session that saw the state first would take the event for missing.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

/// The tables of what is followed.
struct Following {
  enum State {
    /// The ledger is asked whose it is.
    case locating
    /// Nobody knows its owner: it is looked for again after a while.
    case unowned
    case asked(peer: Int)
    case live(peer: Int)
  }

  /// A channel of another hub.
  struct Follow {
    var state = State.locating
    /// The newest event, and whose numbers they are.
    var point: ResumePoint?
    /// Sessions' questions on the way.
    var questions: Set<UInt64> = []
    /// The hub has sessions that follow it.
    var hasSessions = false
    /// A position or ETA, by its kind, that waits for an event.
    var held: [Publication] = []

    var peer: Int? {
      switch state {
      case .locating, .unowned: nil
      case .asked(let peer), .live(let peer): peer
      }
    }
  }

  var follows: [Channel: Follow] = [:]
  /// Sessions' questions.
  var pending = PendingQuestions<SubscribeInput>()
  private var retries = TimedQueue<Channel>()
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }

  var count: Int { follows.count }

  /// Nobody is known to have it, and the ledger is not being asked.
  func isUnowned(_ channel: Channel) -> Bool {
    switch follows[channel]?.state {
    case nil, .unowned?: true
    case .locating?, .asked?, .live?: false
    }
  }

  mutating func retry(_ channel: Channel, at time: Int64) { retries.append(channel, at: time) }
  mutating func nextRetry(now: Int64) -> Channel? { retries.next(now: now) }
}

extension Following {
  // MARK: From the hub

  /// A session wants a channel that is not here.
  mutating func subscribe(_ input: SubscribeInput) {
    guard context.phase == .member else { return context.refuse(input, .unreachable) }
    guard pending.count < context.limits.pending else { return context.refuse(input, .overloaded) }
    let channel = input.request.channel
    let token = pending.insert(input)
    pending.wait(token, until: context.now.uptime + context.limits.answerTime)
    let isUnowned = isUnowned(channel)
    follows[channel, default: Following.Follow()].questions.insert(token)
    if isUnowned { locate(channel) } else if let index = follows[channel]?.peer { ask(index, token) }
  }

  /// Sessions of the hub are subscribed to what another hub has.
  mutating func follow(_ channel: Channel, from point: ResumePoint) {
    follows[channel, default: Following.Follow()].hasSessions = true
    if follows[channel]?.point == nil { follows[channel]?.point = point }
    locate(channel)
  }

  /// The hub has no session any more that follows a channel.
  mutating func unfollow(_ channel: Channel) {
    follows[channel]?.hasSessions = false
    dropUnused(channel)
  }

  /// Nobody follows or asks for it: its owner need not send it.
  private mutating func dropUnused(_ channel: Channel) {
    guard let follow = follows[channel], !follow.hasSessions, follow.questions.isEmpty else { return }
    follows[channel] = nil
    guard let index = follow.peer else { return }
    context.release(channel, at: index)
  }

  // MARK: Owners

  mutating func locate(_ channel: Channel) {
    follows[channel, default: Following.Follow()].state = .locating
    if channel == .trips { return take(located: context.tripsOwner, channel) }
    guard let key = channel.ledgerKey else { preconditionFailure("only trips and drivers have owners") }
    context.questions.append((.locate(key: key, asker: context.identity.name), .locate(channel)))
  }

  mutating func take(located answer: LedgerAnswer, _ channel: Channel) {
    guard let follow = follows[channel], case .locating = follow.state else { return }
    switch answer {
    case .owner(let name?) where name != context.identity.name:
      guard let index = context.peer(name), context.peers[index].isMember else {
        return waitForOwner(channel, .unreachable)
      }
      follows[channel]?.state = .asked(peer: index)
      for token in follow.questions { ask(index, token) }
      if follow.hasSessions { askAnew(index, channel) }
    case .owner: nobodyOwns(channel)
    case .unknown, .refused: waitForOwner(channel, nil)
    case .incarnation, .renewed, .superseded, .done, .members, .claimed, .held: break
    }
  }

  /// Nobody has it: sessions are subscribed here, to what may begin. The ledger has noted that this hub waits for it.
  private mutating func nobodyOwns(_ channel: Channel) {
    for token in follows[channel]?.questions.sorted() ?? [] {
      guard let input = pending.finish(token) else { continue }
      context.inputs.append(.cluster(.subscribeHere(input)))
    }
    follows[channel]?.questions.removeAll()
    guard follows[channel]?.hasSessions == true else {
      follows[channel] = nil
      return
    }
    follows[channel]?.state = .unowned
    retry(channel, at: context.now.uptime + context.limits.answerTime)
    context.inputs.append(.cluster(.unowned(channel)))
  }

  /// Its owner is not known, or not there: sessions' questions wait for the next attempt, or are refused.
  private mutating func waitForOwner(_ channel: Channel, _ refusal: ErrorReply?) {
    if let refusal {
      for token in follows[channel]?.questions ?? [] { refuse(token, refusal) }
    }
    guard follows[channel] != nil else { return }
    follows[channel]?.state = .unowned
    retry(channel, at: context.now.uptime + context.limits.answerTime)
    if context.isAlone { context.inputs.append(.cluster(.unowned(channel))) }
    dropUnused(channel)
  }

  // MARK: Questions to owners

  private mutating func ask(_ index: Int, _ token: UInt64) {
    guard let input = pending[token] else { return }
    guard context.peers[index].isMember else { return refuse(token, .unreachable) }
    context.peers[index].append(.subscribe) { $0.append(input, token: token, at: context.time) }
  }

  private func askAnew(_ index: Int, _ channel: Channel) {
    context.resume(Subscribe(channel: channel, resume: follows[channel]?.point), at: index)
  }

  /// A question is answered, one way or the other.
  private mutating func takePending(_ token: UInt64) -> SubscribeInput? {
    guard let input = pending.finish(token) else { return nil }
    follows[input.request.channel]?.questions.remove(token)
    return input
  }

  private mutating func refuse(_ token: UInt64, _ error: ErrorReply) {
    guard let input = takePending(token) else { return }
    context.refuse(input, error)
    dropUnused(input.request.channel)
  }

  /// Asks again what has no answer in time, and for what has no owner.
  mutating func retry() {
    while let token = pending.nextOverdue(now: context.now.uptime) {
      guard let channel = pending[token]?.request.channel,
        pending.repeats(token, atMost: context.limits.attempts)
      else {
        refuse(token, .unreachable)
        continue
      }
      pending.wait(token, until: context.now.uptime + context.limits.answerTime)
      if let index = follows[channel]?.peer { ask(index, token) } else { locate(channel) }
    }
    while let channel = nextRetry(now: context.now.uptime) {
      if follows[channel] != nil, isUnowned(channel) { locate(channel) }
    }
  }

  /// Asks for a part of the channels that are to be asked for anew.
  func resume(_ index: Int) {
    let peer = context.peers[index]
    let channels = peer.resumes.suffix(context.limits.resumesPerTurn)
    peer.resumes.removeLast(channels.count)
    for channel in channels where follows[channel]?.peer == index { askAnew(index, channel) }
  }

  /// What is followed at a peer is asked for anew: the channels of sessions in parts (`resume`).
  mutating func restart(_ index: Int) {
    context.peers[index].resumes = follows.filter { $0.value.peer == index && $0.value.hasSessions }.map(\.key)
    for token in follows.values.lazy.filter({ $0.peer == index }).flatMap(\.questions) { ask(index, token) }
  }

  // MARK: From owners

  mutating func take(_ found: OwnerAnswer, from index: Int) {
    let token = found.token
    var answer = found.answer
    let channel = answer.channel
    // Asked twice and answered twice; or asked at a hub that had it before: then the question is put to who has it now.
    guard let follow = follows[channel], follow.peer == index, token == 0 || pending[token] != nil
    else { return dropStray(channel, index) }
    let known = follow.hasSessions ? follow.point : nil
    let point = ResumePoint(since: answer.sequence, epoch: answer.epoch)
    // Sessions from before are first brought to where the channel is: else who has asked now would be shown twice what
    // they are missing, or be told with them that something is.
    if token > 0, let known, known != point {
      askAnew(index, channel)
      return ask(index, token)
    }
    // Asked for before they were as far as they are.
    if token == 0, known == point { answer.recovered = true }
    let input = takePending(token)
    follows[channel]?.state = .live(peer: index)
    follows[channel]?.held.removeAll()
    follows[channel]?.point = point
    if let input {
      follows[channel]?.hasSessions = true
      context.inputs.append(.cluster(.followed(input, answer, missed: found.missed, isParty: found.isParty)))
    } else {
      // What was on its way when the channel was asked for anew has been relayed.
      let since = known?.epoch == answer.epoch ? known?.since ?? 0 : 0
      context.inputs.append(.cluster(.resumed(answer, missed: found.missed.filter { $0.sequence ?? .max > since })))
    }
  }

  private mutating func dropStray(_ channel: Channel, _ index: Int) {
    guard follows[channel]?.peer != index else { return }
    context.release(channel, at: index)
  }

  mutating func take(refused reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let (token, channel) = (try reader.varint(), try reader.channel())
    guard case .reply(.error(let error))? = try reader.message(&context.peers[index].reader) else { throw .message }
    if token > 0 { return refuse(token, error) }
    guard follows[channel]?.peer == index else { return }
    waitForOwner(channel, nil)
  }

  /// The peer does not have the channel, or not any more: whoever has it is looked for.
  mutating func take(notHere reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    _ = try reader.varint()
    takeMoved(try reader.channel(), from: index, isNews: false)
  }

  /// `isNews`: the peer says so by itself, because it has just learnt it; else the ledger may not know better yet.
  mutating func takeMoved(_ channel: Channel, from index: Int, isNews: Bool) {
    if channel == .trips { context.peers[index].trips.lose() }
    guard follows[channel]?.peer == index else { return }
    if isNews { return locate(channel) }
    follows[channel]?.state = .unowned
    retry(channel, at: context.now.uptime + context.limits.answerTime)
  }

  mutating func take(_ publication: Publication, from index: Int) {
    guard var follow = follows[publication.channel], case .live(index) = follow.state, let point = follow.point
    else { return }
    defer { follows[publication.channel] = follow }
    if let sequence = publication.sequence {
      guard sequence == point.since + 1 else {
        if sequence > point.since { context.peers[index].wantsRestart = true }
        return
      }
      follow.point?.since = sequence
      context.relay(publication)
      let due = follow.held.filter { ($0.after ?? 0) <= sequence }
      follow.held.removeAll { ($0.after ?? 0) <= sequence }
      for publication in due { context.relay(publication) }
    } else if let after = publication.after, after > point.since {
      follow.held.removeAll { $0.isPosition == publication.isPosition }
      follow.held.append(publication)
    } else {
      context.relay(publication)
    }
  }

  mutating func take(ended reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let channel = try reader.channel()
    guard let reason = Unsubscribed.Reason(rawValue: try reader.byte()) else { throw .message }
    guard follows[channel]?.peer == index else { return }
    context.inputs.append(.cluster(.ended(channel, reason)))
  }
}

/// What the owner of a channel has answered.
struct OwnerAnswer {
  let token: UInt64
  /// Who asked is a party of the trip; of `trips`: the channel is that of the hub that counts.
  let isParty: Bool
  let answer: Subscribed
  var missed: [Publication] = []

  init(_ reader: inout ClusterFrameReader, from peer: Peer) throws(ClusterFrameError) {
    (token, isParty) = (try reader.varint(), try reader.byte() != 0)
    guard case .reply(.subscribed(let answer))? = try reader.message(&peer.reader) else { throw .message }
    self.answer = answer
    for _ in 0..<(try reader.varint()) {
      guard case .publication(let publication)? = try reader.message(&peer.reader) else { throw .message }
      missed.append(publication)
    }
  }
}

extension Publication {
  /// Of an event.
  var sequence: UInt64? {
    switch body {
    case .tripUpdate(let update): update.sequence
    case .notification(let notification): notification.sequence
    case .offer(let offer): offer.sequence
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: nil
    }
  }

  /// Of a state: the newest event before it.
  fileprivate var after: UInt64? {
    switch body {
    case .driverLocation(let location): location.after
    case .etaUpdate(let update): update.after
    case .tripUpdate, .notification, .offer, .areaUpdate, .rawFix, .countsUpdate, .stats: nil
    }
  }

  fileprivate var isPosition: Bool { if case .driverLocation = body { true } else { false } }
}
