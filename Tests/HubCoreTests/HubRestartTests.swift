// Where everybody is over the hub's own death: a second hub that has read the first one's records answers as the first
// would, before any driver has sent anything.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

extension DurableBench {
  static let watcher = SessionRef(outlet: 0, slot: 70, generation: 1)

  /// Another hub that reads what this one has stored, `seconds` later, on a machine that went on; or from a snapshot.
  func restarted(
    after seconds: Double, fromSnapshot: Bool = false, seed: UInt64 = 77, wallIsAhead: Int64 = 0
  ) throws -> DurableBench {
    try DurableBench(
      reading: fromSnapshot ? snapshot() : submitted, seed: seed, uptime: now.uptime + Int64(seconds * 1e9),
      wallIsAhead: wallIsAhead)
  }

  func report(_ driver: String = "D") -> DriverReport? {
    for case .queryResult(_, .driver(let report), _) in turn([.query(Self.watcher, .driver(id(driver)))]) {
      return report
    }
    return nil
  }

  func found(_ area: DriverSearch.Area, stale: Bool = false, for audience: Audience = .ops) -> [DriverReport] {
    var search = DriverSearch(area: area, limit: nil)
    search.filter.includesStale = stale
    var outputs = turn([.query(Self.watcher, .drivers(search, audience, by: HubBench.asker))])
    for _ in 0..<100 {
      for case .queryResult(_, .drivers(let list), _) in outputs { return list.drivers }
      outputs = turn([])
    }
    return []
  }

  /// A turn a second, everything stored at once: the notifications that came.
  func tick(_ seconds: Int, _ inputs: [HubInput] = []) -> [HubMessages.Notification] {
    var all: [HubMessages.Notification] = []
    for second in 0..<seconds {
      advance(seconds: 1)
      all += Turn(loops: [turn(second == 0 ? inputs : []), store()]).notifications
    }
    return all
  }

  func watch(_ channel: Channel, slot: UInt32 = 81) {
    turn([
      .subscribe(
        SubscribeInput(
          session: SessionRef(outlet: 0, slot: slot, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: freshMessage(), request: Subscribe(channel: channel), grant: .granted))
    ])
    store()
  }

  /// A message over HTTP with one fix.
  func post(_ driver: String = "H", at place: Coordinate = at(52.5, 13.4)) -> HubInput {
    .batch(
      BatchInput(
        session: SessionRef(outlet: 0, slot: 50, generation: 1), driverID: id(driver), messageID: freshMessage(),
        sent: now.timestamp, received: now,
        batch: LocationBatch(
          tripID: nil, fixes: [.success(Fix(coordinate: place, timestamp: now.timestamp, accuracy: 5))]),
        tripIsGranted: false))
  }

  /// Connected, and driving north at 10 m/s for so many fixes, one a second, all stored.
  func drive(_ seconds: Int, trip: String? = nil, behind: Int64 = 0) {
    connect()
    for _ in 0..<seconds {
      advance(seconds: 1)
      let place = at(52.5 + Double(now.uptime / 1_000_000_000 - 5000) * 9e-5, 13.4)
      turn([
        .fix(
          FixInput(
            session: Self.session, messageID: freshMessage(), sent: time(clock - behind), received: now,
            update: LocationUpdate(
              tripID: trip.map(id),
              fix: Fix(coordinate: place, timestamp: time(clock - behind), accuracy: 5, heading: 0, speed: 10)),
            tripIsGranted: true))
      ])
    }
    store()
  }
}

@Suite struct HubRestartTests {
  @Test("a status that was set by a key is set once, however late that comes again", arguments: [false, true])
  func keyedStatus(fromSnapshot: Bool) throws {
    var bench = try DurableBench()
    func set(_ status: DriverStatus, _ key: String, isKeyed: Bool = true) -> DriverStatus? {
      let report = DriverStatusReport(status: status)
      let input = HubInput.driverStatus(DurableBench.asker, message(key), report, of: id("D"), isKeyed: isKeyed)
      #expect(Turn(loops: [bench.turn([input]) + bench.store()]).acks.count == 1)
      return bench.report()?.status
    }
    #expect(set(.available, "k1") == .available && set(.unavailable, "k2") == .unavailable)
    bench = try bench.restarted(after: 1, fromSnapshot: fromSnapshot)
    #expect(set(.available, "k1") == .unavailable, "it was late")
    #expect(set(.available, "k3") == .available && set(.unavailable, "k2") == .available)
    #expect(set(.unavailable, "k3", isKeyed: false) == .unavailable, "that id is no key")
    for number in 0..<HubLimits.movesPerTrip { _ = set(.background, "n\(number)") }
    #expect(set(.available, "k3") == .available, "of more than 16 the oldest is forgotten")
  }

  let around = DriverSearch.Area.nearby(at(52.5, 13.4), radiusMeters: 5000)
  let box = DriverSearch.Area.box(BoundingBox(center: at(52.5, 13.4), radiusMeters: 5000))

  @Test("a driver is where it was, in every answer, before it has sent anything", arguments: [false, true])
  func places(fromSnapshot: Bool) throws {
    let first = try DurableBench()
    first.turn([.driverConnecting(DurableBench.session, id("D")), first.status(.available, tags: ["a"])])
    first.drive(30)
    let before = try #require(first.report()?.position)
    let second = try first.restarted(after: 45, fromSnapshot: fromSnapshot)
    let report = try #require(second.report())
    let position = try #require(report.position)
    #expect(position.coordinate == before.coordinate && position.timestamp == before.timestamp)
    #expect(position.speed == before.speed && position.heading == before.heading)
    #expect(position.accuracy == before.accuracy && report.isOnline == true)
    #expect(abs(position.age - before.age - 45) < 0.001)
    #expect(second.found(around).map(\.driverID) == [id("D")])
    #expect(second.found(box).map(\.driverID) == [id("D")])
    #expect(second.found(around, stale: true).first?.isOnline == true)
    #expect(second.found(around, for: .riders).count == 1)
    let watcher = AreaWatcher(.ops, slot: 82)
    let cell = GeohashCell(at(52.5, 13.4), precision: 4)
    var inputs = [watcher.ask(.area(cell))]
    for _ in 0..<5 {
      inputs = watcher.look(at: Turn(loops: [second.turn(inputs)]))
      second.advance(seconds: 1)
    }
    #expect(watcher.map.drivers.keys.map { $0 } == [id("D")])
    #expect(try second.state() == first.state())
  }

  @Test("a trip's snapshot has its driver's position and the ETA that its people knew", arguments: [false, true])
  func tripSnapshot(fromSnapshot: Bool) throws {
    let first = try DurableBench()
    let report = TripStatusReport(
      tripID: id("T"), status: .requested, timestamp: first.now.timestamp, pickup: at(52.6, 13.4),
      driverID: id("D"))
    first.turn([
      .tripStatus(
        TripStatusInput(
          session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: first.freshMessage(), report: report, tripIsGranted: true))
    ])
    first.drive(40, trip: "T")
    first.store()
    let known = try #require(Turn(loops: [first.turn([first.subscribe("T")])]).subscribed.first?.answer.snapshot)
    let eta = try #require(known.eta)
    let second = try first.restarted(after: 20, fromSnapshot: fromSnapshot)
    let asked = Turn(loops: [second.turn([second.subscribe("T", slot: 83)]), second.store()])
    let snapshot = try #require(asked.subscribed.first?.answer.snapshot)
    #expect(snapshot.position?.coordinate == known.position?.coordinate && snapshot.position?.tripID == id("T"))
    #expect(abs(try #require(snapshot.position?.age) - (known.position?.age ?? 0) - 20) < 0.01)
    #expect(snapshot.eta?.arrivalTime == eta.arrivalTime && snapshot.eta?.basis == eta.basis)
    #expect(snapshot.eta?.distance == eta.distance && snapshot.eta?.eta == eta.eta - 20)
    // A move of the trip before its driver is back is sent with the position that is known.
    let moved = Turn(loops: [second.turn([second.move(.driver, "D", "T", .accepted)]), second.store()])
    #expect(moved.moves.count == 1)
    let leg = second.hub.trips[0].leg
    #expect(leg >= 0, "the leg continues")
  }

  @Test("an age is right though the phone's clock is wrong, after a restart and after the driver has connected again")
  func wrongPhone() throws {
    let first = try DurableBench()
    first.drive(10, behind: 3_600_000)
    let second = try first.restarted(after: 30)
    #expect(try #require(second.report()?.position?.age) == 30)
    second.connect()
    #expect(try #require(second.report()?.position?.age) == 30, "its session has shown no clock yet")
    second.drive(1, behind: 7_200_000)
    #expect(try #require(second.report()?.position?.age) == 0, "another clock")
  }

  @Test("when its trip at another hub ended is known of a driver after a restart")
  func distantTrip() throws {
    let first = try DurableBench()
    first.drive(1)
    let found = first.hub.drivers.find(id("D"))
    let driver = try #require(found)
    first.hub.carryOut([.busy(driver), .free(driver)])
    first.turn([])
    #expect(try DurableBench(reading: first.submitted).state() == first.state())
  }

  // MARK: Presence

  @Test("who does not come back is offline 60 s after the start, once, and not again after another start")
  func offline() throws {
    let first = try DurableBench()
    first.drive(10, trip: "T")
    let second = try first.restarted(after: 7200)
    second.watch(.driver(id("D")))
    second.watch(.trip(id("T")), slot: 82)
    #expect(second.tick(59).isEmpty)
    let reported = second.tick(4)
    #expect(reported.map(\.kind) == [.driverOffline, .driverOffline], "on its channel, and its trip's")
    #expect(second.report()?.isOnline == false && second.found(around).isEmpty)
    #expect(second.found(around, stale: true).map(\.driverID) == [id("D")])
    let third = try DurableBench(
      reading: first.submitted + second.submitted, seed: 5, uptime: second.now.uptime + 1_000_000_000)
    #expect(try third.state() == second.state())
    third.watch(.driver(id("D")))
    #expect(third.report()?.isOnline == false && third.report()?.position != nil)
    #expect(third.found(around).isEmpty && third.found(around, stale: true).count == 1)
    #expect(third.tick(200).isEmpty)
    third.connect()
    #expect(third.tick(1, [third.fix(third.clock, trip: nil)]).map(\.kind) == [.driverOnline])
    #expect(third.report()?.isOnline == true && third.found(around).count == 1)
  }

  @Test("who was offline makes driver_online when it comes back, also from a snapshot", arguments: [false, true])
  func online(fromSnapshot: Bool) throws {
    let first = try DurableBench()
    first.drive(10)
    first.turn([.driverDisconnected(DurableBench.session)])
    #expect(first.tick(80).isEmpty, "nobody follows it")
    let second = try first.restarted(after: 10, fromSnapshot: fromSnapshot)
    second.watch(.driver(id("D")))
    #expect(second.tick(100).isEmpty)
    second.connect()
    #expect(second.tick(1, [second.fix(second.clock, trip: nil)]).map(\.kind) == [.driverOnline])
  }

  @Test("who is back within 60 s makes neither notification")
  func back() throws {
    let first = try DurableBench()
    first.drive(10)
    let second = try first.restarted(after: 3600)
    second.watch(.driver(id("D")))
    #expect(second.tick(55).isEmpty)
    second.connect()
    #expect(second.tick(30, [second.fix(second.clock, trip: nil)]).isEmpty)
    #expect(second.report()?.isOnline == true)
  }

  @Test("a driver of whom only a status is stored is offline 60 s after the start, too")
  func onlyStatus() throws {
    let first = try DurableBench()
    first.connect()
    first.turn([first.status(.background)])
    first.store()
    let second = try first.restarted(after: 5)
    second.watch(.driver(id("D")))
    #expect(second.tick(63).map(\.kind) == [.driverOffline])
  }

  @Test("offline and online take turns, whatever the disk had no room for")
  func fullDisk() throws {
    let bench = try DurableBench()
    bench.drive(5)
    bench.watch(.driver(id("D")))
    bench.store(condition: .unavailable)
    bench.turn([.driverDisconnected(DurableBench.session)])
    for _ in 0..<70 {
      bench.advance(seconds: 1)
      bench.turn([])
    }
    #expect(bench.report()?.isOnline == false)
    bench.store(condition: .good)
    bench.connect()
    #expect(bench.tick(1, [bench.fix(bench.clock, trip: nil)]).isEmpty, "nobody was notified that it was offline")
    bench.turn([.driverDisconnected(DurableBench.session)])
    #expect(bench.tick(70).map(\.kind) == [.driverOffline])
    bench.store(condition: .unavailable)
    bench.connect()
    bench.advance(seconds: 1)
    bench.turn([bench.fix(bench.clock, trip: nil)])
    #expect(bench.report()?.isOnline == true)
    bench.store(condition: .good)
    #expect(bench.tick(1, [bench.fix(bench.clock + 1000, trip: nil)]).map(\.kind) == [.driverOnline])
  }

  // MARK: Clocks

  @Test("a wall clock that was set back makes no age negative, and one far ahead makes nobody offline or forgotten")
  func leaps() throws {
    let first = try DurableBench()
    first.drive(10)
    let behind = try first.restarted(after: 5, wallIsAhead: -86_400_000)
    #expect(try #require(behind.report()?.position?.age) == 0)
    #expect(behind.report()?.isOnline == true)
    let ahead = try first.restarted(after: 5, wallIsAhead: 40 * 86_400_000)
    ahead.watch(.driver(id("D")))
    #expect(ahead.tick(58).isEmpty)
    #expect(ahead.report()?.isOnline == true && ahead.found(around).count == 1)
    ahead.wallIsAhead = 0
    #expect(ahead.tick(10).map(\.kind) == [.driverOffline])
    #expect(ahead.tick(3600).isEmpty)
    #expect(ahead.report()?.position != nil, "by the clock as it is now a day has not passed")
  }

  // MARK: Over HTTP

  @Test("a driver that posts each 72 s is not called offline once that is known, over a restart neither")
  func posts() throws {
    let first = try DurableBench()
    first.watch(.driver(id("H")))
    var reported: [HubMessages.Notification] = []
    for _ in 0..<3 { reported += first.tick(72, [first.post()]) }
    #expect(reported.map(\.kind) == [.driverOffline, .driverOnline], "after its first message nothing is known")
    for _ in 0..<10 { #expect(first.tick(72, [first.post()]).isEmpty) }
    #expect(first.tick(106).isEmpty, "2.5 × 72 s from the last message, 72 s ago")
    #expect(first.tick(4).map(\.kind) == [.driverOffline])
    #expect(first.tick(1, [first.post()]).map(\.kind) == [.driverOnline])
    let second = try first.restarted(after: 600, fromSnapshot: true)
    second.watch(.driver(id("H")))
    #expect(second.tick(440).isEmpty, "2.5 times the 182 s between its last two messages")
    #expect(second.tick(20).map(\.kind) == [.driverOffline])
  }

  @Test("messages in quick succession do not hide the interval; a shorter one counts when it has lasted")
  func bursts() throws {
    let bench = try DurableBench()
    bench.watch(.driver(id("H")))
    for _ in 0..<4 { _ = bench.tick(200, [bench.post()]) }
    for _ in 0..<3 { _ = bench.tick(1, [bench.post()]) }
    #expect(bench.tick(480).isEmpty)
    for _ in 0..<60 { _ = bench.tick(10, [bench.post()]) }
    #expect(bench.tick(48).isEmpty)
    #expect(bench.tick(4).map(\.kind) == [.driverOffline], "60 s after the last one")
  }

  @Test("the silence that is allowed by the interval ends at 900 s, and a session begins anew")
  func longest() throws {
    let bench = try DurableBench()
    bench.watch(.driver(id("H")))
    for _ in 0..<3 { _ = bench.tick(800, [bench.post()]) }
    #expect(bench.tick(98).isEmpty)
    #expect(bench.tick(4).map(\.kind) == [.driverOffline])
    bench.turn([.driverConnecting(DurableBench.session, id("H"))])
    #expect(bench.tick(1, [bench.fix(bench.clock, trip: nil)]).map(\.kind) == [.driverOnline])
    bench.turn([.driverDisconnected(DurableBench.session)])
    #expect(bench.tick(63).map(\.kind) == [.driverOffline])
  }

  @Test("a night's pause is no interval: what was known before it holds; one of 800 s holds for 360 s of shorter ones")
  func pauses() throws {
    let bench = try DurableBench()
    bench.watch(.driver(id("H")))
    for _ in 0..<5 { _ = bench.tick(10, [bench.post()]) }
    #expect(bench.tick(70).map(\.kind) == [.driverOffline])
    bench.advance(seconds: 8 * 3600)
    #expect(bench.tick(1, [bench.post()]).map(\.kind) == [.driverOnline])
    #expect(bench.tick(58).isEmpty)
    #expect(bench.tick(4).map(\.kind) == [.driverOffline], "60 s after the only message of the morning")
    _ = bench.tick(740, [bench.post()])
    for _ in 0..<37 { _ = bench.tick(10, [bench.post()]) }
    #expect(bench.tick(48).isEmpty)
    #expect(bench.tick(4).map(\.kind) == [.driverOffline])
  }

  // MARK: Pseudonyms

  @Test("riders know a driver by the same name after a restart, so that its position does not reveal it")
  func pseudonyms() throws {
    let first = try DurableBench()
    first.turn([first.move(.ops, "o", "T", .requested), first.move(.driver, "D", "T", .accepted)])
    first.drive(5)
    first.turn([first.move(.driver, "D", "T", .cancelled)])
    first.store()
    let name = try #require(first.found(around, for: .riders).first?.driverID)
    for fromSnapshot in [false, true] {
      let second = try first.restarted(after: 1, fromSnapshot: fromSnapshot, seed: 1234)
      #expect(second.found(around, for: .riders).map(\.driverID) == [name])
    }
  }

  @Test("an operator's key is used instead of the stored one, also after a restart")
  func operatorsKey() throws {
    let first = try DurableBench()
    first.drive(2)
    func name(_ key: SipKey?) throws -> Identifier? {
      var hub = Hub(
        limits: .roomy, timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("e")!, seed: 9,
        pseudonymKey: key, drawnKey: SipKey(5, 6), outlets: 1, now: first.now)
      for record in first.submitted { try record.withUnsafeBytes { try hub.load($0) } }
      hub.finishLoading(at: first.now)
      let found = hub.drivers.find(id("D"))
      let driver = try #require(found)
      return PublicAudience.name(
        hub.audience.pseudonym(of: id("D"), lastTripEnded: hub.drivers[driver].lastTripEnded, at: first.now.timestamp))
    }
    #expect(try name(nil) == first.found(around, for: .riders).first?.driverID)
    #expect(try name(SipKey(1, 2)) != name(nil))
  }
}
