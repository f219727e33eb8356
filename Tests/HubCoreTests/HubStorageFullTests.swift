// What waits for the disk when the disk turns out to be full: nobody waits for an answer until there is room again.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubStorageFullTests {
  private let asker = SessionRef(outlet: 0, slot: 90, generation: 1)

  /// A bench whose journal has stored all so far.
  private func makeBench(looksUp: Bool = false) throws -> DurableBench {
    let bench = try DurableBench(looksUp: looksUp)
    bench.store()
    return bench
  }

  @Test("A move whose record meets a full disk gets storage_full at once; sent again it is acked, and made only once")
  func move() throws {
    let bench = try makeBench()
    bench.turn([bench.subscribe("T")])
    let move = bench.move(.ops, "o", "T", .requested, message: message("first"))
    #expect(Turn(loops: [bench.turn([move])]).replies.isEmpty)
    let full = Turn(loops: [bench.store(0, condition: .unavailable)])
    #expect(full.codes == [.storageFull] && full.errors.first?.replyTo == message("first"))
    #expect(full.errors.first?.retryAfter != nil && full.acks.isEmpty && full.moves.isEmpty)
    #expect(bench.hub.counters.refusedForStorage == 1)
    // Sent once, and not again while it lasts.
    #expect(Turn(loops: [bench.store(0, condition: .unavailable)]).replies.isEmpty)
    #expect(Turn(loops: [bench.turn([move])]).codes == [.storageFull])
    // There is room: the record that waited is stored. Its event leaves, and no ack for what was refused.
    let room = Turn(loops: [bench.store()])
    #expect(room.moves.map(\.sequence) == [1] && room.acks.isEmpty)
    let again = Turn(loops: [bench.turn([move])])
    #expect(again.acks.map(\.replyTo) == [message("first")] && again.moves.isEmpty)
    #expect(bench.hub.counters.tripMoves == 1)
  }

  @Test("What is stored when the disk fills is acked; what is behind it is not")
  func boundary() throws {
    let bench = try makeBench()
    bench.turn([bench.move(.ops, "o", "A", .requested, message: message("a"))])
    bench.turn([bench.move(.ops, "o", "B", .requested, message: message("b"))])
    let turn = Turn(loops: [bench.store(1, condition: .unavailable)])
    #expect(turn.acks.map(\.replyTo) == [message("a")] && turn.errors.map(\.replyTo) == [message("b")])
  }

  @Test("A refusal that would reveal a state which is not stored says storage_full instead")
  func wrongMove() throws {
    let bench = try makeBench()
    bench.turn([bench.move(.ops, "o", "T", .requested)])
    bench.turn([bench.move(.ops, "o", "T", .completed, message: message("wrong"))])
    let turn = Turn(loops: [bench.store(0, condition: .unavailable)])
    #expect(turn.codes == [.storageFull, .storageFull] && turn.errors.last?.replyTo == message("wrong"))
    #expect(turn.errors.allSatisfy { $0.status == nil })
  }

  @Test("A driver is refused a trip that another one has accepted only when that is stored")
  func secondDriver() throws {
    let bench = try makeBench()
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.move(.driver, "D", "T", .accepted)])
    #expect(Turn(loops: [bench.turn([bench.move(.driver, "E", "T", .accepted)])]).replies.isEmpty)
    let stored = Turn(loops: [bench.store()])
    #expect(stored.acks.count == 2 && stored.codes == [.forbidden])
  }

  @Test("That a driver went offline on a full disk is published when there is room, unless it is back by then")
  func offline() throws {
    for isBack in [false, true] {
      let bench = try makeBench()
      bench.connect()
      bench.turn([bench.subscribe(.driver(id("D")))])
      bench.store()
      bench.turn([.driverDisconnected(DurableBench.session)])
      func published(_ seconds: Int, _ condition: StorageCondition) -> [HubMessages.Notification.Kind] {
        let outputs = (0..<seconds).flatMap { _ in
          bench.advance(seconds: 1)
          return bench.turn([]) + bench.store(condition: condition)
        }
        return Turn(loops: [outputs]).notifications.map(\.kind)
      }
      #expect(published(70, .unavailable) == [] && bench.hub.counters.eventsNotStored == 1)
      if isBack {
        bench.connect()
        bench.turn([bench.fix(bench.clock, trip: nil)])
      }
      #expect(published(55, .good) == (isBack ? [] : [.driverOffline]))
    }
  }

  @Test("A fix that names a new trip on a full disk is refused for now; sent again it begins the trip")
  func newTrip() throws {
    let bench = try makeBench()
    bench.connect()
    bench.turn([bench.subscribe(.driver(id("D")))])
    bench.store()
    bench.store(condition: .unavailable)
    let fix = bench.fix(bench.clock)
    let full = Turn(loops: [bench.turn([fix])])
    #expect(full.codes == [.storageFull] && full.positions.isEmpty)
    bench.store()
    let room = Turn(loops: [bench.turn([fix])])
    #expect(room.codes == [] && room.positions.map(\.tripID) == [id("T")])
    bench.store()
    #expect(try bench.fixes().count == 1 && bench.hub.counters.fixesForbidden == 0)
  }

  @Test("Who asks for a trip that is not stored is refused for now; leaving it, and other channels, go on")
  func asking() throws {
    let bench = try makeBench()
    bench.turn([bench.move(.ops, "o", "T", .requested)])
    let show = HubInput.trips(
      asker, .show(TripQuery(id: id("T"), actor: Actor(role: .ops, id: id("o")), grant: .granted)))
    let leave = HubInput.unsubscribe(SessionRef(outlet: 0, slot: 80, generation: 1), message("u"), .trip(id("T")))
    bench.turn([bench.subscribe("T"), leave, show])
    let outputs = bench.store(0, condition: .unavailable)
    let turn = Turn(loops: [outputs])
    #expect(turn.refusedSubscriptions.map(\.code) == [.storageFull])
    #expect(turn.refusedSubscriptions.allSatisfy { $0.retryAfter != nil } && turn.subscribed.isEmpty)
    #expect(outputs.contains { if case .unsubscribed = $0 { true } else { false } })
    #expect(
      outputs.contains { if case .trips(_, .refused(let error), _) = $0 { error.code == .storageFull } else { false } })
    // The same again while it lasts is answered in its own turn.
    let later = Turn(loops: [bench.turn([bench.subscribe("T"), bench.subscribe("U", slot: 81)])])
    #expect(later.refusedSubscriptions.map(\.code) == [.storageFull])
    #expect(later.subscribed.map(\.answer.channel) == [.trip(id("U"))])
    bench.store()
    #expect(Turn(loops: [bench.turn([bench.subscribe("T")])]).subscribed.map(\.answer.sequence) == [1])
  }

  @Test("Who has subscribed to all trips and waits for their events is refused, and is no subscriber then")
  func waitingForTrips() throws {
    let bench = try makeBench()
    let first = Turn(loops: [bench.turn([bench.subscribe(.trips)]) + bench.store()])
    bench.turn([.released(outlet: 0, try #require(first.subscribed.first).handle)])
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.subscribe(.trips, slot: 81)])
    let full = Turn(loops: [bench.store(0, condition: .unavailable)])
    #expect(full.refusedSubscriptions.map(\.code) == [.storageFull] && full.subscribed.isEmpty)
    #expect(Turn(loops: [bench.store()]).moves.isEmpty, "nobody follows")
  }

  @Test("A trip that is asked for over HTTP is refused with its id, by which it can be asked for again")
  func posted() throws {
    let bench = try makeBench()
    let report = TripStatusReport(tripID: id("T"), status: .requested, timestamp: bench.now.timestamp)
    bench.turn([.trips(asker, .begin(report))])
    let refusals = bench.store(0, condition: .unavailable).compactMap { output in
      if case .trips(_, .refused(let error), _) = output { error } else { nil }
    }
    #expect(refusals.map(\.code) == [.storageFull] && refusals.first?.message.contains("trip T ") == true)
    bench.store()
    let again = bench.turn([.trips(asker, .begin(report))])
    #expect(again.contains { if case .trips(_, .trip(_, isNew: false), _) = $0 { true } else { false } })
  }

  @Test("A fence that meets a full disk is refused, and so is a list that would show it")
  func fences() throws {
    let bench = try makeBench()
    let fence = Fence(id: id("F"), shape: .area(.circle(Circle(center: at(48.1, 11.5), radiusMeters: 100)!)))
    bench.turn([.fences(asker, .put(fence, FenceCovering(fence)))])
    func refusals(_ outputs: [HubOutput]) -> [ErrorCode] {
      outputs.compactMap { if case .fences(_, .refused(let error)) = $0 { error.code } else { nil } }
    }
    #expect(refusals(bench.store(0, condition: .unavailable)) == [.storageFull])
    #expect(refusals(bench.turn([.fences(asker, .list(below: .max, limit: 10))])) == [.storageFull])
    bench.store()
    let again = bench.turn([.fences(asker, .put(fence, FenceCovering(fence)))])
    #expect(again.contains { if case .fences(_, .fence(_, isNew: false)) = $0 { true } else { false } })
  }

  @Test("Whatever the answer to a notification was to be, it says storage_full where it would have to wait")
  func notifications() throws {
    let bench = try makeBench()
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.move(.ops, "o", "over", .requested)])
    bench.turn([bench.move(.ops, "o", "over", .cancelled)])
    bench.store()
    _ = bench.tick(62)
    func notify(_ channel: Channel, _ body: String = "b") -> HubInput {
      var post = NotificationPost(channel: channel, kind: .message, title: "t", body: body)
      post.messageID = message("n")
      return .notify(asker, post)
    }
    func answers(_ outputs: [HubOutput]) -> [NotificationAnswer] {
      outputs.compactMap { if case .notified(_, let answer) = $0 { answer } else { nil } }
    }
    let trip = Channel.trip(id("T"))
    let posts = [
      notify(trip), notify(trip), notify(trip, "other"), notify(.trip(id("over"))), notify(.trip(id("none"))),
      notify(.driver(id("none"))), notify(.fence(id("none"))), notify(.fleet),
    ]
    #expect(answers(bench.turn(posts)).isEmpty, "the first is not stored, and all are behind it")
    let refused = answers(bench.store(0, condition: .unavailable)).compactMap { answer in
      if case .refused(let error) = answer { error } else { nil }
    }
    #expect(refused.map(\.code) == Array(repeating: .storageFull, count: posts.count))
    #expect(refused.allSatisfy { $0.retryAfter != nil && $0.status == nil })
    #expect(bench.hub.counters.refusedForStorage == UInt64(posts.count))
    #expect(answers(bench.store()).isEmpty, "each is answered once")
    let again = answers(bench.turn(posts))
    #expect(again.count == posts.count && bench.hub.counters.notificationsPosted == 1)
    guard case .published(trip, sequence: 2, isNew: false)? = again.first else {
      Issue.record("\(again)")
      return
    }
  }

  @Test(
    "A batch that meets a full disk is refused, also where older fixes wait for the journal; again all are duplicates")
  func batches() throws {
    let bench = try makeBench(looksUp: true)
    bench.connect()
    let base = bench.clock
    bench.turn([bench.fix(base + 60_000)])
    bench.store()
    let batch = bench.batch([base, base + 1000, base + 70_000])
    #expect(Turn(loops: [bench.turn([batch])]).acks.isEmpty && bench.lookups().isEmpty)
    let full = Turn(loops: [bench.store(0, condition: .unavailable)])
    #expect(full.codes == [.storageFull] && bench.hub.counters.fixesPutOff == 2)
    bench.store()
    #expect(bench.lookups().isEmpty, "the batch that was refused is not looked for")
    bench.turn([batch])
    bench.store()
    let asked = bench.lookups()
    #expect(asked.map(\.times) == [[base, base + 1000]])
    bench.turn([try bench.answer(try #require(asked.first))])
    let acks = Turn(loops: [bench.store()]).acks
    #expect(acks.map(\.batch?.duplicates) == [1] && acks.map(\.batch?.accepted) == [2])
  }
}
