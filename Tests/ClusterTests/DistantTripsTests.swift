// Trips at one hub whose drivers are at another: moves, positions, ETAs and the driver's reported status.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct DistantTripsTests {
  /// A driver on a trip that began at hub `a`, where it is no more.
  private func moved(_ world: ClusterWorld) {
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    world.ask("t1", .requested, for: "d1", at: "a", slot: 9)
    world.move("t1", .accepted, by: "d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    for step in 0..<4 { drive(world, step, "t1", at: "a", slot: 1) }
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 1)
  }

  private func drive(_ world: ClusterWorld, _ step: Int, _ trip: String?, at name: String, slot: UInt32) {
    world.fix(step, trip: trip, at: name, slot: slot)
    world.run(seconds: 1)
  }

  /// How many positions a rider gets while the driver drives.
  private func gained(_ rider: Follower, _ world: ClusterWorld, _ steps: Range<Int>, at name: String, slot: UInt32)
    -> Int
  {
    let before = rider.positions.count
    for step in steps { drive(world, step, "t1", at: name, slot: slot) }
    return rider.positions.count - before
  }

  @Test("Who follows a trip that nobody has, where a driver has named it and left, sees it when it begins there")
  func namedAndLeft() {
    for name in ["a", "b"] {
      let world = ClusterWorld(["a", "b"])
      world.connect("d1", at: "b", slot: 1)
      world.run(seconds: 0.5)
      world.fix(0, trip: "t1", at: "b", slot: 1, isGranted: false)
      world.run(seconds: 0.5)
      let rider = world.follow(.trip(id("t1")), at: "b", slot: 5)
      world.run(seconds: 1.5)
      world.connect("d1", at: "a", slot: 2)
      world.run(seconds: 1)
      let report = TripStatusReport(
        tripID: id("t1"), status: .requested, timestamp: world.now.timestamp, driverID: id("d1"))
      let request = TripStatusInput(
        session: world.session(9), actor: Actor(role: .ops, id: id("desk")), messageID: message(9), report: report,
        tripIsGranted: true)
      world[name].inputs.append(.cluster(.tripRequestHere(.move(request))))
      world.run(seconds: 0.5)
      #expect(world.engine.owner(of: "t:t1") == name && rider.faults == [] && rider.gaps == 0)
      let seen = rider.moves.last?.status ?? rider.answers.last?.snapshot?.trip?.status
      #expect(seen == .requested, "begun at \(name)")
      #expect(world["b"].node.node.counters.follows == (name == "a" ? 1 : 0))
    }
  }

  @Test("A driver that continues at another hub moves its trip, which its riders see wherever they are")
  func goesOn() {
    let world = ClusterWorld()
    moved(world)
    let riders = ["a", "b", "c"].map { world.follow(.trip(id("t1")), at: $0, slot: 5) }
    let watcher = world.follow(.driver(id("d1")), at: "c", slot: 6)
    world.run(seconds: 0.5)
    let before = riders.map(\.positions.count)
    for step in 4..<14 { drive(world, step, "t1", at: "b", slot: 2) }
    for (rider, count) in zip(riders, before) {
      #expect(rider.positions.count >= count + 8 && rider.faults == [] && rider.gaps == 0)
      #expect(rider.positions.suffix(8).allSatisfy { $0.tripID == id("t1") && $0.driverID == id("d1") })
      let times = rider.positions.map(\.timestamp)
      #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 }, "no position is older than one before")
    }
    #expect(watcher.positions.count >= 8 && watcher.positions.last?.tripID == id("t1"))
    #expect(world.engine.owner(of: "t:t1") == "a" && world.engine.owner(of: "d:d1") == "b" && world.trips == 1)
    #expect(world.status(of: "d1", at: "b") == .onTrip)
    world.move("t1", .driverEnRoute, by: "d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 2).acks == 1 && world.answers(at: "b", slot: 2).errors == [])
    #expect(riders.allSatisfy { $0.point?.since == world.newest(.trip(id("t1")), at: "a") })
  }

  @Test("A trip's hub sends the driver's hub nothing of what came from there, until somebody there follows the trip")
  func echo() {
    let world = ClusterWorld()
    moved(world)
    func statesOut(_ steps: Range<Int>) -> UInt64 {
      let before = world["a"].node.node.counters.statesOut
      for step in steps { drive(world, step, "t1", at: "b", slot: 2) }
      return world["a"].node.node.counters.statesOut - before
    }
    #expect(statesOut(4..<10) == 0)
    var riders = (0..<2).map { world.follow(.trip(id("t1")), at: "b", slot: UInt32(50 + $0)) }
    world.run(seconds: 0.5)
    #expect(statesOut(10..<16) >= 6)
    #expect(riders.allSatisfy { $0.positions.count >= 6 && $0.faults == [] && $0.gaps == 0 })
    // Who comes while the last one leaves gets what follows.
    for wait in 0..<6 {
      for rider in riders { world["b"].leave(rider) }
      for _ in 0..<wait { world.step() }
      riders = [world.follow(.trip(id("t1")), at: "b", slot: world.nextSlot())]
      for _ in 0..<10 - wait { world.step() }
      #expect(statesOut(16 + 3 * wait..<19 + 3 * wait) >= 3 && riders[0].positions.count >= 3, "\(wait)")
    }
    world["b"].leave(riders[0])
    world.run(seconds: 0.5)
    #expect(statesOut(40..<46) == 0)
    world.move("t1", .driverEnRoute, by: "d1", at: "b", slot: 2)
    world.ask("t1", .cancelled, at: "c", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.status(of: "d1", at: "b") == .available)
  }

  @Test("Who is refused at the driver's hub, and asks again and again, has no positions sent there, also after a gap")
  func refusedRider() {
    let world = ClusterWorld()
    moved(world)
    let rider = Follower(.trip(id("t1")), slot: 50, role: .rider, id: "stranger", grant: .onlyForParties)
    world["b"].followers.append(rider)
    world.run(seconds: 0.5)
    #expect(rider.refusals.map(\.code) == [.forbidden])
    #expect(world["b"].node.node.following.follows[.trip(id("t1"))]?.wantsStates != true)
    for peer in world["b"].node.node.context.peers { peer.wantsRestart = true }
    world.run(seconds: 2)
    let before = world["a"].node.node.counters.statesOut
    for step in 4..<10 { drive(world, step, "t1", at: "b", slot: 2) }
    #expect(world["a"].node.node.counters.statesOut == before)
  }

  @Test("Who wants events alone of another hub's channel gets the answer that says so, also where others want more")
  func eventsOnly() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    let riders = (0..<2).map { world.follow(.trip(id("t1")), at: "b", slot: UInt32(50 + $0)) }
    riders[0].isEventsOnly = true
    world.run(seconds: 0.5)
    riders[1].isEventsOnly = true
    riders[1].wantsToAsk = true
    world.run(seconds: 0.5)
    #expect(riders[0].answers.map(\.isEventsOnly) == [true])
    #expect(riders[1].answers.map(\.isEventsOnly) == [false, true])
    for step in 0..<4 {
      world.fix(step, trip: "t1", at: "a", slot: 1)
      world.run(seconds: 1)
    }
    #expect(riders[1].positions.count >= 4, "the sessions' loop leaves them out")
  }

  @Test("When the trip is over the driver is free, and nothing of it goes from hub to hub any more")
  func ends() {
    let world = ClusterWorld()
    moved(world)
    for step in 4..<8 { drive(world, step, "t1", at: "b", slot: 2) }
    #expect(world.status(of: "d1", at: "b") == .onTrip)
    world.ask("t1", .cancelled, at: "c", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.status(of: "d1", at: "b") == .available)
    drive(world, 8, nil, at: "b", slot: 2)
    let sent = world["b"].node.node.counters.statesOut
    for step in 9..<14 { drive(world, step, nil, at: "b", slot: 2) }
    #expect(world["b"].node.node.counters.statesOut == sent)
    world.run(seconds: 400)  // the trip's channel closes
    #expect(world["a"].node.node.counters.follows == 0 && world["b"].node.node.counters.follows == 0)
  }

  @Test("A driver that comes back to its trip's hub is that hub's again")
  func returns() {
    let world = ClusterWorld()
    moved(world)
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    for step in 4..<8 { drive(world, step, "t1", at: "b", slot: 2) }
    world.connect("d1", at: "a", slot: 3)
    world.run(seconds: 1)
    #expect(world.status(of: "d1", at: "b") == .available && world.status(of: "d1", at: "a") == .onTrip)
    #expect(gained(rider, world, 8..<14, at: "a", slot: 3) >= 5 && rider.faults == [])
    #expect(world["b"].node.node.counters.follows == 0 && world["a"].node.node.counters.follows == 0)
  }

  @Test("A driver that comes back and sends again what the other hub has published is not seen to drive it twice")
  func sendsAgain() {
    let world = ClusterWorld()
    moved(world)
    for step in 4..<10 { drive(world, step, "t1", at: "b", slot: 2) }
    world.connect("d1", at: "a", slot: 3)
    world.run(seconds: 1)
    world.batch(naming: "t1", at: "a", slot: 3)
    let counters = world["a"].hub.hub.counters
    #expect(counters.fixesHistory == 3 && counters.fixesDuplicate == 1, "only the last of the five is newer")
  }

  @Test("A trip that no hub has begins at the driver's with the fix that names it, also while the ledger is away")
  func begins() {
    let world = ClusterWorld()
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    world.run(seconds: 0.5)
    for step in 0..<4 { drive(world, step, "t1", at: "b", slot: 2) }
    #expect(world.engine.owner(of: "t:t1") == "b" && world.trips == 1)
    #expect(rider.positions.count == 4 && rider.faults == [])
    #expect(world["b"].node.node.counters.follows == 0)
    world.engine.isolated = ["b"]
    world.run(seconds: 3)
    for step in 4..<8 { drive(world, step, "t2", at: "b", slot: 2) }
    #expect(world.trips == 2)
  }

  @Test("A batch that names a trip which is looked for is put off, and taken when it comes again")
  func batch() {
    let world = ClusterWorld()
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    for _ in 0..<2 { world.batch(naming: "t1", at: "b", slot: 2) }
    #expect(world.answers(at: "b", slot: 2).errors == [.rateLimited] && world.answers(at: "b", slot: 2).acks == 1)
    #expect(world.trips == 1 && world.engine.owner(of: "t:t1") == "b")
    #expect(world["b"].hub.hub.counters.fixesAccepted == 5)
  }

  @Test("A batch that names a trip whose hub is dead is taken, and the trip continues when its hub is back")
  func batchOfADeadHub() {
    let world = ClusterWorld(hasJournals: true)
    moved(world)
    world.kill("a")
    world.run(seconds: 3)
    for _ in 0..<3 { world.batch(naming: "t1", at: "b", slot: 2) }
    let (acks, errors) = world.answers(at: "b", slot: 2)
    #expect(acks >= 2 && errors.allSatisfy { $0 == .rateLimited }, "put off while the ledger is asked, then taken")
    #expect(world["b"].hub.hub.counters.fixesAccepted >= 5 && world.trips == 0, "the dead hub's continues there")
    world.join("a")
    world.run(seconds: 3)
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    world.run(seconds: 0.5)
    #expect(gained(rider, world, 5..<9, at: "b", slot: 2) >= 3 && rider.faults == [])
    #expect(world.status(of: "d1", at: "b") == .onTrip && world.trips == 1)
  }

  @Test("A batch that names a trip which has ended at its hub is taken, and the trip is not looked for each time")
  func batchOfAnEndedTrip() {
    let world = ClusterWorld()
    moved(world)
    world.ask("t1", .cancelled, at: "c", slot: 9)
    world.run(seconds: 400)  // the trip's channel closes
    var questions = 0
    world.engine.trace = { if $0.contains("t:t1") { questions += 1 } }
    for _ in 0..<4 { world.batch(naming: "t1", at: "b", slot: 2) }
    let (acks, errors) = world.answers(at: "b", slot: 2)
    #expect(acks >= 3 && errors.allSatisfy { $0 == .rateLimited })
    #expect(world.status(of: "d1", at: "b") == .available && world["b"].node.node.counters.follows == 0)
    let rider = world.follow(.driver(id("d1")), at: "b", slot: 5)
    world.run(seconds: 0.5)
    for step in 5..<8 { drive(world, step, "t1", at: "b", slot: 2) }
    #expect(questions == 1)
    #expect(rider.positions.suffix(3).allSatisfy { $0.tripID == nil } && rider.positions.count >= 3)
  }

  @Test("Another driver's trip is not moved by one that names it, whose fixes are refused as at the trip's hub")
  func stranger() {
    let world = ClusterWorld()
    moved(world)
    world.connect("d2", at: "c", slot: 3)
    let rider = world.follow(.trip(id("t1")), at: "a", slot: 5)
    let watcher = world.follow(.driver(id("d2")), at: "c", slot: 6)
    world.run(seconds: 0.5)
    let seen = gained(rider, world, 0..<4, at: "c", slot: 3)
    world.move("t1", .cancelled, by: "d2", at: "c", slot: 3)
    world.run(seconds: 0.5)
    #expect(seen == 0 && world.status(of: "d2", at: "c") == .available)
    #expect(world.answers(at: "c", slot: 3).errors == [ErrorCode](repeating: .forbidden, count: 4) && world.trips == 1)
    drive(world, 5, nil, at: "c", slot: 3)
    #expect(watcher.positions.count == 2, "the first one came before that was known")
    #expect(watcher.positions.last?.tripID == nil)
  }

  @Test(
    "Who waits for a trip hears once that it has begun elsewhere, whenever a driver here names it", arguments: 0..<14)
  func namedMeanwhile(step: Int) {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    let rider = world.follow(.trip(id("t1")), at: "a", slot: 5)
    world.run(seconds: 1)
    world.ask("t1", .requested, at: "c", slot: 9)
    for _ in 0..<step { world.step() }
    world.fix(0, trip: "t1", at: "a", slot: 1, isGranted: false)
    world.run(seconds: 1)
    #expect(rider.restarts == 1 && rider.unrecovered == 0 && rider.faults == [] && rider.gaps == 0)
    #expect(rider.answers.last?.snapshot?.trip?.status == .requested)
  }

  @Test("Who names ever new trips has one looked for in a second, and holds one channel")
  func many() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    let asked = world.engine.questions
    for step in 0..<500 {
      world.fix(step, trip: "t\(step % 2 == 0 ? 1 : step)", at: "b", slot: 2)
      world.step()
    }
    #expect(world["b"].node.node.counters.follows <= 1)
    #expect(world.engine.questions - asked < 120, "beside the hubs' own leases")
  }

  @Test("Cuts between the two hubs lose no move, and positions flow again behind them")
  func cuts() {
    let world = ClusterWorld(seed: 5)
    moved(world)
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    world.run(seconds: 0.5)
    for step in 4..<44 {
      world.engine.cuts = step % 8 < 3 ? [["a>b", "b>a", "a>c"][step % 3]] : []
      if step == 20 { world.move("t1", .driverEnRoute, by: "d1", at: "b", slot: 2) }
      drive(world, step, "t1", at: "b", slot: 2)
    }
    world.engine.cuts = []
    #expect(gained(rider, world, 44..<50, at: "b", slot: 2) >= 4 && rider.faults == [])
    #expect(rider.point?.since == world.newest(.trip(id("t1")), at: "a"))
    #expect(world.answers(at: "b", slot: 2).acks == 1)
  }

  @Test(
    "A trip that its hub has lost begins at its driver's hub, whether or not that followed it before",
    arguments: [false, true])
  func lostTrip(isFollowed: Bool) {
    let world = ClusterWorld()
    if isFollowed {
      moved(world)
      for step in 4..<6 { drive(world, step, "t1", at: "b", slot: 2) }
    } else {
      world.connect("d1", at: "a", slot: 1)
      world.step()
      drive(world, 0, "t1", at: "a", slot: 1)
    }
    func follow() -> [Follower] { ["b", "c"].map { world.follow(.trip(id("t1")), at: $0, slot: 5) } }
    var riders = isFollowed ? follow() : []
    world.run(seconds: 0.5)
    world.restart("a")
    world.run(seconds: 3)
    if !isFollowed { world.connect("d1", at: "b", slot: 2) }
    world.run(seconds: 1)
    drive(world, 6, "t1", at: "b", slot: 2)
    if riders.isEmpty { riders = follow() }
    world.run(seconds: 3)
    #expect(gained(riders[1], world, 7..<14, at: "b", slot: 2) >= 6)
    #expect(riders.allSatisfy { $0.positions.count >= 6 && $0.faults == [] && $0.gaps == 0 })
    #expect(world.engine.owner(of: "t:t1") == "b" && world.trips == 1)
    #expect(world.status(of: "d1", at: "b") == .onTrip && world["b"].node.node.counters.follows == 0)
  }

  @Test("A hub that starts anew keeps following its trips' drivers where they are")
  func restarts() {
    let world = ClusterWorld()
    moved(world)
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    for step in 4..<8 { drive(world, step, "t1", at: "b", slot: 2) }
    world.restart("b")
    world.run(seconds: 3)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 1)
    #expect(gained(rider, world, 8..<14, at: "b", slot: 2) >= 4 && rider.faults == [])
    #expect(world.status(of: "d1", at: "b") == .onTrip)
  }
}

extension ClusterWorld {
  /// Five fixes of the last seconds in one message, and half a second for the answer.
  func batch(naming trip: String, at name: String, slot: UInt32) {
    let fixes = (0..<5).map { step in
      Fix(
        coordinate: Coordinate(latitude: 48.1 + Double(step) * 1e-4, longitude: 11.5)!,
        timestamp: Timestamp(milliseconds: now.timestamp.milliseconds - Int64(5 - step) * 1000), accuracy: 5)
    }
    let batch = LocationBatch(tripID: id(trip), fixes: fixes.map { .success($0) })
    self[name].inputs.append(
      .batch(
        BatchInput(
          session: session(slot), driverID: nil, messageID: message(Int(nextSlot())), sent: now.timestamp,
          received: now, batch: batch, tripIsGranted: true)))
    run(seconds: 0.5)
  }

  func status(of driver: String, at name: String) -> DriverStatus? {
    let session = session(nextSlot())
    self[name].inputs.append(.query(session, .driver(id(driver)), replyTo: nil))
    run(seconds: 0.5)
    guard case .driver(let report)? = self[name].results.last(where: { $0.session == session })?.result else {
      return nil
    }
    return report.status
  }
}
