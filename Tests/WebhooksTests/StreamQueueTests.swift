// A stream's queue, with time moved by hand and a server that is an array.
import HubMessages
import HubTestSupport
import Testing

@testable import HubWebhooks

/// An event of trip `trip`, at the journal's group `group`.
func streamMessage(_ group: Int, trip: Int = 0, title: String = "t") -> StreamMessage {
  let body = HubMessages.Notification(
    kind: .fenceEnter, title: title, body: "b", driverID: nil, leg: nil, sequence: 1)
  let event = Publication(
    channel: .trip(Identifier("T\(trip)")!), number: 1, timestamp: Timestamp(milliseconds: 0),
    body: .notification(body))
  return StreamMessage(event, JournalPosition(group: UInt64(group), record: 0), epoch: "e1")!
}

@Suite struct StreamQueueTests {
  private var now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_700_000_000_000))

  private func queue(_ mode: StreamQueue.Mode = .single, giveUpAfter: Double = 100) -> StreamQueue {
    StreamQueue(
      mode, giveUpAfterSeconds: giveUpAfter, from: DeliveryProgress(cursor: JournalPosition(group: 1, record: 0)))
  }

  private mutating func advance(_ seconds: Double) {
    now.uptime += Int64(seconds * 1e9)
    now.timestamp = Timestamp(milliseconds: now.timestamp.milliseconds + Int64(seconds * 1000))
  }

  private func position(_ group: Int) -> JournalPosition { JournalPosition(group: UInt64(group), record: 0) }

  private func groups(_ messages: [StreamMessage]) -> [UInt64] { messages.map(\.position.group) }

  @Test("Of one trip one event is under way at a time; the cursor stands at the first that is not stored")
  func order() {
    var queue = queue()
    for (group, trip) in [(1, 8), (2, 9), (3, 8), (4, 9)] {
      queue.append(streamMessage(group, trip: trip), published: now.timestamp, now)
    }
    #expect(groups(queue.takeDue(now)) == [1, 2] && queue.takeDue(now) == [] && queue.underWay == 2)
    queue.stored([position(2)])
    #expect(groups(queue.takeDue(now)) == [4] && queue.cursor == position(1))
    queue.stored([position(1), position(4), position(7)])
    #expect(queue.cursor == position(3) && groups(queue.takeDue(now)) == [3])
    queue.stored([position(3)])
    #expect(queue.cursor == position(4).next && queue.underWay == 0 && queue.oldest == nil)
    queue.scanned(through: position(9))
    #expect(queue.cursor == position(9))
  }

  @Test("A connection that ends has what was under way sent again at once, and nothing else")
  func lost() {
    var queue = queue()
    for group in 1...3 { queue.append(streamMessage(group, trip: group), published: now.timestamp, now) }
    #expect(queue.takeDue(now).count == 3)
    queue.stored([position(2)])
    queue.lost()
    #expect(groups(queue.takeDue(now)) == [1, 3])
  }

  @Test("What is refused waits by the schedule of webhooks, with all others, and is given up in the end")
  mutating func refused() {
    var queue = queue(giveUpAfter: 30)
    for group in 1...3 { queue.append(streamMessage(group, trip: group), published: now.timestamp, now) }
    #expect(queue.takeDue(now).count == 3)
    // Refused together: one failure.
    #expect(queue.refused([position(1)], retryAfterSeconds: nil, now, unit: 0.5).isEmpty)
    #expect(queue.refused([position(2)], retryAfterSeconds: nil, now, unit: 0.5).isEmpty)
    #expect(queue.takeDue(now) == [] && queue.nextTime == 5_000_000_000)
    advance(5)
    #expect(groups(queue.takeDue(now)) == [1, 2])
    #expect(queue.refused([position(1)], retryAfterSeconds: nil, now, unit: 0.5).isEmpty)
    #expect(queue.nextTime == now.uptime + 30_000_000_000)
    advance(30)
    #expect(groups(queue.takeDue(now)) == [1], "2 has no answer yet")
    #expect(groups(queue.refused([position(1)], retryAfterSeconds: 7, now, unit: 0.5)) == [1], "given up after 35 s")
    #expect(queue.cursor == position(2) && queue.nextTime == now.uptime + 7_000_000_000, "as long as it asked for")
    queue.stored([position(2), position(3)])
    #expect(queue.nextTime == .max && queue.cursor == position(3).next, "a success ends the wait")
  }

  @Test("What was sent with a refused event may be stored behind it, and is not sent again, also after a restart")
  mutating func refusedHead() {
    var queue = queue()
    for group in 1...4 { queue.append(streamMessage(group, trip: group % 3), published: now.timestamp, now) }
    #expect(groups(queue.takeDue(now)) == [1, 2, 3])
    #expect(queue.refused([position(1)], retryAfterSeconds: nil, now, unit: 0.5).isEmpty)
    queue.stored([position(2), position(3)])
    #expect(queue.takeDue(now) == [] && queue.nextTime == 5_000_000_000, "the whole stream waits")
    queue.append(streamMessage(5, trip: 9), published: now.timestamp, now)
    advance(5)
    #expect(
      groups(queue.takeDue(now)) == [1] && groups(queue.takeDue(now)) == [], "it alone, also while it is under way")
    #expect(queue.refused([position(1)], retryAfterSeconds: nil, now, unit: 0.5).isEmpty)
    let lanes = Set(queue.progress.lanes.map(\.position))
    #expect(queue.cursor == position(1) && lanes == [position(1), position(2).next, position(3).next])
    for _ in 0..<2 {  // twice: nothing is forgotten before the cursor is there
      queue = StreamQueue(.single, giveUpAfterSeconds: 100, from: queue.progress)
      #expect(queue.progress.lanes.count == 3)
    }
    for group in 1...5 {
      queue.append(streamMessage(group, trip: group == 5 ? 9 : group % 3), published: now.timestamp, now)
    }
    #expect(groups(queue.takeDue(now)) == [1], "it alone, also after a restart")
    queue.stored([position(1)])
    #expect(groups(queue.takeDue(now)) == [4, 5] && queue.progress.lanes.isEmpty)
    queue.stored([position(4), position(5)])
    #expect(queue.cursor == position(5).next && queue.underWay == 0)
  }

  @Test("The time of an event's first refusal holds over restarts, and that of those refused with it on its channel")
  mutating func refusedOverRestarts() {
    for mode in [.single, .batches(delay: 0)] as [StreamQueue.Mode] {
      var queue = queue(mode)
      var dead: [UInt64] = []
      for restart in 0..<3 {
        for group in 1...5 { queue.append(streamMessage(group, trip: group / 4), published: now.timestamp, now) }
        let due = queue.takeDue(now)
        #expect(restart > 0 || groups(due) == (mode == .single ? [1, 4] : [1, 2, 3, 4, 5]))
        // With NATS the other trip's event is stored.
        if mode == .single { queue.stored([position(4)]) }
        let refused = due.map(\.position).filter { mode != .single || $0 == position(1) }
        dead = groups(queue.refused(refused, retryAfterSeconds: nil, now, unit: 0.5))
        #expect(dead.isEmpty || restart == 2)
        advance(50)
        // Twice: what was not read again is not forgotten.
        for _ in 0..<2 { queue = StreamQueue(mode, giveUpAfterSeconds: 100, from: queue.progress) }
        now.uptime = Int64(restart) * 1000
      }
      #expect(dead == (mode == .single ? [1] : [1, 2, 3, 4, 5]), "100 s after the first refusal")
    }
  }

  @Test("A batch waits a while for more, or until it is full, and for the answer to the one before")
  mutating func batches() {
    var queue = queue(.batches(delay: 100_000_000))
    queue.append(streamMessage(1), published: now.timestamp, now)
    #expect(queue.takeDue(now) == [] && queue.nextTime == 100_000_000)
    advance(0.1)
    queue.append(streamMessage(2), published: now.timestamp, now)
    #expect(groups(queue.takeDue(now)) == [1, 2] && queue.nextTime == .max)
    var group = 3
    while queue.hasRoom {
      queue.append(streamMessage(group), published: now.timestamp, now)
      group += 1
    }
    #expect(group == StreamQueue.maximumUnderWay + 1 && queue.takeDue(now) == [])
    queue.stored([position(1), position(2)])
    #expect(queue.hasRoom && queue.takeDue(now) == [], "there is room again, so it waits for more")
    for _ in 0..<2 {
      queue.append(streamMessage(group), published: now.timestamp, now)
      group += 1
    }
    #expect(queue.takeDue(now).count == StreamQueue.maximumUnderWay && queue.cursor == position(3))
  }

  @Test("The window is bounded in bytes as well")
  func bytes() {
    var queue = queue()
    let message = String(repeating: "x", count: 40_000)
    var group = 1
    while queue.hasRoom {
      queue.append(streamMessage(group, title: message), published: now.timestamp, now)
      group += 1
    }
    #expect(5...8 ~= group)
  }

  @Test("410 stops it, with what was under way")
  func disabled() {
    var queue = queue()
    queue.append(streamMessage(1), published: now.timestamp, now)
    #expect(queue.takeDue(now).count == 1)
    queue.disable()
    #expect(queue.takeDue(now) == [] && queue.nextTime == .max)
    queue.append(streamMessage(2), published: now.timestamp, now)
    #expect(queue.takeDue(now) == [], "what waits is known, and not sent")
    #expect(queue.progress == DeliveryProgress(cursor: position(1), isEnabled: false))
  }

  @Test("Whatever servers and connections do, each event is stored, and those of a trip in order")
  mutating func random() {
    for seed in 0..<40 as Range<UInt64> {
      var random = SplitMix64(seed: seed)
      var queue = queue(seed % 2 == 0 ? .single : .batches(delay: 1000), giveUpAfter: 1e9)
      var (next, server, underWay) = (1, [StreamMessage](), [StreamMessage]())
      while server.count < 400 {
        while next <= 400, queue.hasRoom, Int.random(in: 0..<4, using: &random) > 0 {
          let trip = Int.random(in: 0..<9, using: &random)
          queue.append(streamMessage(next, trip: trip), published: now.timestamp, now)
          next += 1
        }
        underWay += queue.takeDue(now)
        switch Int.random(in: 0..<10, using: &random) {
        case 0:
          // Some of what was sent has arrived, in order, without an acknowledgement.
          for message in underWay.prefix(Int.random(in: 0...underWay.count, using: &random)) {
            if !server.contains(message) { server.append(message) }
          }
          underWay = []
          queue.lost()
        case 1...2:
          let dead = queue.refused(underWay.map(\.position), retryAfterSeconds: nil, now, unit: 0)
          #expect(dead.isEmpty)
          underWay = []
        case 3...8:
          for message in underWay where !server.contains(message) { server.append(message) }
          queue.stored(underWay.map(\.position))
          underWay = []
        default: advance(1e4)
        }
        #expect(queue.underWay == underWay.count)
        // Whatever is before the cursor is there.
        let before = queue.cursor.record == 0 ? queue.cursor.group - 1 : queue.cursor.group
        #expect(server.lazy.filter { $0.position < queue.cursor }.count == Int(before))
      }
      for trip in 0..<9 {
        let found = server.filter { $0.source == "trip.T\(trip)" }.map(\.position)
        #expect(found == found.sorted(), "seed \(seed)")
      }
    }
  }
}
