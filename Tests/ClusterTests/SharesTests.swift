// Shares of trips over several hubs: they are made, shown and ended at any hub, and one that has ended opens the trip
// nowhere.
import HubBackplane
import HubBackplaneSupport
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct SharesTests {
  private let names = ["a", "b", "c"]

  /// A trip at hub `a`, shared, and who has the link, at each hub.
  private func shared(_ world: ClusterWorld, at name: String = "c") -> [Follower] {
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    for number in 1...2 {
      let share = TripShare(id: id("link\(number)"), created: world.now.timestamp, expires: nil)
      guard case .shared(share, of: id("t1"))? = world.put(.begin(share), of: "t1", at: name) else {
        Issue.record("not shared")
        return []
      }
    }
    let holders = (1...2).flatMap { number in names.map { world.hold("link\(number)", of: "t1", at: $0) } }
    world.run(seconds: 0.5)
    #expect(holders.allSatisfy { $0.answers.count == 1 && $0.refusals.isEmpty })
    return holders
  }

  @Test("A share that is ended at any hub is over at every hub within a second; the others go on")
  func ends() {
    let world = ClusterWorld()
    let holders = shared(world)
    guard case .shares(let list)? = world.put(.list, of: "t1", at: "b") else {
      Issue.record("no list")
      return
    }
    #expect(list.map(\.id) == [id("link1"), id("link2")])
    guard case .unshared? = world.put(.end(id("link1")), of: "t1", at: "b") else {
      Issue.record("not ended")
      return
    }
    world.run(seconds: 0.8)
    #expect(holders[..<3].allSatisfy { $0.ended == [.revoked] && $0.handle == nil })
    #expect(holders[3...].allSatisfy { $0.ended.isEmpty && $0.handle != nil && $0.faults == [] })
    for holder in holders[..<3] { holder.wantsToAsk = true }
    world.run(seconds: 0.5)
    #expect(holders[..<3].allSatisfy { $0.refusals.map(\.code) == [.forbidden] })
    // A share that nobody has is refused in the owner's words, and one that was made is not made twice.
    guard case .refused(let error)? = world.put(.end(id("link9")), of: "t1", at: "c") else {
      Issue.record("ended what is not there")
      return
    }
    #expect(error.code == .notFound)
  }

  @Test("A share that ends while its trip's hub is not heard for 40 s opens the trip to nobody when it is")
  func longCut() {
    let world = ClusterWorld()
    let holders = shared(world)
    let rider = world.follow(.trip(id("t1")), at: "b", slot: 50)
    world.run(seconds: 0.5)
    world.engine.cuts = ["a>b", "b>a", "a>c"]
    world.run(seconds: 2)
    _ = world.put(.end(id("link1")), of: "t1", at: "a")
    world.run(seconds: 40)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(holders[..<3].allSatisfy { $0.ended == [.revoked] && $0.handle == nil })
    world.notify("t1", at: "a", number: 1)
    world.run(seconds: 1)
    #expect(holders[..<3].allSatisfy { $0.seen.isEmpty })
    #expect(holders[3...].allSatisfy { $0.ended.isEmpty && $0.seen.values.joined().count == 1 && $0.faults == [] })
    #expect(rider.seen.values.joined().count == 1 && rider.faults == [] && rider.gaps == 0)
    #expect(world["b"].node.node.counters.pending == 0)
  }

  @Test("A share that ends while its hub's disk takes nothing for 6 s is over at hubs that missed something meanwhile")
  func slowDisk() {
    let world = ClusterWorld(hasJournals: true)
    let holders = shared(world)
    world["a"].journal?.isStalled = true
    let desk = Actor(role: .ops, id: id("desk"))
    world["a"].inputs.append(.trips(world.session(90), .shares(id("t1"), .end(id("link1")), desk), replyTo: nil))
    world.run(seconds: 0.5)
    for index in world["b"].node.node.context.peers.indices {
      world["b"].node.node.context.peers[index].wantsRestart = true
    }
    world.run(seconds: 5.5)
    world["a"].journal?.isStalled = false
    world.run(seconds: 2)
    #expect(holders[..<3].allSatisfy { $0.ended == [.revoked] && $0.handle == nil })
    #expect(holders[3...].allSatisfy { $0.ended.isEmpty && $0.handle != nil && $0.faults == [] })
    #expect(world["b"].node.node.counters.pending == 0)
  }

  @Test("Each time that a channel is asked for its shares are, too: the answer to a question from before is too old")
  func askedAnew() throws {
    let world = ClusterWorld()
    let holders = shared(world)
    let (channel, node) = (Channel.trip(id("t1")), world["b"].node)
    let peer = try #require(node.node.context.knownPeer("a"))
    func questions() -> [UInt64] {
      node.node.following.follows[channel]?.holders.values.compactMap(\.question).sorted() ?? []
    }
    node.node.following.askAnew(peer, channel)
    let before = questions()
    node.node.following.askAnew(peer, channel)
    #expect(before.count == 2 && questions().count == 2 && questions()[0] > before[1])
    #expect(node.node.following.pending.count == 2)
    world.run(seconds: 1)
    #expect(questions() == [] && node.node.counters.pending == 0)
    #expect(holders.allSatisfy { $0.ended.isEmpty && $0.handle != nil && $0.faults == [] })
  }

  @Test("A share that ends at a hub that was stalled until the others gave it up is over when it is back")
  func stalledHub() {
    let world = ClusterWorld()
    let holders = shared(world)
    world.stalled = ["a"]
    for name in ["b", "c"] {
      let context = world[name].node.node.context
      context.peers[context.knownPeer("a")!].wantsRestart = true
    }
    world.run(seconds: 6)
    #expect(world["c"].notices.contains { if case .peerLeft("a") = $0 { true } else { false } })
    let desk = Actor(role: .ops, id: id("desk"))
    world["a"].inputs.append(.trips(world.session(90), .shares(id("t1"), .end(id("link1")), desk), replyTo: nil))
    world.stalled = []
    world.run(seconds: 3)
    #expect(holders[..<3].allSatisfy { $0.ended == [.revoked] && $0.handle == nil })
    #expect(holders[3...].allSatisfy { $0.ended.isEmpty && $0.handle != nil && $0.faults == [] })
  }

  @Test("A share that ended while a hub was stalled is over for a holder whom it lets in by an old answer")
  func oldAnswer() {
    let world = ClusterWorld(["a", "b"])
    for (name, slot) in [("a", 1), ("b", 2)] { world.connect("d\(slot)", at: name, slot: UInt32(slot)) }
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    _ = world.put(.begin(TripShare(id: id("link1"), created: world.now.timestamp, expires: nil)), of: "t1", at: "a")
    let holder = world.hold("link1", of: "t1", at: "b")
    for _ in 0..<100 where world["b"].node.node.following.follows[.trip(id("t1"))]?.peer == nil { world.step() }
    world.stalled = ["b"]
    world.run(seconds: 6)
    #expect(world["a"].notices.contains { if case .peerLeft("b") = $0 { true } else { false } })
    _ = world.put(.end(id("link1")), of: "t1", at: "a")
    world.fix(-1, trip: "t1", at: "b", slot: 2)  // so that the hub itself begins to follow the trip
    world.stalled = []
    world.run(seconds: 3)
    #expect(holder.answers.count >= 1 && holder.ended == [.revoked] && holder.handle == nil)
  }

  @Test("A holder that leaves while its share is asked about is not sent for any more, whether or not the share holds")
  func leavesWhileAsked() {
    for ends in [false, true] {
      let world = ClusterWorld()
      let holders = shared(world)
      let atB = [holders[1], holders[4]]
      #expect(world["a"].node.node.counters.followed == 2)
      world.engine.cuts = ["a>b"]
      if ends {
        for link in 1...2 { _ = world.put(.end(id("link\(link)")), of: "t1", at: "a") }
      }
      for peer in world["b"].node.node.context.peers { peer.wantsRestart = true }
      world.step()
      for holder in atB { world["b"].leave(holder) }
      world.step()
      world.engine.cuts = []
      world.run(seconds: 5)
      #expect(world["b"].node.node.counters.follows == 0 && world["b"].node.node.counters.pending == 0)
      #expect(world["a"].node.node.counters.followed == (ends ? 0 : 1))
    }
  }

  @Test("A share that was being asked about when the ledger had forgotten its trip is asked about at the next gap, too")
  func forgottenTrip() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    _ = world.put(.begin(TripShare(id: id("link1"), created: world.now.timestamp, expires: nil)), of: "t1", at: "a")
    let holder = world.hold("link1", of: "t1", at: "b")
    world.run(seconds: 0.5)
    world.engine.cuts = ["a>b"]
    world["b"].node.node.context.peers[0].wantsRestart = true
    world.step()
    world.engine.forget()
    world["b"].node.node.following.locate(.trip(id("t1")))
    world.run(seconds: 0.1)
    #expect(world["b"].node.node.following.isUnowned(.trip(id("t1"))))
    world.engine.cuts = []
    world.engine.isolated = ["a"]
    world.run(seconds: 0.5)
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(holder.ended.isEmpty && holder.handle != nil && holder.faults == [])
    world.engine.cuts = ["a>b", "b>a"]
    _ = world.put(.end(id("link1")), of: "t1", at: "a")
    world.run(seconds: 40)
    world.engine.cuts = []
    world.run(seconds: 5)
    #expect(holder.ended == [.revoked] && world["b"].node.node.counters.pending == 0)
  }

  @Test("An end of a share that is sent again, as its answer was lost or the disk slow, is done once that is stored")
  func lostAnswer() {
    let world = ClusterWorld(hasJournals: true)
    _ = shared(world)
    func answers(to question: TripShareQuestion, meanwhile: () -> Void, after: () -> Void) -> [TripAnswer] {
      let session = world.session(world.nextSlot())
      meanwhile()
      let desk = Actor(role: .ops, id: id("desk"))
      world["b"].inputs.append(.trips(session, .shares(id("t1"), question, desk), replyTo: nil))
      world.run(seconds: 1.5)
      #expect(!world["b"].shares.contains { $0.session == session }, "nothing is answered that is not stored")
      after()
      world.run(seconds: 2)
      #expect(!world["b"].replies.contains { $0.0 == session })
      return world["b"].shares.filter { $0.session == session }.map(\.answer)
    }
    let lost = answers(to: .end(id("link1"))) {
      world.engine.cuts = ["a>b"]
    } after: {
      world.engine.cuts = []
    }
    let slow = answers(to: .end(id("link2"))) {
      world["a"].journal?.isStalled = true
    } after: {
      world["a"].journal?.isStalled = false
    }
    for answer in [lost, slow] {
      guard case .unshared? = answer.first, answer.count == 1 else {
        Issue.record("not ended: \(answer)")
        continue
      }
    }
  }

  @Test("A share whose end was stored by a hub that died before it reported it is over when that is back")
  func killedOwner() {
    let world = ClusterWorld(hasJournals: true)
    let holders = shared(world)
    world.engine.cuts = ["a>b", "a>c"]
    guard case .unshared? = world.put(.end(id("link1")), of: "t1", at: "a") else {
      Issue.record("not ended")
      return
    }
    world.kill("a")
    world.engine.cuts = []
    world.run(seconds: 10)
    world.join("a")
    world.run(seconds: 3)
    let others = holders[1..<3]
    #expect(others.allSatisfy { $0.ended == [.revoked] && $0.handle == nil })
    #expect((holders[4...5]).allSatisfy { $0.ended.isEmpty && $0.handle != nil && $0.faults == [] })
  }

  @Test("Another driver than the trip's, who was let in while it was open, is let go at every hub when it is taken")
  func claimed() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9)
    world.run(seconds: 0.5)
    let drivers = ["d1", "d2"].enumerated().map { index, driver in
      let follower = Follower(
        .trip(id("t1")), slot: UInt32(50 + index), role: .driver, id: driver, grant: .whileUnclaimed)
      world["b"].followers.append(follower)
      return follower
    }
    world.connect("d1", at: "b", slot: 1)
    world.run(seconds: 0.5)
    #expect(drivers.allSatisfy { $0.answers.count == 1 })
    world.move("t1", .accepted, by: "d1", at: "b", slot: 1)
    world.run(seconds: 0.5)
    #expect(drivers[0].ended.isEmpty && drivers[1].ended == [.revoked])
  }
}

extension ClusterWorld {
  /// What the trip's rider or ops are answered about its shares.
  func put(_ question: TripShareQuestion, of trip: String, at name: String) -> TripAnswer? {
    let session = session(nextSlot())
    self[name].inputs.append(
      .trips(session, .shares(id(trip), question, Actor(role: .ops, id: id("desk"))), replyTo: nil))
    for _ in 0..<100 {
      step()
      if let answer = self[name].shares.first(where: { $0.session == session })?.answer { return answer }
      let refusal = self[name].replies.first { $0.0 == session }
      if case .error(let error)? = refusal?.1 { return .refused(error) }
    }
    return nil
  }

  /// Somebody with the link of a share.
  func hold(_ share: String, of trip: String, at name: String) -> Follower {
    let holder = Follower(
      .trip(id(trip)), slot: nextSlot(), role: .rider, id: TripShare.prefix + share, grant: .granted)
    self[name].followers.append(holder)
    return holder
  }
}
