// Never faster than the hub allows.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import HubWebSocket
import Testing

@testable import HubClientCore

@Suite struct SendBudgetTests {
  @Test("A rate or an interval that no clock can hold ends nothing")
  func absurdTimes() {
    var budget = SendBudget()
    budget.begin(rate: 1e-300, burst: 1, now: 5)
    budget.charge(1, now: 5)
    #expect(budget.time(for: 1) > 1_000_000_000_000_000_000)
    #expect(nanoseconds(1e300) == 1_000_000_000_000_000_000)
    #expect(nanoseconds(-1e300) == -1_000_000_000_000_000_000)
    #expect(nanoseconds(0.25) == 250_000_000)
  }

  @Test("A client that has a lot to say keeps to the hub's rate and stays within its burst")
  func rate() throws {
    let stage = try Stage()
    try stage.open(rate: 10)
    for time in 0..<1000 { stage.session.send(Stage.fix(Int64(time))) }
    // The hub's own bucket: 50 at once, 10 a second.
    var tokens = 50.0
    var last = stage.now.uptime
    var count = 0
    while stage.session.backlog > 0 {
      try stage.flush()
      tokens = min(50, tokens + Double(stage.now.uptime - last) / 1e9 * 10)
      last = stage.now.uptime
      tokens -= Double(stage.messages.count - count)
      count = stage.messages.count
      #expect(tokens >= 0)
      if stage.session.backlog > 0 { try stage.reachDeadline() }
      // Whoever sends so much is heard; the hub answers pings.
      stage.frame(.pong, [])
    }
    let seconds = Double(stage.now.uptime - 1_000_000_000) / 1e9
    #expect(seconds >= 95 && seconds < 101)
    #expect(stage.fixTimes == (0..<1000).map { Int64($0) })
  }

  @Test("A batch costs one more for each 50 fixes")
  func batches() throws {
    let stage = try Stage()
    try stage.open(rate: 1)  // a bucket of 4
    let batch = LocationBatch(fixes: (0..<151).map { .success(Stage.fix($0)) })
    stage.session.send(batch)
    stage.session.send(Stage.fix(200))
    try stage.flush()
    #expect(stage.messages.count == 1)
    stage.advance(seconds: 1.1)
    try stage.flush()
    #expect(stage.messages.count == 2)
  }

  @Test("A message that costs more than a full bucket goes when the bucket is full")
  func large() throws {
    let stage = try Stage()
    try stage.open(rate: 1)
    stage.session.send(LocationBatch(fixes: (0..<500).map { .success(Stage.fix($0)) }))
    try stage.flush()
    #expect(stage.messages.count == 1)
  }

  /// A hub's bucket: what it says when a message comes that it has to let wait.
  private struct HubBucket {
    var tokens = 50.0
    var time: Int64
    var waits = 0

    mutating func take(_ units: Int, at now: Int64) {
      tokens = min(50, tokens + Double(now - time) / 1e9 * 10)
      time = now
      if tokens < 0 { waits += 1 }
      tokens -= Double(units)
    }
  }

  @Test("Whatever a client has to say, the hub never has to let any of it wait", arguments: 0..<20 as Range<UInt64>)
  func neverLimited(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let stage = try Stage { $0.limits.queuedBytes = 16 << 20 }
    try stage.open(rate: 10)
    var hub = HubBucket(time: stage.now.uptime)
    var expected = 0
    for number in 0..<60 {
      let fixes = (0..<Int.random(in: 1...500, using: &random)).map { _ in Stage.fix(0) }
      switch number % 4 {
      case 0: stage.session.send(fixes[0])
      case 1: stage.session.send(LocationBatch(fixes: fixes.map { .success($0) }))
      case 2:
        var trip = Stage.move(.requested, trip: "T\(number)")
        let count = Int.random(in: 2...5000, using: &random)
        trip.route = try Route(points: (0..<count).map { Coordinate(latitude: Double($0 % 90), longitude: 2)! })
        stage.session.send(trip)
      default: stage.session.send(Stage.move(.accepted))
      }
      expected += 1
    }
    var count = 0
    var pings = 0
    while stage.session.backlog > 0 {
      try stage.flush()
      for index in count..<stage.messages.count {
        if case .ping = stage.messages[index].message { pings += 1 }
        hub.take(stage.units[index], at: stage.now.uptime)
      }
      let hasSent = count < stage.messages.count
      count = stage.messages.count
      if stage.session.backlog > 0 {
        let before = stage.now.uptime
        try stage.reachDeadline()
        #expect(hasSent || stage.now.uptime > before, "it waits, and does not turn and turn")
      }
      stage.frame(.pong, [])
    }
    #expect(stage.messages.count - pings == expected)
    // Only a ping may go over the rate: a connection that may not send must still be known to live.
    #expect(hub.waits <= pings)
    #expect(stage.units.contains { $0 > 50 }, "some cost more than a full bucket")
  }

  // MARK: What a rider is answered with

  private func trip(_ routeBytes: Int) -> QueryResult {
    var report = TripReport(
      tripID: Identifier("T1")!, status: .accepted, timestamp: Timestamp(milliseconds: Stage.start),
      created: Timestamp(milliseconds: Stage.start), updated: Timestamp(milliseconds: Stage.start))
    report.route = String(repeating: "_", count: routeBytes)
    return .trip(report)
  }

  /// Seconds until the client sends another message after an error or greeting, at one unit a second.
  private func wait(_ stage: Stage, _ received: () throws -> Void) throws -> Double {
    stage.session.send(.trip(Identifier("T1")!))
    try stage.flush()
    try received()
    // A bucket of four: three are left of it.
    for _ in 0..<4 { stage.session.send(.trip(Identifier("T2")!)) }
    let (begin, count) = (stage.now.uptime, stage.messages.count)
    while stage.queries < 5 {
      try stage.flush()
      if stage.queries < 5 { try stage.reachDeadline() }
      stage.frame(.pong, [])
    }
    #expect(stage.messages.count >= count + 4)
    return Double(stage.now.uptime - begin) / 1e9
  }

  @Test(
    "A rider's client counts the long answers that it is charged for, and nobody else's",
    arguments: [HubMessages.Role.rider, .ops])
  func answers(role: HubMessages.Role) throws {
    let stage = try Stage()
    try stage.open(rate: 1, role: role)
    let seconds = try wait(stage) { stage.say(.result(ResultReply(replyTo: stage.ids[0], result: trip(58_000)))) }
    // Four units were to be sent and three there; ten more were owed: (58,200 − 16,384) / 4,096.
    #expect(abs(seconds - (role == .rider ? 11 : 1)) < 1)
  }

  @Test("A rider's client counts what it missed on a channel as one answer, and what comes after that as none")
  func missed() throws {
    let stage = try Stage()
    stage.session.subscribe(.trip(Identifier("T1")!), resume: ResumePoint(since: 1, epoch: InlineText("e1")!))
    try stage.open(rate: 1, role: .rider)
    let seconds = try wait(stage) {
      try stage.answerSubscribe(sequence: 5, recovered: true)
      for number in 2...9 as ClosedRange<UInt64> {
        stage.say(Stage.event(number, route: String(repeating: "_", count: 10_500)))
      }
    }
    #expect(stage.sequences == Array(2...9))
    // One unit for the subscription, and six for the four events that were missed: (43,000 − 16,384) / 4,096.
    #expect(abs(seconds - 8) < 1)
  }

  @Test("Rate 0 is no limit")
  func unlimited() throws {
    let stage = try Stage()
    try stage.open(rate: 0)
    for time in 0..<500 { stage.session.send(Stage.fix(Int64(time))) }
    while stage.session.needsFlush { try stage.flush() }
    #expect(stage.fixTimes.count == 500)
  }
}
