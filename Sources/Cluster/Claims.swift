// The ledger's entries of this hub: its trips and drivers are claimed there, so that other hubs find them. All are
// claimed again after an outage of the ledger, to restore what it may have forgotten.
//
//     phase      its next question               the next phase
//     unclaimed  a claim, if nobody has it       by the answer claimed, or none where another hub has it
//     toSeize    a claim, whichever hub has it   when it is asked: seizing
//     seizing    that claim, with its number     by the answer claimed or none
//     claimed    a claim, now and then           by the answer claimed or none; if it is not asked, none when another
//                                                hub says that it has seized the driver
//     released   a release                       by the answer none
//
// `own` leads from none and released to unclaimed, and for a driver's new session from any phase to toSeize, where an
// answer to an earlier claim changes nothing; `disown` from any to released. Where an answer is lost, or the ledger was
// not asked, the phase stays, and the question is put again with the next renewal. At most one about an entry is at the
// ledger.
import HubBackplane
import HubBytes
import HubCore
public import HubMessages

struct Claims {
  /// How far the claim of an entry is: see the head of this file.
  enum Phase {
    case unclaimed, claimed, released
    /// `isClaimed`: this hub's earlier claim is in force until the new one is carried out.
    case toSeize(isClaimed: Bool)
    /// By the number of the attempt the ledger carries it out once, however often it is asked.
    case seizing(attempt: UInt64)
  }

  struct Owned {
    var phase: Phase
    /// The ledger is asked about it.
    var isAsked = false
    /// An answer to a claim was lost: it may have been the only one to name the owner before and the hubs that wait.
    var hasLostAnswer = false
    /// The ledger's number of the driver's newest seizure; 0 for trips.
    var generation: UInt64 = 0
    /// The generation of the newest claim of another hub that this hub was notified of.
    var replacedBy: UInt64 = 0
    /// How often the driver has come here.
    var arrival: UInt16
    /// It is in `queue`, or in `deferred`.
    var isQueued = false
    var isDeferred = false
    /// The order in which it came, among all ever owned.
    let number: UInt64

    /// For the ledger it is this hub's, as far as is known.
    var isClaimed: Bool {
      switch phase {
      case .claimed, .toSeize(isClaimed: true): true
      case .unclaimed, .toSeize(isClaimed: false), .seizing, .released: false
      }
    }

    /// A session has begun here, and no claim has been made for it.
    var isToSeize: Bool { if case .toSeize = phase { true } else { false } }
    var attempt: UInt64? { if case .seizing(let attempt) = phase { attempt } else { nil } }
    var isReleased: Bool { if case .released = phase { true } else { false } }
  }

  /// All owned channels, and how many are to be claimed for the first time, are to be released, and are at the ledger.
  struct OwnedTable {
    private(set) var all: [Channel: Owned] = [:]
    private(set) var unclaimedCount = 0
    private(set) var releasedCount = 0
    private(set) var askedCount = 0

    var count: Int { all.count }

    subscript(channel: Channel) -> Owned? {
      get { all[channel] }
      set {
        count(all[channel], -1)
        all[channel] = newValue
        count(newValue, 1)
      }
    }

    private mutating func count(_ known: Owned?, _ step: Int) {
      guard let known else { return }
      if known.isAsked { askedCount += step }
      if known.isReleased { releasedCount += step } else if !known.isClaimed { unclaimedCount += step }
    }
  }

  private var owned = OwnedTable()
  /// To be claimed or released: each once, the newest first.
  private var queue: [Channel] = []
  /// To be claimed or released with the next renewal.
  private var deferred: [Channel] = []
  /// To be claimed again, a few at a time, the last first: drivers that may be another hub's, and behind them all that
  /// was claimed long ago.
  private var toRecheck: [Channel] = []
  private var toRefresh: [Channel] = []
  private var checksAt = Int64.min
  private var lastNumber: UInt64 = 0
  private var lastAttempt: UInt64 = 0
  /// Another hub may have claimed a driver of this one unnoticed: the ledger is to be asked about all.
  var checksHomes = false
  /// A driver has come here from wherever it was, since this hub started.
  private(set) var hasSeized = false
  /// When drivers were last rechecked for that, and when everything was last claimed again (uptime, ns).
  private var homesCheckedAt = Int64.min / 2
  private var claimedAllAt: Int64
  let context: ClusterContext

  init(_ context: ClusterContext) {
    self.context = context
    claimedAllAt = context.now.uptime
  }

  /// Whether this hub has a channel's trip or driver, or is about to have the ledger forget that it has.
  func has(_ channel: Channel) -> Bool {
    if case .raw(let id) = channel { owned[.driver(id)] != nil } else { owned[channel] != nil }
  }

  /// Claims that the ledger does not have yet.
  var unclaimedCount: Int { owned.unclaimedCount }

  mutating func queueDeferred() {
    let channels = deferred
    deferred.removeAll()
    for channel in channels {
      owned[channel]?.isDeferred = false
      enqueue(channel)
    }
  }

  private mutating func putOff(_ channel: Channel) {
    guard owned[channel]?.isDeferred == false else { return }
    owned[channel]?.isDeferred = true
    deferred.append(channel)
    if deferred.count > 2 * owned.count + 1024 { deferred = inOrder { $1.isDeferred } }
  }

  /// The owned channels in order of arrival, so that runs are deterministic. O(n log n) of those selected.
  private func inOrder(where isMeant: (Channel, Owned) -> Bool) -> [Channel] {
    let all = owned.all
    var found: [(number: UInt64, index: Dictionary<Channel, Owned>.Index)] = []
    for index in all.indices where isMeant(all[index].key, all[index].value) {
      found.append((all[index].value.number, index))
    }
    found.sort { $0.number < $1.number }
    return found.map { all[$0.index].key }
  }

  mutating func queueAll() {
    queueDeferred()
    claimedAllAt = context.now.uptime
    for channel in inOrder(where: { _, _ in true }) { enqueue(channel) }
  }

  private mutating func enqueue(_ channel: Channel) {
    guard owned[channel]?.isQueued == false else { return }
    owned[channel]?.isQueued = true
    queue.append(channel)
    // Drops entries of channels that were removed meanwhile.
    if queue.count > 2 * owned.count + 1024 { queue = inOrder { $1.isQueued } }
  }

  /// A trip or driver is here. `seizes`: even if another hub has the driver, which then loses it.
  mutating func own(_ channel: Channel, seizes: Bool, arrival: UInt16 = 0) {
    if owned[channel] == nil { lastNumber += 1 }
    var known = owned[channel] ?? Owned(phase: .unclaimed, arrival: arrival, number: lastNumber)
    if known.isReleased { (known.phase, known.generation, known.arrival) = (.unclaimed, 0, arrival) }
    if seizes {
      (known.phase, known.arrival, hasSeized) = (.toSeize(isClaimed: known.isClaimed), arrival, true)
    }
    owned[channel] = known
    enqueue(channel)
  }

  mutating func disown(_ channel: Channel) {
    guard let known = owned[channel], !known.isReleased else { return }
    guard owned.releasedCount < context.limits.releases else { return remove(channel) }
    owned[channel]?.phase = .released
    enqueue(channel)
  }

  /// Forgets a channel: it is another hub's, or nobody's.
  private mutating func remove(_ channel: Channel) { owned[channel] = nil }

  /// Makes due claims and releases.
  mutating func claim() {
    guard context.phase == .member else { return }
    if context.isLedgerUp { claimAnew() }
    for _ in 0..<context.limits.claimsPerTurn {
      guard owned.askedCount < context.limits.claimsAtLedger, let channel = queue.popLast() else { return }
      owned[channel]?.isQueued = false
      guard var known = owned[channel], !known.isAsked, let key = channel.ledgerKey else { continue }
      known.isAsked = true
      if known.isToSeize { known.phase = .seizing(attempt: nextAttempt()) }
      owned[channel] = known
      let (name, attempt) = (context.identity.name, known.attempt)
      let claim = LedgerQuestion.claim(
        key: key, by: name, known: known.generation, seizes: attempt != nil, attempt: attempt ?? 0)
      context.questions.append(
        known.isReleased ? (.release(key: key, by: name), .release(channel)) : (claim, .claim(channel)))
    }
  }

  /// A number for a claim that seizes a driver, unique among those of this hub.
  private mutating func nextAttempt() -> UInt64 {
    lastAttempt &+= 1
    return context.incarnation << 24 | lastAttempt & 0xFF_FFFF
  }

  /// Claims old entries again, so that the ledger does not forget them, and drivers that another hub may have claimed
  /// unnoticed, which the ledger's answer shows. A few at a time, since all hubs may do so at once.
  private mutating func claimAnew() {
    let (now, limits) = (context.now.uptime, context.limits)
    if toRefresh.isEmpty, now - claimedAllAt >= limits.ownerTime {
      claimedAllAt = now
      toRefresh = inOrder { $1.isClaimed }
    }
    if toRecheck.isEmpty, checksHomes, now - homesCheckedAt >= limits.homesTime {
      (checksHomes, homesCheckedAt) = (false, now)
      toRecheck = inOrder { $0.isSeizable && $1.isClaimed }
    }
    guard !toRecheck.isEmpty || !toRefresh.isEmpty, now >= checksAt else { return }
    checksAt = now + limits.checkTime
    let first = Array(toRecheck.suffix(limits.checksAtOnce))
    let part = first + toRefresh.suffix(limits.checksAtOnce - first.count)
    toRecheck.removeLast(first.count)
    toRefresh.removeLast(part.count - first.count)
    for channel in part where owned[channel]?.isClaimed == true { enqueue(channel) }
  }

  /// The ledger was not asked: the question, of which nothing can be lost, is put with the next renewal.
  mutating func postpone(_ channel: Channel) {
    owned[channel]?.isAsked = false
    putOff(channel)
  }

  mutating func handle(claim answer: LedgerAnswer, of channel: Channel) {
    guard var known = owned[channel] else { return }
    known.isAsked = false
    owned[channel] = known
    if known.isReleased { enqueue(channel) }
    switch answer {
    case .claimed where known.isReleased, .incarnation, .renewed, .superseded, .done, .members, .owner: break
    case .claimed(let generation, let before, let waiting):
      notifyReplaced(channel, generation, before, notifiesAll: known.hasLostAnswer)
      for index in hubs(waiting, before, notifiesAll: known.hasLostAnswer) {
        context.peers[index].append(.begun) { $0.append(channel, at: context.time) }
      }
      (known.generation, known.hasLostAnswer) = (generation, false)
      known.phase = known.isToSeize ? .toSeize(isClaimed: true) : .claimed
      owned[channel] = known
      if known.isToSeize {
        enqueue(channel)  // a session has begun here since that was asked
      } else if known.replacedBy > generation {
        lose(channel)
      }
    case .held where known.isReleased: remove(channel)
    case .held(let owner, let generation):
      // If an answer was lost, this hub may have seized the driver from a third one, which nobody has notified.
      notifyReplaced(channel, generation, nil, notifiesAll: known.hasLostAnswer)
      handleHeld(channel, by: owner, known)
    case .unknown, .refused:
      // Only the ledger knows whether it was carried out.
      if !known.isReleased { owned[channel]?.hasLostAnswer = true }
      putOff(channel)
    }
  }

  /// Another hub says that it has a channel of this one: the ledger is asked whose it is, unless a claim is due anyway.
  mutating func check(_ channel: Channel) {
    guard let known = owned[channel], case .claimed = known.phase else { return }
    if known.isAsked { putOff(channel) } else { enqueue(channel) }
  }

  /// The ledger has released the channel, or has not answered.
  mutating func handle(release answer: LedgerAnswer, of channel: Channel) {
    owned[channel]?.isAsked = false
    guard owned[channel]?.isReleased == true else { return enqueue(channel) }  // it is here again
    switch answer {
    case .unknown, .refused: putOff(channel)
    case .done, .incarnation, .renewed, .superseded, .members, .owner, .claimed, .held: remove(channel)
    }
  }

  /// The hubs to notify that a channel is here: those that wait for it; or all, where its owner before cannot notify
  /// its followers, or an answer that named the waiting hubs may have been lost.
  private func hubs(_ waiting: [String], _ before: String?, notifiesAll: Bool) -> [Int] {
    var notifiesAll = notifiesAll
    if !notifiesAll, let before, before != context.identity.name {
      notifiesAll = context.member(before).map { context.peers[$0].isSilent } ?? true
    }
    return context.peers.indices.filter {
      context.peers[$0].isMember && (notifiesAll || waiting.contains(context.peers[$0].name))
    }
  }

  /// For the ledger it is another hub's.
  private mutating func handleHeld(_ channel: Channel, by owner: String, _ known: Owned) {
    switch channel {
    case .driver where known.isToSeize: enqueue(channel)  // a session has begun here since that was asked
    case .driver: lose(channel)
    case .trip, .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats:
      remove(channel)
      context.counters.ownerConflicts += 1
      context.notices.append(.ownerConflict("\(channel)", owner: owner))
    }
  }

  /// A driver's newest session is elsewhere.
  private mutating func lose(_ channel: Channel) {
    guard case .driver(let id) = channel, let known = owned[channel] else { return }
    remove(channel)
    concede(channel)
    context.inputs.append(.cluster(.driverElsewhere(id, arrival: known.arrival)))
  }

  /// The ledger need not name this hub any more to those who claim the driver.
  private func concede(_ channel: Channel) {
    guard let key = channel.ledgerKey else { return }
    context.questions.append((.concede(key: key, by: context.identity.name), .nothing))
  }

  /// Notifies the driver's former hub that it has moved; all hubs, if any may be the former one.
  private func notifyReplaced(_ channel: Channel, _ generation: UInt64, _ before: String?, notifiesAll: Bool) {
    guard case .driver(let id) = channel else { return }
    func write(_ bytes: inout ByteBuffer) {
      bytes.append(varint: generation)
      bytes.append(utf8Run: id.description)
    }
    if notifiesAll {
      // Not repeated: a hub that misses it asks the ledger.
      for peer in context.peers where peer.incarnation > 0 { peer.append(.replaced, write) }
    } else if let before, before != context.identity.name, ClusterIdentity.isName(before),
      let index = context.peer(before)
    {
      context.notifyEnded(index, .replaced, write)
    }
  }

  /// Another hub says that it took a driver with this generation.
  mutating func receive(replaced reader: inout ClusterFrameReader) throws(ClusterFrameError) {
    let generation = try reader.varint()
    let id = try reader.identifier()
    let channel = Channel.driver(id)
    guard let known = owned[channel] else {
      // For the ledger, and for sessions here, it was still this hub's.
      concede(channel)
      for name in [channel, .raw(id)] { context.inputs.append(.cluster(.begunElsewhere(name))) }
      return
    }
    owned[channel]?.replacedBy = max(known.replacedBy, generation)
    // While a claim is under way or to be made, its answer decides.
    if case .claimed = known.phase, !known.isAsked, generation > known.generation { lose(channel) }
  }
}

extension Channel {
  /// The key of the channel's owner in the ledger; nil for channels that every hub has itself.
  public var ledgerKey: String? {
    switch self {
    case .trip(let id): "t:\(id)"
    case .driver(let id), .raw(let id): "d:\(id)"
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .stats: nil
    }
  }

  /// Whether another hub may seize it at any moment.
  fileprivate var isSeizable: Bool { if case .driver = self { true } else { false } }
}
