// Offers of one hub's trips to drivers of others: the hub that has the trip decides, the driver's notifies the driver.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct OffersTests {
  /// Drivers `d1`, `d2` … each further from the pickup, at these hubs.
  private func town(
    _ hubs: [String], seed: UInt64 = 1, hubLimits: HubLimits = HubLimits()
  ) -> (world: ClusterWorld, channels: [Follower]) {
    let world = ClusterWorld(seed: seed, hubLimits: hubLimits)
    var channels: [Follower] = []
    for (index, hub) in hubs.enumerated() {
      world.connect("d\(index + 1)", at: hub, slot: UInt32(index + 1))
      world.run(seconds: 0.1)
      world.stand("d\(index + 1)", index, at: hub, slot: UInt32(index + 1))
      channels.append(world.follow(.driver(id("d\(index + 1)")), at: hub, slot: UInt32(200 + index)))
    }
    world.run(seconds: 1)
    return (world, channels)
  }

  @Test("The nearest driver is asked, whichever hub it is at; it accepts there, and the trip's hub has the trip")
  func accepted() {
    let (world, drivers) = town(["b", "c", "a"])
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    world.offer("t1", at: "a")
    world.run(seconds: 1)
    #expect(drivers.map(\.heard) == [["made"], [], []])
    #expect(drivers[0].offers.first?.terms?.distance == 0 && drivers[0].faults == [])
    world.accept("t1", "d1", at: "b", slot: 1)
    world.run(seconds: 1)
    #expect(world.answers(at: "b", slot: 1).acks == 1 && world.answers(at: "b", slot: 1).errors == [])
    #expect(rider.moves.last?.status == .accepted && rider.moves.last?.driverID == id("d1"))
    #expect(world.report("t1", at: "c")?.asked.map(\.answer) == [.accepted])
    #expect(world.report("t1", at: "c")?.end == .taken)
    #expect(world.status(of: "d1", at: "b") == .onTrip)
    world.offer("t2", at: "c")
    world.run(seconds: 20)
    #expect(drivers.map { $0.heard.first } == ["made", "made", "made"], "who is on a trip is asked for no other")
    #expect(drivers[0].heard == ["made"], "an accepting driver gets no end")
    world.ask("t1", .cancelled, at: "b", slot: 9)
    world.run(seconds: 1)
    #expect(world.status(of: "d1", at: "b") == .available)
    #expect(
      world["a"].hub.hub.counters.offers.reduce(0, +) == 1 && world["b"].hub.hub.counters.offers.reduce(0, +) == 0)
  }

  @Test("Several at a time: the first to accept has it, the others are notified, and a second `accepted` is refused")
  func taken() {
    let (world, drivers) = town(["b", "c", "a", "b"])
    world.offer("t1", atOnce: 3, at: "a")
    world.run(seconds: 1)
    #expect(drivers.map(\.heard) == [["made"], ["made"], ["made"], []])
    world.accept("t1", "d2", at: "c", slot: 2)
    world.accept("t1", "d1", at: "b", slot: 1)
    world.run(seconds: 1)
    let acks = [world.answers(at: "b", slot: 1).acks, world.answers(at: "c", slot: 2).acks]
    let errors = world.answers(at: "b", slot: 1).errors + world.answers(at: "c", slot: 2).errors
    #expect(acks.reduce(0, +) == 1 && errors == [.forbidden])
    #expect(drivers[2].heard == ["made", "taken"] && drivers[3].heard == [])
    #expect(
      drivers[0].heard + drivers[1].heard == (acks[0] == 1 ? ["made", "made", "taken"] : ["made", "taken", "made"]))
    #expect(drivers.allSatisfy { $0.faults == [] && $0.gaps == 0 })
  }

  @Test("Where the trip's places change, its hub has the offers of other hubs' drivers made again, once, with these")
  func changed() throws {
    let (world, drivers) = town(["b", "c", "a", "b"])
    world.engine.faults.doubled = 0.5
    world.offer("t1", atOnce: 3, at: "a")
    world.run(seconds: 1)
    #expect(drivers.map(\.heard) == [["made"], ["made"], ["made"], []])
    let place = Coordinate(latitude: 48.2, longitude: 11.5)!
    world.change("t1", pickup: place, at: "c", slot: 60)
    world.run(seconds: 1)
    #expect(world.answers(at: "c", slot: 60).acks == 1)
    #expect(drivers.map(\.heard) == [["made", "made"], ["made", "made"], ["made", "made"], []])
    for driver in drivers.prefix(3) {
      let terms = driver.offers.compactMap(\.terms)
      try #require(terms.count == 2)
      #expect(terms.map(\.pickup) == [pickup, place] && terms[0].expires == terms[1].expires)
      #expect((10_000...12_000).contains(terms[1].distance) && driver.faults == [] && driver.gaps == 0)
    }
    world.accept("t1", "d2", at: "c", slot: 2)
    world.run(seconds: 1)
    #expect(drivers.map(\.heard) == [["made", "made", "taken"], ["made", "made"], ["made", "made", "taken"], []])
  }

  @Test("Who declines, leaves, is silent or is cut off gives way to the next; a trip without more drivers is unserved")
  func next() {
    let (world, drivers) = town(["b", "b", "c", "c"])
    let rider = world.follow(.trip(id("t1")), at: "a", slot: 5)
    world.offer("t1", at: "a")
    world.run(seconds: 1)
    world.decline("t1", "d1", at: "b", slot: 1)
    world.run(seconds: 1)
    #expect(world.answers(at: "b", slot: 1).acks == 1 && drivers[0].heard == ["made", "declined"])
    #expect(drivers[1].heard == ["made"])
    world.setStatus(.unavailable, "d2", at: "b", slot: 2)
    world.run(seconds: 1)
    #expect(drivers[1].heard == ["made", "unavailable"] && drivers[2].heard == ["made"])
    world.run(seconds: 17)
    #expect(drivers[2].heard == ["made", "expired"] && drivers[3].heard == ["made"])
    world.engine.isolated = ["c"]
    world.run(seconds: 18)
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(drivers[3].heard == ["made", "expired"], "its own hub watches the time, too")
    #expect(world.report("t1", at: "b")?.end == .unserved && rider.faults == [])
    #expect(
      world.report("t1", at: "b")?.asked.map(\.answer)
        == [.withdrawn(.declined), .withdrawn(.unavailable), .withdrawn(.expired), .withdrawn(.expired)])
  }

  @Test(
    "A driver has one open offer, whichever hubs' trips; who cannot be asked is passed, and a cancelled trip's ends")
  func one() {
    let (world, drivers) = town(["b", "b", "b"])
    world.offer("t1", at: "a")
    world.run(seconds: 0.5)
    world.offer("t2", at: "c")
    world.run(seconds: 0.5)
    world.offer("t3", at: "b")
    world.run(seconds: 1)
    #expect(drivers.map(\.heard) == [["made"], ["made"], ["made"]])
    #expect(drivers.map { $0.offers.first?.tripID } == [id("t1"), id("t2"), id("t3")])
    world.ask("t1", .cancelled, at: "b", slot: 9)
    world.stop("t2", at: "a")
    world.run(seconds: 1)
    #expect(drivers.map(\.heard) == [["made", "cancelled"], ["made", "stopped"], ["made"]])
    #expect(world.answers(at: "a", slot: 91).errors == [])
    world.offer("t4", at: "c")
    world.run(seconds: 1)
    #expect(drivers[0].heard == ["made", "cancelled", "made"])
  }

  @Test("Offers are asked for, shown and ended at any hub; asked for again by the same key they are the same")
  func anywhere() {
    let (world, drivers) = town(["c"])
    world.offer("t1", nil, at: "a")
    world.run(seconds: 0.5)
    for (hub, slot) in [("b", 61 as UInt32), ("c", 62), ("a", 63), ("b", 64)] {
      world.askForOffers("t1", at: hub, slot: slot)
      world.run(seconds: 0.5)
    }
    #expect(world["b"].offers.map(\.isNew) == [true, false] && world["c"].offers.map(\.isNew) == [false])
    #expect(drivers[0].heard == ["made"])
    world.askForOffers("t9", at: "b", slot: 65)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 65).errors == [.unknownTrip])
  }

  @Test("Where a hub is too busy to be asked for drivers, the trip is not unserved: all hubs are asked again")
  func busyHub() {
    let (world, _) = town([])
    var limits = ClusterLimits()
    limits.asksPerPeer = 0
    world.restart("b", limits: limits)
    world.run(seconds: 3)
    world.offer("t1", at: "a")
    world.run(seconds: 5)
    let report = world.report("t1", at: "a")
    #expect(report != nil && report?.end == nil && report?.asked.isEmpty == true)
    world.restart("b")
    world.run(seconds: HubTimings().storageRetry)
    #expect(world.report("t1", at: "a")?.end == .unserved)
  }

  @Test("A hub that has no room for another trip's offers passes its drivers, and room comes back when offers end")
  func full() {
    var limits = HubLimits()
    limits.offers = 1
    let (world, drivers) = town(["b", "b"], hubLimits: limits)
    world.offer("t1", at: "a")
    world.run(seconds: 0.5)
    world.offer("t2", at: "c")
    world.run(seconds: 1)
    #expect(drivers.map(\.heard) == [["made"], []] && world.report("t2", at: "c")?.end == .unserved)
    #expect(world.report("t2", at: "c")?.asked.allSatisfy { $0.answer == .withdrawn(.unavailable) } == true)
    world.decline("t1", "d1", at: "b", slot: 1)
    world.run(seconds: 1)
    #expect(drivers.map(\.heard) == [["made", "declined"], ["made"]])
  }

  @Test(
    "Over lost, late and doubled frames a trip has one driver, and no driver is asked twice", arguments: historySeeds(6)
  )
  func faults(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let hubs = (0..<6).map { _ in ["a", "b", "c"].randomElement(using: &random)! }
    let (world, drivers) = town(hubs, seed: seed)
    world.engine.faults.lost = 0.05
    world.engine.faults.doubled = 0.1
    world.engine.faults.delayed = 0.2
    world.engine.faults.unknown = 0.05
    for trip in 0..<3 {
      world.offer("t\(trip)", atOnce: Int.random(in: 1...3, using: &random), at: ["a", "b", "c"][trip])
    }
    var answered: Set<String> = []
    for _ in 0..<60 {
      world.run(seconds: 1)
      for (index, driver) in drivers.enumerated() {
        guard let offer = driver.offers.last, offer.terms != nil,
          answered.insert("\(index) \(offer.tripID)").inserted
        else { continue }
        let (name, slot) = ("d\(index + 1)", UInt32(index + 1))
        switch Int.random(in: 0..<3, using: &random) {
        case 0: world.decline("\(offer.tripID)", name, at: hubs[index], slot: slot)
        case 1: world.accept("\(offer.tripID)", name, at: hubs[index], slot: slot)
        default: break
        }
      }
    }
    world.engine.faults = EngineFaults()
    world.run(seconds: 40)
    for (trip, hub) in zip(0..<3, ["a", "b", "c"]) {
      let report = world.report("t\(trip)", at: hub)
      #expect(report?.end == .taken || report?.end == .unserved, "seed \(seed)")
      #expect(report?.asked.count { $0.answer == .accepted } == (report?.end == .taken ? 1 : 0))
    }
    for driver in drivers {
      let made = driver.offers.filter { $0.terms != nil }.map(\.tripID)
      #expect(Set(made).count == made.count && driver.faults == [], "seed \(seed): \(driver.channel)")
    }
  }
}

extension Offer {
  fileprivate var terms: Terms? { if case .made(let terms) = state { terms } else { nil } }
}

extension Follower {
  fileprivate var heard: [String] {
    offers.map { offer in
      switch offer.state {
      case .made: "made"
      case .withdrawn(let reason): "\(reason.name)"
      }
    }
  }
}

private let pickup = Coordinate(latitude: 48.1, longitude: 11.5)!

extension ClusterWorld {
  /// A driver stands 100 m further from the pickup for each step.
  fileprivate func stand(_ driver: String, _ step: Int, at name: String, slot: UInt32) {
    let place = Coordinate(latitude: 48.1 + Double(step) * 9e-4, longitude: 11.5)!
    let update = LocationUpdate(tripID: nil, fix: Fix(coordinate: place, timestamp: now.timestamp, accuracy: 5))
    self[name].inputs.append(
      .fix(
        FixInput(
          session: session(slot), messageID: message(50), sent: now.timestamp, received: now, update: update,
          tripIsGranted: false)))
  }

  /// Ops ask for a trip, and at once for drivers of it.
  fileprivate func offer(_ trip: String, _ atOnce: Int? = 1, at name: String) { offer(trip, atOnce: atOnce, at: name) }

  fileprivate func offer(_ trip: String, atOnce: Int?, at name: String) {
    var report = TripStatusReport(tripID: id(trip), status: .requested, timestamp: now.timestamp, pickup: pickup)
    if let atOnce {
      var criteria = OfferCriteria()
      criteria.atOnce = atOnce
      report.offer = criteria
    }
    self[name].inputs.append(
      .tripStatus(
        TripStatusInput(
          session: session(90), actor: Actor(role: .ops, id: id("desk")), messageID: message(3000 + Int(nextSlot())),
          report: report, tripIsGranted: true)))
  }

  fileprivate func accept(_ trip: String, _ driver: String, at name: String, slot: UInt32) {
    let report = TripStatusReport(tripID: id(trip), status: .accepted, timestamp: now.timestamp)
    self[name].inputs.append(
      .tripStatus(
        TripStatusInput(
          session: session(slot), actor: Actor(role: .driver, id: id(driver)), messageID: message(Int(nextSlot())),
          report: report, tripIsGranted: false)))
  }

  fileprivate func change(_ trip: String, pickup: Coordinate, at name: String, slot: UInt32) {
    self[name].inputs.append(
      .tripChange(
        TripChangeInput(
          session: session(slot), actor: Actor(role: .ops, id: id("desk")), messageID: message(Int(nextSlot())),
          timestamp: now.timestamp, change: TripChange(tripID: id(trip), pickup: pickup))))
  }

  fileprivate func decline(_ trip: String, _ driver: String, at name: String, slot: UInt32) {
    self[name].inputs.append(
      .offerDecline(session(slot), message(Int(nextSlot())), OfferDecline(tripID: id(trip)), by: id(driver)))
  }

  fileprivate func setStatus(_ status: DriverStatus, _ driver: String, at name: String, slot: UInt32) {
    self[name].inputs.append(
      .driverStatus(session(slot + 700), message(Int(nextSlot())), DriverStatusReport(status: status), of: id(driver)))
  }

  private func ask(_ question: OffersQuestion, _ trip: String, at name: String, slot: UInt32) {
    self[name].inputs.append(
      .trips(session(slot), .offers(id(trip), question, Actor(role: .ops, id: id("desk")))))
  }

  fileprivate func askForOffers(_ trip: String, at name: String, slot: UInt32) {
    ask(.begin(OfferCriteria(), key: MessageID("k")), trip, at: name, slot: slot)
  }

  fileprivate func stop(_ trip: String, at name: String) { ask(.stop, trip, at: name, slot: 91) }

  fileprivate func report(_ trip: String, at name: String) -> OffersReport? {
    let slot = nextSlot()
    ask(.show, trip, at: name, slot: slot)
    run(seconds: 0.5)
    return self[name].offers.last { $0.session.slot == slot }?.report
  }
}
