// Who may follow a trip: by what a credential names, by having part in it, and how both end with the trip.
import HubGeo
import HubMessages
import Testing

@testable import HubCore

@Suite struct HubAccessTests {
  private static let rider = (Role.rider, "r")
  private static let driver = (Role.driver, "d")
  private static let otherRider = (Role.rider, "r2")
  private static let otherDriver = (Role.driver, "d2")

  /// Whether a subscription is let through; it is given back at once.
  private func follows(_ bench: HubBench, _ actor: (Role, String), _ grant: ChannelGrant, since: UInt64? = nil) -> Bool
  {
    let turn = bench.turn(bench.subscribe(bench.trip("t"), since: since, by: actor, grant: grant))
    guard let answer = turn.subscribed.first else {
      #expect(turn.refusedSubscriptions.map(\.code) == [.forbidden])
      return false
    }
    bench.turn(.released(outlet: 0, answer.handle))
    return true
  }

  @Test(
    "a credential opens a trip that it names; the trip's own driver and rider, and ops, follow it whatever theirs names"
  )
  func parties() {
    let bench = HubBench()
    #expect(follows(bench, Self.otherRider, .granted), "before it begins")
    #expect(!follows(bench, Self.rider, .onlyForParties), "nobody knows yet whose it will be")
    bench.turn(bench.move(.ops, "o", "t", .requested, driver: "d", rider: "r"))
    for own in [Self.rider, Self.driver, (.ops, "o")] { #expect(follows(bench, own, .onlyForParties), "\(own)") }
    for other in [Self.otherRider, Self.otherDriver, (.rider, "d"), (.driver, "r")] {
      #expect(!follows(bench, other, .onlyForParties), "\(other)")
      #expect(follows(bench, other, .granted), "\(other)")
    }
  }

  @Test("a refusal says the same of a trip that is there and of one that is not, and leaves nothing behind")
  func silence() {
    let bench = HubBench()
    bench.turn(bench.move(.ops, "o", "t", .requested, driver: "d", rider: "r"))
    let channels = bench.hub.shownCounters().entries(.channels)
    let texts = ["t", "nothing"].map { trip in
      bench.turn(bench.subscribe(bench.trip(trip), since: 0, by: Self.otherRider, grant: .onlyForParties))
        .refusedSubscriptions.map(\.message)
    }
    #expect(texts[0].count == 1 && texts[0] == texts[1])
    bench.pass(seconds: 1)
    #expect(bench.hub.shownCounters().entries(.channels) == channels)
  }

  @Test("after the grace only the trip's parties see anything of it: its events for 24 h, and then nobody does")
  func afterTheEnd() {
    let bench = HubBench()
    bench.turn(bench.move(.ops, "o", "t", .requested, driver: "d", rider: "r"))
    bench.turn(bench.move(.driver, "d", "t", .accepted), bench.move(.ops, "o", "t", .cancelled))
    bench.tick(seconds: 58)
    #expect(follows(bench, Self.otherRider, .granted), "the grace is not over")
    bench.tick(seconds: 4)
    for other in [Self.otherRider, Self.otherDriver] {
      for grant in [ChannelGrant.granted, .whileUnclaimed, .onlyForParties] {
        #expect(!follows(bench, other, grant, since: 0), "\(other) \(grant)")
      }
    }
    for own in [Self.rider, Self.driver, (.ops, "o")] {
      let late = bench.turn(bench.subscribe(bench.trip("t"), since: 0, by: own, grant: .onlyForParties))
      #expect(late.subscribed.first?.missed.map(\.sequence) == [1, 2, 3], "\(own)")
      #expect(late.ended.map(\.1) == [.tripEnded])
      bench.turn(.released(outlet: 0, late.subscribed[0].handle))
    }
    bench.pass(seconds: 86_400 - 70)
    #expect(follows(bench, Self.rider, .onlyForParties, since: 0))
    bench.tick(seconds: 12)
    let counters = bench.hub.shownCounters()
    #expect(counters.entries(.trips) == 0 && counters.entries(.channels) == 0 && counters.entries(.events) == 0)
    #expect(!follows(bench, Self.rider, .onlyForParties, since: 0))
  }

  @Test("the grace ends by the clock: not a position more, even where the turn that lets subscribers go comes late")
  func exactly() {
    var timings = HubTimings()
    timings.tripGrace = 2.5
    let bench = HubBench(timings: timings)
    let session = bench.connect("d")
    bench.turn(bench.fix(session, trip: "t"), bench.subscribe(bench.trip("t"), by: Self.rider))
    bench.turn(bench.move(.driver, "d", "t", .cancelled))
    func positions(after seconds: Double) -> Int {
      // The fix is handled before what has become due.
      bench.advance(seconds: seconds)
      return bench.turn(bench.fix(session, trip: "t")).positions.count
    }
    #expect(positions(after: 2.4) == 1)
    #expect(positions(after: 0.1) == 0)
    let late = bench.turn(bench.subscribe(bench.trip("t"), by: Self.otherRider))
    #expect(late.refusedSubscriptions.map(\.code) == [.forbidden])
    let own = bench.turn(bench.subscribe(bench.trip("t"), by: Self.driver))
    #expect(own.subscribed.first?.answer.snapshot?.position == nil)
    #expect(!own.ended.isEmpty)
  }

  @Test("a hub that was asleep over the whole retention lets subscribers go before it forgets the trip")
  func asleep() {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "t", .requested), bench.subscribe(bench.trip("t"), by: Self.rider))
    bench.turn(bench.move(.rider, "r", "t", .cancelled))
    let late = bench.pass(seconds: 90_000)
    #expect(late.ended.map(\.0) == [bench.trip("t")] && bench.hub.shownCounters().entries(.trips) == 0)
  }

  @Test("who follows a trip by development's word as a driver is let go when another driver takes it, however that is")
  func claimed() {
    let ways: [(HubBench) -> Turn] = [
      { $0.turn($0.fix($0.connect("d"), trip: "t")) },
      { $0.turn($0.move(.ops, "o", "t", .requested, driver: "d")) },
      {
        #expect($0.turn($0.move(.rider, "r", "t", .requested)).claimed.isEmpty)
        return $0.turn($0.move(.driver, "d", "t", .accepted))
      },
    ]
    for (number, way) in ways.enumerated() {
      let bench = HubBench(loops: 2)
      #expect(follows(bench, Self.otherDriver, .whileUnclaimed), "it has no driver yet")
      bench.turn(bench.subscribe(bench.trip("t"), loop: 1, by: Self.otherDriver, grant: .whileUnclaimed))
      let turn = way(bench)
      #expect(turn.claimed == [id("d")], "\(number)")
      let order = turn.loops[1].map { if case .channelClaimed = $0 { true } else { false } }
      #expect(order.first == true && order.count > 1, "before anything of the trip is published")
      #expect(!follows(bench, Self.otherDriver, .whileUnclaimed))
      #expect(follows(bench, Self.driver, .whileUnclaimed))
      #expect(bench.turn(bench.move(.driver, "d", "t", .accepted), bench.fix(bench.connect("x"))).claimed.isEmpty)
    }
  }

  @Test("asked for a channel's name, the hub says whether the session has part in it")
  func named() {
    let bench = HubBench()
    bench.turn(bench.move(.ops, "o", "t", .requested, driver: "d", rider: "r"))
    let handle = bench.turn(bench.subscribe(bench.trip("t"))).subscribed[0].handle
    let actors = [Self.rider, Self.driver, Self.otherRider, Self.otherDriver]
    let answers = actors.map { actor -> Bool? in
      let asking = HubCore.Actor(role: actor.0, id: id(actor.1))
      let turn = bench.turn(.name(bench.session(slot: 3), asking, handle))
      guard case .named(_, handle, bench.trip("t"), let isParty) = turn.all[0] else { return nil }
      return isParty
    }
    #expect(answers == [true, true, false, false])
  }
}
