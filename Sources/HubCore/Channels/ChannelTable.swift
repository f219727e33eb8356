// Channels: subscribers (how many on which outlet), the number of events, and the newest events for recovery.
//
// A channel exists while it has a subscriber or an event. The hub gives a publication once to each outlet with
// subscribers; only the outlet knows the sessions.
import HubBytes
import HubGeo
import HubMessages

/// One channel's record: 96 bytes, the small members in the padding of the name.
struct ChannelRecord {
  private let compactName: CompactChannel
  /// Events may still come or be requested: the record outlives its subscribers.
  var isKept = false
  /// Its publications come from another hub. `isWanted`: the hub itself wants them, with or without subscribers.
  var isFollowed = false
  var isWanted = false
  /// Which hub's event numbers the sessions here have.
  var numbering = Numbering.own

  enum Numbering: UInt8 {
    case own
    /// This hub's, though another hub owns the channel now: its sessions may have missed events.
    case outdated
    /// The owner's, from which it comes.
    case others
  }

  /// The driver listens to its own channel: its session is in `ChannelTable.driverListeners`.
  var hasDriverListener = false
  /// The conflation key of the channel's last raw fix; 0 before the first.
  var rawFixKey: UInt8 = 0
  /// The index in the area table of a watched cell; nil for other channels.
  @PackedIndex var area: Int?
  var subscribers: UInt32 = 0
  /// The number of the newest event; before the first, the starting number (see `ChannelTable.highestSequence`).
  var sequence: UInt64
  /// The journal's number of the newest event, and the sequence before the first event that may be unstored.
  var eventTicket: UInt64 = 0
  var storedSequence: UInt64 = 0
  /// The outlets with at least one subscriber.
  var outlets = OutletSet()
  /// The newest events, without gaps, the last one numbered `sequence`.
  var events = KeptEvents()
  /// Bytes of what its kept events hold (see `ChannelTable.contentBytes`).
  var contentBytes: UInt32 = 0

  init(name: Channel, sequence: UInt64) {
    compactName = CompactChannel(name)
    self.sequence = sequence
  }

  /// Made anew at each call, in some 5 ns.
  @inline(__always) var name: Channel { compactName.channel }
}

/// A channel's name in 18 bytes where it has an id of up to 16 characters.
private enum CompactChannel {
  case trip(CompactIdentifier)
  case driver(CompactIdentifier)
  case fence(CompactIdentifier)
  case area(GeohashCell)
  /// The whole fleet; also the placeholder in a free slot.
  case fleet
  indirect case other(Channel)

  init(_ channel: Channel) {
    switch channel {
    case .trip(let id): self = .trip(CompactIdentifier(id))
    case .driver(let id): self = .driver(CompactIdentifier(id))
    case .fence(let id): self = .fence(CompactIdentifier(id))
    case .area(let cell): self = .area(cell)
    case .fleet: self = .fleet
    case .nearby, .box, .counts, .countsBlock, .raw, .trips, .stats: self = .other(channel)
    }
  }

  @inline(__always) var channel: Channel {
    switch self {
    case .trip(let id): .trip(id.identifier)
    case .driver(let id): .driver(id.identifier)
    case .fence(let id): .fence(id.identifier)
    case .area(let cell): .area(cell)
    case .fleet: .fleet
    case .other(let channel): channel
    }
  }
}

struct ChannelTable: ~Copyable {
  private let limits: HubLimits
  private var seed: UInt64
  private let outletCount: Int
  private var slab = Slab<ChannelRecord>()
  private var names = IndexTable()
  /// Subscribers by channel and outlet: `counts[index * outletCount + outlet]`.
  private var counts: [UInt32] = []
  /// Bytes of what kept events hold beside their members of a fixed size: routes, texts, data.
  private(set) var contentBytes = 0
  /// The channel of each kept event, oldest first, to find the oldest of all.
  private var eventOrder = EventOrder()
  /// By channel: the driver's session that subscribed last. A driver that listens to its own channel is no follower.
  private var driverListeners: [Int: SessionRef] = [:]
  /// No removed channel had a higher number. New channels start from here, so that no channel repeats a number within
  /// an epoch; else a client that resumes on a recreated channel would not learn that it missed events.
  private(set) var highestSequence: UInt64 = 0

  init(limits: HubLimits, seed: UInt64, outletCount: Int) {
    precondition((1...OutletSet.capacity).contains(outletCount))
    self.limits = limits
    self.seed = seed
    self.outletCount = outletCount
  }

  var count: Int { slab.count }
  /// Events kept in all channels.
  var eventCount: Int { eventOrder.count }

  func record(_ index: Int) -> ChannelRecord { slab[index] }
  func sequence(_ index: Int) -> UInt64 { slab[index].sequence }
  @inline(__always) func outlets(_ index: Int) -> OutletSet { slab[index].outlets }
  func subscribers(_ index: Int, outlet: Int) -> Int { Int(counts[index * outletCount + outlet]) }
  func name(_ index: Int) -> Channel { slab[index].name }

  func find(_ name: Channel) -> Int? {
    names.find(hash: hash(name)) { slab[$0].name == name }
  }

  /// The channel's index, created if needed; nil at the role's limit. The hub's own events have the limit of ops.
  mutating func findOrInsert(_ name: Channel, for role: Role = .ops) -> Int? {
    let hash = hash(name)
    if let found = names.find(hash: hash, where: { slab[$0].name == name }) { return found }
    guard slab.count < role.share(of: limits.channels) else { return nil }
    return insert(name, hash: hash)
  }

  private mutating func insert(_ name: Channel, hash: UInt64) -> Int {
    let index = slab.insert(ChannelRecord(name: name, sequence: highestSequence))
    names.insert(hash: hash, index: index)
    if counts.count < slab.endIndex * outletCount { counts.append(contentsOf: repeatElement(0, count: outletCount)) }
    return index
  }

  /// Adds a channel for a cell of the area table, which keeps its index: a cell may have a channel for each audience,
  /// so it is not found by name. Nil at the limit.
  mutating func insert(area name: Channel, for role: Role) -> Int? {
    guard slab.count < role.share(of: limits.channels) else { return nil }
    let index = slab.insert(ChannelRecord(name: name, sequence: 0))
    slab[index].area = 0  // until that is known
    if counts.count < slab.endIndex * outletCount { counts.append(contentsOf: repeatElement(0, count: outletCount)) }
    return index
  }

  mutating func setArea(_ index: Int, _ area: Int) { slab[index].area = area }

  /// The index in the area table; nil for other channels, or one that has ended.
  func area(_ index: Int) -> Int? {
    index < slab.endIndex && slab.isInUse(index) ? slab[index].area : nil
  }

  mutating func addSubscriber(_ index: Int, outlet: Int) {
    counts[index * outletCount + outlet] += 1
    slab[index].subscribers += 1
    slab[index].outlets.insert(outlet)
  }

  /// A driver's session has subscribed, or has unsubscribed.
  mutating func setDriverListener(_ index: Int, _ session: SessionRef?) {
    driverListeners[index] = session
    slab[index].hasDriverListener = session != nil
  }

  /// Whether any other session is subscribed. A session that ended but is not released still counts.
  @inline(__always)
  func hasListener(_ index: Int, besides session: SessionRef?) -> Bool {
    let subscribers = slab[index].subscribers
    if subscribers != 1 { return subscribers > 1 }
    return session == nil || driverListener(index) != session
  }

  @inline(__always)
  func driverListener(_ index: Int) -> SessionRef? {
    slab[index].hasDriverListener ? driverListeners[index] : nil
  }

  mutating func setFollowed(_ index: Int, _ isFollowed: Bool, _ numbering: ChannelRecord.Numbering = .own) {
    (slab[index].isFollowed, slab[index].numbering) = (isFollowed, numbering)
  }

  func isFollowed(_ index: Int) -> Bool { slab[index].isFollowed }
  func numbering(_ index: Int) -> ChannelRecord.Numbering { slab[index].numbering }

  /// Keeps the record while the hub wants it. True when it was removed at once.
  mutating func setWanted(_ index: Int, _ isWanted: Bool) -> Bool {
    slab[index].isWanted = isWanted
    return removeIfUnused(index)
  }

  func isWanted(_ index: Int) -> Bool { slab[index].isWanted }

  /// Removes a subscriber; true when the channel was removed, too.
  mutating func removeSubscriber(_ index: Int, outlet: Int) -> Bool {
    let entry = index * outletCount + outlet
    precondition(slab.isInUse(index) && counts[entry] > 0, "an outlet released a subscription that it did not have")
    counts[entry] -= 1
    slab[index].subscribers -= 1
    if counts[entry] == 0 { slab[index].outlets.remove(outlet) }
    return removeIfUnused(index)
  }

  /// Keeps the record while its trip or driver is known; without it the record goes with its last subscriber. True when
  /// it was removed at once.
  mutating func setKept(_ index: Int, _ kept: Bool) -> Bool {
    slab[index].isKept = kept
    if !kept {
      highestSequence = max(highestSequence, slab[index].sequence)
      forgetEvents(index)
    }
    return removeIfUnused(index)
  }

  private mutating func removeIfUnused(_ index: Int) -> Bool {
    guard slab[index].subscribers == 0, !slab[index].isKept, !slab[index].isWanted else { return false }
    if slab[index].area == nil { names.remove(hash: hash(slab[index].name), index: index) }
    forgetEvents(index)
    if slab[index].hasDriverListener { setDriverListener(index, nil) }
    highestSequence = max(highestSequence, slab[index].sequence)
    slab.remove(index, leaving: ChannelRecord(name: .fleet, sequence: 0))
    return true
  }

  // MARK: Events

  /// A key for a driver's next fix as measured: so many in turn, so that the newest ones of the channel are kept.
  mutating func nextRawFixKey(_ index: Int) -> UInt32 {
    slab[index].rawFixKey = slab[index].rawFixKey % UInt8(HubLimits.unreadRawFixes) + 1
    return UInt32(slab[index].rawFixKey)
  }

  /// The number of the newest stored event, if everything up to the journal's number `ticket` is stored.
  @inline(__always) func sequence(_ index: Int, storedThrough ticket: UInt64) -> UInt64 {
    slab[index].eventTicket <= ticket ? slab[index].sequence : slab[index].storedSequence
  }

  /// The number of the channel's next event, which is stored with the journal's number `ticket`.
  mutating func nextSequence(_ index: Int, ticket: UInt64, storedThrough: UInt64) -> UInt64 {
    if slab[index].eventTicket <= storedThrough { slab[index].storedSequence = slab[index].sequence }
    slab[index].eventTicket = ticket
    slab[index].sequence += 1
    return slab[index].sequence
  }

  /// Keeps an event for recovery and drops the oldest at a limit. Amortised O(the event's bytes).
  mutating func keep(_ event: Publication, _ index: Int) {
    if slab[index].events.count == limits.eventsPerChannel { forgetOldestEvent(index) }
    if eventOrder.count == limits.events { forgetOldestEvent(eventOrder.channelOfOldest) }
    let bytes = event.contentBytes
    while Int(slab[index].contentBytes) + bytes > limits.eventContentBytesPerChannel, !slab[index].events.isEmpty {
      forgetOldestEvent(index)
    }
    while contentBytes + bytes > limits.eventContentBytes, eventOrder.count > 0 {
      forgetOldestEvent(eventOrder.channelOfOldest)
    }
    contentBytes += bytes
    slab[index].contentBytes += UInt32(bytes)
    slab[index].events.append(event, node: eventOrder.append(channel: index))
  }

  private mutating func forgetOldestEvent(_ index: Int) {
    let (node, bytes) = slab[index].events.removeFirst()
    eventOrder.remove(node)
    contentBytes -= Int(bytes)
    slab[index].contentBytes -= bytes
  }

  private mutating func forgetEvents(_ index: Int) {
    for (node, bytes) in slab[index].events.removeAll() {
      eventOrder.remove(node)
      contentBytes -= Int(bytes)
    }
    slab[index].contentBytes = 0
  }

  /// Skips a number and drops all kept events, so that resuming clients learn that they missed something.
  mutating func skip(_ index: Int) {
    forgetEvents(index)
    slab[index].sequence += 1
  }

  /// The events after `since`; nil when some are not kept or `since` is ahead of the channel.
  func events(_ index: Int, since: UInt64) -> [Publication]? {
    let sequence = slab[index].sequence
    guard since <= sequence else { return nil }
    let missed = sequence - since
    guard missed <= UInt64(slab[index].events.count) else { return nil }
    return slab[index].events.suffix(Int(missed))
  }

  /// The kept notification that was posted with this id. O(kept events of the channel).
  func notification(_ index: Int, posted id: MessageID) -> Notification? {
    for event in slab[index].events.suffix(slab[index].events.count).reversed() {
      if case .notification(let made) = event.body, made.messageID == id { return made }
    }
    return nil
  }

  /// Keeps the channel from now on; the start of its numbers is stored with the journal's number `ticket`.
  mutating func begin(_ index: Int, ticket: UInt64) {
    slab[index].isKept = true
    slab[index].eventTicket = ticket
    slab[index].storedSequence = slab[index].sequence
  }

  func eventTicket(_ index: Int) -> UInt64 { slab[index].eventTicket }
  func isKept(_ index: Int) -> Bool { slab[index].isKept }

  // MARK: Reading back

  /// Changes the seed of an empty table.
  mutating func setSeed(_ seed: UInt64) {
    precondition(slab.count == 0)
    self.seed = seed
  }

  mutating func restore(highestSequence number: UInt64) { highestSequence = max(highestSequence, number) }

  /// Restores a channel before its kept events.
  mutating func restore(_ name: Channel, sequence: UInt64) {
    let index = restore(name)
    forgetEvents(index)
    slab[index].sequence = sequence
  }

  /// Finds or creates a kept channel, also beyond the limit of channels, which may have been lowered.
  private mutating func restore(_ name: Channel) -> Int {
    let index = find(name) ?? insert(name, hash: hash(name))
    slab[index].isKept = true
    return index
  }

  /// Restores an event with its number. False for other publications.
  mutating func restore(_ event: Publication) -> Bool {
    guard let number = event.sequence, number > 0 else { return false }
    let index = restore(event.channel)
    // Within a reserved range other numbers may be other hubs' events, not in this journal (Channels+Trips.swift).
    if event.channel == .trips, number <= slab[index].sequence { return true }
    // Kept events have no gaps.
    if number != slab[index].sequence + 1 { forgetEvents(index) }
    slab[index].sequence = number
    keep(event, index)
    return true
  }

  func keptNames() -> [Channel] {
    (0..<slab.endIndex).filter { slab.isInUse($0) && slab[$0].isKept }.map { slab[$0].name }
  }

  /// Each channel whose events are kept, with the number before its oldest kept event.
  func forEachKept<E: Error>(_ body: (Channel, UInt64) throws(E) -> Void) throws(E) {
    for index in 0..<slab.endIndex where slab.isInUse(index) && slab[index].isKept {
      try body(slab[index].name, slab[index].sequence - UInt64(slab[index].events.count))
    }
  }

  /// Every kept event, oldest first.
  func forEachEvent<E: Error>(_ body: (Publication) throws(E) -> Void) throws(E) {
    var written: [Int: Int] = [:]
    var node = eventOrder.first
    while let (channel, next) = eventOrder.step(node) {
      try body(slab[channel].events.next(&written[channel, default: 0]))
      node = next
    }
  }

  func hash(_ name: Channel) -> UInt64 {
    switch name {
    case .trip(let id): id.text.hashValue(seed: seed ^ 1)
    case .driver(let id): id.text.hashValue(seed: seed ^ 2)
    case .fence(let id): id.text.hashValue(seed: seed ^ 3)
    case .area, .nearby, .box, .counts, .countsBlock: seed  // not found by name: see `insert(area:for:)`
    case .fleet: seed ^ 6
    case .trips: seed ^ 7
    case .raw(let id): id.text.hashValue(seed: seed ^ 8)
    case .stats: seed ^ 10
    }
  }
}

extension Channels {
  /// What was removed with a channel's last subscriber.
  enum Release {
    case nothing
    case channel(Channel)
    /// A watched cell, by its index in the area table.
    case area(Int)
  }
}
