// Messages of followed channels' owners: answers, publications, and changes of owner.
import HubBytes
import HubCore
import HubMessages

extension Following {
  /// What an owner has answered: a session that wants the channel; whether a share is still valid; this hub, which
  /// follows the channel and asks without a token; or, once more, a question that was sent twice.
  private enum Question { case session, share, resumption, repeated }

  private func question(of token: UInt64) -> Question {
    if token == 0 { return .resumption }
    return pending[token] == nil ? .repeated : isOfSession(token) ? .session : .share
  }

  /// Whether a session waits for an answer, and not only this hub.
  func isOfSession(_ token: UInt64) -> Bool { pending[token]?.session != .nobody }

  mutating func receive(ownerAnswer found: OwnerAnswer, from index: Int) {
    let (token, channel) = (found.token, found.answer.channel)
    guard let follow = follows[channel], follow.peer == index else { return context.release(channel, at: index) }
    switch question(of: token) {
    case .session: admitSession(found, follow, index)
    case .share:  // it is still valid
      _ = takePending(token)
      dropUnused(channel)
    case .resumption: continueChannel(found, follow, index)
    case .repeated: compareSecond(found.answer, of: follow, index)
    }
  }

  /// The owner has let a session into its channel.
  private mutating func admitSession(_ found: OwnerAnswer, _ follow: Follow, _ index: Int) {
    let channel = found.answer.channel
    // Older sessions catch up with the channel first: otherwise the new one would get twice what they miss, or be
    // notified of their gap.
    if follow.isFollowed, follow.point != found.point {
      askAnew(index, channel)
      return ask(index, found.token)
    }
    guard let input = takePending(found.token) else { return }
    follows[channel]?.goLive(at: index, from: found.point)
    follows[channel]?.isFollowed = true
    follows[channel]?.wantsStates = true
    follows[channel]?.unhandled += 1
    if TripShare.isHolder(input.actor.id) {
      follows[channel]?.holders[input.actor.id] = Holder(actor: input.actor, grant: input.grant)
    }
    context.inputs.append(.cluster(.followed(input, found.answer, missed: found.missed, isParty: found.isParty)))
  }

  /// The owner continues its channel for this hub's sessions.
  private mutating func continueChannel(_ found: OwnerAnswer, _ follow: Follow, _ index: Int) {
    var answer = found.answer
    let (channel, point) = (answer.channel, found.point)
    let known = follow.isFollowed ? follow.point : nil
    // Asked for from an earlier point: from the present one it may go on without a gap.
    if !answer.recovered, let known, known.epoch == point.epoch, known.since < point.since, known.since != found.since {
      if follow.askedFrom == known { return }
      follows[channel]?.askedFrom = known
      return askAnew(index, channel)
    }
    // Asked for before the owner's answer to a session, with which all have caught up.
    if known == point { answer.recovered = true }
    follows[channel]?.goLive(at: index, from: found.point)
    // What was on its way when the channel was asked for anew has been relayed.
    let since = known?.epoch == answer.epoch ? known?.since ?? 0 : 0
    context.inputs.append(.cluster(.resumed(answer, missed: found.missed.filter { $0.sequence ?? .max > since })))
  }

  /// A question that was sent again is answered again. Between the two answers the peer may have taken this hub for one
  /// that follows nothing, so that no frame is missing, but events are.
  private mutating func compareSecond(_ answer: Subscribed, of follow: Follow, _ index: Int) {
    guard follow.isFollowed, case .live = follow.state, let point = follow.point else { return }
    if point.epoch != answer.epoch || point.since < answer.sequence { askAnew(index, answer.channel) }
  }

  mutating func receive(refused reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let (token, channel) = (try reader.varint(), try reader.channel())
    guard case .reply(.error(let error))? = try reader.message(&context.peers[index].reader) else { throw .message }
    guard let follow = follows[channel], follow.peer == index, token == 0 || follow.questions.contains(token) else {
      return
    }
    switch question(of: token) {
    case .session: refuse(token, error)
    case .share: if error.code == .forbidden { endShare(token) }  // else the question is repeated
    // A hub may follow any channel except that of an ended trip.
    case .resumption where error.code == .forbidden: context.inputs.append(.cluster(.ended(channel, .tripEnded)))
    case .resumption: waitForOwner(channel, nil)
    case .repeated: break
    }
  }

  /// A share of the trip is not valid any more.
  private mutating func endShare(_ token: UInt64) {
    guard let input = takePending(token) else { return }
    context.inputs.append(.cluster(.shareEnded(input.request.channel, of: input.actor.id)))
    forget(holder: input.actor.id, of: input.request.channel)
    dropUnused(input.request.channel)
  }

  mutating func forget(holder: Identifier, of channel: Channel) { follows[channel]?.holders[holder] = nil }

  /// The peer does not have the channel, or no longer: looks for its owner.
  mutating func receive(notHere reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    _ = try reader.varint()
    let channel = try reader.channel()
    if follows[channel]?.peer == index { follows[channel]?.isDenied = true }
    receive(moved: channel, from: index, isNews: false)
  }

  /// `isNews`: the peer has just learnt it and reports it unasked; else the ledger may not be up to date yet.
  mutating func receive(moved channel: Channel, from index: Int, isNews: Bool) {
    if channel == .trips { context.peers[index].trips.lose() }
    guard follows[channel]?.peer == index else { return }
    follows[channel]?.isOwned = false
    if isNews { locate(channel) } else { retryLater(channel) }
  }

  /// A hub says that it has the channel's trip or driver.
  mutating func receive(begun channel: Channel, from index: Int) {
    guard let follow = follows[channel], follow.peer != index else { return }
    if case .locating = follow.state { return }
    locate(channel)
  }

  mutating func receive(publication: Publication, from index: Int) {
    guard let (slot, since) = live(publication.channel, from: index) else { return }
    if let sequence = publication.sequence {
      guard sequence == since &+ 1 else {
        if sequence > since { context.peers[index].wantsRestart = true }
        return
      }
      follows.values[slot].point?.since = sequence
      context.relay(publication)
      for held in follows.values[slot].held where held.after ?? 0 <= sequence { context.relay(held) }
      follows.values[slot].held.removeAll { $0.after ?? 0 <= sequence }
    } else if publication.after ?? 0 > since {
      hold(publication, slot)
    } else {
      context.relay(publication)
    }
  }

  mutating func receive(position: PublishedPosition, from index: Int) {
    guard let (slot, since) = live(position.channel, from: index) else { return }
    if position.location.after > since { hold(Publication(position), slot) } else { context.relay(position) }
  }

  /// The record of a channel that is live at this peer, and its newest event; nil where no publications are expected.
  private func live(_ channel: Channel, from index: Int) -> (slot: Dictionary<Channel, Follow>.Index, since: UInt64)? {
    guard let slot = follows.index(forKey: channel), case .live(index) = follows.values[slot].state,
      let since = follows.values[slot].point?.since
    else { return nil }
    return (slot, since)
  }

  private mutating func hold(_ state: Publication, _ slot: Dictionary<Channel, Follow>.Index) {
    follows.values[slot].held.removeAll { $0.isPosition == state.isPosition }
    follows.values[slot].held.append(state)
  }

  mutating func receive(ended reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let channel = try reader.channel()
    guard let reason = Unsubscribed.Reason(rawValue: try reader.byte()) else { throw .message }
    guard follows[channel]?.peer == index else { return }
    context.inputs.append(.cluster(.ended(channel, reason)))
  }
}

extension Following.Follow {
  fileprivate mutating func goLive(at peer: Int, from point: ResumePoint) {
    (state, isOwned, held, self.point) = (.live(peer: peer), true, [], point)
  }
}

/// The answer of a channel's owner.
struct OwnerAnswer {
  let token: UInt64
  /// Who asked is a party of the trip; of `trips`: the channel is that of the hub that counts.
  let isParty: Bool
  /// The `since` of the question, if it was of the answer's epoch.
  let since: UInt64?
  private(set) var answer: Subscribed
  /// The channel's newest event.
  var point: ResumePoint { ResumePoint(since: answer.sequence, epoch: answer.epoch) }
  private(set) var missed: [Publication] = []

  init(_ reader: inout ClusterFrameReader, from peer: Peer) throws(ClusterFrameError) {
    (token, isParty) = (try reader.varint(), try reader.byte() != 0)
    let since = try reader.varint()
    self.since = since > 0 ? since - 1 : nil
    guard case .reply(.subscribed(let answer))? = try reader.message(&peer.reader) else { throw .message }
    self.answer = answer
    var hasUnknown = false
    for _ in 0..<(try reader.varint()) {
      switch try reader.message(&peer.reader) {
      case .publication(let publication)?: missed.append(publication)
      case .unknown?: hasUnknown = true
      case .reply, nil: throw .message
      }
    }
    if hasUnknown { forgetMissed() }
  }

  /// A later version's event is among those that were missed: sessions here are notified of a gap and get the present
  /// state instead.
  private mutating func forgetMissed() {
    answer.recovered = false
    for publication in missed {
      switch publication.body {
      case .driverLocation(let location): answer.snapshot?.position = location
      case .etaUpdate(let update): answer.snapshot?.eta = update
      case .tripUpdate, .notification, .offer, .areaUpdate, .rawFix, .countsUpdate, .stats: break
      }
    }
    missed = []
  }
}

extension Publication {
  /// The number of the newest event before a state; nil for what does not state it.
  fileprivate var after: UInt64? {
    switch body {
    case .driverLocation(let location): location.after
    case .etaUpdate(let update): update.after
    case .tripUpdate, .notification, .offer, .areaUpdate, .rawFix, .countsUpdate, .stats: nil
    }
  }

  fileprivate var isPosition: Bool { if case .driverLocation = body { true } else { false } }
}
