// What other hubs follow of this one: their questions, one subscription for each hub and channel, and its publications.
//
// However many sessions of a hub follow a channel, it is sent there once; a channel without followers is sent nowhere.
import HubBytes
import HubCore
import HubMessages

struct Interest {
  /// A peer among those who follow a channel.
  struct Follower {
    var peer: Int
    var binding: UInt32
    /// It wants no positions and ETAs.
    var isEventsOnly: Bool
  }

  /// By the hub's handle.
  private var followers: [[Follower]] = []
  /// This hub's fleet, while peers follow it.
  private(set) var fleet: ChannelHandle?
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }

  func followers(_ handle: ChannelHandle) -> [Follower] {
    let index = Int(handle.index)
    return index < followers.count ? followers[index] : []
  }

  /// A peer's session asks for a channel.
  func receive(subscribe reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    guard token > 0 else { throw .message }
    try receive(asked: reader.subscribeInput(.nobody), token, from: index)
  }

  /// A peer asks for a channel that it follows.
  func receive(resume reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let (request, messageID) = try reader.subscribe()
    try receive(
      asked: SubscribeInput(
        session: .nobody, actor: .cluster, messageID: messageID, request: request, grant: .granted), 0, from: index)
  }

  private func receive(asked: SubscribeInput, _ token: UInt64, from index: Int) throws(ClusterFrameError) {
    var input = asked
    let channel = input.request.channel
    guard channel.ledgerKey != nil || channel == .fleet || channel == .trips else { throw .message }
    let hasRoom = context.peers[index].interest.count < context.limits.followedPerPeer
    guard hasRoom || context.peers[index].interest[channel] != nil,
      let session = context.session(for: index, token, input.request)
    else { return refuse(index, token, channel, .overloaded) }
    input.session = session
    context.inputs.append(.subscribe(input))
  }

  /// The hub has answered a peer: what follows on the channel goes there.
  mutating func answered(
    _ session: SessionRef, _ handle: ChannelHandle, _ answer: Subscribed, _ missed: [Publication],
    isParty: Bool
  ) {
    guard let (ask, isCurrent) = context.asker(session), let request = ask.request else { return }
    let peer = context.peers[ask.peer]
    let known = peer.interest[answer.channel]
    // One subscription for each peer and channel, however many sessions there ask.
    if !isCurrent || known?.handle == handle {
      context.inputs.append(.released(outlet: context.outlet, handle))
    }
    guard isCurrent else { return }
    let binding = known?.handle == handle ? known?.number ?? 0 : peer.nextBinding()
    if known?.handle != handle {
      if let known { release(ask.peer, known.handle) }
      peer.interest[answer.channel] = Binding(number: binding, handle: handle)
      while followers.count <= Int(handle.index) { followers.append([]) }
      followers[Int(handle.index)].append(
        Follower(peer: ask.peer, binding: binding, isEventsOnly: request.isEventsOnly))
      if answer.channel == .fleet { fleet = handle }
    } else if let follower = followers[Int(handle.index)].firstIndex(where: { $0.peer == ask.peer }) {
      followers[Int(handle.index)][follower].isEventsOnly = request.isEventsOnly
    }
    peer.append(.subscribed) { bytes in
      bytes.append(varint: ask.token)
      bytes.append(isParty ? 1 : 0)
      // The `since` of the question and one more, if it was of this epoch.
      let since = request.resume.flatMap { $0.epoch == answer.epoch ? $0.since &+ 1 : nil }
      bytes.append(varint: since ?? 0)
      bytes.append(.subscribed(answer), naming: (binding, ImpliedNames()), at: context.time)
      bytes.append(varint: UInt64(missed.count))
      for publication in missed { bytes.append(publication, binding, ImpliedNames()) }
    }
  }

  func refuse(_ index: Int, _ token: UInt64, _ channel: Channel, _ error: ErrorReply) {
    context.peers[index].append(.refused) { bytes in
      bytes.append(varint: token)
      bytes.append(channel, at: context.time)
      bytes.append(.error(error), at: context.time)
    }
  }

  /// The hub does not have what a peer has asked for. Gives the channel.
  func notHere(_ session: SessionRef) -> Channel? {
    guard let (ask, isCurrent) = context.asker(session), isCurrent, let channel = ask.channel else { return nil }
    context.peers[ask.peer].append(.notHere) { bytes in
      bytes.append(varint: ask.token)
      bytes.append(channel, at: context.time)
    }
    return channel
  }

  /// A peer follows a channel no longer.
  mutating func unfollow(_ channel: Channel, by index: Int) {
    guard let binding = context.peers[index].interest.removeValue(forKey: channel) else { return }
    release(index, binding.handle)
  }

  private mutating func release(_ index: Int, _ handle: ChannelHandle) {
    followers[Int(handle.index)].removeAll { $0.peer == index }
    if handle == fleet {
      (context.peers[index].fleetQueue, context.peers[index].fleetGiven) = ([], 0)
      if followers(handle).isEmpty { fleet = nil }
    }
    context.inputs.append(.released(outlet: context.outlet, handle))
  }

  /// A peer follows nothing here any more, as far as this hub knows.
  mutating func releaseAll(of index: Int) {
    for binding in context.peers[index].interest.values { release(index, binding.handle) }
    context.peers[index].interest.removeAll()
  }

  // MARK: What is published

  func publish(_ delivery: PositionDelivery) {
    for follower in followers(delivery.channel) where !follower.isEventsOnly {
      let isNew = context.peers[follower.peer].append(delivery.position, key: delivery.conflationKey, follower.binding)
      if !isNew { context.counters.statesConflated += 1 }
    }
  }

  /// Publishes what is no position.
  func publish(_ delivery: Delivery) {
    for follower in followers(delivery.channel) {
      let peer = context.peers[follower.peer]
      if delivery.conflationKey == 0 {
        peer.append(.publication) {
          $0.append(delivery.publication, follower.binding, ImpliedNames())
        }
      } else if !follower.isEventsOnly {
        let isNew = peer.append(delivery.publication, key: delivery.conflationKey, follower.binding)
        if !isNew { context.counters.statesConflated += 1 }
      }
    }
  }

  /// A channel has ended for all followers, and with `moved` is another hub's.
  mutating func end(
    _ handle: ChannelHandle, _ channel: Channel, _ kind: ClusterRecordKind,
    _ reason: Unsubscribed.Reason?
  ) {
    for follower in followers(handle) {
      context.peers[follower.peer].append(kind) { bytes in
        bytes.append(channel, at: context.time)
        if let reason { bytes.append(reason.rawValue) }
      }
      unfollow(channel, by: follower.peer)
    }
  }

  /// A right to a channel has ended: that of a share's holder, or that of drivers other than the trip's.
  func endRight(_ handle: ChannelHandle, _ channel: Channel, _ kind: ClusterRecordKind, _ id: Identifier) {
    for follower in followers(handle) {
      context.notifyEnded(follower.peer, kind) { bytes in
        bytes.append(channel, at: context.time)
        bytes.append(utf8Run: id.description)
      }
    }
  }
}
