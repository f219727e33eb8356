// Who follows what this hub owns: other hubs' questions, one subscription for each hub and channel, and what is
// published on it.
//
// However many sessions of a hub follow a channel, it goes there once; and what no hub follows goes nowhere.
import HubBytes
import HubCore
import HubMessages

extension ClusterNode {
  // MARK: Interest

  /// A peer asks for a channel.
  mutating func take(ask token: UInt64, _ reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let session = SessionRef(outlet: outlet, slot: 0, generation: 0)
    var input: SubscribeInput
    if token > 0 {
      input = try reader.subscribeInput(session)
    } else {
      let (request, messageID) = try reader.subscribe()
      input = SubscribeInput(
        session: session, actor: .cluster, messageID: messageID, request: request, grant: .granted)
    }
    let channel = input.request.channel
    guard ClusterNode.ledgerKey(channel) != nil || channel == .fleet || channel == .trips else { throw .message }
    guard peers[index].asks < limits.asksPerPeer, peers[index].interest.count < limits.follows else {
      return refuse(index, token, channel, .overloaded)
    }
    peers[index].asks += 1
    input.session = owning.insert(
      Owning.Ask(
        peer: index, incarnation: peers[index].incarnation, token: token, channel: channel, generation: 0),
      outlet: outlet)
    inputs.append(.subscribe(input))
  }

  /// The peer whose question this was; nil where its process is another one by now.
  mutating func asker(_ session: SessionRef) -> (ask: Owning.Ask, isCurrent: Bool)? {
    guard let ask = owning.take(session) else { return nil }
    guard ask.peer != Asking.ownHub else { return (ask, true) }
    let isCurrent = ask.incarnation == peers[ask.peer].incarnation
    if isCurrent { peers[ask.peer].asks -= 1 }
    return (ask, isCurrent)
  }

  /// The hub has answered a peer: what follows on the channel goes there.
  mutating func answered(
    _ session: SessionRef, _ handle: ChannelHandle, _ answer: Subscribed, _ missed: [Publication], isParty: Bool
  ) {
    guard let (ask, isCurrent) = asker(session) else { return }
    let index = ask.peer
    let known = peers[index].interest[answer.channel]
    // One subscription for each peer and channel, however many sessions there ask.
    if !isCurrent || known?.handle == handle { inputs.append(.released(outlet: outlet, handle)) }
    guard isCurrent else { return }
    let binding = known?.handle == handle ? known?.number ?? 0 : peers[index].nextBinding()
    if known?.handle != handle {
      if let known { release(index, known.handle) }
      peers[index].interest[answer.channel] = Binding(number: binding, handle: handle)
      owning.add(Owning.Follower(peer: index, binding: binding), to: handle)
    }
    if answer.channel == .fleet { feeds.fleet = handle }
    let time = now.timestamp
    peers[index].append(.subscribed, limits) { bytes in
      bytes.append(varint: ask.token)
      bytes.append(isParty ? 1 : 0)
      bytes.append(.subscribed(answer), naming: (binding, ImpliedNames()), at: time)
      bytes.append(varint: UInt64(missed.count))
      for publication in missed { bytes.append(publication, binding, ImpliedNames()) }
    }
  }

  mutating func refused(_ session: SessionRef, _ error: ErrorReply) {
    guard let (ask, isCurrent) = asker(session), isCurrent, let channel = ask.channel else { return }
    if case .area(let cell) = channel { return refusedWatching(cell, by: ask.peer) }
    refuse(ask.peer, ask.token, channel, error)
  }

  mutating func refuse(_ index: Int, _ token: UInt64, _ channel: Channel, _ error: ErrorReply) {
    let time = now.timestamp
    peers[index].append(.refused, limits) { bytes in
      bytes.append(varint: token)
      bytes.append(channel, at: time)
      bytes.append(.error(error), at: time)
    }
  }

  mutating func notHere(_ session: SessionRef) {
    guard let (ask, isCurrent) = asker(session), isCurrent, let channel = ask.channel else { return }
    let time = now.timestamp
    peers[ask.peer].append(.notHere, limits) { bytes in
      bytes.append(varint: ask.token)
      bytes.append(channel, at: time)
    }
  }

  /// A peer follows a channel no longer.
  mutating func unfollow(_ channel: Channel, by index: Int) {
    guard let binding = peers[index].interest.removeValue(forKey: channel) else { return }
    release(index, binding.handle)
  }

  private mutating func release(_ index: Int, _ handle: ChannelHandle) {
    owning.remove(index, from: handle)
    if handle == feeds.fleet, owning.followers(handle).isEmpty { feeds.endFleet() }
    inputs.append(.released(outlet: outlet, handle))
  }

  /// A peer follows nothing here any more, as far as this hub knows.
  mutating func releaseInterest(of index: Int) {
    for binding in peers[index].interest.values { release(index, binding.handle) }
    peers[index].interest.removeAll()
    endWatching(by: index)
    peers[index].asks = 0
  }

  // MARK: What is published

  mutating func publish(_ delivery: Delivery) {
    if delivery.channel == feeds.fleet { return keep(delivery) }
    for follower in owning.followers(delivery.channel) {
      if delivery.conflationKey == 0 {
        peers[follower.peer].append(.publication, limits) {
          $0.append(delivery.publication, follower.binding, ImpliedNames())
        }
      } else {
        let before = peers[follower.peer].states.count
        peers[follower.peer].append(
          StateRecord(
            key: delivery.conflationKey, binding: follower.binding, publication: delivery.publication))
        if peers[follower.peer].states.count == before { counters.statesConflated += 1 }
      }
    }
  }

  /// A channel is over for all who follow it, and with `moved` is another hub's.
  mutating func end(
    _ handle: ChannelHandle, _ channel: Channel, _ kind: ClusterRecordKind, _ reason: Unsubscribed.Reason?
  ) {
    let time = now.timestamp
    for follower in owning.followers(handle) {
      peers[follower.peer].append(kind, limits) { bytes in
        bytes.append(channel, at: time)
        if let reason { bytes.append(reason.rawValue) }
      }
      unfollow(channel, by: follower.peer)
    }
  }

  /// Somebody's right to a channel has ended: of one who had a share, or of drivers other than the trip's.
  mutating func endRight(_ handle: ChannelHandle, _ channel: Channel, _ kind: ClusterRecordKind, _ id: Identifier) {
    let time = now.timestamp
    for follower in owning.followers(handle) {
      tellEnded(follower.peer, kind) { bytes in
        bytes.append(channel, at: time)
        bytes.append(utf8Run: id.description)
      }
    }
  }
}
