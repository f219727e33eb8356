// Fences over the hub's own death: nobody enters twice, and no exit is lost.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct FenceDurabilityTests {
  let center = at(48.137, 11.575)

  private func connect(_ bench: DurableBench, _ driver: String = "D", slot: UInt32 = 0) -> SessionRef {
    let session = SessionRef(outlet: 0, slot: slot, generation: UInt32(bench.submitted.count + 1))
    bench.turn([.driverConnecting(session, id(driver))])
    return session
  }

  private func fix(
    _ bench: DurableBench, _ session: SessionRef, at place: Coordinate, speed: Double = 0
  ) -> HubInput {
    .fix(
      FixInput(
        session: session, messageID: bench.freshMessage(), sent: bench.now.timestamp, received: bench.now,
        update: LocationUpdate(
          tripID: nil,
          fix: Fix(coordinate: place, timestamp: bench.now.timestamp, accuracy: 5, heading: 90, speed: speed)),
        tripIsGranted: true))
  }

  private func stand(
    _ bench: DurableBench, _ session: SessionRef, at place: Coordinate, seconds: Int = 3
  ) -> [HubOutput] {
    var all: [HubOutput] = []
    for _ in 0..<seconds {
      all += bench.turn([fix(bench, session, at: place)])
      bench.advance(seconds: 1)
    }
    return all + bench.store()
  }

  private func follow(_ bench: DurableBench, _ channel: Channel, since: UInt64? = nil, slot: UInt32 = 80) -> [HubOutput]
  {
    let request = Subscribe(
      channel: channel, resume: since.map { ResumePoint(since: $0, epoch: bench.hub.channels.epoch) })
    return bench.turn([
      .subscribe(
        SubscribeInput(
          session: SessionRef(outlet: 0, slot: slot, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: bench.freshMessage(), request: request, grant: .granted))
    ])
  }

  private func reborn(_ bench: DurableBench, after lives: [DurableBench] = []) throws -> DurableBench {
    let records = (lives + [bench]).flatMap(\.submitted)
    let next = try DurableBench(reading: records, uptime: bench.now.uptime + 30_000_000_000)
    next.store()
    return next
  }

  @Test("A fence is answered, and its events are published, when they are stored and not before")
  func waiting() throws {
    let bench = try DurableBench()
    bench.store()
    #expect(bench.turn([.put(circle("F", center, 300))]).fenceAnswers.isEmpty)
    #expect(bench.turn([.ask(.show(id("F")))]).fenceAnswers.isEmpty)
    #expect(bench.store().fenceAnswers.count == 2)
    let driver = connect(bench)
    _ = follow(bench, .fence(id("F")))
    #expect(bench.turn([fix(bench, driver, at: center)]).events(on: .fence(id("F"))).isEmpty)
    #expect(bench.store().events(on: .fence(id("F"))).kinds == ["fence_enter"])
    #expect(bench.turn([.ask(.delete(id("F")))]).fenceAnswers.isEmpty)
    #expect(bench.store().fenceAnswers.first?.isDeleted == true)
  }

  @Test("After a kill inside a fence there is no second enter, and resuming brings what was missed")
  func killInside() throws {
    let bench = try DurableBench()
    bench.turn([.put(circle("F", center, 300, dwell: 20))])
    _ = stand(bench, connect(bench), at: center)
    let next = try reborn(bench)
    let back = Turn(loops: [follow(next, .fence(id("F")), since: 0)])
    #expect(back.subscribed.first?.answer.recovered == true)
    #expect(back.subscribed.first?.missed.compactMap(\.notification).kinds == ["fence_enter"])
    let driver = connect(next)
    let out = stand(next, driver, at: center).events(on: .fence(id("F")))
    #expect(out.kinds == ["fence_dwell"], "it is there since before the kill")
    #expect(stand(next, driver, at: center).events(on: .fence(id("F"))).isEmpty)
    let third = try reborn(next, after: [bench])
    _ = follow(third, .fence(id("F")))
    #expect(stand(third, connect(third), at: center).events(on: .fence(id("F"))).isEmpty, "a dwell is published once")
  }

  @Test("Who was slower before a kill and speeds after it is reported", arguments: [false, true])
  func speeding(fromSnapshot: Bool) throws {
    let bench = try DurableBench()
    bench.turn([.put(circle("F", center, 5000, speedLimit: 8))])
    var meters = 0.0
    func drive(_ bench: DurableBench, _ session: SessionRef, _ seconds: Int, speed: Double) -> [String] {
      var all: [HubOutput] = []
      for _ in 0..<seconds {
        all += bench.turn([fix(bench, session, at: center.moved(90, meters), speed: speed)])
        bench.advance(seconds: 1)
        meters += speed
      }
      return (all + bench.store()).events(on: .fence(id("F"))).kinds
    }
    let session = connect(bench)
    _ = follow(bench, .fence(id("F")))
    #expect(drive(bench, session, 20, speed: 12) == ["fence_enter", "speeding"])
    #expect(drive(bench, session, 60, speed: 5).isEmpty)
    let next = try bench.restarted(after: 1, fromSnapshot: fromSnapshot)
    #expect(try next.state() == bench.state())
    let again = connect(next)
    _ = follow(next, .fence(id("F")))
    next.store()
    #expect(drive(next, again, 20, speed: 12) == ["speeding"])
  }

  @Test("An exit that happened while the hub was dead is published with the first position")
  func killAndLeave() throws {
    let bench = try DurableBench()
    bench.turn([.put(circle("F", center, 300))])
    _ = stand(bench, connect(bench), at: center)
    let next = try reborn(bench)
    _ = follow(next, .fence(id("F")))
    let events = stand(next, connect(next), at: center.moved(0, 400)).events(on: .fence(id("F")))
    #expect(events.kinds == ["fence_exit"] && events.first?.sequence == 2)
    #expect((30...40).contains(events.first?.fence?.duration ?? 0))
  }

  @Test("What was not stored never happened: the enter comes again, with the same number")
  func lost() throws {
    let bench = try DurableBench()
    bench.turn([.put(circle("F", center, 300))])
    bench.store()
    let driver = connect(bench)
    let before = bench.submitted
    _ = follow(bench, .fence(id("F")))
    #expect(bench.turn([fix(bench, driver, at: center)]).events(on: .fence(id("F"))).isEmpty)
    let next = try DurableBench(reading: before, uptime: bench.now.uptime + 1_000_000_000)
    next.store()
    _ = follow(next, .fence(id("F")))
    let events = stand(next, connect(next), at: center).events(on: .fence(id("F")))
    #expect(events.kinds == ["fence_enter"] && events.first?.sequence == 1)
  }

  @Test("While nothing can be stored nothing is decided, and a fence is refused; then a position decides")
  func full() throws {
    let bench = try DurableBench()
    bench.turn([.put(circle("F", center, 300))])
    bench.store()
    let driver = connect(bench)
    _ = follow(bench, .fence(id("F")))
    bench.store(condition: .unavailable)
    #expect(stand(bench, driver, at: center, seconds: 0).isEmpty)
    bench.store(condition: .unavailable)
    var out = bench.turn([fix(bench, driver, at: center), .put(circle("G", center, 300))])
    #expect(out.fenceAnswers.first?.refusal?.code == .storageFull)
    bench.advance(seconds: 1)
    out = bench.store()
    #expect(out.events(on: .fence(id("F"))).isEmpty)
    #expect(stand(bench, driver, at: center).events(on: .fence(id("F"))).kinds == ["fence_enter"])
  }

  @Test("Fences, stays and pairs come back to the byte, from the log and from a snapshot, whatever was done")
  func random() throws {
    var random = SplitMix64(seed: 21)
    let word = message("van").text
    var stays = 0
    for round in 0..<5 {
      let bench = try DurableBench()
      let drivers = (0..<5).map { connect(bench, "D\($0)", slot: UInt32($0)) }
      for _ in 0..<150 {
        bench.advance(seconds: 4)
        let place = center.moved(.random(in: 0..<360, using: &random), .random(in: 0...400, using: &random))
        let name = "F\(Int.random(in: 0..<6, using: &random))"
        switch Int.random(in: 0..<12, using: &random) {
        case 0: bench.turn([.put(circle(name, place, .random(in: 50...500, using: &random), dwell: 8))])
        case 1:
          let ring = [0.0, 120, 240, 0].map { place.moved($0, 300) }
          bench.turn([.put(try polygon(name, [ring]))])
        case 2:
          var lane = try corridor(name, [place, place.moved(40, 500)], width: 90)
          lane.area.map { lane.shape = .hazard($0) }
          lane.title = word
          lane.speedLimit = 12.5
          lane.drivers = FenceFilter(status: .available, vehicleType: nil, tags: [])
          bench.turn([.put(lane)])
        case 3: bench.turn([.ask(.delete(id(name)))])
        case 4: bench.turn([.put(roaming("R", 200, others: FenceFilter(status: .available)))])
        case 5: if round % 3 == 0 { bench.turn([.ask(.delete(id("R")))]) }
        default:
          let driver = drivers[Int.random(in: 0..<5, using: &random)]
          bench.turn([fix(bench, driver, at: place)])
        }
        if random.next() % 3 == 0 { bench.store() }
      }
      bench.store()
      let state = try bench.state()
      stays += state.count { if case .stay = $0 { true } else { false } }
      let replayed = try DurableBench(reading: bench.submitted, uptime: bench.now.uptime)
      #expect(try replayed.state() == state, "round \(round)")
      let loaded = try DurableBench(reading: bench.snapshot(), uptime: bench.now.uptime)
      #expect(try loaded.state() == state, "round \(round)")
    }
    #expect(stays > 0)
  }
}
