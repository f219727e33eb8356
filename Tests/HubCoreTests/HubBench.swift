// A hub on a bench: time is moved by hand, inputs go in one turn at a time, and what comes out is looked at.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

/// An id written in a test.
func id(_ text: String) -> Identifier { Identifier(text)! }

/// A message id written in a test.
func message(_ text: String) -> MessageID { MessageID(text)! }

/// A time of day in a test, in milliseconds since 1970.
func time(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds) }

extension HubLimits {
  /// Limits that no test reaches by accident.
  static var roomy: HubLimits {
    HubLimits(
      drivers: 1000, trips: 1000, channels: 1000, eventsPerChannel: 256, events: 10_000, queryHits: 100,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 100, profiles: 100)
  }
}

/// What came out of one turn, by loop.
struct Turn {
  var loops: [[HubOutput]]

  /// The output of all loops, loop by loop.
  var all: [HubOutput] { loops.flatMap { $0 } }

  var replies: [Reply] {
    all.compactMap { if case .reply(_, let reply) = $0 { reply } else { nil } }
  }
  var errors: [ErrorReply] {
    replies.compactMap { if case .error(let error) = $0 { error } else { nil } }
  }
  var codes: [ErrorCode] { errors.map(\.code) }
  var samplings: [SamplingAdvice] {
    replies.compactMap { if case .sampling(let advice) = $0 { advice } else { nil } }
  }
  var acks: [Ack] {
    replies.compactMap { if case .ack(let ack) = $0 { ack } else { nil } }
  }
  var deliveries: [Delivery] {
    all.compactMap { if case .delivery(let delivery) = $0 { delivery } else { nil } }
  }
  var positions: [DriverLocation] {
    deliveries.compactMap { if case .driverLocation(let location) = $0.publication.body { location } else { nil } }
  }
  var etas: [ETAUpdate] {
    deliveries.compactMap { if case .etaUpdate(let update) = $0.publication.body { update } else { nil } }
  }
  var moves: [TripUpdate] { deliveries.compactMap { $0.publication.move } }
  var notifications: [HubMessages.Notification] { deliveries.compactMap { $0.publication.notification } }
  var subscribed: [(answer: Subscribed, handle: ChannelHandle, missed: [Publication])] {
    all.compactMap {
      if case .subscribed(_, let handle, let answer, let missed, _) = $0 { (answer, handle, missed) } else { nil }
    }
  }
  var ended: [(Channel, Unsubscribed.Reason)] {
    all.compactMap { if case .channelEnded(_, let channel, let reason) = $0 { (channel, reason) } else { nil } }
  }
  var refusedSubscriptions: [ErrorReply] {
    all.compactMap { if case .subscriptionRefused(_, let error) = $0 { error } else { nil } }
  }
  var claimed: [Identifier] {
    all.compactMap { if case .channelClaimed(_, _, let driver) = $0 { driver } else { nil } }
  }
  var admitted: Int { all.count { if case .admitted = $0 { true } else { false } } }
  var replaced: [SessionRef] {
    all.compactMap { if case .replaced(let session, _) = $0 { session } else { nil } }
  }
  /// Sessions that are closed with 1000: their client was notified before.
  var replacedAgain: [SessionRef] {
    all.compactMap { if case .replaced(let session, true) = $0 { session } else { nil } }
  }
  var conflicts: [Double] {
    all.compactMap { if case .conflict(_, let retryAfter) = $0 { retryAfter } else { nil } }
  }
  var full: Int { all.count { if case .full = $0 { true } else { false } } }
}

extension Publication {
  var move: TripUpdate? { if case .tripUpdate(let update) = body { update } else { nil } }
  var notification: HubMessages.Notification? { if case .notification(let made) = body { made } else { nil } }
}

/// A hub with a clock that a test moves.
final class HubBench {
  static let epoch = InlineText("epoch-1")!

  var hub: Hub
  let loopCount: Int
  /// Nanoseconds.
  private(set) var uptime: Int64 = 5_000_000_000_000
  /// The wall clock at uptime 0, in milliseconds.
  private let origin: Int64 = 1_763_680_000_000
  private var generation: UInt32 = 0
  private var messages = 0

  init(
    limits: HubLimits = .roomy, timings: HubTimings = HubTimings(), loops: Int = 1, seed: UInt64 = 1,
    sampling: SamplingRules = .fixed(seconds: 4)
  ) {
    loopCount = loops
    hub = Hub(
      limits: limits, timings: timings, sampling: sampling, epoch: HubBench.epoch, seed: seed, outlets: loops,
      now: Moment(uptime: 5_000_000_000_000, timestamp: Timestamp(milliseconds: 1_763_685_000_000)))
  }

  var now: Moment { Moment(uptime: uptime, timestamp: Timestamp(milliseconds: origin + uptime / 1_000_000)) }
  /// The wall clock, which the phones of a test follow too unless it says otherwise.
  var clock: Int64 { now.timestamp.milliseconds }

  /// One turn at the present time.
  @discardableResult
  func turn(_ inputs: HubInput...) -> Turn { turn(inputs) }

  @discardableResult
  func turn(_ inputs: [HubInput]) -> Turn {
    hub.process(inputs, now: now)
    var loops: [[HubOutput]] = []
    for loop in 0..<loopCount {
      let list = hub.drain(loop)
      loops.append(list)
    }
    return Turn(loops: loops)
  }

  /// Moves the clock; the hub does not see it before its next turn.
  func advance(seconds: Double) { uptime += Int64(seconds * 1e9) }

  /// Moves the clock and gives the hub an empty turn.
  @discardableResult
  func pass(seconds: Double) -> Turn {
    uptime += Int64(seconds * 1e9)
    return turn([])
  }

  /// Moves the clock while the hub is stalled.
  func skip(seconds: Double) { uptime += Int64(seconds * 1e9) }

  /// Lets time pass as `pass` does, a turn a second, as the hub's thread does it.
  @discardableResult
  func tick(seconds: Int) -> Turn {
    var loops = [[HubOutput]](repeating: [], count: loopCount)
    for _ in 0..<seconds {
      for (loop, list) in pass(seconds: 1).loops.enumerated() { loops[loop] += list }
    }
    return Turn(loops: loops)
  }

  // MARK: Inputs

  func session(loop: UInt32 = 0, slot: UInt32) -> SessionRef {
    generation += 1
    return SessionRef(outlet: loop, slot: slot, generation: generation)
  }

  func freshMessage() -> MessageID {
    messages += 1
    return message("m\(messages)")
  }

  /// A driver's session that the hub has admitted.
  func connect(_ driver: String, slot: UInt32 = 0, loop: UInt32 = 0, client: UInt32 = 0) -> SessionRef {
    let made = session(loop: loop, slot: slot)
    let turn = turn(.driverConnecting(made, id(driver), client: client))
    #expect(turn.admitted == 1)
    return made
  }

  func fix(
    _ session: SessionRef, trip: String? = nil, granted: Bool = true, at place: Coordinate = at(52.52, 13.405),
    accuracy: Double = 8, speed: Double? = nil, heading: Double? = nil, milliseconds: Int64? = nil, sent: Int64? = nil
  ) -> HubInput {
    let fix = Fix(
      coordinate: place, timestamp: time(milliseconds ?? clock), accuracy: accuracy, heading: heading, speed: speed)
    return .fix(
      FixInput(
        session: session, messageID: freshMessage(), sent: time(sent ?? clock), received: now,
        update: LocationUpdate(tripID: trip.map(id), fix: fix), tripIsGranted: granted))
  }

  func batch(
    _ session: SessionRef, driver: String? = nil, trip: String? = nil, granted: Bool = true,
    _ fixes: [Result<Fix, ErrorCode>], sent: Int64? = nil
  ) -> HubInput {
    .batch(
      BatchInput(
        session: session, driverID: driver.map(id), messageID: freshMessage(), sent: time(sent ?? clock),
        received: now, batch: LocationBatch(tripID: trip.map(id), fixes: fixes), tripIsGranted: granted))
  }

  /// A fix for a batch.
  func measured(_ milliseconds: Int64, at place: Coordinate = at(52.52, 13.405), accuracy: Double = 8) -> Result<
    Fix, ErrorCode
  > {
    .success(Fix(coordinate: place, timestamp: time(milliseconds), accuracy: accuracy))
  }

  func move(
    _ role: Role, _ actor: String, _ trip: String, _ status: TripStatus, expected: TripStatus? = nil,
    driver: String? = nil, rider: String? = nil, route: Route? = nil, granted: Bool = true,
    message: MessageID? = nil, slot: UInt32 = 90
  ) -> HubInput {
    .tripStatus(
      TripStatusInput(
        session: SessionRef(outlet: 0, slot: slot, generation: 1), actor: Actor(role: role, id: id(actor)),
        messageID: message ?? freshMessage(),
        report: TripStatusReport(
          tripID: id(trip), status: status, timestamp: now.timestamp, expectedStatus: expected,
          driverID: driver.map(id), riderID: rider.map(id), route: route),
        tripIsGranted: granted))
  }

  func change(
    _ role: Role, _ actor: String, _ trip: String, pickup: Coordinate? = nil, dropoff: Coordinate? = nil,
    route: Route? = nil, message: MessageID? = nil
  ) -> HubInput {
    .tripChange(
      TripChangeInput(
        session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: role, id: id(actor)),
        messageID: message ?? freshMessage(), timestamp: now.timestamp,
        change: TripChange(tripID: id(trip), pickup: pickup, dropoff: dropoff, route: route)))
  }

  /// By ops, unless it is somebody else.
  func subscribe(
    _ channel: Channel, since: UInt64? = nil, epoch: InlineText = HubBench.epoch, loop: UInt32 = 0, slot: UInt32 = 80,
    by actor: (Role, String) = (.ops, "o"), grant: ChannelGrant = .granted, eventsOnly: Bool = false
  ) -> HubInput {
    let resume = since.map { ResumePoint(since: $0, epoch: epoch) }
    return .subscribe(
      SubscribeInput(
        session: SessionRef(outlet: loop, slot: slot, generation: 1), actor: Actor(role: actor.0, id: id(actor.1)),
        messageID: freshMessage(),
        request: Subscribe(channel: channel, resume: resume, isEventsOnly: eventsOnly), grant: grant))
  }

  func trip(_ text: String) -> Channel { .trip(id(text)) }
  func driver(_ text: String) -> Channel { .driver(id(text)) }
}
