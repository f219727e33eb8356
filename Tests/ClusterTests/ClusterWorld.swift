// Several hubs, whole, on a simulated engine: each a `Hub` with its `ClusterNode`, and one outlet for sessions. Time is
// moved by hand; clients keep the contract: they count events, and ask again where one is missing.
import Foundation
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubJournalSupport
import HubMessages
import Testing

@testable import HubCluster

func id(_ text: String) -> Identifier { Identifier(text)! }
func message(_ number: Int) -> MessageID { MessageID(number: UInt64(number)) }

/// How many histories `make torture` asks for; nil in the suite, which has few.
let clusterHistories = ProcessInfo.processInfo.environment["CLUSTER_HISTORIES"].flatMap(Int.init)

/// The seeds of histories: so many in the suite; the one of `CLUSTER_SEED` alone, to see it again.
func historySeeds(_ usual: UInt64) -> Range<UInt64> {
  if let one = ProcessInfo.processInfo.environment["CLUSTER_SEED"].flatMap(UInt64.init) { return one..<one + 1 }
  return 1..<(clusterHistories.map(UInt64.init) ?? usual) + 1
}

/// How a history that went wrong is seen again: also with the order that dictionaries had, where `make` ran it.
func replay(_ seed: UInt64, _ suite: String) -> Comment {
  "seed \(seed); again: SWIFT_DETERMINISTIC_HASHING=1 CLUSTER_SEED=\(seed) swift test --filter '^ClusterTests.\(suite)'"
}

let testKeys = FrameKeys(String(repeating: "0123456789abcdef", count: 4))!

/// A rider that follows one channel, as a client of the protocol does.
final class Follower {
  let channel: Channel
  let session: SessionRef
  let actor: Actor
  let grant: ChannelGrant
  var isEventsOnly = false
  var handle: ChannelHandle?
  var point: ResumePoint?
  /// The numbers of the events that it was shown, by epoch, in order.
  var seen: [String: [UInt64]] = [:]
  var positions: [DriverLocation] = []
  var etas: [ETAUpdate] = []
  var rawFixes: [RawFix] = []
  var figures: [HubFigures] = []
  var offers: [Offer] = []
  /// Events since its last notice of a gap, and how often it was.
  var log: [Publication] = []
  var beginnings = 0
  var refusals: [ErrorReply] = []
  var ended: [Unsubscribed.Reason] = []
  var answers: [Subscribed] = []
  var restarts = 0
  /// Gaps that it noticed by itself, and for which it asked again.
  var gaps = 0
  /// Events that it was shown before.
  var doubles = 0
  /// Answers that do not lead on from what it has, though the numbers are the same.
  var unrecovered = 0
  /// Something that no client may be shown.
  var faults: [String] = []
  var wantsToAsk = true
  /// Moves of trips in `log`.
  var moves: [TripUpdate] {
    log.compactMap { if case .tripUpdate(let update) = $0.body { update } else { nil } }
  }

  init(_ channel: Channel, slot: UInt32, role: Role = .ops, id name: String = "rider", grant: ChannelGrant = .granted) {
    self.channel = channel
    self.grant = grant
    session = SessionRef(outlet: 0, slot: slot, generation: 1)
    actor = Actor(role: role, id: id(name))
  }

  func take(_ answer: Subscribed, missed: [Publication]) {
    answers.append(answer)
    if !(answer.recovered && point?.epoch == answer.epoch) {
      if point?.epoch == answer.epoch { unrecovered += 1 }
      point = ResumePoint(since: answer.sequence, epoch: answer.epoch)
      log.removeAll()
      beginnings += 1
    }
    if let position = answer.snapshot?.position { positions.append(position) }
    missed.forEach(take)
    if answer.recovered, point?.since != answer.sequence { faults.append("recovered, but not up to the answer") }
  }

  func take(_ publication: Publication) {
    guard let known = point else { return faults.append("a publication before any answer") }
    switch publication.body {
    case .tripUpdate, .notification, .offer:
      let sequence = publication.sequence ?? 0
      if sequence <= known.since {
        doubles += 1
        return
      }
      guard sequence == known.since + 1 else { return noteGap() }
      point?.since = sequence
      seen[known.epoch.description, default: []].append(sequence)
      log.append(publication)
      if case .offer(let offer) = publication.body { offers.append(offer) }
    case .driverLocation(let location):
      positions.append(location)
      if location.after > known.since { noteGap() }
    case .etaUpdate(let update): etas.append(update)
    case .rawFix(let fix): rawFixes.append(fix)
    case .stats(let second): figures.append(second)
    case .areaUpdate, .countsUpdate: faults.append("not of this channel")
    }
  }

  private func noteGap() {
    gaps += 1
    wantsToAsk = true
  }
}

final class Member {
  let name: String
  var hub: HubBox
  var node: NodeBox
  let bus: MemoryBus
  let ledger: MemoryLedger
  let journal: MemberJournal?
  var followers: [Follower] = []
  var maps: [MapClient] = []
  var inputs: [HubInput] = []
  var admitted: [SessionRef] = []
  var replaced: [SessionRef] = []
  var replies: [(SessionRef, Reply)] = []
  /// Answers to questions: of drivers nil where nobody knows.
  var results: [(session: SessionRef, result: QueryResult?)] = []
  /// Answers about the offers of trips.
  var offers: [(session: SessionRef, report: OffersReport, isNew: Bool)] = []
  /// Answers to notifications that were posted: whether it was new, or why not.
  var notified: [(isNew: Bool?, refusal: ErrorCode?)] = []
  /// Answers about shares.
  var shares: [(session: SessionRef, answer: TripAnswer)] = []
  /// Pages of trips.
  var tripPages: [(session: SessionRef, page: TripPage)] = []
  /// Who was answered that a trip has begun.
  var begun: [SessionRef] = []
  /// Answers to questions about tokens.
  var credentials: [(session: SessionRef, answer: CredentialAnswer)] = []
  /// The revocations that its loops received.
  var revoked: [RevokedName] = []
  var notices: [ClusterNotice] = []

  final class HubBox {
    var hub: Hub
    init(_ hub: consuming Hub) { self.hub = hub }
  }

  final class NodeBox {
    var node: ClusterNode
    init(_ node: consuming ClusterNode) { self.node = node }
  }

  init(
    _ name: String, _ engine: MemoryEngine, now: Moment, limits: ClusterLimits, hubLimits: HubLimits,
    timings: HubTimings, keys: FrameKeys, epoch: String, tokenKey: TokenKeyProof, disk: SimulatedDisk?,
    openSessions: @escaping @Sendable (Identifier) -> [Role: Int]
  ) {
    self.name = name
    var hub = Hub(
      limits: hubLimits, timings: timings, sampling: SamplingRules(), epoch: InlineText(epoch)!, seed: 7,
      outlets: 2, now: now)
    journal = disk.map { MemberJournal($0, into: &hub, epoch: epoch, now: now) }
    hub.joinCluster(outlet: 1)
    self.hub = HubBox(hub)
    var identity = ClusterIdentity(name: name, address: "127.0.0.1:1", version: "test", keys: keys)
    identity.tokenKey = tokenKey
    node = NodeBox(ClusterNode(identity, limits: limits, outlet: 1, now: now, openSessions: openSessions))
    bus = MemoryBus(engine, member: name)
    ledger = MemoryLedger(engine, member: name)
  }

  func turn(now: Moment) {
    node.node.begin(now: now)
    var (frames, answers): ([BusEvent], [LedgerEvent]) = ([], [])
    bus.takeEvents(into: &frames)
    ledger.takeEvents(into: &answers)
    for event in frames { node.node.take(bus: event) }
    for event in answers { node.node.take(ledger: event) }
    for _ in 0..<4 {
      let batch = inputs
      inputs = []
      journal?.release(&hub.hub)
      hub.hub.handle(batch, now: now)
      hub.hub.handle(node.node.inputs, now: now)
      node.node.inputs.removeAll()
      hub.hub.endTurn()
      journal?.submit(&hub.hub)
      for output in hub.hub.drain(0) { take(output) }
      var outputs = HubOutputs()
      hub.hub.drain(1, into: &outputs)
      node.node.take(outputs: outputs)
    }
    node.node.turn()
    node.node.flush(bus, ledger)
    journal?.write(now: now)
    notices += node.node.takeNotices()
    for follower in followers where follower.wantsToAsk { ask(follower) }
  }

  private func ask(_ follower: Follower) {
    follower.wantsToAsk = false
    inputs.append(
      .subscribe(
        SubscribeInput(
          session: follower.session, actor: follower.actor, messageID: message(1),
          request: Subscribe(
            channel: follower.channel, resume: follower.point, isEventsOnly: follower.isEventsOnly),
          grant: follower.grant)))
  }

  private func take(_ output: HubOutput) {
    switch output {
    case .delivery(let delivery):
      for follower in followers where follower.handle == delivery.channel { follower.take(delivery.publication) }
    case .subscribed(let session, let handle, let answer, let missed, _):
      guard let follower = followers.first(where: { $0.session == session }) else { return release(handle) }
      if follower.handle == handle { release(handle) }  // one subscription, however often it asks
      follower.handle = handle
      follower.take(answer, missed: missed)
    case .subscriptionRefused(let session, let error):
      followers.first { $0.session == session }?.refusals.append(error)
      for map in maps { inputs += map.take(output) }
    case .channelRestarted(let handle, let answer):
      for follower in followers where follower.handle == handle {
        follower.restarts += 1
        follower.take(answer, missed: [])
      }
    case .channelEnded(let handle, _, let reason): end(handle, reason)
    case .shareEnded(let handle, _, let holder): end(handle, .revoked) { $0.actor.id == holder }
    case .channelClaimed(let handle, _, let driver):
      end(handle, .revoked) { $0.actor.id != driver && $0.grant == .whileUnclaimed }
    case .admitted(let session, _): admitted.append(session)
    case .replaced(let session, _): replaced.append(session)
    case .reply(let session, let reply): replies.append((session, reply))
    case .queryResult(let session, let result, _): results.append((session, result))
    case .trips(let session, .trip(let report, let isNew), _):
      results.append((session, .trip(report)))
      if isNew { begun.append(session) }
    case .trips(let session, .offers(let report, let isNew), _): offers.append((session, report, isNew))
    case .trips(let session, .list(let page), _): tripPages.append((session, page))
    case .trips(let session, .refused(let error), _): replies.append((session, .error(error)))
    case .credentials(let session, let answer): credentials.append((session, answer))
    case .revoked(let change): revoked += change.added.map(\.name)
    case .watching, .areaSnapshot, .areaUpdate, .areaTickEnded: for map in maps { inputs += map.take(output) }
    case .notified(_, .published(_, _, let isNew)): notified.append((isNew, nil))
    case .notified(_, .refused(let error)): notified.append((nil, error.code))
    case .trips(let session, let answer, _): shares.append((session, answer))
    case .viewEnded, .unsubscribed, .named, .conflict, .full, .fences, .cluster: break
    }
  }

  private func end(
    _ handle: ChannelHandle, _ reason: Unsubscribed.Reason, where isMeant: (Follower) -> Bool = { _ in true }
  ) {
    for follower in followers where follower.handle == handle && isMeant(follower) {
      follower.ended.append(reason)
      follower.handle = nil
      release(handle)
    }
  }

  private func release(_ handle: ChannelHandle) { inputs.append(.released(outlet: 0, handle)) }

  /// A session that follows nothing any more.
  func leave(_ follower: Follower) {
    followers.removeAll { $0 === follower }
    if let handle = follower.handle { release(handle) }
  }
}

/// Hubs `a`, `b`, `c` … on one engine.
final class ClusterWorld {
  let engine: MemoryEngine
  var members: [Member] = []
  /// Members that do nothing now.
  var stalled: Set<String> = []
  /// What a hub's clock is off by, in ms.
  let clockOffsets: [String: Int64]
  /// By hub, where hubs have journals.
  private var disks: [String: SimulatedDisk]?
  private(set) var now: Moment
  private var lastMessage = 10
  private var lives = 0
  private let hubLimits: HubLimits
  private let timings: HubTimings
  private let tokenKey: (String) -> TokenKeyProof
  private let openSessions: @Sendable (String, Identifier) -> [Role: Int]
  private var lastSlot: UInt32 = 1000

  init(
    _ names: [String] = ["a", "b", "c"], seed: UInt64 = 1, limits: ClusterLimits = ClusterLimits(),
    hubLimits: HubLimits = HubLimits(), timings: HubTimings = HubTimings(),
    tokenKey: @escaping (String) -> TokenKeyProof = { _ in TokenKeyProof() }, hasJournals: Bool = false,
    clockOffsets: [String: Int64] = [:],
    openSessions: @escaping @Sendable (_ hub: String, Identifier) -> [Role: Int] = { _, _ in [:] }
  ) {
    self.openSessions = openSessions
    disks = hasJournals ? [:] : nil
    self.clockOffsets = clockOffsets
    self.tokenKey = tokenKey
    self.hubLimits = hubLimits
    self.timings = timings
    engine = MemoryEngine(seed: seed)
    now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: engine.now / 1_000_000))
    members = names.map { make($0, limits) }
    run(seconds: 3)
  }

  private func make(_ name: String, _ limits: ClusterLimits, keys: FrameKeys = testKeys) -> Member {
    lives += 1
    if disks != nil, disks?[name] == nil { disks?[name] = SimulatedDisk() }
    return Member(
      name, engine, now: clock(of: name), limits: limits, hubLimits: hubLimits, timings: timings, keys: keys,
      epoch: "epoch\(lives)", tokenKey: tokenKey(name), disk: disks?[name],
      openSessions: { [openSessions] in openSessions(name, $0) })
  }

  /// The time as a hub has it.
  func clock(of name: String) -> Moment {
    let milliseconds = now.timestamp.milliseconds + (clockOffsets[name] ?? 0)
    return Moment(uptime: now.uptime, timestamp: Timestamp(milliseconds: milliseconds))
  }

  subscript(name: String) -> Member { members.first { $0.name == name }! }

  /// Another process begins under a name, which knows nothing.
  func restart(_ name: String, limits: ClusterLimits = ClusterLimits(), keys: FrameKeys = testKeys) {
    let index = members.firstIndex { $0.name == name }!
    members[index] = make(name, limits, keys: keys)
  }

  /// A further process begins, or one that was killed begins anew.
  func join(_ name: String) { members.append(make(name, ClusterLimits())) }

  /// A process is gone.
  func kill(_ name: String) { members.removeAll { $0.name == name } }

  func step(milliseconds: Int64 = 10) {
    engine.advance(by: milliseconds * 1_000_000)
    now.uptime += milliseconds * 1_000_000
    now.timestamp = Timestamp(milliseconds: now.timestamp.milliseconds + milliseconds)
    for member in members where !stalled.contains(member.name) { member.turn(now: clock(of: member.name)) }
  }

  func run(seconds: Double) {
    for _ in 0..<Int(seconds * 100) { step() }
  }

  // MARK: Drivers and trips

  func session(_ slot: UInt32) -> SessionRef { SessionRef(outlet: 0, slot: slot, generation: 1) }

  /// Of a session that nobody else has.
  func nextSlot() -> UInt32 {
    lastSlot += 1
    return lastSlot
  }

  func connect(_ driver: String, at name: String, slot: UInt32) {
    self[name].inputs.append(.driverConnecting(session(slot), id(driver)))
  }

  func move(_ trip: String, _ status: TripStatus, by driver: String, at name: String, slot: UInt32) {
    lastMessage += 1
    let report = TripStatusReport(tripID: id(trip), status: status, timestamp: now.timestamp)
    self[name].inputs.append(
      .tripStatus(
        TripStatusInput(
          session: session(slot), actor: Actor(role: .driver, id: id(driver)), messageID: message(lastMessage),
          report: report, tripIsGranted: true)))
  }

  func fix(_ step: Int, trip: String?, at name: String, slot: UInt32, isGranted: Bool = true) {
    lastMessage += 1
    let place = Coordinate(latitude: 48.1 + Double(step) * 1e-4, longitude: 11.5)!
    let update = LocationUpdate(
      tripID: trip.map { id($0) }, fix: Fix(coordinate: place, timestamp: now.timestamp, accuracy: 5))
    self[name].inputs.append(
      .fix(
        FixInput(
          session: session(slot), messageID: message(lastMessage), sent: now.timestamp, received: now, update: update,
          tripIsGranted: isGranted)))
  }

  @discardableResult
  func follow(_ channel: Channel, at name: String, slot: UInt32) -> Follower {
    let follower = Follower(channel, slot: slot)
    self[name].followers.append(follower)
    return follower
  }
}
