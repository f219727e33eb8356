// A hub among hubs: who the others are, which of their channels sessions here follow, and which channels here they
// follow.
//
// A state machine without I/O, with time as input, between four sides: the hub (its outputs in, inputs out), the bus
// (frames), the ledger (questions and answers) and the clock. It belongs to the thread of the cluster's outlet; a turn
// is
//
//     take what the bus, the ledger and the hub have → `turn` → the hub gets `inputs` → `flush`
//
// A peer is a client of the owner, with the contract's own means: it subscribes, gets an answer and numbered events,
// and after whatever it has missed it subscribes again with `since`. Nothing else makes the stream whole, so there is
// one way for a lost frame, a hub that started anew, a bus node that died and a reader that was too slow.
public import HubBackplane
public import HubBytes
public import HubCore
public import HubMessages

/// Who this hub is among the others.
public struct ClusterIdentity: Sendable {
  public var name: String
  /// Where others and operators find it.
  public var address: String
  public var version: String
  public var keys: FrameKeys
  public var tokenKey = TokenKeyProof()

  public init(name: String, address: String, version: String, keys: FrameKeys) {
    self.name = name
    self.address = address
    self.version = version
    self.keys = keys
  }

  /// Whether a text may be a hub's name: 1–32 letters, digits, `-`, `_` and `.`.
  public static func isName(_ text: String) -> Bool {
    FrameHead.nameBytes.contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case _: "-_.".utf8.contains(byte)
        }
      }
  }
}

public struct ClusterNode: ~Copyable {
  enum Phase: Equatable {
    /// It has no incarnation yet.
    case outside
    case member
    /// A later process has its name.
    case superseded
  }

  /// Why the ledger was asked.
  enum Asked: Equatable {
    case incarnation, renewal, members
    case claim(Channel)
    case locate(Channel)
    /// For a request about a trip: where the trip is, or its driver.
    case place(of: UInt64, isOfDriver: Bool)
    /// Which hub begins a trip.
    case beginning(of: UInt64, at: String)
    case nothing
  }

  let identity: ClusterIdentity
  let limits: ClusterLimits
  /// The hub's number for the outlet that this is.
  let outlet: UInt32
  private(set) var now: Moment
  var phase = Phase.outside
  var incarnation: UInt64 = 0
  var peers: [Peer] = []
  private var peerIndices: [String: Int] = [:]
  /// What the hub is to be told; whoever drives the node takes it.
  public var inputs = HubInputs()
  var questions: [(question: LedgerQuestion, why: Asked)] = []
  private var asked: [UInt64: Asked] = [:]
  private var lastTicket: UInt64 = 0
  private(set) var isLedgerUp = false
  /// When a hub that has not reached the ledger goes on alone (uptime, ns): not at once, where it has just started.
  private let aloneAt: Int64
  /// It has read who the others are.
  private(set) var knowsMembers = false
  private var renewsAt = Int64.min
  var following = Following()
  var owning = Owning()
  var forwarding = Forwarding()
  var asking = Asking()
  var revoking = Revoking()
  var familyQuestions = FamilyQuestions()
  var watching = Watching()
  var feeds = Feeds()
  var trips = TripFeeds()
  public internal(set) var counters = ClusterCounters()
  var notices: [ClusterNotice] = []
  /// When a refused frame may be told of again (uptime, ns).
  var refusalNoticeAt = Int64.min

  public init(_ identity: ClusterIdentity, limits: ClusterLimits = ClusterLimits(), outlet: UInt32, now: Moment) {
    precondition(ClusterIdentity.isName(identity.name), "a name of 1–32 letters, digits, - _ .")
    self.identity = identity
    self.limits = limits
    self.outlet = outlet
    self.now = now
    aloneAt = now.uptime + limits.answerTime
  }

  /// Whether nobody can say what other hubs have.
  var isAlone: Bool { !isLedgerUp && now.uptime >= aloneAt }

  public mutating func takeNotices() -> [ClusterNotice] {
    defer { notices.removeAll() }
    return notices
  }

  // MARK: The turn

  /// Says the time of what follows; it must not go back.
  public mutating func begin(now: Moment) { self.now = now }

  /// After everything that came: what is due by the clock.
  public mutating func turn() {
    renew()
    claimOwned()
    retryFollowing()
    retryForwarding()
    endOverdueQuestions()
    endOverdueHistory()
    retryFamilyQuestions()
    restartPeers()
    gatherTrips()
    askForAreas()
    askForRevocations()
    keepAlive()
  }

  /// When `turn` is due, if nothing comes before (uptime, ns).
  public var nextTurn: Int64 { now.uptime + limits.aliveTime / 2 }

  /// Sends what there is to send and asks what there is to ask.
  public mutating func flush(_ bus: any Bus, _ ledger: any Ledger) {
    defer { countSizes() }
    counters.isBusUp = bus.isUp
    for index in peers.indices where peers[index].hasOutput && peers[index].incarnation > 0 { flush(index, bus) }
    let batch = questions
    questions.removeAll(keepingCapacity: true)
    for (question, why) in batch {
      lastTicket += 1
      if ledger.ask(question, ticket: lastTicket) {
        asked[lastTicket] = why
      } else {
        take(.unknown, why)
      }
    }
  }

  private mutating func flush(_ index: Int, _ bus: any Bus) {
    var head = FrameHead(
      lane: .control, from: identity.name, fromIncarnation: incarnation, to: peers[index].name,
      toIncarnation: peers[index].incarnation, number: 0, clock: now.timestamp.milliseconds)
    let (keys, name) = (identity.keys, peers[index].name)
    var bytes = 0
    let states = peers[index].states.count
    let frames = peers[index].flush(now: now.uptime, limits) { lane, number, records in
      (head.lane, head.number) = (lane, number)
      let frame = Frame.make(head, records, keys)
      bytes += frame.count
      return bus.send(frame, to: name, lane: lane)
    }
    counters.framesOut += UInt64(frames)
    counters.bytesOut += UInt64(bytes)
    counters.statesOut += UInt64(states - peers[index].states.count)
    boundOutput(of: index)
  }

  /// What a peer does not take is dropped at the limits; it notices by the numbers.
  private mutating func boundOutput(of index: Int) {
    if peers[index].controlBytes > limits.waitingControlBytes {
      peers[index].dropAll()
      counters.overflows += 1
    }
    if peers[index].states.count > limits.waitingStates || peers[index].areaBytes > limits.waitingAreaBytes {
      peers[index].dropStates()
      counters.overflows += 1
    }
  }

  private mutating func countSizes() {
    counters.peers = peers.count { $0.isMember }
    counters.silentPeers = peers.count { $0.isSilent && $0.isMember }
    counters.follows = following.count
    counters.followed = peers.reduce(0) { $0 + $1.interest.count }
    counters.pending =
      following.pending.count + forwarding.pending.count + asking.pending.count + familyQuestions.pending.count
    counters.unclaimed = owning.unclaimedCount
    counters.waitingBytes = peers.reduce(0) { $0 + $1.controlBytes + $1.areaBytes }
    counters.cellsAsked = watching.asked.count
    counters.cellsWatched = peers.reduce(0) { $0 + $1.watched.count }
    counters.waitingStates = peers.reduce(0) { $0 + $1.states.count }
    counters.isLedgerUp = isLedgerUp
  }

  // MARK: Members

  private mutating func renew() {
    guard isLedgerUp, now.uptime >= renewsAt else { return }
    renewsAt = now.uptime + limits.renewal
    switch phase {
    case .superseded: return
    case .outside: return questions.append((.incarnation, .incarnation))
    case .member: break
    }
    let member = MemberRecord(
      name: identity.name, incarnation: incarnation, address: identity.address, version: identity.version)
    questions.append((.renew(member, leaseMilliseconds: limits.lease / 1_000_000), .renewal))
    questions.append((.members, .members))
    owning.queueDeferred()
  }

  /// The questions of a hub that ends in order: the others need not wait for its lease to end.
  public mutating func leave() {
    guard phase == .member else { return }
    questions.append((.leave(name: identity.name, incarnation: incarnation), .nothing))
  }

  /// The index of a peer, made where it is new; nil at the limit.
  mutating func peer(_ name: String) -> Int? {
    if let known = peerIndices[name] { return known }
    guard peers.count < ClusterLimits.maximumPeers else {
      notices.append(.tooManyPeers(name))
      return nil
    }
    peers.append(Peer(name: name, now: now.uptime))
    peerIndices[name] = peers.count - 1
    return peers.count - 1
  }

  func knownPeer(_ name: String) -> Int? { peerIndices[name] }

  private mutating func take(members: [MemberRecord]) {
    knowsMembers = true
    var present: Set<String> = []
    for member in members where member.name != identity.name {
      guard let index = peer(member.name) else { continue }
      present.insert(member.name)
      if member.incarnation > peers[index].incarnation { begin(index, member.incarnation) }
      guard !peers[index].isMember else { continue }
      peers[index].isMember = true
      tellCredentials(index)
      askForAll(index)
      peers[index].heard = now.uptime
      notices.append(.peerJoined(member.name, incarnation: member.incarnation))
    }
    for index in peers.indices where peers[index].isMember && !present.contains(peers[index].name) {
      // Who is heard is there, whatever a ledger says that may have forgotten it.
      guard now.uptime - peers[index].heard >= limits.silence else { continue }
      peers[index].isMember = false
      releaseInterest(of: index)
      peers[index].append(.lost, limits)  // it may be there after all: then it asks for its channels anew
      notices.append(.peerLeft(peers[index].name))
    }
  }

  /// A peer's process is another one than before: all that was agreed with that is void.
  mutating func begin(_ index: Int, _ incarnation: UInt64) {
    releaseInterest(of: index)
    loseAreas(of: index)
    peers[index].begin(incarnation)
    peers[index].wantsRestart = true
    tellCredentials(index)
  }

  private mutating func keepAlive() {
    guard phase == .member else { return }
    for index in peers.indices where peers[index].isMember {
      let isSilent = now.uptime - peers[index].heard >= limits.silence
      if isSilent != peers[index].isSilent {
        peers[index].isSilent = isSilent
        notices.append(isSilent ? .peerSilent(peers[index].name) : .peerHeard(peers[index].name))
      }
      // Who watches areas has to notice that the last frame of states is missing, whatever else goes there.
      let isQuiet = now.uptime - peers[index].lastSent >= limits.aliveTime && !peers[index].hasOutput
      let isDue =
        !peers[index].watched.isEmpty && now.uptime - peers[index].lastAliveSent >= limits.aliveTime
        && peers[index].controlBytes == 0
      if isQuiet || isDue {
        peers[index].lastAliveSent = now.uptime
        let number = peers[index].stateNumber
        peers[index].append(.alive, limits) { $0.append(varint: number) }
      }
    }
  }

  // MARK: The ledger

  public mutating func take(_ event: LedgerEvent) {
    switch event {
    case .up(let node, let warnings):
      isLedgerUp = true
      renewsAt = .min
      owning.queueAll()
      notices.append(.ledgerUp(node, warnings: warnings))
    case .down(let node, let reason):
      if isLedgerUp { notices.append(.ledgerDown(node, reason: reason)) }
      isLedgerUp = false
    case .answer(let ticket, let answer):
      if let why = asked.removeValue(forKey: ticket) { take(answer, why) }
    }
  }

  private mutating func take(_ answer: LedgerAnswer, _ why: Asked) {
    if case .refused(let reason) = answer { notices.append(.ledgerRefused(reason)) }
    switch why {
    case .nothing: break
    case .incarnation:
      guard case .incarnation(let number) = answer, phase == .outside else { return }
      incarnation = number
      phase = .member
      renewsAt = .min
      notices.append(.joined(incarnation: number))
    case .renewal:
      guard case .superseded(let other) = answer else { return }
      phase = .superseded
      notices.append(.superseded(by: other))
    case .members: if case .members(let members) = answer { take(members: members) }
    case .claim(let channel): take(claim: answer, of: channel)
    case .locate(let channel): take(located: answer, channel)
    case .place(let token, let isOfDriver): take(place: answer, of: token, isOfDriver: isOfDriver)
    case .beginning(let token, let name): take(beginning: answer, of: token, at: name)
    }
  }
}
