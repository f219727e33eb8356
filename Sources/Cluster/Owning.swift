// What this hub owns: claims at the ledger; and the tables of who follows it (Interest.swift).
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
    /// A claim that took it has no answer: whose it was before may never be known.
    var isDoubtful = false
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
    if channel == .trips { return beginTrips() }
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
      let isDoubtful = owned.isDoubtful
      (owned.generation, owned.isClaimed, owned.isDoubtful) = (generation, true, false)
      owning.owned[channel] = owned
      for index in peers.indices where isDoubtful || peers[index].name == before {
        tellReplaced(channel, generation, index)
      }
      for name in waiting where name != identity.name {
        tell(name, .begun) { [time = now.timestamp] in $0.append(channel, at: time) }
      }
      if owned.replacedBy > generation { lose(channel) } else if owned.takes { owning.queue(channel) }
    case .held(let owner, _): lost(channel, to: owner, owned)
    case .unknown, .refused:
      // Whether it was carried out is not known. To take once more what was taken changes nothing but the number.
      owned.takes = owned.takes || !owned.isClaimed && owned.generation == 0 && isTaken(channel)
      if !owned.isClaimed { owned.isDoubtful = true }
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

  private mutating func tellReplaced(_ channel: Channel, _ generation: UInt64, _ index: Int) {
    guard case .driver(let id) = channel else { return }
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
}
