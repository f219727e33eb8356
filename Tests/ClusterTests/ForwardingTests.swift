// Moves and changes of trips that another hub has: they go there, once each, and the answer comes back.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct ForwardingTests {
  @Test("A trip that a back end requests for a driver, at any hub, begins at the driver's, and is moved from anywhere")
  func requested() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    world.run(seconds: 0.5)
    world.ask("t1", .requested, for: "d1", at: "b", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.engine.owner(of: "t:t1") == "a")
    world.move("t1", .accepted, by: "d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    for step in 0..<4 {
      world.fix(step, trip: "t1", at: "a", slot: 1)
      world.run(seconds: 1)
    }
    world.ask("t1", .cancelled, at: "c", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 9).acks == 1 && world.answers(at: "c", slot: 9).acks == 1)
    #expect(rider.positions.count >= 4 && rider.faults == [] && rider.gaps == 0)
    #expect(rider.point?.since == world.newest(.trip(id("t1")), at: "a") && rider.seen.values.joined().count >= 2)
    #expect(world["b"].node.node.counters.ownerConflicts == 0)
  }

  @Test("A trip for nobody begins where it was requested; a change of another hub's trip is answered by that hub")
  func open() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "b", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.engine.owner(of: "t:t1") == "b" && world.answers(at: "b", slot: 9).acks == 1)
    let change = TripChange(tripID: id("t1"), pickup: Coordinate(latitude: 48.2, longitude: 11.6))
    world["c"].inputs.append(
      .tripChange(
        TripChangeInput(
          session: world.session(7), actor: Actor(role: .ops, id: id("desk")), messageID: message(77),
          timestamp: world.now.timestamp, change: change)))
    world.run(seconds: 0.5)
    #expect(world.answers(at: "c", slot: 7).acks == 1)
    // What the owner refuses is refused: nobody may go from `requested` to the end of a ride.
    world.ask("t1", .completed, at: "c", slot: 8)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "c", slot: 8).errors == [.invalidTransition])
  }

  @Test("A move whose answer is lost is sent again, and made once; without an answer it is refused after 3 s")
  func lost() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9)
    let own = world.follow(.trip(id("t1")), at: "a", slot: 4)
    world.run(seconds: 1)
    let before = own.point?.since ?? 0
    world.engine.cuts = ["a>b"]
    world.ask("t1", .cancelled, at: "b", slot: 9)
    world.run(seconds: 1.5)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(world.answers(at: "b", slot: 9).acks == 1 && world.answers(at: "b", slot: 9).errors == [])
    #expect(own.point?.since == before + 1)
    world.engine.cuts = ["b>a"]
    world.ask("t1", .cancelled, at: "b", slot: 10)
    world.run(seconds: 4)
    #expect(world.answers(at: "b", slot: 10).errors == [.rateLimited])
    #expect(world["b"].node.node.counters.pending == 0)
  }

  @Test("What waits behind a request that gets no answer is refused with it")
  func lostTogether() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9)
    world.run(seconds: 1)
    world.engine.cuts = ["b>a"]
    for slot in 20..<25 { world.ask("t1", .cancelled, at: "b", slot: UInt32(slot)) }
    world.run(seconds: 4)
    #expect((20..<25).allSatisfy { world.answers(at: "b", slot: UInt32($0)).errors == [.rateLimited] })
    #expect(world["b"].node.node.counters.pending == 0)
    // Who sends again gets an answer.
    world.engine.cuts = []
    world.run(seconds: 1)
    world.ask("t1", .cancelled, at: "b", slot: 25)
    world.run(seconds: 1)
    #expect(world.answers(at: "b", slot: 25).acks == 1)
  }

  @Test("A hub that has just started begins no trip that another hub has")
  func starting() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9)
    world.run(seconds: 0.5)
    world.restart("b")
    world.ask("t1", .requested, at: "b", slot: 9)
    world.run(seconds: 3)
    #expect(world.trips == 1 && world.engine.owner(of: "t:t1") == "a")
  }

  @Test("Requests for one trip are handled in the order in which they came, wherever they go")
  func order() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    for (trip, driver) in [("t1", "d1" as String?), ("t2", nil)] {
      world.ask(trip, .requested, for: driver, at: "b", slot: 9)
      world.ask(trip, .cancelled, at: "b", slot: 9)
    }
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 9).acks == 4 && world.answers(at: "b", slot: 9).errors == [])
    #expect(world.engine.owner(of: "t:t1") == "a" && world.engine.owner(of: "t:t2") == "b")
  }

  @Test("A trip that is requested behind a question about it begins where its id is claimed for, at its driver's hub")
  func behindQuestion() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let desk = Actor(role: .ops, id: id("desk"))
    world["b"].inputs.append(.trips(world.session(20), .shares(id("t1"), .list, desk), replyTo: nil))
    world.ask("t1", .requested, for: "d1", at: "b", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 20).errors == [.unknownTrip] && world.answers(at: "b", slot: 9).acks == 1)
    #expect(world.engine.owner(of: "t:t1") == "a" && world.engine.owner(of: "i:t1") == "a" && world.trips == 1)
  }

  @Test("A trip that is begun over HTTP is the same at whichever hub it is asked for again, and is changed at any")
  func overHTTP() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    for (slot, name) in ["b", "c", "a", "b"].enumerated() {
      world.begin("t1", for: "d1", at: name, slot: UInt32(20 + slot))
      world.run(seconds: 0.5)
      #expect(world[name].trip(of: UInt32(20 + slot))?.driverID == id("d1"))
    }
    #expect(world["b"].begun == [world.session(20)] && world["c"].begun.isEmpty && world["a"].begun.isEmpty)
    #expect(world.trips == 1 && world.engine.owner(of: "t:t1") == "a")
    world.begin("t1", for: "d2", at: "c", slot: 30)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "c", slot: 30).errors == [.invalidTransition], "another trip of that id")
    let change = TripChange(tripID: id("t1"), pickup: Coordinate(latitude: 48.2, longitude: 11.6))
    let desk = Actor(role: .ops, id: id("desk"))
    world["c"].inputs.append(.trips(world.session(31), .change(change, desk)))
    world["c"].inputs.append(
      .trips(world.session(32), .change(change, Actor(role: .rider, id: id("stranger")))))
    world.run(seconds: 0.5)
    #expect(world["c"].trip(of: 31)?.pickup == change.pickup)
    #expect(world.answers(at: "c", slot: 32).errors == [.forbidden])
    world.engine.isolated = ["a"]
    world.run(seconds: 1.5)
    world.begin("t1", for: "d1", at: "b", slot: 33)
    world.run(seconds: 4)
    #expect(world.answers(at: "b", slot: 33).errors == [.rateLimited], "it may not begin a second time")
  }

  @Test("A trip that is asked for at several hubs at once begins at one of them, over lost and late frames")
  func together() {
    for seed in 1...4 {
      let world = ClusterWorld(seed: UInt64(seed))
      world.connect("d1", at: "a", slot: 1)
      world.run(seconds: 0.5)
      world.engine.faults.lost = 0.05
      world.engine.faults.doubled = 0.1
      world.engine.faults.delayed = 0.2
      world.engine.faults.unknown = 0.05
      var random = SplitMix64(seed: UInt64(seed))
      for number in 0..<20 {
        let driver = number % 3 == 0 ? "d1" : nil
        for name in ["a", "b", "c"].shuffled(using: &random) {
          world.begin("t\(number)", for: driver, at: name, slot: UInt32(100 + number))
          for _ in 0..<Int.random(in: 0...3, using: &random) { world.step() }
        }
      }
      world.run(seconds: 6)
      world.engine.faults = EngineFaults()
      for number in 0..<20 {
        for name in ["a", "b", "c"] {
          world.begin("t\(number)", for: number % 3 == 0 ? "d1" : nil, at: name, slot: UInt32(200 + number))
        }
      }
      world.run(seconds: 2)
      #expect(world.trips == 20 && world.members.allSatisfy { $0.node.node.counters.ownerConflicts == 0 })
      for number in 0..<20 {
        #expect(world.members.allSatisfy { $0.trip(of: UInt32(200 + number))?.tripID == id("t\(number)") })
      }
    }
  }

  @Test("A notification goes to the hub that has the trip or driver; the same again at any hub is the same event")
  func notifications() {
    let world = ClusterWorld()
    world.connect("d1", at: "b", slot: 1)
    world.begin("t1", for: nil, at: "a", slot: 20)
    world.run(seconds: 0.5)
    for channel in [Channel.trip(id("t1")), .driver(id("d1"))] {
      let follower = world.follow(channel, at: "c", slot: channel == .driver(id("d1")) ? 6 : 5)
      world.run(seconds: 0.5)
      let before = follower.point?.since ?? 0
      for name in ["a", "b", "c", "a"] {
        world.notify(channel, "n1", at: name)
        world.run(seconds: 0.5)
      }
      #expect(follower.point?.since == before + 1 && follower.faults == [] && follower.gaps == 0)
    }
    let answers = ["a", "b", "c"].flatMap { world[$0].notified }
    #expect(answers.count == 8 && answers.count { $0.isNew == true } == 2)
    world.notify(.trip(id("t9")), "n1", at: "c")
    world.run(seconds: 0.5)
    #expect(world["c"].notified.last?.isNew == nil && world["c"].notified.last?.refusal == .unknownTrip)
    world.engine.isolated = ["a"]
    world.run(seconds: 1.5)
    world.notify(.trip(id("t1")), "n2", at: "c")
    world.run(seconds: 4)
    #expect(world["c"].notified.last?.refusal == .rateLimited)
  }

  @Test("A driver's status that a back end sets goes to the hub that has the driver, whichever hub was asked")
  func status() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let report = DriverStatusReport(status: .unavailable)
    for (slot, name) in ["b", "a", "c"].enumerated() {
      #expect(world.status(of: "d1", at: name) == (slot == 0 ? .available : .unavailable))
      world[name].inputs.append(
        .driverStatus(world.session(UInt32(30 + slot)), message(40 + slot), report, of: id("d1")))
      world.run(seconds: 0.5)
      #expect(world.answers(at: name, slot: UInt32(30 + slot)).acks == 1)
    }
    #expect(world.status(of: "d1", at: "b") == .unavailable)
    // One that nobody has is the asked hub's from then on: a repetition with a key changes nothing.
    for (slot, name) in [(UInt32(40), "b"), (42, "c"), (43, "a")] {
      let report = DriverStatusReport(status: name == "c" ? .available : .unavailable)
      world[name].inputs.append(
        .driverStatus(world.session(slot), message(name == "c" ? 52 : 50), report, of: id("d2"), isKeyed: true))
      world.run(seconds: 0.5)
      #expect(world.answers(at: name, slot: slot).acks == 1)
      for asked in ["a", "b", "c"] {
        #expect(world.status(of: "d2", at: asked) == (slot == 40 ? .unavailable : .available))
      }
    }
    world.engine.isolated = ["a"]
    world.run(seconds: 1.5)
    world["c"].inputs.append(.driverStatus(world.session(41), message(51), report, of: id("d1")))
    world.run(seconds: 4)
    #expect(world.answers(at: "c", slot: 41).errors == [.rateLimited])
  }

  @Test("A driver's status that is sent again, since its hub's disk was slow, does not undo a later one")
  func slowStatus() {
    let world = ClusterWorld(hasJournals: true)
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    world["a"].journal?.isStalled = true
    world["c"].inputs.append(
      .driverStatus(world.session(30), message(40), DriverStatusReport(status: .unavailable), of: id("d1")))
    world.run(seconds: 0.5)
    world["a"].inputs.append(.driverStatus(world.session(1), message(41), DriverStatusReport(status: .available)))
    world.run(seconds: 1)
    world["a"].journal?.isStalled = false
    world.run(seconds: 1)
    #expect(world["c"].replies.map(\.1) == [.ack(Ack(replyTo: message(40)))])
    #expect(world["a"].replies.map(\.1) == [.ack(Ack(replyTo: message(41)))])
    #expect(world.status(of: "d1", at: "b") == .available)
    // A later one has its own number, also under the same id.
    world["c"].inputs.append(
      .driverStatus(world.session(31), message(40), DriverStatusReport(status: .unavailable), of: id("d1")))
    world.run(seconds: 0.5)
    #expect(world.status(of: "d1", at: "b") == .unavailable)
  }

  @Test("A notification without an id that is sent again, since its trip's hub's disk was slow, is one event")
  func slowNotification() {
    let world = ClusterWorld(hasJournals: true)
    world.begin("t1", for: nil, at: "a", slot: 20)
    world.run(seconds: 0.5)
    let rider = world.follow(.trip(id("t1")), at: "b", slot: 5)
    world.run(seconds: 0.5)
    for number in 1...2 {
      world["a"].journal?.isStalled = true
      world.notify("t1", at: "c", number: 0)
      world.run(seconds: 1.5)
      world["a"].journal?.isStalled = false
      world.run(seconds: 1)
      #expect(world["c"].notified.map(\.isNew) == Array(repeating: true, count: number))
      #expect(rider.seen.values.joined().count == number && rider.faults == [])
    }
  }

  @Test("Without the ledger a hub moves what it has and begins what is new; past the limit requests are refused")
  func alone() {
    var limits = ClusterLimits()
    limits.pending = 1
    let world = ClusterWorld(limits: limits)
    world.engine.isolated = ["b"]
    world.run(seconds: 0.5)
    world.ask("t1", .requested, at: "b", slot: 9)
    world.run(seconds: 0.2)
    #expect(world.answers(at: "b", slot: 9).acks == 1)
    for slot in 20..<23 { world.ask("t\(slot)", .requested, at: "c", slot: UInt32(slot)) }
    world.run(seconds: 0.5)
    let answers = (20..<23).map { world.answers(at: "c", slot: UInt32($0)) }
    #expect(answers.map(\.acks) == [1, 0, 0])
    #expect(answers.map(\.errors) == [[], [.rateLimited], [.rateLimited]])
  }

  @Test("Without the ledger a hub refuses for now what is for a trip or driver that it does not have")
  func nothingIsLostAlone() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.begin("t1", for: "d1", at: "a", slot: 20)
    world.run(seconds: 0.5)
    world.engine.isolated = ["a", "b", "c"]
    world.run(seconds: 4)
    world.ask("t1", .cancelled, at: "b", slot: 30)
    world["b"].inputs.append(
      .driverStatus(world.session(31), message(41), DriverStatusReport(status: .unavailable), of: id("d1")))
    world.notify("t1", at: "b", number: 1)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 30).errors == [.rateLimited])
    #expect(world.answers(at: "b", slot: 31).errors == [.rateLimited])
    #expect(world["b"].notified.map(\.refusal) == [.rateLimited])
    // What begins here begins, and what follows at once is for it.
    world.ask("t2", .requested, at: "b", slot: 32)
    world.ask("t2", .cancelled, at: "b", slot: 32)
    world.run(seconds: 0.2)
    #expect(world.answers(at: "b", slot: 32).acks == 2)
    world.engine.isolated = []
    world.run(seconds: 4)
    #expect(world.status(of: "d1", at: "a") == .available && world.status(of: "d1", at: "b") == .available)
  }
}

extension Member {
  /// The trip that a session was shown last.
  func trip(of slot: UInt32) -> TripReport? {
    guard case .trip(let report)? = results.last(where: { $0.session.slot == slot })?.result else { return nil }
    return report
  }
}

extension ClusterWorld {
  /// Trips at all hubs, each as often as a hub has it.
  var trips: Int { members.reduce(0) { $0 + $1.hub.hub.shownCounters().entries(.trips) } }

  /// A back end's `POST /v1/trips`.
  func begin(_ trip: String, for driver: String?, at name: String, slot: UInt32) {
    let report = TripStatusReport(
      tripID: id(trip), status: .requested, timestamp: now.timestamp, driverID: driver.map { id($0) })
    self[name].inputs.append(.trips(session(slot), .begin(report, by: Actor(role: .ops, id: id("desk")))))
  }

  /// A back end's `POST /v1/notifications`.
  fileprivate func notify(_ channel: Channel, _ key: String, at name: String) {
    var post = NotificationPost(channel: channel, kind: .message, title: "late", body: "by 5 minutes")
    (post.content, post.messageID) = (#"{"minutes":5}"#, MessageID(key))
    self[name].inputs.append(.notify(session(nextSlot()), post))
  }

  /// A back end's `trip_status`.
  func ask(
    _ trip: String, _ status: TripStatus, for driver: String? = nil, at name: String, slot: UInt32,
    by actor: Actor = Actor(role: .ops, id: id("desk")), isGranted: Bool = true
  ) {
    let report = TripStatusReport(
      tripID: id(trip), status: status, timestamp: now.timestamp, driverID: driver.map { id($0) })
    self[name].inputs.append(
      .tripStatus(
        TripStatusInput(
          session: session(slot), actor: actor, messageID: message(1000 + Int(slot) * 10 + Int(status.rawValue)),
          report: report, tripIsGranted: isGranted)))
  }

  /// What a session was answered.
  func answers(at name: String, slot: UInt32) -> (acks: Int, errors: [ErrorCode]) {
    let replies = self[name].replies.filter { $0.0.slot == slot }.map(\.1)
    return (
      replies.count { if case .ack = $0 { true } else { false } },
      replies.compactMap { if case .error(let error) = $0 { error.code } else { nil } }
    )
  }
}
