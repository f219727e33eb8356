// Sampling in the hub: who is sent advice, when somebody follows, and how long a driver may then be silent.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

/// A hub with the tree, and a driver that drives north at some speed and sends when it likes.
private final class Road {
  let bench = HubBench(loops: 2, sampling: SamplingRules())
  let session: SessionRef
  private var latitude = 52.0
  private var heard: [SamplingAdvice] = []

  init() { session = bench.connect("d") }

  /// The advice sent to the driver since the last look.
  var received: [SamplingAdvice] {
    defer { heard = [] }
    return heard
  }
  var reasons: [SamplingReason] { received.compactMap(\.reason) }

  @discardableResult
  func turn(_ inputs: HubInput...) -> Turn {
    let turn = bench.turn(inputs)
    for case .reply(let to, .sampling(let advice)) in turn.all {
      #expect(to == session)
      heard.append(advice)
    }
    return turn
  }

  /// One fix a second.
  func drive(kmh: Double, seconds: Int, trip: String? = nil) {
    for _ in 0..<seconds {
      bench.pass(seconds: 1)
      latitude += kmh / 3.6 / 111_195
      turn(bench.fix(session, trip: trip, at: at(latitude, 13), speed: kmh / 3.6, heading: 0))
    }
  }
}

@Suite struct HubSamplingTests {
  @Test("a driver hears at its start what the tree says, and from then on what changes")
  func notifies() {
    let road = Road()
    road.drive(kmh: 70, seconds: 30)
    #expect(road.received.isEmpty, "30 s, as it was sent at the start")
    road.drive(kmh: 70, seconds: 1, trip: "t")
    #expect(road.received == [SamplingAdvice(interval: 2, minDistance: 10, reason: .tripFast)])
    road.drive(kmh: 30, seconds: 30, trip: "t")
    #expect(road.reasons == [.tripMedium])
    road.turn(road.bench.move(.ops, "o", "t", .cancelled))
    #expect(road.received == [SamplingAdvice(interval: 30, minDistance: 0, reason: .moving)])
    road.drive(kmh: 0, seconds: 60)
    #expect(road.reasons == [.standing])
    road.turn(.driverStatus(road.session, message("s"), DriverStatusReport(status: .background)))
    #expect(road.reasons == [.background])
    let counters = road.bench.hub.counters.samplingAdvised
    #expect(counters[Int(SamplingReason.moving.rawValue)] == 2, "the start counts")
    #expect(counters.reduce(0, +) == 6)
  }

  @Test("connected has the interval, also of a driver that comes back to those who follow it")
  func connected() {
    let bench = HubBench(sampling: SamplingRules())
    func connect() -> Connected.Sampling? {
      let turn = bench.turn(.driverConnecting(bench.session(slot: 3), id("d")))
      for case .admitted(_, let sampling) in turn.all { return sampling }
      return nil
    }
    #expect(connect() == Connected.Sampling(interval: 30, minDistance: 0))
    bench.turn(bench.subscribe(bench.driver("d")))
    #expect(connect() == Connected.Sampling(interval: 2, minDistance: 10))
  }

  @Test("who follows the driver or its trip has it send every 2 s; who watches the fleet does not")
  func demand() {
    let road = Road()
    let bench = road.bench
    road.drive(kmh: 30, seconds: 5, trip: "t")
    #expect(road.reasons == [.tripMedium])
    road.turn(bench.subscribe(.fleet, loop: 1))
    road.drive(kmh: 30, seconds: 5, trip: "t")
    #expect(road.received.isEmpty)
    let rider = road.turn(bench.subscribe(bench.trip("t"), loop: 1))
    #expect(road.received == [SamplingAdvice(interval: 2, minDistance: 10, reason: .watched)])
    road.turn(bench.subscribe(bench.driver("d"), loop: 1))
    #expect(road.received.isEmpty, "one more changes nothing")
    road.turn(.released(outlet: 1, rider.subscribed[0].handle))
    road.drive(kmh: 30, seconds: 60, trip: "t")
    #expect(road.received.isEmpty, "the other is still there")
  }

  @Test("a while after the last one has gone it is the tree again")
  func demandEnds() {
    let road = Road()
    let bench = road.bench
    let ops = road.turn(bench.subscribe(bench.driver("d"), loop: 1))
    #expect(road.reasons == [.watched])
    road.drive(kmh: 60, seconds: 5)
    road.turn(.released(outlet: 1, ops.subscribed[0].handle))
    road.drive(kmh: 60, seconds: 20)
    #expect(road.received.isEmpty)
    road.drive(kmh: 60, seconds: 1)
    #expect(road.reasons == [.moving])
  }

  @Test("a subscription from before the trip counts from the first fix that names it")
  func early() {
    let road = Road()
    let bench = road.bench
    road.turn(bench.subscribe(bench.trip("t"), loop: 1))
    #expect(road.received.isEmpty)
    road.drive(kmh: 10, seconds: 1, trip: "t")
    #expect(road.reasons.last == .watched)
  }

  @Test("a driver that listens to its own channel and trip follows nobody, until somebody else comes")
  func ownChannel() {
    let road = Road()
    let bench = road.bench
    func own(_ channel: Channel) -> HubInput {
      .subscribe(
        SubscribeInput(
          session: road.session, actor: Actor(role: .driver, id: id("d")), messageID: message("own"),
          request: Subscribe(channel: channel), grant: .granted))
    }
    road.turn(own(bench.driver("d")), own(bench.trip("t")))
    road.drive(kmh: 30, seconds: 5, trip: "t")
    #expect(!road.reasons.contains(.watched))
    road.turn(bench.subscribe(bench.trip("t"), loop: 1))
    #expect(road.reasons == [.watched])
  }

  @Test("another driver that follows it makes it send more often at once, as anybody does")
  func otherDriver() {
    let road = Road()
    let other = road.bench.connect("other", slot: 7)
    road.turn(
      .subscribe(
        SubscribeInput(
          session: other, actor: Actor(role: .driver, id: id("other")), messageID: message("other"),
          request: Subscribe(channel: road.bench.driver("d")), grant: .granted)))
    #expect(road.reasons == [.watched])
  }

  @Test("a driver without a session is sent nothing")
  func noSession() {
    let bench = HubBench(sampling: SamplingRules())
    bench.turn(bench.subscribe(bench.driver("d")))
    for _ in 0..<30 {
      bench.pass(seconds: 1)
      let turn = bench.turn(bench.batch(bench.session(slot: 9), driver: "d", [bench.measured(bench.clock)]))
      #expect(turn.samplings.isEmpty)
    }
    #expect(bench.tick(seconds: 58).notifications.isEmpty)
    #expect(bench.tick(seconds: 4).notifications.map(\.kind) == [.driverOffline], "60 s after the last")
  }

  // MARK: Staleness

  /// Seconds from the last fix until the driver is offline, looked at once a second.
  private func silence(_ road: Road) -> Int {
    for seconds in 1...1000 where !road.bench.tick(seconds: 1).notifications.isEmpty { return seconds }
    return .max
  }

  @Test("a driver may be silent for 2.5 of its intervals, and for 60 s at least")
  func stale() {
    let trip = Road()
    trip.bench.turn(trip.bench.subscribe(trip.bench.driver("d"), loop: 1))
    trip.drive(kmh: 70, seconds: 3, trip: "t")
    #expect((60...62).contains(silence(trip)))
    for (kmh, status, expected) in [
      (70.0, DriverStatus.available, 75), (0, .available, 300), (0, .background, 750),
    ] {
      let road = Road()
      road.drive(kmh: kmh, seconds: 60)
      road.turn(.driverStatus(road.session, message("s"), DriverStatusReport(status: status)))
      let received = 0.4 * Double(expected)
      #expect(road.bench.hub.drivers[0].samplingInterval == Float(received))
      // Who follows the fleet has no notifications: the counter says it.
      var seconds = 0
      while road.bench.hub.shownCounters().driversOnline == 1, seconds < 1000 {
        seconds += 1
        road.bench.tick(seconds: 1)
      }
      #expect((expected...expected + 2).contains(seconds), "\(status) at \(kmh) km/h")
    }
  }

  @Test("whose session ends is offline 60 s later, however long its interval was")
  func sessionGone() {
    let road = Road()
    road.drive(kmh: 0, seconds: 60)
    #expect(road.reasons == [.standing])
    road.bench.tick(seconds: 100)
    road.turn(.driverDisconnected(road.session))
    road.bench.tick(seconds: 58)
    #expect(road.bench.hub.shownCounters().driversOnline == 1)
    road.bench.tick(seconds: 4)
    #expect(road.bench.hub.shownCounters().driversOnline == 0)
  }

  @Test("a driver that is sent a shorter interval after a long silence is not offline at once, but 60 s after that")
  func shortened() {
    let road = Road()
    road.drive(kmh: 0, seconds: 60)
    road.bench.tick(seconds: 200)
    road.turn(road.bench.subscribe(road.bench.driver("d"), loop: 1))
    #expect(road.reasons == [.standing, .watched])
    #expect(road.bench.hub.shownCounters().driversOnline == 1)
    #expect((60...62).contains(silence(road)))
  }
}
