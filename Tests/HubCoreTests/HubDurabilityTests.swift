// Trips over the hub's own death: a hub whose records are stored late, or not at all, and a second one that reads back
// what there is.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubDurabilityTests {
  @Test("The channel of all trips counts on over a restart: no event of it is without a number, sent or not")
  func allTrips() throws {
    let bench = try DurableBench()
    bench.turn([bench.move(.ops, "o", "before", .requested)])
    bench.store()
    #expect(Turn(loops: [bench.turn([bench.subscribe(.trips)])]).subscribed.isEmpty, "that it counts is stored first")
    let answer = try #require(Turn(loops: [bench.store()]).subscribed.first?.answer)
    for step in [TripStatus.requested, .accepted] {
      bench.turn([bench.move(step == .requested ? .rider : .ops, step == .requested ? "R" : "o", "T", step)])
    }
    bench.store()
    let next = try DurableBench(reading: bench.submitted)
    next.turn([next.move(.ops, "o", "T", .cancelled)])
    let asked = Turn(loops: [next.turn([next.subscribe(.trips, since: answer.sequence)]) + next.store()])
    let again = try #require(asked.subscribed.first)
    #expect(again.answer.recovered && again.answer.sequence == answer.sequence + 3)
    let moves = again.missed.compactMap(\.move)
    #expect(moves.map(\.status) == [.requested, .accepted, .cancelled])
    #expect(moves.map(\.sequence) == (1...3).map { answer.sequence + $0 })
    #expect(moves.map(\.riderID) == [id("R"), id("R"), id("R")])
    #expect(try next.state() == DurableBench(reading: bench.submitted + next.submitted).state())
  }

  @Test("The channel of all trips does not begin where that cannot be stored")
  func allTripsUnstored() throws {
    let bench = try DurableBench()
    bench.store(condition: .unavailable)
    let refused = Turn(loops: [bench.turn([bench.subscribe(.trips)])])
    #expect(refused.refusedSubscriptions.map(\.code) == [.storageFull] && bench.hub.channels.trips == nil)
    bench.store(condition: .good)
    let asked = bench.turn([bench.subscribe(.trips)]) + bench.store()
    #expect(Turn(loops: [asked]).subscribed.count == 1)
  }

  @Test("The ack and the event of a move leave when it is stored, and not before")
  func waiting() throws {
    let bench = try DurableBench()
    #expect(Turn(loops: [bench.turn([bench.subscribe("T")])]).subscribed.count == 1)
    bench.store()
    let early = Turn(loops: [bench.turn([bench.move(.ops, "o", "T", .requested)])])
    #expect(early.acks.isEmpty && early.deliveries.isEmpty)
    let late = Turn(loops: [bench.store()])
    #expect(late.acks.count == 1 && late.moves.map(\.sequence) == [1])
  }

  @Test("Who asks about a channel whose newest event is not stored is answered when it is, in the order of asking")
  func asking() throws {
    let bench = try DurableBench()
    bench.store()
    bench.turn([bench.move(.ops, "o", "T", .requested)])
    let early = Turn(loops: [
      bench.turn([
        bench.subscribe("T"),
        .unsubscribe(SessionRef(outlet: 0, slot: 80, generation: 1), message("u"), .trip(id("T"))),
        bench.subscribe("other", slot: 81),
      ])
    ])
    #expect(early.subscribed.map(\.answer.channel) == [.trip(id("other"))])
    let late = bench.store()
    let kinds = late.compactMap { output in
      switch output {
      case .subscribed: "subscribed"
      case .unsubscribed: "unsubscribed"
      default: nil
      }
    }
    #expect(kinds == ["subscribed", "unsubscribed"])
    #expect(Turn(loops: [late]).subscribed.first?.answer.sequence == 1)
  }

  @Test("Who asks between two events that are stored together gets each of them once")
  func askingBetween() throws {
    let bench = try DurableBench()
    bench.store()
    bench.turn([
      bench.subscribe("T", slot: 81), bench.move(.ops, "o", "T", .requested), bench.subscribe("T", since: 0),
      bench.move(.driver, "D", "T", .accepted),
    ])
    let outputs = bench.store()
    let index = try #require(outputs.firstIndex { if case .subscribed = $0 { true } else { false } })
    let turn = Turn(loops: [Array(outputs[index...])])
    #expect(turn.subscribed.first?.missed.compactMap(\.move?.sequence) == [1, 2])
    #expect(turn.moves.isEmpty, "an event that was missed comes again")
  }

  @Test("Who asks for a new channel, whose numbers go on from a forgotten one's, is answered when that is stored")
  func askingAfterForgetting() throws {
    let bench = try DurableBench()
    bench.store()
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.move(.ops, "o", "T", .cancelled)])
    bench.store()
    for _ in 0..<(24 * 60 + 2) {
      bench.advance(seconds: 60)
      bench.turn([])
    }
    #expect(bench.hub.trips.find(id("T")) == nil)
    #expect(Turn(loops: [bench.turn([bench.subscribe("U")])]).subscribed.isEmpty)
    let answer = try #require(Turn(loops: [bench.store()]).subscribed.first?.answer)
    #expect(answer.channel == .trip(id("U")))
    #expect(answer.sequence == 2)
  }

  @Test("The same move again is acked when the first is stored")
  func repetition() throws {
    let bench = try DurableBench()
    let move = bench.move(.ops, "o", "T", .requested)
    bench.store()
    #expect(Turn(loops: [bench.turn([move])]).acks.isEmpty)
    #expect(Turn(loops: [bench.turn([move])]).acks.isEmpty)
    #expect(Turn(loops: [bench.store()]).acks.count == 2)
    #expect(Turn(loops: [bench.turn([move])]).acks.count == 1)
  }

  @Test("Positions wait for nothing, and name no event that is not stored")
  func positions() throws {
    let bench = try DurableBench()
    let session = SessionRef(outlet: 0, slot: 3, generation: 9)
    bench.turn([
      .driverConnecting(session, id("D")), bench.subscribe("T"), bench.move(.ops, "o", "T", .requested),
    ])
    bench.store()
    bench.advance(seconds: 1)
    let turn = Turn(loops: [
      bench.turn([
        bench.move(.driver, "D", "T", .accepted),
        .fix(
          FixInput(
            session: session, messageID: message("f"), sent: bench.now.timestamp, received: bench.now,
            update: LocationUpdate(
              tripID: id("T"), fix: Fix(coordinate: at(52.5, 13.4), timestamp: bench.now.timestamp, accuracy: 5)),
            tripIsGranted: true)),
      ])
    ])
    #expect(turn.moves.isEmpty && turn.positions.map(\.after) == [1])
    #expect(Turn(loops: [bench.store()]).moves.map(\.sequence) == [2])
  }

  @Test(
    "who follows a trip that another driver takes is let go before any position of it, stored or not",
    arguments: [1, 2], [false, true])
  func claimed(loops: Int, isRestarted: Bool) throws {
    let first = try DurableBench(loops: loops)
    first.turn([first.move(.ops, "o", "other", .requested)])
    first.store()
    let bench = isRestarted ? try DurableBench(reading: first.submitted, loops: loops, seed: 7) : first
    let session = SessionRef(outlet: 0, slot: 3, generation: 9)
    let follower = SubscribeInput(
      session: SessionRef(outlet: UInt32(loops - 1), slot: 80, generation: 1),
      actor: Actor(role: .driver, id: id("D2")),
      messageID: message("s"), request: Subscribe(channel: .trip(id("T"))), grant: .whileUnclaimed)
    bench.turn([.driverConnecting(session, id("D")), .subscribe(follower)])
    bench.store()
    let fix = FixInput(
      session: session, messageID: message("f"), sent: bench.now.timestamp, received: bench.now,
      update: LocationUpdate(
        tripID: id("T"), fix: Fix(coordinate: at(52.5, 13.4), timestamp: bench.now.timestamp, accuracy: 5)),
      tripIsGranted: true)
    let outputs = bench.turn([.fix(fix)])
    let claim = try #require(outputs.firstIndex { if case .channelClaimed = $0 { true } else { false } })
    let position = try #require(outputs.firstIndex { if case .delivery = $0 { true } else { false } })
    #expect(claim < position)
    #expect(Turn(loops: [bench.store()]).moves.map(\.status) == [.accepted])
  }

  @Test("While nothing can be stored moves are refused with storage_full, and go on when there is room")
  func full() throws {
    let bench = try DurableBench()
    bench.store(condition: .unavailable)
    let refused = Turn(loops: [bench.turn([bench.move(.ops, "o", "T", .requested)])])
    #expect(refused.codes == [.storageFull] && refused.errors.first?.retryAfter != nil)
    #expect(bench.hub.counters.refusedForStorage == 1)
    bench.store(condition: .good)
    bench.turn([bench.move(.ops, "o", "T", .requested)])
    #expect(Turn(loops: [bench.store()]).acks.count == 1)
  }

  @Test("At the limit of records that wait to be handed over moves are refused")
  func limit() throws {
    let bench = try DurableBench()
    bench.hub.attachJournal(limit: 2000, startsEpoch: true, epoch: InlineText("e")!)
    bench.hub.process((0..<100).map { bench.move(.ops, "o", "T\($0)", .requested) }, now: bench.now)
    #expect(bench.hub.shownCounters().entries(.trips) < 20 && bench.hub.counters.refusedForStorage > 80)
  }

  @Test("The next incarnation knows the trips, who moved them, and how long ago they ended")
  func restart() throws {
    let first = try DurableBench()
    let repeated = first.move(.ops, "o", "T", .requested)
    first.turn([repeated, first.move(.driver, "D", "T", .accepted), first.move(.ops, "o", "U", .requested)])
    first.turn([first.move(.rider, "R", "U", .cancelled)])
    first.store()
    let second = try DurableBench(reading: first.submitted, seed: 77, uptime: 9_000_000_000)
    #expect(try second.state() == first.state())
    second.store()
    // The same message again changes nothing.
    let again = Turn(loops: [second.turn([repeated])])
    #expect(again.acks.count == 1 && second.hub.counters.tripMoves == 0)
    let turn = Turn(loops: [second.turn([second.subscribe("T", since: 1), second.subscribe("U", since: 0)])])
    #expect(turn.subscribed.map(\.answer.recovered) == [true, true])
    #expect(turn.subscribed.first?.missed.compactMap(\.move?.status) == [.accepted])
    #expect(turn.subscribed.last?.missed.compactMap(\.move?.status) == [.requested, .cancelled])
    // Numbers continue where they were.
    second.turn([second.move(.driver, "D", "T", .driverEnRoute)])
    #expect(Turn(loops: [second.store()]).moves.map(\.sequence) == [3])
    // The grace and the retention of an ended trip count from its end.
    second.advance(seconds: 61)
    #expect(Turn(loops: [second.turn([])]).ended.map(\.0) == [.trip(id("U"))])
    for _ in 0..<(24 * 60 + 2) {
      second.advance(seconds: 60)
      second.turn([])
    }
    second.store()
    #expect(second.hub.trips.find(id("U")) == nil)
    let third = try DurableBench(reading: first.submitted + second.submitted, seed: 78)
    #expect(try third.state() == second.state())
    #expect(third.hub.trips.find(id("U")) == nil)
  }

  @Test("A new epoch after a loss makes old numbers unmistakable")
  func newEpoch() throws {
    let first = try DurableBench()
    first.turn([first.move(.ops, "o", "T", .requested)])
    first.store()
    let second = try DurableBench(reading: first.submitted, epoch: "epoch-2", startsEpoch: true)
    second.turn([])
    second.store()
    let turn = Turn(loops: [
      second.turn([
        second.subscribe("T", since: 1, epoch: "epoch-1"), second.subscribe("T", since: 1, epoch: "epoch-2"),
      ])
    ])
    #expect(turn.subscribed.map(\.answer.recovered) == [false, true])
    let third = try DurableBench(reading: first.submitted + second.submitted, seed: 5)
    #expect(try third.state() == second.state())
  }

  @Test("A record cut at any byte, or with any byte changed, is refused or says something else; it never crashes")
  func damagedRecords() throws {
    let bench = try DurableBench()
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.move(.driver, "D", "T", .accepted)])
    let bytes = bench.submitted.flatMap { $0 }
    var random = SplitMix64(seed: 3)
    for cut in 0..<bytes.count {
      var damaged = bytes
      damaged[cut] ^= UInt8.random(in: 1...255, using: &random)
      for candidate in [Array(bytes[..<cut]), damaged] {
        do { _ = try DurableBench(reading: [candidate]) } catch is RecordError {}
      }
    }
  }
}
