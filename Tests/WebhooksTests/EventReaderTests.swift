// The reader of a real journal's files, with events and records of other kinds in many segments: against a list of all
// events, by the steps of a queue that fails at random.
import Foundation
import HubBytes
import HubMessages
import HubSystem
import HubTestSupport
import Testing

@testable import HubCore
@testable import HubJournal
@testable import HubWebhooks

@Suite struct EventReaderTests {
  @Test("Each event is found once and in order on its channel, over segments, failures and restarts")
  func random() throws {
    for seed in 0..<12 as Range<UInt64> {
      var random = SplitMix64(seed: seed)
      let world = try ReaderWorld(events: 600, channels: Int.random(in: 1...30, using: &random), &random)
      defer { world.remove() }
      while world.delivered < 600 {
        try world.turn(&random)
        if Int.random(in: 0..<40, using: &random) == 0 { try world.restart() }
      }
      #expect(world.isInOrder, "seed \(seed)")
      #expect(world.reader.remembered == 0)
    }
  }

  @Test("Beyond what is remembered, passed events are looked up in the journal")
  func manyPassed() throws {
    var random = SplitMix64(seed: 1)
    let count = EventReader.rememberedEvents + 500
    let world = try ReaderWorld(events: count, channels: 2, &random)
    defer { world.remove() }
    world.holdsBack = true  // one channel fails, so that its events are all passed over
    while world.queue.cursor.group <= world.last { try world.turn(&random) }
    #expect(world.reader.remembered <= EventReader.rememberedEvents + 1 && world.delivered > count / 3)
    world.holdsBack = false
    while world.delivered < count { try world.turn(&random) }
    #expect(world.isInOrder)
  }

  @Test("What lies behind the cursor is read turn by turn, and other channels and new events do not wait for it")
  func budget() throws {
    for seed in 0..<6 as Range<UInt64> {
      var random = SplitMix64(seed: 100 + seed)
      let world = try ReaderWorld(events: 900, channels: 5, turnBytes: 2000, &random)
      defer { world.remove() }
      world.holdsBack = true
      while world.queue.cursor.group <= world.last { try world.turn(&random) }
      try world.restart()  // nothing is remembered
      world.holdsBack = false
      try world.turn(&random)
      try world.publish(60, channels: 5, &random)
      while world.delivered < 960 { try world.turn(&random) }
      #expect(world.putOffs > 10 && world.isInOrder, "seed \(seed)")
    }
  }

  @Test("The journal is read again as far as can be remembered, and no further")
  func noFurther() throws {
    var random = SplitMix64(seed: 3)
    let count = EventReader.rememberedEvents + 3000
    let world = try ReaderWorld(events: count, channels: 1, &random)
    defer { world.remove() }
    world.holdsBack = true
    while world.queue.cursor.group <= world.last { try world.turn(&random) }
    try world.restart()
    world.holdsBack = false
    let segments = SegmentName.all(.segment, in: try DiskFiles(beside: world.directory).names())
    let path = world.directory + "/" + (try #require(segments.last?.name))
    try FileManager.default.moveItem(atPath: path, toPath: path + ".hidden")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try world.turn(&random)  // throws where it comes to the folder
    #expect(world.reader.remembered > 0)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: path + ".hidden", toPath: path)
    while world.delivered < count { try world.turn(&random) }
    #expect(world.isInOrder)
  }

  @Test("It is read again from the channel's last event on, not from the start of the segment")
  func fromLastEvent() throws {
    var random = SplitMix64(seed: 4)
    let count = EventReader.rememberedEvents + 500
    let world = try ReaderWorld(events: count, channels: 1, segmentBytes: 64 << 20, &random)
    defer { world.remove() }
    world.holdsBack = true
    while world.queue.cursor.group <= world.last { try world.turn(&random) }
    world.holdsBack = false
    while world.delivered < 100 { try world.turn(&random) }
    // The first group is damaged: a walk would end there.
    let path = world.directory + "/" + FileHeader.name(.segment, 1)
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    bytes[FileHeader.size + GroupHeader.size] ^= 1
    try bytes.write(to: URL(fileURLWithPath: path))
    for _ in 0..<100 * count where world.delivered < count { try world.turn(&random) }
    #expect(world.isInOrder)
  }

  @Test("What retention deleted is missed and counted, and the rest continues")
  func deleted() throws {
    var random = SplitMix64(seed: 2)
    let world = try ReaderWorld(events: 300, channels: 1, &random)
    defer { world.remove() }
    let files = try DiskFiles(beside: world.directory)
    let segments = SegmentName.all(.segment, in: try files.names())
    try #require(segments.count > 4)
    for segment in segments[..<3] { try files.remove(segment.name) }
    try world.restart()
    let gone = world.events.filter { $0.position.group < segments[3].first }.count
    while world.delivered < 300 - gone { try world.turn(&random) }
    #expect(world.reader.missedGroups == segments[3].first - 1)
  }

  @Test("What it deleted behind the cursor is missed and counted, too, once for all channels")
  func deletedBehind() throws {
    var random = SplitMix64(seed: 5)
    let world = try ReaderWorld(events: 300, channels: 2, &random)
    defer { world.remove() }
    world.holdsBack = true
    while world.queue.cursor.group <= world.last { try world.turn(&random) }
    let files = try DiskFiles(beside: world.directory)
    let segments = SegmentName.all(.segment, in: try files.names())
    try #require(segments.count > 4)
    for segment in segments[..<3] { try files.remove(segment.name) }
    try world.restart()
    world.holdsBack = false
    let (held, first) = (world.events[0].channel, segments[3].first)
    let gone = world.events.count { $0.channel == held && $0.position.group < first }
    for _ in 0..<100_000 where world.delivered < 300 - gone { try world.turn(&random) }
    #expect(world.delivered == 300 - gone && world.reader.missedGroups == first - 1)
    // What has more channels behind it reads the same again.
    let lanes = [held, .trip(Identifier("other")!)].map {
      DeliveryProgress.Lane(
        channel: $0, position: world.events[0].position, failures: 0, firstTry: nil)
    }
    for lane in lanes {
      _ = try world.reader.look(for: lane.channel, in: lane.position..<world.queue.cursor, [lane])
    }
    #expect(world.reader.missedGroups == first - 1)
  }
}

/// A journal on the disk, a queue, and what it has delivered.
private final class ReaderWorld {
  let directory: String
  let limits: JournalLimits
  /// All events, in order.
  private(set) var events: [PendingEvent] = []
  private(set) var last: UInt64 = 0
  var queue: DeliveryQueue
  private(set) var reader: EventReader
  private var writer: JournalWriter
  private let turnBytes: Int
  /// Looks that took another turn.
  private(set) var putOffs = 0
  private var arrived: [JournalPosition] = []
  private var seen: Set<JournalPosition> = []
  private var now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_700_000_000_000))
  var holdsBack = false
  private static let filter = EventFilter(channels: [.all])!
  private static let rule = WebhookRule(concurrency: 8)!

  init(
    events count: Int, channels: Int, turnBytes: Int = EventReader.scanBytes, segmentBytes: Int = 4 << 10,
    _ random: inout SplitMix64
  ) throws {
    self.turnBytes = turnBytes
    directory = "/tmp/webhooks-\(UUID().uuidString)-\(random.next())"
    var limits = JournalLimits()
    limits.segmentBytes = segmentBytes
    self.limits = limits
    writer = try Recovery(files: try DiskFiles(path: directory), limits: limits).run(damage: .refuse) { _ in
    } group: { _, _ in
    }.takeWriter()
    let start = DeliveryProgress(cursor: JournalPosition(group: 1, record: 0))
    queue = DeliveryQueue(Self.rule, from: start)
    reader = try Self.reader(directory, limits, start.cursor, turnBytes)
    try publish(count, channels: channels, &random)
  }

  /// Records so many events more.
  func publish(_ count: Int, channels: Int, _ random: inout SplitMix64) throws {
    var number = events.count
    let end = number + count
    while number < end {
      var payload = ByteBuffer()
      for _ in 0..<Int.random(in: 1...5, using: &random) where number < end {
        RecordWriter.write(.driverForgotten(Identifier("D\(number)")!), into: &payload)
        let channel = Channel.trip(Identifier("T\(Int.random(in: 0..<channels, using: &random))")!)
        events.append(
          PendingEvent(
            position: JournalPosition(group: writer.next, record: UInt32(payload.count)), channel: channel))
        RecordWriter.write(.event(Self.event(channel, UInt64(number + 1))), into: &payload)
        number += 1
      }
      last = try payload.withBytes { (bytes) throws(JournalError) in try writer.append(bytes, created: 1) }
    }
  }

  private static func event(_ channel: Channel, _ number: UInt64) -> Publication {
    let body = HubMessages.Notification(
      kind: .fenceEnter, title: "\(number)", body: "b", driverID: nil, leg: nil, sequence: number)
    return Publication(
      channel: channel, number: number, timestamp: Timestamp(milliseconds: Int64(number)), body: .notification(body))
  }

  private static func reader(
    _ directory: String, _ limits: JournalLimits, _ cursor: JournalPosition, _ turnBytes: Int
  ) throws -> EventReader {
    EventReader(
      filter, ahead: try JournalTail(directory: directory, limits: limits, next: cursor.group),
      behind: try JournalTail(directory: directory, limits: limits, next: cursor.group), cursor: cursor,
      turnBytes: turnBytes)
  }

  func restart() throws {
    let progress = queue.progress
    queue = DeliveryQueue(Self.rule, from: progress)
    reader = try Self.reader(directory, limits, progress.cursor, turnBytes)
  }

  var delivered: Int { arrived.count }

  /// Each event once, in the order of its channel.
  var isInOrder: Bool {
    let channels = Dictionary(uniqueKeysWithValues: events.map { ($0.position, $0.channel) })
    var newest: [Channel: JournalPosition] = [:]
    for position in arrived {
      guard let channel = channels[position], newest[channel].map({ $0 < position }) ?? true else { return false }
      newest[channel] = position
    }
    return arrived.count == events.count
  }

  /// What can be done now; a fifth of what is delivered fails, and is due again some seconds later.
  func turn(_ random: inout SplitMix64) throws {
    now.uptime += 1_000_000_000
    now.timestamp.milliseconds += 1000
    queue.journalGrew()
    reader.beginTurn()
    var mayLook = true
    for _ in 0..<40 where !reader.isSpent {
      switch queue.step(now, mayLook: mayLook) {
      case .idle, .wait: return
      case .scan(let cursor):
        switch try reader.scan(from: cursor, through: last) {
        case .none(let end, _): queue.scanned(nil, through: end, now)
        case .event(let channel, let event):
          reader.note(channel, event, opensLane: queue.lane(of: channel) == nil)
          queue.scanned(PendingEvent(position: event.position, channel: channel), through: event.position.next, now)
        }
      case .look(let channel, let range):
        switch try reader.look(for: channel, in: range, queue.progress.lanes) {
        case .event(let event):
          #expect(try reader.publication(of: event)?.channel == channel)
          queue.found(event.position, for: channel, now)
        case .none: queue.found(nil, for: channel, now)
        case .notYet:
          queue.putOff(channel)
          (mayLook, putOffs) = (false, putOffs + 1)
        }
      case .deliver(let event):
        let fails =
          holdsBack ? event.channel == events[0].channel : Int.random(in: 0..<5, using: &random) == 0
        let outcome = queue.answered(event.channel, fails ? .none : .status(200), now, unit: 0)
        if outcome == .delivered, seen.insert(event.position).inserted { arrived.append(event.position) }
      }
    }
  }

  func remove() {
    do {
      try FileManager.default.removeItem(atPath: directory)
    } catch {
      Issue.record(error)
    }
  }
}
