// Subscribing: how things stand, what was missed, and from where on what follows is live.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubSubscriptionsTests {
  @Test("subscribing to a trip before it begins is fine: no snapshot, and its events follow")
  func before() {
    let bench = HubBench()
    let first = bench.turn(bench.subscribe(bench.trip("t"))).subscribed.first?.answer
    #expect(first?.sequence == 0 && first?.snapshot == nil && first?.recovered == false)
    #expect(first?.epoch == HubBench.epoch)
    #expect(bench.turn(bench.move(.rider, "r", "t", .requested)).moves.map(\.sequence) == [1])
  }

  @Test("within one turn, what came before the subscription is in its answer and what came after is live")
  func order() {
    let bench = HubBench()
    let session = bench.connect("d")
    let turn = bench.turn(
      bench.move(.rider, "r", "t", .requested), bench.fix(session, trip: "t"),
      bench.subscribe(bench.trip("t"), since: 0),
      bench.fix(session, trip: "t", milliseconds: bench.clock + 1000), bench.move(.driver, "d", "t", .accepted))
    let answer = turn.subscribed[0]
    #expect(answer.answer.sequence == 1 && answer.answer.recovered)
    #expect(answer.missed.map(\.sequence) == [1])
    #expect(answer.answer.snapshot?.trip?.status == .requested)
    #expect(turn.positions.map(\.timestamp.milliseconds) == [bench.clock + 1000])
    #expect(turn.moves.map(\.sequence) == [2])
  }

  @Test("another epoch, a number ahead of the channel, and events that are gone are not recovered")
  func notRecovered() {
    var limits = HubLimits.roomy
    limits.eventsPerChannel = 2
    let bench = HubBench(limits: limits)
    for status in [TripStatus.requested, .accepted, .driverEnRoute] {
      bench.turn(bench.move(.ops, "o", "t", status, driver: status == .requested ? "d" : nil))
    }
    func recovered(since: UInt64, epoch: InlineText = HubBench.epoch) -> (Bool, Int) {
      let answer = bench.turn(bench.subscribe(bench.trip("t"), since: since, epoch: epoch)).subscribed[0]
      #expect(answer.answer.sequence == 3)
      #expect(answer.answer.snapshot?.trip?.status == .driverEnRoute, "a snapshot says where things stand")
      return (answer.answer.recovered, answer.missed.count)
    }
    #expect(recovered(since: 0) == (false, 0))
    #expect(recovered(since: 1) == (true, 2))
    #expect(recovered(since: 3) == (true, 0))
    #expect(recovered(since: 4) == (false, 0))
    #expect(recovered(since: 1, epoch: InlineText("another")!) == (false, 0))
  }

  @Test("a driver's snapshot is its newest position as it was published, aged to now")
  func driverSnapshot() {
    let bench = HubBench()
    let session = bench.connect("d")
    #expect(bench.turn(bench.subscribe(bench.driver("d"))).subscribed[0].answer.snapshot == nil)
    let published = bench.turn(bench.fix(session, trip: "t")).positions[0]
    bench.pass(seconds: 10)
    let snapshot = bench.turn(bench.subscribe(bench.driver("d"))).subscribed[0].answer.snapshot?.position
    #expect(snapshot?.coordinate == published.coordinate && snapshot?.timestamp == published.timestamp)
    #expect(snapshot?.age == published.age + 10)
    #expect(snapshot?.tripID == id("t"))
  }

  @Test("a driver's snapshot names the trip of its position in the grace after the trip's end, and no longer")
  func driverSnapshotAfterTrip() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.fix(session, trip: "t"))
    bench.turn(bench.move(.ops, "o", "t", .cancelled))
    func shown(slot: UInt32) -> DriverLocation? {
      bench.turn(bench.subscribe(bench.driver("d"), slot: slot)).subscribed[0].answer.snapshot?.position
    }
    #expect(shown(slot: 1)?.tripID == id("t"))
    bench.tick(seconds: 61)
    let after = shown(slot: 2)
    #expect(after != nil && after?.tripID == nil)
  }

  @Test("a trip's snapshot never shows a position that the driver's fix did not give to the trip")
  func positionsOutsideTheTrip() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.fix(session, trip: "t"))
    bench.pass(seconds: 4)
    bench.turn(bench.fix(session, milliseconds: bench.clock))
    let onTrip = bench.turn(bench.subscribe(bench.trip("t"))).subscribed[0].answer.snapshot
    #expect(onTrip?.trip?.status == .accepted)
    #expect(onTrip?.position == nil)
    let onDriver = bench.turn(bench.subscribe(bench.driver("d"))).subscribed[0].answer.snapshot
    #expect(onDriver?.position?.tripID == nil)
  }

  @Test("unsubscribing from what nobody listens to is answered all the same")
  func unsubscribeUnknown() {
    let bench = HubBench()
    let session = bench.session(slot: 1)
    let turn = bench.turn(.unsubscribe(session, message("u"), bench.trip("nobody")))
    #expect(
      turn.replies == [
        .unsubscribed(Unsubscribed(replyTo: message("u"), channel: bench.trip("nobody"), reason: .asked))
      ])
    #expect(bench.hub.shownCounters().entries(.channels) == 0)
  }

  @Test("unsubscribing takes effect where the loop drains it; until its release the channel is there")
  func unsubscribe() {
    let bench = HubBench()
    let handle = bench.turn(bench.subscribe(bench.driver("d"))).subscribed[0].handle
    let session = bench.connect("d")
    let turn = bench.turn(.unsubscribe(bench.session(slot: 1), message("u"), bench.driver("d")), bench.fix(session))
    guard case .unsubscribed(_, message("u"), handle, bench.driver("d")) = turn.all[0] else {
      Issue.record("expected the loop to be notified, got \(turn.all[0])")
      return
    }
    #expect(turn.positions.count == 1)
    bench.turn(.released(outlet: 0, handle))
    bench.pass(seconds: 1)
    #expect(bench.turn(bench.fix(session)).positions.isEmpty)
    #expect(bench.hub.shownCounters().entries(.channels) == 0)
  }

  @Test("at the limit of channels subscribing gets rate_limited, and a channel that goes makes room")
  func full() {
    var limits = HubLimits.roomy
    limits.channels = 1
    let bench = HubBench(limits: limits)
    let handle = bench.turn(bench.subscribe(bench.trip("a"))).subscribed[0].handle
    let refused = bench.turn(bench.subscribe(bench.trip("b")))
    guard case .subscriptionRefused(_, let error) = refused.all[0] else {
      Issue.record("expected a refusal, got \(refused.all)")
      return
    }
    #expect(error.code == .rateLimited && error.retryAfter != nil)
    #expect(bench.hub.counters.hits(.channels) == 1)
    // A trip without room for a channel moves all the same.
    #expect(bench.turn(bench.move(.rider, "r", "c", .requested)).acks.count == 1)
    #expect(bench.hub.counters.hits(.channels) == 2)
    bench.turn(.released(outlet: 0, handle))
    #expect(bench.turn(bench.subscribe(bench.trip("b"))).subscribed.count == 1)
  }

  @Test("a query for a driver that nobody knows is answered with none")
  func unknownDriver() {
    let bench = HubBench()
    let turn = bench.turn(.query(bench.session(slot: 1), .driver(id("nobody"))))
    guard case .queryResult(_, nil, nil) = turn.all[0] else {
      Issue.record("expected none, got \(turn.all[0])")
      return
    }
  }

  @Test("who resumes events only gets no position or ETA with them")
  func eventsOnly() throws {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "t", .requested), bench.move(.driver, "d", "t", .accepted))
    bench.turn(bench.fix(bench.connect("d"), trip: "t"))
    for isEventsOnly in [true, false] {
      let input = bench.subscribe(bench.trip("t"), since: 1, slot: isEventsOnly ? 81 : 82, eventsOnly: isEventsOnly)
      let answer = try #require(bench.turn(input).subscribed.first)
      let positions = answer.missed.count { if case .driverLocation = $0.body { true } else { false } }
      #expect(answer.answer.recovered && positions == (isEventsOnly ? 0 : 1) && answer.missed.count == positions + 1)
      #expect(answer.answer.snapshot?.position == nil)
    }
  }
}
