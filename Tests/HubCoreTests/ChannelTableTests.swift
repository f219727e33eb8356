// Channels: numbers without gaps, what is kept of the events, who listens where.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

/// An event as the hub would publish it.
private func event(_ channel: Channel, _ sequence: UInt64) -> Publication {
  Publication(
    channel: channel, number: 0, timestamp: time(0),
    body: .notification(Notification(kind: .message, title: "", body: "", driverID: nil, sequence: sequence)))
}

extension ChannelTable {
  fileprivate init(channels: Int = 100, perChannel: Int = 4, total: Int = 10, loops: Int = 3) {
    var limits = HubLimits.roomy
    limits.channels = channels
    limits.eventsPerChannel = perChannel
    limits.events = total
    self.init(limits: limits, seed: 5, outletCount: loops)
  }

  fileprivate mutating func publish(_ index: Int) {
    let sequence = nextSequence(index, ticket: 0, storedThrough: 0)
    keep(event(name(index), sequence), index)
  }
}

@Suite struct ChannelTableTests {
  private let a = Channel.trip(id("a"))
  private let b = Channel.trip(id("b"))

  @Test("a channel is found by its whole name: kinds with the same id are different channels")
  func names() {
    var table = ChannelTable()
    let names: [Channel] = [
      .trip(id("x")), .driver(id("x")), .fence(id("x")), .area(GeohashCell("u33")!), .fleet, .trips, .raw(id("x")),
      .box(BoundingBox(south: 1, west: 2, north: 3, east: 4)!),
      .box(BoundingBox(south: 1, west: 2, north: 3, east: 5)!),
      .countsBlock(GeohashCell("u33")!),
      .nearby(at(1, 2), radiusMeters: 5), .nearby(at(1, 2), radiusMeters: 6), .nearby(at(2, 1), radiusMeters: 5),
    ]
    let indices = names.map { table.findOrInsert($0)! }
    #expect(Set(indices).count == names.count)
    for (name, index) in zip(names, indices) {
      #expect(table.find(name) == index)
      #expect(table.findOrInsert(name) == index)
      #expect(table.name(index) == name)
    }
    #expect(table.count == names.count)
  }

  @Test("sequences grow by one, and what is asked for since a number is exactly what came after it")
  func since() {
    var table = ChannelTable()
    let index = table.findOrInsert(a)!
    for expected in 1...3 as ClosedRange<UInt64> {
      table.publish(index)
      #expect(table.sequence(index) == expected)
    }
    #expect(table.events(index, since: 0)?.map(\.sequence) == [1, 2, 3])
    #expect(table.events(index, since: 2)?.map(\.sequence) == [3])
    #expect(table.events(index, since: 3)?.isEmpty == true)
    #expect(table.events(index, since: 4) == nil, "ahead of the channel")
  }

  @Test("past the limit of a channel its oldest event is forgotten")
  func perChannel() {
    var table = ChannelTable(perChannel: 4)
    let index = table.findOrInsert(a)!
    for _ in 0..<6 { table.publish(index) }
    #expect(table.events(index, since: 1) == nil)
    #expect(table.events(index, since: 2)?.map(\.sequence) == [3, 4, 5, 6])
    #expect(table.eventCount == 4)
  }

  @Test("past the limit of all channels the oldest event of all is forgotten")
  func total() {
    var table = ChannelTable(perChannel: 8, total: 10)
    let (first, second) = (table.findOrInsert(a)!, table.findOrInsert(b)!)
    for _ in 0..<5 { table.publish(first) }
    for _ in 0..<7 { table.publish(second) }
    #expect(table.eventCount == 10)
    #expect(table.events(first, since: 2)?.map(\.sequence) == [3, 4, 5])
    #expect(table.events(first, since: 1) == nil)
    #expect(table.events(second, since: 0)?.count == 7)
  }

  @Test("a channel that forgets its own events costs no other channel any")
  func chatty() {
    var table = ChannelTable(perChannel: 4, total: 10)
    let (quiet, chatty) = (table.findOrInsert(a)!, table.findOrInsert(b)!)
    table.publish(quiet)
    for _ in 0..<1000 { table.publish(chatty) }
    #expect(table.events(quiet, since: 0)?.count == 1)
    #expect(table.eventCount == 5)
  }

  @Test("a channel that goes takes its events with it")
  func countAfterRemoval() {
    var table = ChannelTable(perChannel: 4, total: 10)
    let index = table.findOrInsert(a)!
    _ = table.setKept(index, true)
    for _ in 0..<4 { table.publish(index) }
    #expect(table.setKept(index, false) == true)
    #expect(table.eventCount == 0)
    #expect(table.count == 0)
  }

  @Test("a channel goes with its last subscriber unless it is kept, and its index is used again")
  func lifeAndReuse() {
    var table = ChannelTable()
    let index = table.findOrInsert(a)!
    table.addSubscriber(index, outlet: 0)
    table.addSubscriber(index, outlet: 2)
    table.addSubscriber(index, outlet: 2)
    #expect(table.outlets(index) == OutletSet(low: 0b101, high: 0))
    #expect(table.removeSubscriber(index, outlet: 2) == false)
    #expect(table.outlets(index) == OutletSet(low: 0b101, high: 0))
    #expect(table.removeSubscriber(index, outlet: 2) == false)
    #expect(table.outlets(index) == OutletSet(low: 0b001, high: 0))
    _ = table.setKept(index, true)
    #expect(table.removeSubscriber(index, outlet: 0) == false)
    #expect(table.find(a) == index)
    #expect(table.setKept(index, false) == true)
    #expect(table.find(a) == nil)
    #expect(table.findOrInsert(b) == index)
    #expect(table.outlets(index) == OutletSet(low: 0, high: 0))
    #expect(table.events(index, since: 0)?.isEmpty == true)
  }

  @Test("a channel that comes back never gives out a number twice, so an old resume point cannot lie")
  func numbersAreNotReused() {
    var table = ChannelTable(perChannel: 4)
    let index = table.findOrInsert(a)!
    _ = table.setKept(index, true)
    for _ in 0..<7 { table.publish(index) }
    #expect(table.setKept(index, false) == true)
    let again = table.findOrInsert(a)!
    for _ in 0..<2 { table.publish(again) }
    #expect(table.sequence(again) > 7)
    #expect(table.events(again, since: 6) == nil, "event 7 of the former life is gone, so this is not recovered")
    #expect(table.events(again, since: 7)?.count == 2, "nothing was missed but the two new ones")
  }

  @Test("at the limit no further channel is made, and one that goes makes room")
  func limit() {
    var table = ChannelTable(channels: 1)
    let index = table.findOrInsert(a)!
    #expect(table.findOrInsert(b) == nil)
    #expect(table.findOrInsert(a) == index)
    table.addSubscriber(index, outlet: 0)
    #expect(table.removeSubscriber(index, outlet: 0) == true)
    #expect(table.findOrInsert(b) != nil)
  }

  @Test("a lowered limit of channels loses none that is kept, and makes no further one")
  func lowered() throws {
    let bench = try DurableBench()
    for number in 1...5 { bench.turn([bench.move(.ops, "o", "T\(number)", .requested)]) }
    var limits = HubLimits.roomy
    limits.channels = 2
    for records in [bench.submitted, try bench.snapshot()] {
      let lowered = try DurableBench(reading: records, limits: limits)
      #expect(try lowered.state() == bench.state())
      let further = Turn(loops: [lowered.turn([lowered.subscribe("other")]) + lowered.store()])
      #expect(further.refusedSubscriptions.count == 1)
    }
  }

  @Test("agrees with a model that keeps everything and searches", arguments: 1...6 as ClosedRange<UInt64>)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var table = ChannelTable(perChannel: 3, total: 8)
    let names = (0..<6).map { Channel.driver(id("d\($0)")) }
    var kept: [(channel: Int, sequence: UInt64)] = []  // of all channels, oldest first
    var sequences = [UInt64](repeating: 0, count: names.count)
    for _ in 0..<1500 {
      let channel = Int.random(in: 0..<names.count, using: &random)
      if Int.random(in: 0..<20, using: &random) == 0, let index = table.find(names[channel]) {
        #expect(table.setKept(index, false) == true)
        kept.removeAll { $0.channel == channel }
        continue
      }
      let index = table.findOrInsert(names[channel])!
      _ = table.setKept(index, true)
      table.publish(index)
      #expect(table.sequence(index) > sequences[channel])
      sequences[channel] = table.sequence(index)
      kept.append((channel, table.sequence(index)))
      if kept.count(where: { $0.channel == channel }) > 3 {
        kept.remove(at: kept.firstIndex { $0.channel == channel }!)
      }
      if kept.count > 8 { kept.removeFirst() }
      #expect(table.eventCount == kept.count, "seed \(seed)")
      for (position, name) in names.enumerated() {
        guard let index = table.find(name) else { continue }
        let expected = kept.filter { $0.channel == position }.map(\.sequence)
        let since = table.sequence(index) - UInt64(expected.count)
        #expect(table.events(index, since: since)?.map(\.sequence) == expected, "seed \(seed)")
        if since > 0 { #expect(table.events(index, since: since - 1) == nil) }
      }
    }
  }
}
