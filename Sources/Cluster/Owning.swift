// What this hub owns, and who follows it: claims at the ledger, and the interest of peers.
//
// A trip or driver that is here is written to the ledger, so that other hubs find it. A claim whose outcome is not
// known is made again; so are all, when the ledger was away: what it may have forgotten is written back.
import HubBackplane
import HubBytes
import HubCore
public import HubMessages

/// The tables of what this hub owns.
struct Owning {
  struct Owned {
    /// Of a driver's newest session, as the ledger counts; 0 for trips.
    var generation: UInt64 = 0
    var isClaimed = false
    /// The next claim takes it from whoever has it.
    var takes: Bool
    var isUnderWay = false
    /// The newest claim of another hub.
    var replacedBy: UInt64 = 0
  }

  /// A question that a peer has put to this hub.
  struct Ask {
    var peer: Int
    /// The peer's process.
    var incarnation: UInt64
    /// 0 for a channel that is asked for anew.
    var token: UInt64
    /// Nil for a question about drivers or a trip (Asking.swift).
    var channel: Channel?
    var generation: UInt32
  }

  /// A peer's place among those who follow a channel.
  struct Follower {
    var peer: Int
    var binding: UInt32
  }

  /// What is said again to a peer that has missed something.
  struct EndedRight {
    var peer: Int
    var until: Int64
    var kind: ClusterRecordKind
    var body: [UInt8]
  }

  var owned: [Channel: Owned] = [:]
  private var unclaimed: [Channel] = []
  private var deferred: [Channel] = []
  private var asks: [Ask?] = []
  private var freeAsks: [Int] = []
  private var generations: [UInt32] = []
  /// By the hub's handle.
  private var followers: [[Follower]] = []
  var ended: [EndedRight] = []

  var unclaimedCount: Int { unclaimed.count + deferred.count }

  mutating func queue(_ channel: Channel) { unclaimed.append(channel) }

  /// To be claimed later, with the next renewal.
  mutating func `defer`(_ channel: Channel) { deferred.append(channel) }

  mutating func queueDeferred() {
    unclaimed += deferred
    deferred.removeAll()
  }

  mutating func queueAll() {
    deferred.removeAll()
    unclaimed = Array(owned.keys)
  }

  mutating func nextUnclaimed() -> Channel? { unclaimed.popLast() }

  // MARK: Asks

  mutating func insert(_ ask: Ask, outlet: UInt32) -> SessionRef {
    let slot = freeAsks.popLast() ?? asks.count
    if slot == asks.count {
      asks.append(nil)
      generations.append(0)
    }
    generations[slot] &+= 1
    asks[slot] = ask
    asks[slot]?.generation = generations[slot]
    return SessionRef(outlet: outlet, slot: UInt32(slot), generation: generations[slot])
  }

  mutating func take(_ session: SessionRef) -> Ask? {
    let slot = Int(session.slot)
    guard slot < asks.count, let ask = asks[slot], ask.generation == session.generation else { return nil }
    asks[slot] = nil
    freeAsks.append(slot)
    return ask
  }

  // MARK: Followers

  func followers(_ handle: ChannelHandle) -> [Follower] {
    let index = Int(handle.index)
    return index < followers.count ? followers[index] : []
  }

  mutating func add(_ follower: Follower, to handle: ChannelHandle) {
    let index = Int(handle.index)
    while followers.count <= index { followers.append([]) }
    followers[index].append(follower)
  }

  mutating func remove(_ peer: Int, from handle: ChannelHandle) {
    followers[Int(handle.index)].removeAll { $0.peer == peer }
  }
}

extension ClusterNode {
  // MARK: Claims

  /// The name under which the ledger has a channel's owner; nil for channels that every hub has itself.
  public static func ledgerKey(_ channel: Channel) -> String? {
    switch channel {
    case .trip(let id): "t:\(id)"
    case .driver(let id), .raw(let id): "d:\(id)"
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .stats: nil
    }
  }

  mutating func own(_ channel: Channel, takes: Bool) {
    if owning.owned[channel] == nil {
      owning.owned[channel] = Owning.Owned(takes: takes)
    } else if takes {
      owning.owned[channel]?.takes = true
    }
    owning.queue(channel)
  }

  mutating func disown(_ channel: Channel) {
    guard owning.owned.removeValue(forKey: channel) != nil, let key = ClusterNode.ledgerKey(channel) else { return }
    questions.append((.release(key: key, by: identity.name), .nothing))
  }

  mutating func claimOwned() {
    guard phase == .member else { return }
    for _ in 0..<limits.claimsPerTurn {
      guard let channel = owning.nextUnclaimed() else { return }
      guard let owned = owning.owned[channel], !owned.isUnderWay, let key = ClusterNode.ledgerKey(channel) else {
        continue
      }
      owning.owned[channel]?.isUnderWay = true
      owning.owned[channel]?.takes = false
      questions.append(
        (
          .claim(key: key, by: identity.name, known: owned.generation, takes: owned.takes), .claim(channel)
        ))
      if owned.takes { owning.owned[channel]?.isClaimed = false }
    }
  }

  mutating func take(claim answer: LedgerAnswer, of channel: Channel) {
    guard var owned = owning.owned[channel] else { return }
    owned.isUnderWay = false
    switch answer {
    case .claimed(let generation, let before, let waiting):
      (owned.generation, owned.isClaimed) = (generation, true)
      owning.owned[channel] = owned
      if let before, before != identity.name { tellReplaced(channel, generation, before) }
      for name in waiting where name != identity.name {
        tell(name, .begun) { [time = now.timestamp] in $0.append(channel, at: time) }
      }
      if owned.replacedBy > generation { lose(channel) } else if owned.takes { owning.queue(channel) }
    case .held(let owner, _): lost(channel, to: owner, owned)
    case .unknown, .refused:
      // Whether it was carried out is not known. To take once more what was taken changes nothing but the number.
      owned.takes = owned.takes || !owned.isClaimed && owned.generation == 0 && isTaken(channel)
      owning.owned[channel] = owned
      owning.defer(channel)
    case .incarnation, .renewed, .superseded, .done, .members, .owner: break
    }
  }

  /// A driver's first claim that has no answer was one that takes.
  private func isTaken(_ channel: Channel) -> Bool {
    if case .driver = channel { true } else { false }
  }

  private mutating func lost(_ channel: Channel, to owner: String, _ owned: Owning.Owned) {
    switch channel {
    case .driver where owned.takes:  // a session has begun here since that was asked
      owning.owned[channel] = owned
      owning.queue(channel)
    case .driver: lose(channel)
    case .trip, .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats:
      owning.owned[channel] = nil
      counters.ownerConflicts += 1
      notices.append(.ownerConflict("\(channel)", owner: owner))
    }
  }

  /// A driver's newest session is elsewhere.
  private mutating func lose(_ channel: Channel) {
    guard case .driver(let id) = channel else { return }
    owning.owned[channel] = nil
    inputs.append(.cluster(.driverElsewhere(id)))
  }

  private mutating func tellReplaced(_ channel: Channel, _ generation: UInt64, _ name: String) {
    guard case .driver(let id) = channel, let index = knownPeer(name) else { return }
    tellEnded(index, .replaced) {
      $0.append(varint: generation)
      $0.append(utf8Run: id.description)
    }
  }

  /// Another hub says that it took a driver with this generation.
  mutating func take(replaced id: Identifier, _ generation: UInt64) {
    let channel = Channel.driver(id)
    guard let owned = owning.owned[channel] else { return }
    owning.owned[channel]?.replacedBy = max(owned.replacedBy, generation)
    // While a claim is under way or to be made, its answer decides.
    if owned.isClaimed, !owned.isUnderWay, !owned.takes, generation > owned.generation { lose(channel) }
  }

  // MARK: Telling peers

  mutating func tell(_ name: String, _ kind: ClusterRecordKind, _ body: (inout ByteBuffer) -> Void) {
    if let index = knownPeer(name) { peers[index].append(kind, limits, body) }
  }

  /// Tells a peer what it must not miss: that a right has ended. It is said again if the peer has missed anything.
  mutating func tellEnded(_ index: Int, _ kind: ClusterRecordKind, _ body: (inout ByteBuffer) -> Void) {
    var bytes = ByteBuffer()
    body(&bytes)
    let copy = bytes.array()
    if owning.ended.count >= limits.endedRights { owning.ended.removeFirst() }
    owning.ended.append(
      Owning.EndedRight(peer: index, until: now.uptime + limits.endedRightsTime, kind: kind, body: copy))
    peers[index].append(kind, limits) { $0.append(copy) }
  }

  mutating func repeatEnded(to index: Int) {
    owning.ended.removeAll { $0.until < now.uptime }
    for right in owning.ended where right.peer == index {
      peers[index].append(right.kind, limits) { $0.append(right.body) }
    }
  }

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
    guard ClusterNode.ledgerKey(channel) != nil || channel == .fleet else { throw .message }
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
