// Channels: who listens (how many on which loop), how many events there were, and the newest of them for recovery.
//
// A channel exists while it has a subscriber or an event. The hub hands a publication once to each loop that has
// subscribers; which sessions those are only the loop knows.
import Bytes
import Geo
import Messages

/// One channel's record.
struct ChannelRecord {
  var name: Channel
  var hash: UInt64
  /// The number of the newest event; 0 before the first.
  var sequence: UInt64 = 0
  /// Bit l: loop l has at least one subscriber.
  var loops: UInt64 = 0
  var subscribers = 0
  /// The newest events, oldest first, without gaps, the last one numbered `sequence`.
  var events: [Publication] = []
  /// Events may still come or be asked for: the record outlives its subscribers.
  var isKept = false
  var isInUse = true
}

struct ChannelTable: ~Copyable {
  /// Loops are bits of a word.
  static let maximumLoops = 64

  private let limits: HubLimits
  private let seed: UInt64
  private let loopCount: Int
  private var slab = Slab<ChannelRecord>()
  private var names = IndexTable()
  /// Subscribers by channel and loop: `counts[index * loopCount + loop]`.
  private var counts: [UInt32] = []
  /// The channel of each kept event, oldest first, to find the oldest of all.
  private var eventOrder = EventOrder()

  init(limits: HubLimits, seed: UInt64, loopCount: Int) {
    precondition((1...Self.maximumLoops).contains(loopCount))
    self.limits = limits
    self.seed = seed
    self.loopCount = loopCount
  }

  var count: Int { slab.count }
  var eventCount: Int { eventOrder.count }

  func record(_ index: Int) -> ChannelRecord { slab[index] }
  func sequence(_ index: Int) -> UInt64 { slab[index].sequence }
  @inline(__always) func loops(_ index: Int) -> UInt64 { slab[index].loops }
  func name(_ index: Int) -> Channel { slab[index].name }

  func find(_ name: Channel) -> Int? {
    names.find(hash: hash(name)) { slab[$0].name == name }
  }

  /// The channel's index, made if it isn't there; nil at the limit.
  mutating func findOrInsert(_ name: Channel) -> Int? {
    let hash = hash(name)
    if let found = names.find(hash: hash, where: { slab[$0].name == name }) { return found }
    guard slab.count < limits.channels else { return nil }
    let index = slab.insert(ChannelRecord(name: name, hash: hash))
    names.insert(hash: hash, index: index)
    if counts.count < slab.endIndex * loopCount { counts.append(contentsOf: repeatElement(0, count: loopCount)) }
    return index
  }

  mutating func addSubscriber(_ index: Int, loop: Int) {
    counts[index * loopCount + loop] += 1
    slab[index].subscribers += 1
    slab[index].loops |= 1 << UInt64(loop)
  }

  /// One subscriber less; true when the channel went with it.
  mutating func removeSubscriber(_ index: Int, loop: Int) -> Bool {
    let place = index * loopCount + loop
    precondition(slab[index].isInUse && counts[place] > 0, "a loop released a subscription that it did not have")
    counts[place] -= 1
    slab[index].subscribers -= 1
    if counts[place] == 0 { slab[index].loops &= ~(1 << UInt64(loop)) }
    return removeIfUnused(index)
  }

  /// Keeps the record while its trip or driver is known; without it the record goes with its last subscriber.
  /// True when it went at once.
  mutating func setKept(_ index: Int, _ kept: Bool) -> Bool {
    slab[index].isKept = kept
    return removeIfUnused(index)
  }

  private mutating func removeIfUnused(_ index: Int) -> Bool {
    guard slab[index].subscribers == 0, !slab[index].isKept else { return false }
    names.remove(hash: slab[index].hash, index: index)
    slab.remove(index, leaving: ChannelRecord(name: .fleet, hash: 0, isInUse: false))
    return true
  }

  // MARK: Events

  /// The number that the channel's next event will have.
  mutating func nextSequence(_ index: Int) -> UInt64 {
    slab[index].sequence += 1
    return slab[index].sequence
  }

  /// Keeps an event for recovery, forgetting the oldest where a limit is reached.
  mutating func keep(_ event: Publication, _ index: Int) {
    if slab[index].events.count == limits.eventsPerChannel { slab[index].events.removeFirst() }
    slab[index].events.append(event)
    eventOrder.append(index, slab.generation(of: index), slab[index].sequence)
    while eventOrder.count > limits.events {
      let oldest = eventOrder.removeFirst()
      guard slab.isCurrent(oldest.channel, oldest.generation) else { continue }
      let firstKept = slab[oldest.channel].sequence - UInt64(slab[oldest.channel].events.count) + 1
      if firstKept == oldest.sequence, !slab[oldest.channel].events.isEmpty {
        slab[oldest.channel].events.removeFirst()
      }
    }
  }

  /// The events after `since`, or nil when not all of them are kept or `since` is ahead of the channel.
  func events(_ index: Int, since: UInt64) -> [Publication]? {
    let record = slab[index]
    guard since <= record.sequence else { return nil }
    let missed = record.sequence - since
    guard missed <= UInt64(record.events.count) else { return nil }
    return Array(record.events.suffix(Int(missed)))
  }

  private func hash(_ name: Channel) -> UInt64 {
    switch name {
    case .trip(let id): id.text.hashValue(seed: seed ^ 1)
    case .driver(let id): id.text.hashValue(seed: seed ^ 2)
    case .fence(let id): id.text.hashValue(seed: seed ^ 3)
    case .area(let text): text.hashValue(seed: seed ^ 4)
    case .nearby(let centre, let radius):
      (centre.latitude.bitPattern &* 31 &+ centre.longitude.bitPattern) &* 31 &+ radius.bitPattern ^ seed
    case .fleet: seed ^ 6
    }
  }
}

/// A queue of which channel got an event when: a ring that grows to the limit of kept events.
private struct EventOrder {
  struct Entry {
    var channel: Int
    var generation: UInt32
    var sequence: UInt64
  }

  private var ring: [Entry] = []
  private var head = 0
  private(set) var count = 0

  mutating func append(_ channel: Int, _ generation: UInt32, _ sequence: UInt64) {
    let entry = Entry(channel: channel, generation: generation, sequence: sequence)
    if count == ring.count {
      ring = Array(ring[head...] + ring[..<head])
      head = 0
      ring.append(contentsOf: repeatElement(entry, count: max(64, ring.count)))
    }
    ring[(head + count) % ring.count] = entry
    count += 1
  }

  mutating func removeFirst() -> Entry {
    precondition(count > 0)
    defer {
      head = (head + 1) % ring.count
      count -= 1
    }
    return ring[head]
  }
}
