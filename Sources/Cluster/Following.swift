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

extension ClusterNode {
  // MARK: From the hub

  /// A session wants a channel that is not here.
  mutating func subscribe(_ input: SubscribeInput) {
    if input.request.channel == .stats { return subscribeToFigures(input) }
    guard phase == .member else { return refuse(input, .unreachable) }
    guard following.pending.count < limits.pending else { return refuse(input, .overloaded) }
    let channel = input.request.channel
    let token = following.pending.insert(input)
    following.pending.wait(token, until: now.uptime + limits.answerTime)
    let isUnowned = following.isUnowned(channel)
    following.follows[channel, default: Following.Follow()].questions.insert(token)
    if isUnowned { locate(channel) } else if let index = following.follows[channel]?.peer { ask(index, token) }
  }

  /// Sessions of the hub are subscribed to what another hub has.
  mutating func follow(_ channel: Channel, from point: ResumePoint) {
    following.follows[channel, default: Following.Follow()].hasSessions = true
    if following.follows[channel]?.point == nil { following.follows[channel]?.point = point }
    locate(channel)
  }

  /// The hub has no session any more that follows a channel.
  mutating func unfollow(_ channel: Channel) {
    following.follows[channel]?.hasSessions = false
    dropUnused(channel)
  }

  /// Nobody follows or asks for it: its owner need not send it.
  private mutating func dropUnused(_ channel: Channel) {
    guard let follow = following.follows[channel], !follow.hasSessions, follow.questions.isEmpty else { return }
    following.follows[channel] = nil
    guard let index = follow.peer else { return }
    let time = now.timestamp
    peers[index].append(.released, limits) { $0.append(channel, at: time) }
    forgetNames(of: channel, at: index)
  }

  /// The reader of a peer's messages forgets a channel as a client does that has unsubscribed.
  mutating func forgetNames(of channel: Channel, at index: Int) {
    var bytes = ByteBuffer()
    let reply = Reply.unsubscribed(Unsubscribed(replyTo: nil, channel: channel, reason: .asked))
    bytes.append(reply, at: now.timestamp)
    var reader = ClusterFrameReader(bytes.array()[...])
    do throws(ClusterFrameError) { _ = try reader.message(&peers[index].reader) } catch {
      preconditionFailure("own bytes")
    }
  }

  // MARK: Owners

  mutating func locate(_ channel: Channel) {
    following.follows[channel, default: Following.Follow()].state = .locating
    if channel == .trips { return take(located: tripsOwner, channel) }
    guard let key = ClusterNode.ledgerKey(channel) else { preconditionFailure("only trips and drivers have owners") }
    questions.append((.locate(key: key, asker: identity.name), .locate(channel)))
  }

  mutating func take(located answer: LedgerAnswer, _ channel: Channel) {
    guard let follow = following.follows[channel], case .locating = follow.state else { return }
    switch answer {
    case .owner(let name?) where name != identity.name:
      guard let index = peer(name), peers[index].isMember else { return waitForOwner(channel, .unreachable) }
      following.follows[channel]?.state = .asked(peer: index)
      for token in follow.questions { ask(index, token) }
      if follow.hasSessions { askAnew(index, channel) }
    case .owner: nobodyOwns(channel)
    case .unknown, .refused: waitForOwner(channel, nil)
    case .incarnation, .renewed, .superseded, .done, .members, .claimed, .held: break
    }
  }

  /// Nobody has it: sessions are subscribed here, to what may begin. The ledger has noted that this hub waits for it.
  private mutating func nobodyOwns(_ channel: Channel) {
    for token in following.follows[channel]?.questions.sorted() ?? [] {
      guard let input = following.pending.finish(token) else { continue }
      inputs.append(.cluster(.subscribeHere(input)))
    }
    following.follows[channel]?.questions.removeAll()
    guard following.follows[channel]?.hasSessions == true else {
      following.follows[channel] = nil
      return
    }
    following.follows[channel]?.state = .unowned
    following.retry(channel, at: now.uptime + limits.answerTime)
    inputs.append(.cluster(.unowned(channel)))
  }

  /// Its owner is not known, or not there: sessions' questions wait for the next attempt, or are refused.
  private mutating func waitForOwner(_ channel: Channel, _ refusal: ErrorReply?) {
    if let refusal {
      for token in following.follows[channel]?.questions ?? [] { refuse(token, refusal) }
    }
    guard following.follows[channel] != nil else { return }
    following.follows[channel]?.state = .unowned
    following.retry(channel, at: now.uptime + limits.answerTime)
    if isAlone { inputs.append(.cluster(.unowned(channel))) }
    dropUnused(channel)
  }

  // MARK: Questions to owners

  private mutating func ask(_ index: Int, _ token: UInt64) {
    guard let input = following.pending[token] else { return }
    guard peers[index].isMember else { return refuse(token, .unreachable) }
    let time = now.timestamp
    peers[index].append(.subscribe, limits) { $0.append(input, token: token, at: time) }
  }

  mutating func askAnew(_ index: Int, _ channel: Channel) {
    let request = Subscribe(channel: channel, resume: following.follows[channel]?.point)
    let time = now.timestamp
    peers[index].append(.resume, limits) { $0.append(request, ClusterOutput.unasked, at: time) }
  }

  mutating func refuse(_ input: SubscribeInput, _ error: ErrorReply) {
    counters.refusals += 1
    var refusal = error
    refusal.replyTo = input.messageID
    inputs.append(.cluster(.refused(input, refusal)))
  }

  /// A question is answered, one way or the other.
  private mutating func takePending(_ token: UInt64) -> SubscribeInput? {
    guard let input = following.pending.finish(token) else { return nil }
    following.follows[input.request.channel]?.questions.remove(token)
    return input
  }

  private mutating func refuse(_ token: UInt64, _ error: ErrorReply) {
    guard let input = takePending(token) else { return }
    refuse(input, error)
    dropUnused(input.request.channel)
  }

  /// Asks again what has no answer in time, and for what has no owner.
  mutating func retryFollowing() {
    while let token = following.pending.nextOverdue(now: now.uptime) {
      guard let channel = following.pending[token]?.request.channel,
        following.pending.repeats(token, atMost: limits.attempts)
      else {
        refuse(token, .unreachable)
        continue
      }
      following.pending.wait(token, until: now.uptime + limits.answerTime)
      if let index = following.follows[channel]?.peer { ask(index, token) } else { locate(channel) }
    }
    while let channel = following.nextRetry(now: now.uptime) {
      if following.follows[channel] != nil, following.isUnowned(channel) { locate(channel) }
    }
  }

  /// Peers of which something was missed are asked anew for all that is followed there, in parts.
  mutating func restartPeers() {
    guard phase == .member else { return }
    for index in peers.indices where peers[index].incarnation > 0 {
      if peers[index].wantsRestart, now.uptime - peers[index].restarted >= limits.restartTime { restart(index) }
      let count = min(limits.resumesPerTurn, peers[index].resumes.count)
      let channels = Array(peers[index].resumes.suffix(count))
      peers[index].resumes.removeLast(count)
      for channel in channels where following.follows[channel]?.peer == index { askAnew(index, channel) }
    }
  }

  private mutating func restart(_ index: Int) {
    peers[index].wantsRestart = false
    peers[index].restarted = now.uptime
    counters.restarts += 1
    peers[index].append(.restart, limits)
    askForAll(index)
    peers[index].fleet = .none
    peers[index].trips.lose()
    repeatEnded(to: index)
    peers[index].resumes = following.follows.filter { $0.value.peer == index && $0.value.hasSessions }.map(\.key)
    for token in following.follows.values.lazy.filter({ $0.peer == index }).flatMap(\.questions) { ask(index, token) }
  }

  // MARK: From owners

  mutating func take(subscribed reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let (token, isParty) = (try reader.varint(), try reader.byte() != 0)
    guard case .reply(.subscribed(var answer))? = try reader.message(&peers[index].reader) else { throw .message }
    var missed: [Publication] = []
    for _ in 0..<(try reader.varint()) {
      guard case .publication(let publication)? = try reader.message(&peers[index].reader) else { throw .message }
      missed.append(publication)
    }
    let channel = answer.channel
    if channel == .fleet { return beginFleet(of: index) }
    if channel == .trips, takeTrips(answer, missed, isCounted: isParty, from: index) { return }
    // Asked twice and answered twice; or asked at a hub that had it before: then the question is put to who has it now.
    guard let follow = following.follows[channel], follow.peer == index, token == 0 || following.pending[token] != nil
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
    following.follows[channel]?.state = .live(peer: index)
    following.follows[channel]?.held.removeAll()
    following.follows[channel]?.point = point
    if let input {
      following.follows[channel]?.hasSessions = true
      inputs.append(.cluster(.followed(input, answer, missed: missed, isParty: isParty)))
    } else {
      // What was on its way when the channel was asked for anew has been relayed.
      let since = known?.epoch == answer.epoch ? known?.since ?? 0 : 0
      inputs.append(.cluster(.resumed(answer, missed: missed.filter { $0.sequence ?? .max > since })))
    }
  }

  private mutating func dropStray(_ channel: Channel, _ index: Int) {
    guard following.follows[channel]?.peer != index else { return }
    let time = now.timestamp
    peers[index].append(.released, limits) { $0.append(channel, at: time) }
    forgetNames(of: channel, at: index)
  }

  mutating func take(refused reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let (token, channel) = (try reader.varint(), try reader.channel())
    guard case .reply(.error(let error))? = try reader.message(&peers[index].reader) else { throw .message }
    if token > 0 { return refuse(token, error) }
    guard following.follows[channel]?.peer == index else { return }
    waitForOwner(channel, nil)
  }

  /// The peer does not have the channel, or not any more: whoever has it is looked for.
  mutating func take(notHere reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    _ = try reader.varint()
    takeMoved(try reader.channel(), from: index, isNews: false)
  }

  /// `isNews`: the peer says so by itself, because it has just learnt it; else the ledger may not know better yet.
  mutating func takeMoved(_ channel: Channel, from index: Int, isNews: Bool) {
    if channel == .trips { peers[index].trips.lose() }
    guard following.follows[channel]?.peer == index else { return }
    if isNews { return locate(channel) }
    following.follows[channel]?.state = .unowned
    following.retry(channel, at: now.uptime + limits.answerTime)
  }

  mutating func take(publication reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let message: ServerMessage?
    do throws(ClusterFrameError) { message = try reader.message(&peers[index].reader) } catch {
      return  // of a channel that is not followed any more: its last states may come behind that
    }
    if case .publication(let publication)? = message, publication.channel == .fleet {
      return relayFleet(publication, from: index)
    }
    if case .publication(let event)? = message, event.channel == .trips, takeTrip(event, from: index) { return }
    guard case .publication(let publication)? = message, var follow = following.follows[publication.channel],
      case .live(index) = follow.state, let point = follow.point
    else { return }
    defer { following.follows[publication.channel] = follow }
    if let sequence = publication.sequence {
      guard sequence == point.since + 1 else {
        if sequence > point.since { peers[index].wantsRestart = true }
        return
      }
      follow.point?.since = sequence
      relay(publication)
      let due = follow.held.filter { ($0.after ?? 0) <= sequence }
      follow.held.removeAll { ($0.after ?? 0) <= sequence }
      for publication in due { relay(publication) }
    } else if let after = publication.after, after > point.since {
      follow.held.removeAll { $0.isPosition == publication.isPosition }
      follow.held.append(publication)
    } else {
      relay(publication)
    }
  }

  mutating func relay(_ publication: Publication) {
    counters.relayed += 1
    inputs.append(.cluster(.relayed(publication)))
  }

  mutating func take(ended reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let channel = try reader.channel()
    guard let reason = Unsubscribed.Reason(rawValue: try reader.byte()) else { throw .message }
    guard following.follows[channel]?.peer == index else { return }
    inputs.append(.cluster(.ended(channel, reason)))
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
