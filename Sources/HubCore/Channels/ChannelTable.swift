// Channels: who listens (how many on which outlet), how many events there were, and the newest of them for recovery.
//
// A channel exists while it has a subscriber or an event. The hub hands a publication once to each outlet that has
// subscribers; which sessions those are only the outlet knows.
import HubBytes
import HubGeo
import HubMessages

/// One channel's record: 144 bytes, the small members where the name leaves room.
struct ChannelRecord {
  var name: Channel
  /// Events may still come or be asked for: the record outlives its subscribers.
  var isKept = false
  /// Its publications come from another hub; and the hub itself wants them, with or without subscribers.
  var isFollowed = false
  var isWanted = false
  /// Of a cell that is watched: its index in the area table, which finds it; −1 for all others.
  var area: Int32 = -1
  /// The number of the newest event; before the first, where the numbers start (see `ChannelTable.highestSequence`).
  var sequence: UInt64
  /// The journal's number of the newest event, and the newest sequence before the first event that may not be stored
  /// yet.
  var eventTicket: UInt64 = 0
  var storedSequence: UInt64 = 0
  /// The outlets with at least one subscriber.
  var outlets = OutletSet()
  /// The newest events, oldest first, without gaps, the last one numbered `sequence`.
  var events: [KeptEvent] = []
  var subscribers: UInt32 = 0
  /// Bytes of what its kept events hold (see `ChannelTable.contentBytes`).
  var contentBytes: UInt32 = 0
  /// The driver's session that subscribed last: a driver that listens to its own channel follows nobody.
  var driverListener: SessionRef?

  init(name: Channel, sequence: UInt64) {
    self.name = name
    self.sequence = sequence
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
  /// No channel that is gone had a number above this. New channels count on from here: within an epoch no channel gives
  /// out a number twice, or a client that comes back to a channel that was made anew would be told that it missed
  /// nothing.
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

  /// The channel's index, made if it isn't there; nil at the limit of who wants it. The hub's own events are worth as
  /// much as what ops want.
  mutating func findOrInsert(_ name: Channel, for role: Role = .ops) -> Int? {
    let hash = hash(name)
    if let found = names.find(hash: hash, where: { slab[$0].name == name }) { return found }
    guard slab.count < role.share(of: limits.channels) else { return nil }
    let index = slab.insert(ChannelRecord(name: name, sequence: highestSequence))
    names.insert(hash: hash, index: index)
    if counts.count < slab.endIndex * outletCount { counts.append(contentsOf: repeatElement(0, count: outletCount)) }
    return index
  }

  /// A channel for a cell of the area table, which knows where it is: it is not found by its name, for a cell may have
  /// one channel for each audience. Nil at the limit.
  mutating func insert(area name: Channel, for role: Role) -> Int? {
    guard slab.count < role.share(of: limits.channels) else { return nil }
    let index = slab.insert(ChannelRecord(name: name, sequence: 0))
    if counts.count < slab.endIndex * outletCount { counts.append(contentsOf: repeatElement(0, count: outletCount)) }
    return index
  }

  mutating func setArea(_ index: Int, _ area: Int) { slab[index].area = Int32(area) }

  /// The index in the area table; nil for what is no area's channel, or not any more.
  func area(_ index: Int) -> Int? {
    index < slab.endIndex && slab.isInUse(index) && slab[index].area >= 0 ? Int(slab[index].area) : nil
  }

  mutating func addSubscriber(_ index: Int, outlet: Int) {
    counts[index * outletCount + outlet] += 1
    slab[index].subscribers += 1
    slab[index].outlets.insert(outlet)
  }

  /// A driver's session is among the subscribers, or is not any more.
  mutating func setDriverListener(_ index: Int, _ session: SessionRef?) { slab[index].driverListener = session }

  /// Whether anybody but this session is subscribed. A session that is gone but for its release still counts.
  @inline(__always)
  func hasListener(_ index: Int, besides session: SessionRef?) -> Bool {
    let subscribers = slab[index].subscribers
    if subscribers != 1 { return subscribers > 1 }
    return session == nil || slab[index].driverListener != session
  }

  func driverListener(_ index: Int) -> SessionRef? { slab[index].driverListener }

  mutating func setFollowed(_ index: Int, _ isFollowed: Bool) { slab[index].isFollowed = isFollowed }
  func isFollowed(_ index: Int) -> Bool { slab[index].isFollowed }

  /// Keeps the record while the hub wants it. True when it went at once.
  mutating func setWanted(_ index: Int, _ isWanted: Bool) -> Bool {
    slab[index].isWanted = isWanted
    return removeIfUnused(index)
  }

  func isWanted(_ index: Int) -> Bool { slab[index].isWanted }

  /// One subscriber less; true when the channel went with it.
  mutating func removeSubscriber(_ index: Int, outlet: Int) -> Bool {
    let entry = index * outletCount + outlet
    precondition(slab.isInUse(index) && counts[entry] > 0, "an outlet released a subscription that it did not have")
    counts[entry] -= 1
    slab[index].subscribers -= 1
    if counts[entry] == 0 { slab[index].outlets.remove(outlet) }
    return removeIfUnused(index)
  }

  /// Keeps the record while its trip or driver is known; without it the record goes with its last subscriber.
  /// True when it went at once.
  mutating func setKept(_ index: Int, _ kept: Bool) -> Bool {
    slab[index].isKept = kept
    if !kept {
      highestSequence = max(highestSequence, slab[index].sequence)
      while !slab[index].events.isEmpty { forgetOldestEvent(index) }
    }
    return removeIfUnused(index)
  }

  private mutating func removeIfUnused(_ index: Int) -> Bool {
    guard slab[index].subscribers == 0, !slab[index].isKept, !slab[index].isWanted else { return false }
    if slab[index].area < 0 { names.remove(hash: hash(slab[index].name), index: index) }
    for event in slab[index].events {
      eventOrder.remove(event.node)
      contentBytes -= Int(event.contentBytes)
    }
    highestSequence = max(highestSequence, slab[index].sequence)
    slab.remove(index, leaving: ChannelRecord(name: .fleet, sequence: 0))
    return true
  }

  // MARK: Events

  /// The newest event that everyone may know of, where everything up to a journal's number is stored.
  @inline(__always) func sequence(_ index: Int, storedThrough ticket: UInt64) -> UInt64 {
    slab[index].eventTicket <= ticket ? slab[index].sequence : slab[index].storedSequence
  }

  /// The number that the channel's next event will have, which will be stored with the journal's number `ticket`.
  mutating func nextSequence(_ index: Int, ticket: UInt64, storedThrough: UInt64) -> UInt64 {
    if slab[index].eventTicket <= storedThrough { slab[index].storedSequence = slab[index].sequence }
    slab[index].eventTicket = ticket
    slab[index].sequence += 1
    return slab[index].sequence
  }

  /// Keeps an event for recovery, forgetting the oldest where a limit is reached. O(`eventsPerChannel`) there for each
  /// that is forgotten, else O(1).
  mutating func keep(_ event: Publication, _ index: Int) {
    if slab[index].events.count == limits.eventsPerChannel { forgetOldestEvent(index) }
    if eventOrder.count == limits.events { forgetOldestEvent(eventOrder.channelOfOldest) }
    let bytes = event.contentBytes
    while Int(slab[index].contentBytes) + bytes > limits.eventContentBytesPerChannel, !slab[index].events.isEmpty {
      forgetOldestEvent(index)
    }
    contentBytes += bytes
    slab[index].contentBytes += UInt32(bytes)
    slab[index].events.append(KeptEvent(event, node: eventOrder.append(channel: index)))
  }

  private mutating func forgetOldestEvent(_ index: Int) {
    let event = slab[index].events.removeFirst()
    eventOrder.remove(event.node)
    contentBytes -= Int(event.contentBytes)
    slab[index].contentBytes -= event.contentBytes
  }

  /// Gives a number to no event, and keeps none before: whoever has an older one has missed something.
  mutating func skip(_ index: Int) {
    while !slab[index].events.isEmpty { forgetOldestEvent(index) }
    slab[index].sequence += 1
  }

  /// The events after `since`, or nil when not all of them are kept or `since` is ahead of the channel.
  func events(_ index: Int, since: UInt64) -> [Publication]? {
    let sequence = slab[index].sequence
    guard since <= sequence else { return nil }
    let missed = sequence - since
    guard missed <= UInt64(slab[index].events.count) else { return nil }
    return slab[index].events.suffix(Int(missed)).map(\.publication)
  }

  /// The kept notification that was posted with this id. O(kept events of the channel).
  func notification(_ index: Int, posted id: MessageID) -> Notification? {
    for event in slab[index].events.reversed() {
      if case .notification(let made) = event.publication.body, made.messageID == id { return made }
    }
    return nil
  }

  /// That the channel counts from here is stored with the journal's number `ticket`.
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

  /// A channel whose events are kept, before they come; none before is kept. False at the limit of channels.
  mutating func restore(_ name: Channel, sequence: UInt64) -> Bool {
    guard let index = findOrInsert(name) else { return false }
    slab[index].isKept = true
    while !slab[index].events.isEmpty { forgetOldestEvent(index) }
    slab[index].sequence = sequence
    return true
  }

  /// An event with the number that it has. False at the limit of channels, and for what is no event.
  mutating func restore(_ event: Publication) -> Bool {
    let number: UInt64
    switch event.body {
    case .tripUpdate(let update): number = update.sequence
    case .notification(let notification): number = notification.sequence
    case .offer(let offer): number = offer.sequence
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: return false
    }
    guard number > 0, let index = findOrInsert(event.channel) else { return false }
    slab[index].isKept = true
    // All up to a number were reserved, and what had the others is not known (Channels+Trips.swift).
    if event.channel == .trips, number <= slab[index].sequence { return true }
    // What is kept has no gaps.
    if number != slab[index].sequence + 1 { while !slab[index].events.isEmpty { forgetOldestEvent(index) } }
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

  /// Every kept event, in the order in which they came.
  func forEachEvent<E: Error>(_ body: (Publication) throws(E) -> Void) throws(E) {
    var written: [Int: Int] = [:]
    var node = eventOrder.first
    while let (channel, next) = eventOrder.step(node) {
      let index = written[channel, default: 0]
      try body(slab[channel].events[index].publication)
      written[channel] = index + 1
      node = next
    }
  }

  func hash(_ name: Channel) -> UInt64 {
    switch name {
    case .trip(let id): id.text.hashValue(seed: seed ^ 1)
    case .driver(let id): id.text.hashValue(seed: seed ^ 2)
    case .fence(let id): id.text.hashValue(seed: seed ^ 3)
    case .area(let cell): (cell.bits << 4 | UInt64(cell.precision)) &* Mix64.golden ^ seed
    case .nearby(let centre, let radius):
      (centre.latitude.bitPattern &* 31 &+ centre.longitude.bitPattern) &* 31 &+ radius.bitPattern ^ seed
    case .countsBlock(let cell): (cell.bits << 4 | UInt64(cell.precision)) &* Mix64.golden ^ seed ^ 9
    case .box(let box), .counts(let box):
      ((box.west.bitPattern &* 31 &+ box.south.bitPattern) &* 31 &+ box.east.bitPattern) &* 31
        &+ box.north.bitPattern ^ seed
    case .fleet: seed ^ 6
    case .trips: seed ^ 7
    case .raw(let id): id.text.hashValue(seed: seed ^ 8)
    case .stats: seed ^ 10
    }
  }
}

extension Channels {
  /// What went with a channel's last subscriber.
  enum Release {
    case nothing
    case channel(Channel)
    /// A cell that was watched, by its index in the area table.
    case area(Int)
  }
}
