// What is kept, for how long, and what is sent again after a break.
import HubMessages
import HubTestSupport
import HubWebSocket
import Testing

@testable import HubClientCore

@Suite struct ResendTests {
  @Test("What is sent while there is no connection goes out in order when there is one")
  func offline() throws {
    let stage = try Stage()
    stage.session.send(Stage.move(.requested))
    stage.session.send(Stage.fix(1))
    stage.session.send(Stage.fix(2))
    stage.session.send(Stage.move(.accepted))
    stage.session.send(Stage.fix(3))
    try stage.open()
    #expect(stage.messages.count == 4)
    guard case .tripStatus(let first) = stage.messages[0].message, first.status == .requested,
      case .locationBatch(let batch) = stage.messages[1].message, batch.fixes.count == 2,
      case .tripStatus(let second) = stage.messages[2].message, second.status == .accepted,
      case .locationBatch = stage.messages[3].message
    else {
      Issue.record("\(stage.messages)")
      return
    }
    #expect(stage.fixTimes == [1, 2, 3])
  }

  @Test("A trip's move is sent again with the same id until it is acked, and then no more")
  func tripStatus() throws {
    let stage = try Stage()
    try stage.open()
    let id = try #require(stage.session.send(Stage.move(.requested)))
    try stage.flush()
    #expect(stage.ids == [id])
    try stage.breakAndReopen()
    #expect(stage.ids == [id])
    try stage.breakAndReopen()
    #expect(stage.ids == [id])
    stage.ack(id)
    #expect(stage.session.unconfirmed == 0)
    try stage.breakAndReopen()
    #expect(stage.ids.isEmpty)
  }

  @Test("A batch is sent again with the same id and content until its ack")
  func batch() throws {
    let stage = try Stage()
    try stage.open()
    let batch = LocationBatch(fixes: [.success(Stage.fix(1)), .success(Stage.fix(2))])
    let id = try #require(stage.session.send(batch))
    try stage.flush()
    try stage.breakAndReopen()
    #expect(stage.ids == [id])
    #expect(stage.messages.map(\.message) == [.locationBatch(batch)])
  }

  @Test("Fixes newer than storedThrough go out again as one batch, before newer ones")
  func liveFixes() throws {
    let stage = try Stage()
    try stage.open()
    for time in 1...5 { stage.session.send(Stage.fix(Int64(time))) }
    stage.session.ping()
    try stage.flush()
    try stage.answerPing(storedThrough: 3)
    // The ping left before the fixes of the same flush, so it says nothing of them.
    #expect(stage.session.unconfirmed == 5)
    stage.session.ping()
    try stage.flush()
    try stage.answerPing(storedThrough: 3)
    #expect(stage.session.unconfirmed == 2)
    #expect(stage.session.storedThrough == Timestamp(milliseconds: Stage.start + 3))
    _ = stage.session.transportEnded(stage.now)
    stage.session.send(Stage.fix(6))
    try stage.open()
    stage.session.send(Stage.fix(7))
    try stage.flush()
    #expect(stage.fixTimes == [4, 5, 6, 7])
    #expect(stage.messages.count == 2)
    #expect(stage.session.counters.fixesResent == 3)
    stage.ack(stage.ids[0])
    #expect(stage.session.unconfirmed == 1)
  }

  @Test("Fixes that are not stored long after they were sent go out again as a batch, on the same connection")
  func unstored() throws {
    let stage = try Stage()
    try stage.open(heartbeat: 300)
    for time in 1...4 as ClosedRange<Int64> { stage.session.send(Stage.fix(time)) }
    try stage.flush()
    func ping(storedThrough: Int64?) throws {
      stage.session.ping()
      try stage.flush()
      try stage.answerPing(storedThrough: storedThrough)
      stage.messages.removeAll()
      try stage.flush()
    }
    try ping(storedThrough: 1)
    #expect(stage.session.unconfirmed == 3)
    stage.session.send(Stage.move(.requested))
    stage.session.send(Stage.fix(5))
    try stage.flush()
    stage.advance(seconds: 10)
    try ping(storedThrough: 1)
    #expect(stage.ids.isEmpty, "there may be much to store")
    stage.advance(seconds: 10)
    try ping(storedThrough: 1)
    #expect(stage.messages.count == 1 && stage.fixTimes == [2, 3, 4], "the fifth came behind the first ping")
    #expect(stage.session.counters.fixesResent == 3)
    let batch = try #require(stage.ids.first)
    try ping(storedThrough: 1)
    #expect(stage.ids.isEmpty, "it is on its way")
    stage.ack(batch)
    try ping(storedThrough: 5)
    #expect(stage.session.unconfirmed == 1, "the move")
    stage.advance(seconds: 20)
    try ping(storedThrough: 5)
    #expect(stage.ids.isEmpty && stage.session.unconfirmed == 1)
  }

  @Test("A pong does not confirm fixes that were sent after its ping, however old they are")
  func latePong() throws {
    let stage = try Stage()
    try stage.open()
    stage.session.send(Stage.fix(100))
    try stage.flush()
    stage.session.ping()
    try stage.flush()
    stage.session.send(Stage.fix(50))
    try stage.flush()
    try stage.answerPing(storedThrough: 100)
    #expect(stage.session.unconfirmed == 1)
  }

  @Test("Runs of fixes are cut where the trip changes and at 500")
  func runs() throws {
    let stage = try Stage()
    for time in 0..<1100 { stage.session.send(Stage.fix(Int64(time)), trip: Identifier(time < 300 ? "A" : "B")) }
    try stage.open(rate: 0)
    var sizes: [Int] = []
    for envelope in stage.messages {
      if case .locationBatch(let batch) = envelope.message { sizes.append(batch.fixes.count) }
    }
    while stage.session.needsFlush { try stage.flush() }
    sizes = stage.messages.compactMap {
      if case .locationBatch(let batch) = $0.message { batch.fixes.count } else { nil }
    }
    #expect(sizes == [300, 500, 300])
    #expect(stage.fixTimes == (0..<1100).map { Int64($0) })
  }

  @Test("A batch is in the order of time, whatever the order of sending was")
  func oldestFirst() throws {
    let stage = try Stage()
    for time in [5, 1, 3] as [Int64] { stage.session.send(Stage.fix(time)) }
    try stage.open()
    #expect(stage.fixTimes == [1, 3, 5])
  }

  @Test("A refused fix is not sent again")
  func refusedFix() throws {
    let stage = try Stage()
    try stage.open()
    stage.session.send(Stage.fix(1))
    try stage.flush()
    stage.say(.error(ErrorReply(code: .implausibleLocation, message: "", replyTo: stage.ids[0])))
    #expect(stage.session.unconfirmed == 0)
    #expect(stage.delivered.count == 2)  // connected, and the error
  }

  @Test("A message that the hub can't take now goes again after retryAfter, and what follows waits with it")
  func retryAfter() throws {
    let stage = try Stage()
    try stage.open()
    let id = try #require(stage.session.send(Stage.move(.requested)))
    try stage.flush()
    stage.say(.error(ErrorReply(code: .storageFull, message: "", replyTo: id, retryAfter: 5)))
    stage.session.send(Stage.fix(1))
    try stage.flush()
    #expect(stage.ids == [id])
    stage.advance(seconds: 4.9)
    try stage.flush()
    #expect(stage.ids == [id])
    stage.advance(seconds: 0.2)
    stage.session.timeReached(stage.now)
    try stage.flush()
    #expect(Array(stage.ids.prefix(2)) == [id, id])
    #expect(stage.fixTimes == [1])
  }

  @Test("A refusal for now gives nothing up, however often it comes, also without a time to wait for")
  func refusedForNow() throws {
    let stage = try Stage()
    try stage.open(heartbeat: 100_000)
    let id = try #require(stage.session.send(LocationBatch(fixes: [.success(Stage.fix(1)), .success(Stage.fix(2))])))
    for sending in 1...300 {
      stage.messages = []
      try stage.flush()
      #expect(stage.ids == [id], "sending \(sending)")
      #expect(stage.session.giveUpHeld() == nil && stage.session.unconfirmed == 1, "sending \(sending)")
      stage.say(.error(ErrorReply(code: .storageFull, message: "", replyTo: id)))
      stage.advance(seconds: 0.9)
      stage.messages = []
      try stage.flush()
      #expect(stage.ids.isEmpty, "sending \(sending)")
      stage.advance(seconds: 0.2)
    }
    try stage.flush()
    // Nor do those refusals count among the hub's faults.
    stage.say(.error(ErrorReply(code: .internalError, message: "", replyTo: id)))
    #expect(stage.session.giveUpHeld() == nil && stage.session.backlog == 1)
    stage.ack(id)
    #expect(stage.session.unconfirmed == 0)
  }

  @Test("What the hub has failed at twice is not given up again before the answer to its next sending")
  func resentHeld() throws {
    let stage = try Stage()
    try stage.open(heartbeat: 300)
    let id = try #require(stage.session.send(LocationBatch(fixes: [.success(Stage.fix(1)), .success(Stage.fix(2))])))
    for _ in 0..<2 {
      try stage.flush()
      stage.say(.error(ErrorReply(code: .internalError, message: "", replyTo: id)))
      stage.advance(seconds: 2)
    }
    for _ in 0..<2 {
      stage.session.ping()
      try stage.flush()
      try stage.answerPing(storedThrough: nil)
      stage.advance(seconds: 20)
    }
    stage.messages = []
    try stage.flush()
    #expect(stage.ids.contains(id) && stage.session.giveUpHeld() == nil)
    stage.say(.error(ErrorReply(code: .internalError, message: "", replyTo: id)))
    guard case .fixes(let fixes, trip: nil)? = stage.session.giveUpHeld() else { return #expect(Bool(false)) }
    #expect(fixes.count == 2 && stage.session.unconfirmed == 0)
  }

  @Test("An internal error is worth one more try")
  func internalError() throws {
    let stage = try Stage()
    try stage.open()
    let id = try #require(stage.session.send(Stage.move(.requested)))
    try stage.flush()
    for _ in 0..<3 {
      stage.say(.error(ErrorReply(code: .internalError, message: "", replyTo: id)))
      stage.advance(seconds: 2)
      try stage.flush()
    }
    #expect(stage.ids == [id, id])
    #expect(stage.session.unconfirmed == 0)
  }

  @Test("At the limit the oldest fixes give way; other messages do not")
  func limits() throws {
    let stage = try Stage { $0.limits.queuedMessages = 10 }
    stage.session.send(Stage.move(.requested))
    for time in 1...20 { #expect(stage.session.send(Stage.fix(Int64(time)))) }
    #expect(stage.session.counters.fixesDropped == 11)
    for _ in 1...9 { #expect(stage.session.send(Stage.move(.accepted)) != nil) }
    #expect(stage.session.counters.fixesDropped == 20)
    #expect(stage.session.send(Stage.move(.completed)) == nil)
    #expect(!stage.session.send(Stage.fix(21)))
    #expect(stage.session.unconfirmed == 10)
    try stage.open()
    #expect(stage.messages.count == 10)
  }

  @Test("The limit in bytes holds too")
  func byteLimit() throws {
    let stage = try Stage { $0.limits.queuedBytes = 10_000 }
    for time in 1...1000 { stage.session.send(Stage.fix(Int64(time))) }
    #expect(stage.session.queue.bytes <= 10_000)
    #expect(stage.session.unconfirmed > 10)
    try stage.open()
    #expect(stage.fixTimes.last == 1000)
  }

  @Test("A client that does not keep fixes drops those that can't go out, and remembers none")
  func loadGenerator() throws {
    let stage = try Stage { $0.keepsFixes = false }
    #expect(!stage.session.send(Stage.fix(1)))
    try stage.open()
    for time in 2...5 { stage.session.send(Stage.fix(Int64(time))) }
    try stage.flush()
    #expect(stage.fixTimes == [2, 3, 4, 5])
    #expect(stage.session.unconfirmed == 0)
  }

  @Test("A client that is blocked keeps what it has to say, but for control frames")
  func blocked() throws {
    let stage = try Stage()
    try stage.open()
    stage.session.send(Stage.fix(1))
    stage.frame(.ping, [])
    try stage.flush(mayWrite: false)
    #expect(stage.fixTimes.isEmpty && stage.pongs.count == 1)
    try stage.flush()
    #expect(stage.fixTimes == [1])
  }

  @Test("A client that is blocked has nothing to do until it is not, or the hub has been silent for too long")
  func blockedDeadline() throws {
    let stage = try Stage()
    try stage.open()
    stage.session.send(Stage.fix(1))
    stage.advance(seconds: 25)
    stage.session.timeReached(stage.now)
    try stage.flush(mayWrite: false)
    #expect(try #require(stage.session.deadline) == stage.now.uptime + 50_000_000_000)
    try stage.flush()
    #expect(stage.messages.count == 2, "the ping that was due, and the fix")
    #expect(try #require(stage.session.deadline) == stage.now.uptime + 24_000_000_000)
  }

  @Test("Many unconfirmed fixes ask for a ping before the heartbeat does")
  func earlyPing() throws {
    let stage = try Stage()
    try stage.open(rate: 0)
    for time in 1...300 {
      stage.session.send(Stage.fix(Int64(time)))
      try stage.flush()
    }
    let pings = stage.messages.count { if case .ping = $0.message { true } else { false } }
    #expect(pings == 1)
    try stage.answerPing(storedThrough: 300)
    #expect(stage.session.unconfirmed == 300 - 64)
  }

  @Test("While the hub stores nothing, early pings are a second apart")
  func earlyPingPause() throws {
    let stage = try Stage()
    try stage.open(rate: 0)
    func pings() -> Int { stage.messages.count { if case .ping = $0.message { true } else { false } } }
    for time in 1...70 { stage.session.send(Stage.fix(Int64(time))) }
    try stage.flush()
    for time in 71...80 {
      stage.session.send(Stage.fix(Int64(time)))
      try stage.flush()
      if pings() == 1 { try stage.answerPing(storedThrough: nil) }
    }
    #expect(pings() == 1)
    stage.advance(seconds: 1)
    stage.session.send(Stage.fix(81))
    try stage.flush()
    #expect(pings() == 2)
  }

  @Test("Whatever happens, each kept message arrives, in order, and the queue ends empty", arguments: 0..<30)
  func randomBreaks(seed: Int) throws {
    var random = SplitMix64(seed: UInt64(seed))
    let stage = try Stage(seed: UInt64(seed))
    try stage.open(rate: 0)
    var sent: [Int64] = []
    var arrived: [Int64] = []
    var stored: Int64 = 0
    var seen = 0
    func hear() throws {
      while stage.session.needsFlush { try stage.flush() }
      let times = stage.fixTimes
      for time in times[seen...] where time > stored {
        arrived.append(time)
        stored = time
      }
      seen = times.count
    }
    for time in 1...200 {
      stage.session.send(Stage.fix(Int64(time)))
      sent.append(Int64(time))
      switch random.next() % 8 {
      case 0, 1, 2: try hear()
      case 3:  // broken before the hub got it
        _ = stage.session.transportEnded(stage.now)
        seen = 0
        try stage.open(rate: 0)
      case 4:
        try hear()
        stage.session.ping()
        try stage.flush()
        try stage.answerPing(storedThrough: stored)
      case _: break
      }
    }
    try hear()
    #expect(arrived == sent)
    for envelope in stage.messages { if case .locationBatch = envelope.message { stage.ack(envelope.messageID) } }
    stage.session.ping()
    try stage.flush()
    try stage.answerPing(storedThrough: stored)
    #expect(stage.session.unconfirmed == 0)
    #expect(stage.session.queue.bytes == 0 && stage.session.backlog == 0)
  }
}
