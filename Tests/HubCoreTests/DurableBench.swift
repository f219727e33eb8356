// A hub whose records are stored late, or not at all, and a second one that reads back what there is.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

/// A hub with a journal that a test drives by hand.
final class DurableBench {
  var hub: Hub
  /// What was handed over, by ticket from 1.
  private(set) var submitted: [[UInt8]] = []
  /// What it has read at its start.
  private let read: [[UInt8]]
  private(set) var stored = 0
  /// How many of the submissions the hub before has left.
  private var uptime: Int64
  private let origin: Int64 = 1_763_680_000_000
  /// Milliseconds that the machine's wall clock is ahead.
  var wallIsAhead: Int64
  private let loops: Int
  private var messages = 0

  init(
    reading records: [[UInt8]] = [], loops: Int = 1, seed: UInt64 = 1, epoch: String = "epoch-1",
    uptime: Int64 = 5_000_000_000_000, wallIsAhead: Int64 = 0, startsEpoch: Bool = false, limits: HubLimits = .roomy,
    looksUp: Bool = false
  ) throws {
    self.loops = loops
    read = records
    self.uptime = uptime
    self.wallIsAhead = wallIsAhead
    let now = Moment(
      uptime: uptime, timestamp: Timestamp(milliseconds: origin + wallIsAhead + uptime / 1_000_000))
    hub = try Self.loaded(records, limits, epoch: "not-" + epoch, seed: seed, loops: loops, at: now)
    hub.finishLoading(at: now)
    hub.attachJournal(
      limit: 1 << 20, startsEpoch: startsEpoch, epoch: InlineText(epoch)!, looksUp: looksUp)
  }

  var now: Moment {
    Moment(uptime: uptime, timestamp: Timestamp(milliseconds: origin + wallIsAhead + uptime / 1_000_000))
  }

  func advance(seconds: Double) { uptime += Int64(seconds * 1e9) }

  /// One turn; its records are handed over and not stored yet.
  @discardableResult
  func turn(_ inputs: [HubInput]) -> [HubOutput] {
    hub.process(inputs, now: now)
    hub.takeRecords { bytes, ticket in
      #expect(Int(ticket) == submitted.count + 1)
      submitted.append(Array(bytes))
      return true
    }
    return drain()
  }

  /// The disk has stored so many submissions more, or all.
  @discardableResult
  func store(_ count: Int = .max, condition: StorageCondition = .good) -> [HubOutput] {
    stored = count < submitted.count - stored ? stored + count : submitted.count
    hub.stored(through: UInt64(stored), condition: condition)
    return drain()
  }

  private func drain() -> [HubOutput] {
    var all: [HubOutput] = []
    for loop in 0..<loops {
      let list = hub.drain(loop)
      all += list
    }
    return all
  }

  /// The durable state, record by record, trips and channels in the order of their names. How a driver is followed is
  /// left out: fixes that are refused and leave no record move a filter on.
  func state() throws -> [DurableRecord] {
    var parts: [[UInt8]] = []
    hub.writeSnapshot(partBytes: 500) { parts.append(Array($0)) }
    var records: [DurableRecord] = []
    for part in parts {
      try part.withUnsafeBytes { bytes in
        var reader = RecordReader(bytes)
        while let record = try DurableRecord.next(from: &reader) {
          if case .driver(var driver) = record {
            driver.tracking = StoredTracking()
            records.append(.driver(driver))
          } else {
            records.append(record)
          }
        }
      }
    }
    return records.sorted { "\($0)" < "\($1)" }
  }

  /// What maintenance writes: all that a second hub has which reads the records, and neither handles nor ends anything.
  func snapshot() throws -> [[UInt8]] {
    var loaded = try Self.loaded(read + submitted, .roomy, epoch: "loaded", seed: 1, loops: 1, at: now)
    var parts: [[UInt8]] = []
    loaded.writeSnapshot(partBytes: 300) { parts.append(Array($0)) }
    return parts
  }

  private static func loaded(
    _ records: [[UInt8]], _ limits: HubLimits, epoch: String, seed: UInt64, loops: Int, at now: Moment
  ) throws -> Hub {
    var hub = Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText(epoch)!,
      seed: seed &+ UInt64(records.count), outlets: loops, now: now)
    for record in records { try record.withUnsafeBytes { try hub.load($0) } }
    return hub
  }

  func freshMessage() -> MessageID {
    messages += 1
    return message("m\(messages)-\(uptime)")
  }

  func move(
    _ role: Role, _ actor: String, _ trip: String, _ status: TripStatus, message: MessageID? = nil
  ) -> HubInput {
    .tripStatus(
      TripStatusInput(
        session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: role, id: id(actor)),
        messageID: message ?? freshMessage(),
        report: TripStatusReport(
          tripID: id(trip), status: status, timestamp: now.timestamp, location: at(52.5, 13.4), driverID: id("D"),
          riderID: id("R")),
        tripIsGranted: true))
  }

  func subscribe(_ trip: String, since: UInt64? = nil, epoch: String = "epoch-1", slot: UInt32 = 80) -> HubInput {
    subscribe(.trip(id(trip)), since: since, epoch: epoch, slot: slot)
  }

  func subscribe(
    _ channel: Channel, since: UInt64? = nil, epoch: String = "epoch-1", slot: UInt32 = 80
  ) -> HubInput {
    .subscribe(
      SubscribeInput(
        session: SessionRef(outlet: 0, slot: slot, generation: 1), actor: Actor(role: .ops, id: id("o")),
        messageID: freshMessage(),
        request: Subscribe(
          channel: channel, resume: since.map { ResumePoint(since: $0, epoch: InlineText(epoch)!) }),
        grant: .granted))
  }
}
