// The state that all parts of a node share: identity, time, other hubs, and access to the hub and to the ledger. Each
// part (Following, Interest, Claims, …) has its own state besides.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

final class ClusterContext {
  enum Phase: Equatable {
    /// It has no incarnation yet.
    case outside
    case member
    /// A later process has its name.
    case superseded
  }

  /// Why the ledger was asked.
  enum Purpose: Equatable {
    case incarnation, renewal, members
    case claim(Channel)
    case release(Channel)
    /// For the ledger to forget that this hub has something that is not here.
    case disclaim(Channel)
    case locate(Channel)
    /// Whether somebody has what sessions wait for.
    case waiting(Channel)
    /// For a request for a trip or driver: which hub it is for.
    case request(UInt64, RequestStage)
    /// Whether a hub that cannot be asked has a trip that no other knows.
    case question(UInt64)
    /// Which hub makes the tokens of a key.
    case tokens(of: UInt64)
    case nothing
  }

  let identity: ClusterIdentity
  let limits: ClusterLimits
  /// The hub's number for the outlet that this is.
  let outlet: UInt32
  /// How many sessions an id has open here, in each role that has any.
  let openSessions: @Sendable (Identifier) -> [Role: Int]
  var now: Moment
  var phase = Phase.outside
  var incarnation: UInt64 = 0
  private(set) var peers: [Peer] = []
  private var peerIndices: [String: Int] = [:]
  /// Indices in `peers` of forgotten hubs, to be used again.
  private var freed: [Int] = []
  /// What is kept of them, the oldest first: a process that comes back is the one that was known.
  private var forgotten: [(name: String, progress: PeerProgress)] = []
  /// Inputs for the hub; `questions` are for the ledger.
  var inputs = HubInputs()
  /// Positions of the frame that is being read, which the hub gets together.
  private var positions: [PublishedPosition] = []
  var questions: [(question: LedgerQuestion, purpose: Purpose)] = []
  /// Nodes of the bus that peers do not hear, as the bus is to know.
  var unheard: [(peer: Int, nodes: UInt64)] = []
  var isLedgerUp = false
  /// When a hub that has not reached the ledger continues alone (uptime, ns): not at once after its start.
  private let aloneAt: Int64
  /// Until when it waits to learn of the other hubs (uptime, ns).
  private var startsUntil: Int64
  /// It has read the list of hubs.
  var knowsMembers = false
  /// Which hub counts the events of all trips (TripFeeds.swift).
  var tripCounter = TripCounter.unknown
  private var asks = AskTable()
  var endedRights: [EndedRight] = []
  var counters = ClusterCounters()
  var notices: [ClusterNotice] = []
  /// When a notice of a kind that others can cause at will may be given again (uptime, ns).
  private var quietUntil: [SeldomNotice: Int64] = [:]

  init(
    _ identity: ClusterIdentity, limits: ClusterLimits, outlet: UInt32, now: Moment,
    openSessions: @escaping @Sendable (Identifier) -> [Role: Int]
  ) {
    self.identity = identity
    self.limits = limits
    self.outlet = outlet
    self.openSessions = openSessions
    self.now = now
    aloneAt = now.uptime + limits.answerTime
    startsUntil = aloneAt
  }

  /// The wall clock.
  var time: Timestamp { now.timestamp }

  /// Whether this hub works without the ledger.
  var isAlone: Bool { !isLedgerUp && now.uptime >= aloneAt }

  /// Whether the other hubs are still unknown, and worth waiting for: not for long, since the ledger may refuse.
  var isStarting: Bool { phase != .superseded && !knowsMembers && !isAlone && now.uptime < startsUntil }

  /// The ledger can be asked.
  func ledgerIsUp() {
    isLedgerUp = true
    if !knowsMembers { startsUntil = now.uptime + limits.answerTime }
  }

  // MARK: Peers

  /// The index of a peer, made where it is new; nil at the limit.
  func peer(_ name: String) -> Int? {
    if let known = peerIndices[name] { return known }
    guard !isFullOfPeers else {
      note(.tooManyPeers(name), seldom: .peerRefused)
      return nil
    }
    let known = forgotten.firstIndex { $0.name == name }.map { forgotten.remove(at: $0).progress }
    let peer = Peer(name: name, limits, now: now.uptime, known)
    let index = freed.popLast() ?? peers.count
    if index == peers.count { peers.append(peer) } else { peers[index] = peer }
    peerIndices[name] = index
    return index
  }

  /// Forgets a hub that has left; another one may have its index.
  func forget(_ index: Int) {
    peerIndices[peers[index].name] = nil
    if peers[index].incarnation > 0 {
      if forgotten.count >= limits.forgottenPeers { forgotten.removeFirst() }
      forgotten.append((peers[index].name, peers[index].progress))
    }
    peers[index] = Peer(name: "", limits, now: now.uptime)
    endedRights.removeAll { $0.peer == index }
    freed.append(index)
  }

  /// Whether no further hub would have room.
  var isFullOfPeers: Bool { peers.count >= ClusterLimits.maximumPeers && freed.isEmpty }

  func knownPeer(_ name: String) -> Int? { peerIndices[name] }

  /// The index of a hub that is a member.
  func member(_ name: String) -> Int? {
    peerIndices[name].flatMap { peers[$0].isMember ? $0 : nil }
  }

  /// Who can be asked now.
  var audible: [Int] {
    phase == .member ? peers.indices.filter { peers[$0].isMember && !peers[$0].isSilent } : []
  }

  /// The shortest time from frames of states to the next (ns).
  var gatherTime: Int64 {
    let followers = peers.count { !$0.interest.isEmpty || !$0.watched.isEmpty }
    return max(limits.gatherTime, Int64(followers) * limits.peerGatherTime)
  }

  /// Whether the `audible` hubs are all members of the cluster.
  var hearsAll: Bool { phase == .member && knowsMembers && !peers.contains { $0.isMember && $0.isSilent } }

  // MARK: Questions of peers to the hub

  /// For the hub, a peer that asks is a session; nil where it asks too much at once. `request`: nil for a question
  /// about drivers or a trip; `token`: 0 where no session of the peer waits for the answer.
  func session(for peer: Int, _ token: UInt64, _ request: Subscribe? = nil) -> SessionRef? {
    guard peer != Ask.ownHub else {
      return asks.insert(Ask(peer: peer, incarnation: 0, token: token), outlet: outlet)
    }
    guard peers[peer].asks < limits.asksPerPeer else { return nil }
    peers[peer].asks += 1
    let ask = Ask(peer: peer, incarnation: peers[peer].incarnation, token: token, request: request)
    return asks.insert(ask, outlet: outlet)
  }

  /// The question that the hub has answered; `isCurrent`: the peer's process is still the one that asked.
  func asker(_ session: SessionRef) -> (ask: Ask, isCurrent: Bool)? {
    guard let ask = asks.remove(session) else { return nil }
    guard ask.peer != Ask.ownHub else { return (ask, true) }
    let isCurrent = ask.incarnation == peers[ask.peer].incarnation
    if isCurrent { peers[ask.peer].asks -= 1 }
    return (ask, isCurrent)
  }

  // MARK: Messages of several parts

  /// Gives a notice that others can cause at will, unless one of its kind was given just now. Whether it did.
  @discardableResult func note(_ notice: ClusterNotice, seldom kind: SeldomNotice) -> Bool {
    guard now.uptime >= quietUntil[kind] ?? .min else { return false }
    quietUntil[kind] = now.uptime + limits.refusalNoticeTime
    notices.append(notice)
    return true
  }

  func relay(_ publication: Publication) {
    if case .driverLocation(let location) = publication.body {
      return relay(
        PublishedPosition(
          channel: publication.channel, number: 0, timestamp: publication.timestamp, location: location))
    }
    handOverPositions()
    counters.relayed += 1
    inputs.append(.cluster(.relayed(publication)))
  }

  func relay(_ position: PublishedPosition) {
    counters.relayed += 1
    positions.append(position)
  }

  /// Gives the hub the positions of a frame so far: before other input from the frame, and at its end.
  func handOverPositions() {
    if positions.isEmpty { return }
    inputs.append(.cluster(.relayedPositions(positions)))
    positions = []
  }

  func refuse(_ input: SubscribeInput, _ error: ErrorReply) {
    counters.refusals += 1
    var refusal = error
    refusal.replyTo = input.messageID
    inputs.append(.cluster(.refused(input, refusal)))
  }

  /// Asks a peer for a channel on behalf of this hub, not of one session.
  func resume(_ request: Subscribe, at index: Int) {
    peers[index].append(.resume) { $0.append(request, ClusterOutput.unsolicited, at: time) }
  }

  /// Follows a channel at a peer no longer.
  func release(_ channel: Channel, at index: Int) {
    peers[index].release(channel, at: now.timestamp)
  }

  /// Sends a peer the end of a right, which it must not miss: repeated if the peer has missed anything, and sent when
  /// it is heard of for the first time.
  func notifyEnded(_ index: Int, _ kind: ClusterRecordKind, _ body: (inout ByteBuffer) -> Void) {
    var bytes = ByteBuffer()
    body(&bytes)
    let copy = bytes.array()
    if endedRights.count >= limits.endedRights { endedRights.removeFirst() }
    endedRights.append(EndedRight(peer: index, until: now.uptime + limits.endedRightsTime, kind: kind, body: copy))
    if peers[index].incarnation > 0 { peers[index].append(kind) { $0.append(copy) } }
  }

  func repeatEnded(to index: Int) {
    endedRights.removeAll { $0.until < now.uptime }
    for right in endedRights where right.peer == index {
      peers[index].append(right.kind) { $0.append(right.body) }
    }
  }
}

/// Notices whose rate is limited.
enum SeldomNotice: Hashable {
  case ledgerDown, ledgerRefused, peerRefused
  /// For each kind of reason, each lane, and each peer; nil for all who are none.
  case frameRefused(ClusterFrameError.Kind, Lane, Int?)
}

/// Which hub counts the events of all trips.
enum TripCounter: Equatable {
  case unknown, here
  case peer(Int)
}

/// The end of a right to a channel, which is repeated to a peer that has missed something.
struct EndedRight {
  var peer: Int
  var until: Int64
  var kind: ClusterRecordKind
  var body: [UInt8]
}

/// A question that a peer has put to this hub, or this hub to itself.
struct Ask {
  /// Instead of a peer's index: this hub itself, as asker or as asked.
  static let ownHub = -1
  /// Instead of a peer's index: the ledger, as asked.
  static let ledger = -2

  var peer: Int
  /// The peer's process.
  var incarnation: UInt64
  var token: UInt64
  /// The channel that it asks for, if it does.
  var request: Subscribe?
  var channel: Channel? { request?.channel }
}

/// Questions that the hub has not answered.
private struct AskTable {
  private var asks: [Ask?] = []
  private var generations: [UInt32] = []
  private var free: [Int] = []

  mutating func insert(_ ask: Ask, outlet: UInt32) -> SessionRef {
    let slot = free.popLast() ?? asks.count
    if slot == asks.count {
      asks.append(nil)
      generations.append(0)
    }
    generations[slot] &+= 1
    asks[slot] = ask
    return SessionRef(outlet: outlet, slot: UInt32(slot), generation: generations[slot])
  }

  mutating func remove(_ session: SessionRef) -> Ask? {
    let slot = Int(session.slot)
    guard slot < asks.count, generations[slot] == session.generation, let ask = asks[slot] else { return nil }
    asks[slot] = nil
    free.append(slot)
    return ask
  }
}
