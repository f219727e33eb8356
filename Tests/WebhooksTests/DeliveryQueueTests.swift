// One webhook's queue, with time moved by hand and a journal that is an array.
import HubMessages
import HubTestSupport
import Testing

@testable import HubWebhooks

@Suite struct DeliveryQueueTests {
  @Test("Events of one channel go out one at a time and in order; another channel does not wait for them")
  func order() {
    var world = World(channels: [8, 0, 0, 1], concurrency: 4)
    #expect(world.run() == [0])
    #expect(world.answer(0, .status(200)) == .delivered)
    #expect(world.run() == [1, 3], "event 2 waits for event 1, which is on its channel")
    #expect(world.answer(3, .status(200)) == .delivered)
    #expect(world.answer(1, .none, unit: 0.5) == .retry(at: 5_000_000_000))
    #expect(world.run() == [], "event 2 waits for the retry of event 1")
    world.advance(seconds: 5)
    #expect(world.run() == [1])
    #expect(world.answer(1, .status(204)) == .delivered)
    #expect(world.run() == [2])
    #expect(world.answer(2, .status(299)) == .delivered)
    #expect(world.run() == [])
    #expect(world.queue.laneCount == 0 && world.queue.cursor == position(4))
  }

  @Test(
    "Whatever is not 2xx is tried again, redirects too",
    arguments: [100, 199, 300, 301, 307, 400, 404, 409, 429, 500, 503])
  func failures(status: Int) {
    var world = World(channels: [0], concurrency: 1)
    #expect(world.run() == [0])
    #expect(world.answer(0, .status(status), unit: 0.5) == .retry(at: 5_000_000_000))
    world.advance(seconds: 4.999)
    #expect(world.run() == [] && world.lastStep == .wait(until: 5_000_000_000))
    world.advance(seconds: 0.001)
    #expect(world.run() == [0])
  }

  @Test("Retry-After keeps all channels back, for an hour at the most")
  func retryAfter() {
    var world = World(channels: [0, 1], concurrency: 1)
    #expect(world.run() == [0])
    #expect(world.answer(0, .status(503, retryAfterSeconds: 1e12), unit: 0) == .retry(at: 3600 * 1_000_000_000))
    #expect(world.run() == [] && world.lastStep == .wait(until: 3600 * 1_000_000_000))
    world.advance(seconds: 3600)
    #expect(world.run().count == 1)
  }

  @Test("A success of a request that was under way does not shorten a Retry-After, and ends the waits of probes")
  func retryAfterBesideSuccess() {
    var world = World(channels: Array(0..<40), concurrency: 16)
    while world.queue.allowance < 16 { world.answerAll(.status(200)) }
    let underWay = world.run()
    #expect(underWay.count > 2)
    _ = world.answer(underWay[0], .status(429, retryAfterSeconds: 60))
    #expect(world.answer(underWay[1], .status(200)) == .delivered)
    #expect(world.run() == [] && world.lastStep == .wait(until: 60_000_000_000))
    for event in underWay[2...] { _ = world.answer(event, .none) }
    world.advance(seconds: 59.999)
    #expect(world.run() == [])
    world.advance(seconds: 0.001)
    #expect(world.queue.isProbing && world.answerAll(.status(200)) == 1)
    #expect(world.run().count == 2 && !world.queue.isProbing)
  }

  @Test("410 disables; enabling sends the same event again")
  func gone() {
    var world = World(channels: [0, 1], concurrency: 1)
    #expect(world.run() == [0])
    #expect(world.answer(0, .status(410)) == .disabled)
    world.advance(seconds: 1e6)
    #expect(world.run() == [] && !world.queue.progress.isEnabled)
    world.queue.enable(world.now)
    #expect(world.run() == [0])
  }

  @Test("An event that fails for longer than giveUpAfter is dead, and its channel continues")
  func givingUp() throws {
    var world = World(channels: [0, 0], concurrency: 1, giveUpAfterSeconds: 100)
    var outcomes: [DeliveryOutcome] = []
    while outcomes.last != .dead, outcomes.count < 100 {
      if world.run() == [0] { outcomes.append(world.answer(0, .none, unit: 0.5)) }
      world.advance(seconds: 1)
    }
    #expect(outcomes.count == 4, "at 0, 5, 35 and 155 seconds")
    world.advance(seconds: 600)
    #expect(world.run() == [1])
  }

  @Test("A wall clock that is set ahead or back makes no event older or younger than the time for which it has failed")
  func setClock() {
    for days in [-30, 30] as [Int64] {
      var world = World(channels: [0], concurrency: 1, giveUpAfterSeconds: 100)
      #expect(world.run() == [0])
      world.now.timestamp.milliseconds += days * 86_400_000
      #expect(world.answer(0, .none) != .dead)
      world.advance(seconds: 99)
      #expect(world.run() == [0] && world.answer(0, .none) != .dead)
      world.advance(seconds: 60)
      #expect(world.run() == [0] && world.answer(0, .none) == .dead)
    }
  }

  @Test("A receiver that is down gets one request at a time, by the schedule; then twice as many at each success")
  func noStorm() {
    var world = World(channels: Array(0..<200), concurrency: 16)
    while world.queue.allowance < 16 { world.answerAll(.status(200)) }
    var batches: [(seconds: Double, size: Int)] = []
    for _ in 0..<36_000 {
      let size = world.answerAll(.none)
      if size > 0 { batches.append((world.seconds, size)) }
      world.advance(seconds: 1)
    }
    #expect(batches.map(\.size) == [16] + Array(repeating: 1, count: 10), "ten hours: what was under way, ten probes")
    #expect(batches.map(\.seconds) == [0, 5, 35, 155, 755, 2555, 6155, 13_355, 20_555, 27_755, 34_955])
    world.advance(seconds: 7200)
    #expect((0..<4).map { _ in world.answerAll(.status(200)) } == [1, 2, 8, 16], "each success doubles")
  }

  @Test("Refused events, more than make a receiver seem to be down, delay others by hours at most, and are given up")
  func refusedAmongOthers() {
    var world = World(channels: Array(0..<40), concurrency: 4)
    var (taken, outcomes): ([Int], [DeliveryOutcome]) = ([], [])
    func run(hours: Double, step: Double) {
      for _ in 0..<Int(hours * 3600 / step) {
        var events = world.run()
        while !events.isEmpty {
          for event in events {
            let outcome = world.answer(event, .status(event < 16 ? 422 : 200), unit: 0.5)
            if outcome == .delivered { taken.append(event) } else { outcomes.append(outcome) }
          }
          events = world.run()
        }
        world.advance(seconds: step)
      }
    }
    run(hours: 4, step: 5)
    #expect(taken == Array(16..<40), "behind six probes with events that are refused: 3 h 43 min")
    run(hours: 120, step: 600)
    #expect(outcomes.count { $0 == .dead } == 16 && world.queue.laneCount == 0)
  }

  @Test("At the limit of lanes the scan stops, and continues when a lane is through")
  func laneLimit() {
    let limit = DeliveryQueue.maximumLanes
    var world = World(channels: Array(0..<(2 * limit)), concurrency: 1)
    // Every fourth event arrives, so that the receiver does not seem to be down. No time goes by: there is no retry.
    while let event = world.run().first { _ = world.answer(event, event % 4 == 3 ? .status(200) : .none) }
    #expect(world.queue.laneCount == limit && world.queue.progress.lanes.count == limit)
    let cursor = world.queue.cursor
    #expect(cursor < position(2 * limit))
    world.advance(seconds: 10)
    #expect(world.answerAll(.status(200)) == 1)
    #expect(world.queue.cursor == cursor, "others are due, and go first")
    while world.answerAll(.status(200)) > 0 {}
    #expect(world.queue.laneCount == 0 && world.queue.cursor == position(2 * limit))
  }

  @Test("Random failures and crashes: each event arrives, in order on its channel, and only what was under way twice")
  func random() {
    for seed in 0..<40 as Range<UInt64> {
      var random = SplitMix64(seed: seed)
      var world = World(
        channels: (0..<400).map { _ in Int.random(in: 0..<12, using: &random) },
        concurrency: Int.random(in: 1...16, using: &random))
      var ledger = Ledger(channels: world.channels)
      var steps = 0
      while !(world.queue.cursor == position(400) && world.queue.laneCount == 0), steps < 200_000 {
        steps += 1
        for event in world.run() { ledger.send(event) }
        if let event = ledger.underWay.sorted().randomElement(using: &random), Bool.random(using: &random) {
          let isGood = Int.random(in: 0..<5, using: &random) > 0
          let outcome = world.answer(event, isGood ? .status(200) : .none, unit: 0.5)
          ledger.answered(event, isGood)
          #expect((outcome == .delivered) == isGood)
        }
        if Int.random(in: 0..<50, using: &random) == 0 {
          world.crash()
          ledger.crash()
        }
        world.advance(seconds: 1)
      }
      #expect(ledger.isComplete, "seed \(seed)")
    }
  }

  @Test("Stored channels that are not behind the cursor are dropped: their events come from the cursor on")
  func lanesAhead() {
    var world = World(channels: [0, 1, 2, 1, 2], concurrency: 4)
    let lanes = [0, 3, 4].map {
      DeliveryProgress.Lane(
        channel: .trip(Identifier("T\($0 % 3)")!), position: position($0), failures: 0, firstTry: nil)
    }
    world.queue = DeliveryQueue(world.rule, from: DeliveryProgress(cursor: position(2), lanes: lanes))
    #expect(world.queue.laneCount == 1)
    #expect(world.answerAll(.status(200)) == 1)
    #expect(world.answerAll(.status(200)) == 2 && world.answerAll(.status(200)) == 1)
    #expect(world.run() == [] && world.queue.laneCount == 0 && world.queue.cursor == position(5))
  }
}

private func position(_ index: Int) -> JournalPosition {
  JournalPosition(group: UInt64(index / 3 + 1), record: UInt32(index % 3))
}

/// A journal of events, three in a group, each on the channel with its number, and one webhook's queue.
private struct World {
  let channels: [Int]
  let rule: WebhookRule
  var queue: DeliveryQueue
  var now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_700_000_000_000))
  var lastStep = DeliveryQueue.Step.idle

  init(channels: [Int], concurrency: Int, giveUpAfterSeconds: Double = 3 * 86_400) {
    self.channels = channels
    rule = WebhookRule(concurrency: concurrency, giveUpAfterSeconds: giveUpAfterSeconds)!
    queue = DeliveryQueue(rule, from: DeliveryProgress(cursor: position(0)))
  }

  var seconds: Double { Double(now.uptime) / 1e9 }

  mutating func advance(seconds: Double) {
    now.uptime += Int64(seconds * 1e9)
    now.timestamp.milliseconds += Int64(seconds * 1000)
  }

  /// Takes all steps that can be taken; the events that are sent.
  mutating func run() -> [Int] {
    var sent: [Int] = []
    while true {
      lastStep = queue.step(now)
      switch lastStep {
      case .deliver(let event): sent.append(index(event.position))
      case .scan(let start):
        let first = index(start)
        let event = first < channels.count ? PendingEvent(position: position(first), channel: channel(first)) : nil
        queue.scanned(event, through: position(min(first + 1, channels.count)), now)
      case .look(let wanted, let range):
        let found = (index(range.lowerBound)..<index(range.upperBound)).first { channel($0) == wanted }
        queue.found(found.map(position), for: wanted, now)
      case .wait(let time):
        precondition(time > now.uptime)
        return sent
      case .idle: return sent
      }
    }
  }

  mutating func answer(_ event: Int, _ reply: WebhookReply, unit: Double = 0) -> DeliveryOutcome {
    queue.answered(channel(event), reply, now, unit: unit)
  }

  /// Gives all requests that go out now the same answer; how many these are.
  @discardableResult mutating func answerAll(_ reply: WebhookReply) -> Int {
    let events = run()
    for event in events { _ = answer(event, reply, unit: 0.5) }
    return events.count
  }

  mutating func crash() { queue = DeliveryQueue(rule, from: queue.progress) }

  private func channel(_ event: Int) -> Channel { .trip(Identifier("T\(channels[event])")!) }

  /// The first event at or behind a position.
  private func index(_ start: JournalPosition) -> Int { Int(start.group - 1) * 3 + min(Int(start.record), 3) }
}

/// What a receiver saw.
private struct Ledger {
  let channels: [Int]
  private(set) var underWay: Set<Int> = []
  /// Events in the order in which they came first.
  private var arrived: [Int] = []
  /// What was under way at a crash and has not been answered since: it may come again.
  private var mayRepeat: Set<Int> = []
  private var isRight = true

  init(channels: [Int]) { self.channels = channels }

  mutating func send(_ event: Int) {
    if arrived.contains(event), !mayRepeat.contains(event) { isRight = false }
    if underWay.contains(where: { channels[$0] == channels[event] }) { isRight = false }
    underWay.insert(event)
  }

  mutating func answered(_ event: Int, _ isGood: Bool) {
    underWay.remove(event)
    guard isGood else { return }
    mayRepeat.remove(event)
    if !arrived.contains(event) { arrived.append(event) }
  }

  /// The receiver may have taken what was under way: here it took those with an even number.
  mutating func crash() {
    mayRepeat.formUnion(underWay)
    for event in underWay.sorted() where event % 2 == 0 && !arrived.contains(event) { arrived.append(event) }
    underWay = []
  }

  /// Whether all events came, in order on each channel, one at a time, and none again that was not under way
  /// at a crash.
  var isComplete: Bool {
    var last: [Int: Int] = [:]
    for event in arrived {
      if last[channels[event]] ?? -1 > event { return false }
      last[channels[event]] = event
    }
    return isRight && arrived.count == channels.count
  }
}
