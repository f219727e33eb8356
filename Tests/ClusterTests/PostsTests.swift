// Fixes that phones post: a load balancer sends each post to any hub, from where it goes to the one with the driver.
import HubBackplane
import HubBackplaneSupport
import HubCore
import HubGeo
import HubMessages
import Testing

@testable import HubCluster

@Suite struct PostsTests {
  private let place = Coordinate(latitude: 48.1, longitude: 11.5)!

  /// What is answered to a post of these fixes, one of now if none are named.
  @discardableResult
  private func post(_ fixes: [Result<Fix, ErrorCode>]? = nil, in world: ClusterWorld, at name: String) -> Reply? {
    let session = world.session(world.nextSlot())
    let now = Fix(coordinate: place, timestamp: world.clock(of: name).timestamp, accuracy: 5)
    var input = BatchInput(
      session: session, driverID: id("d1"), messageID: message(600), sent: now.timestamp,
      received: world.clock(of: name), batch: LocationBatch(fixes: fixes ?? [.success(now)]),
      tripIsGranted: true)
    input.phone = .overland
    input.takesCurrentTrip = true
    world[name].inputs.append(.batch(input))
    world.run(seconds: 2)
    return world[name].replies.last { $0.0 == session }?.1
  }

  private func isAccepted(_ reply: Reply?) -> Bool {
    if case .ack(let ack)? = reply { ack.batch?.accepted == 1 && ack.replyTo == message(600) } else { false }
  }

  private func followers(in world: ClusterWorld) -> [Follower] {
    let followers = ["a", "b", "c"].map { world.follow(.driver(id("d1")), at: $0, slot: 6) }
    world.run(seconds: 0.5)
    for follower in followers { follower.positions.removeAll() }
    return followers
  }

  @Test("Posts of a phone without a session are seen by followers at each hub, whichever hubs they come to")
  func anyHub() {
    let world = ClusterWorld()
    #expect(isAccepted(post(in: world, at: "b")))
    let followers = followers(in: world)
    for name in ["a", "b", "c", "a"] { #expect(isAccepted(post(in: world, at: name)), "\(name)") }
    #expect(followers.allSatisfy { $0.positions.count == 4 && $0.faults == [] && $0.gaps == 0 })
    #expect(world.engine.owner(of: "d:d1") == "b")
    #expect(world["b"].hub.hub.counters.phoneFixes[Int(PhoneFormat.overland.rawValue)][0] == 5)
  }

  @Test("Posts beside a driver's session at another hub go there; the session stays, also when the engine was away")
  func session() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let followers = followers(in: world)
    #expect(isAccepted(post(in: world, at: "b")))
    #expect(followers.allSatisfy { $0.positions.count == 1 })
    world.engine.isolated = ["b"]
    world.run(seconds: 1)
    #expect(isAccepted(post(in: world, at: "b")))
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(isAccepted(post(in: world, at: "b")) && followers.allSatisfy { $0.positions.count >= 2 })
    #expect(world["a"].replaced.isEmpty && world.engine.owner(of: "d:d1") == "a")
  }

  @Test("A phone whose hub is dead is taken by the one that its next post comes to, and by followers found there")
  func deadHub() {
    let world = ClusterWorld()
    post(in: world, at: "a")
    let followers = followers(in: world)
    world.kill("a")
    world.run(seconds: 8)
    #expect(isAccepted(post(in: world, at: "b")) && world.engine.owner(of: "d:d1") == "b")
    world.run(seconds: 4)
    #expect(isAccepted(post(in: world, at: "c")))
    #expect(followers[1...].allSatisfy { !$0.positions.isEmpty && $0.faults == [] && $0.gaps == 0 })
    world.join("a")
    world.run(seconds: 3)
    #expect(isAccepted(post(in: world, at: "a")) && world.engine.owner(of: "d:d1") == "b")
  }

  @Test("Posts that name no trip are of the driver's only one, also where that is at a third hub")
  func distantTrip() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    world.ask("t1", .requested, for: "d1", at: "a", slot: 9)
    world.move("t1", .accepted, by: "d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    for step in 0..<2 {
      world.fix(step, trip: "t1", at: "b", slot: 2)
      world.run(seconds: 1)
    }
    let rider = world.follow(.trip(id("t1")), at: "a", slot: 5)
    world.run(seconds: 0.5)
    rider.positions.removeAll()
    for name in ["c", "b"] { #expect(isAccepted(post(in: world, at: name)), "\(name)") }
    #expect(rider.positions.map(\.tripID) == [id("t1"), id("t1")])
    // One that it is not busy with any more is not named.
    world.move("t1", .cancelled, by: "d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    let watcher = world.follow(.driver(id("d1")), at: "c", slot: 6)
    world.run(seconds: 0.5)
    #expect(isAccepted(post(in: world, at: "c")) && watcher.positions.last.map { $0.tripID == nil } == true)
  }

  @Test("Of posts that cannot go on, one driver keeps eight, and all drivers so many fixes; then all can again")
  func limits() {
    var limits = ClusterLimits()
    limits.pendingFixes = 30
    let world = ClusterWorld(limits: limits)
    for driver in ["d1", "d2", "d3"] { world.connect(driver, at: "a", slot: world.nextSlot()) }
    world.run(seconds: 0.5)
    world.engine.cuts = ["a>b"]
    func posts(_ driver: String, _ count: Int, fixes: Int) -> [SessionRef] {
      (0..<count).map { number in
        let session = world.session(world.nextSlot())
        let fixes = (0..<fixes).map { index in
          let time = world.now.timestamp.milliseconds - Int64(100 * number + index)
          return Fix(coordinate: place, timestamp: Timestamp(milliseconds: time), accuracy: 5)
        }
        world["b"].inputs.append(
          .batch(
            BatchInput(
              session: session, driverID: id(driver), messageID: message(7), sent: world.now.timestamp,
              received: world.clock(of: "b"), batch: LocationBatch(fixes: fixes.map { .success($0) }),
              tripIsGranted: true)))
        return session
      }
    }
    func refused(_ sessions: [SessionRef]) -> Int {
      sessions.count { session in
        world["b"].replies.contains { other, reply in
          if other == session, case .error(let error) = reply { error.code == .rateLimited } else { false }
        }
      }
    }
    let many = [posts("d1", 10, fixes: 1), posts("d2", 1, fixes: 20), posts("d3", 2, fixes: 2)]
    world.run(seconds: 0.1)
    #expect(many.map(refused) == [2, 0, 1], "8 and 20 and 2 fixes are under way")
    world.engine.cuts = []
    world.run(seconds: 5)
    #expect(many.map(refused) == [2, 0, 1] && world["b"].node.node.counters.pending == 0)
    let counters = world["a"].hub.hub.counters
    #expect(counters.fixesReceived - counters.fixesDuplicate == 30, "some were sent again")
    let again = [posts("d1", 8, fixes: 3)]
    world.run(seconds: 2)
    #expect(again.map(refused) == [0])
  }

  @Test("A phone's note without a position is acked, and no hub is sent what it could not read")
  func notes() {
    let world = ClusterWorld()
    post(in: world, at: "a")
    for name in ["a", "b"] {
      guard case .ack(let ack)? = post([], in: world, at: name) else {
        Issue.record("no ack at \(name)")
        return
      }
      #expect(ack.batch == Ack.Batch(accepted: 0, duplicates: 0, rejected: []) && ack.replyTo == message(600))
    }
    #expect(world["a"].node.node.counters.framesRefused == 0)
    #expect(world["b"].hub.hub.shownCounters().entries(.drivers) == 0)
  }

  @Test("Where the engine has forgotten a phone's dead hub, its next post's hub has it, and followers there see it")
  func forgotten() {
    let world = ClusterWorld()
    post(in: world, at: "a")
    let followers = followers(in: world)
    world.killForgotten("a")
    #expect(isAccepted(post(in: world, at: "c")) && world.engine.owner(of: "d:d1") == "c")
    world.run(seconds: 3)
    for follower in followers { follower.positions.removeAll() }
    #expect(isAccepted(post(in: world, at: "b")))
    #expect(followers[1...].allSatisfy { $0.positions.count == 1 && $0.faults == [] && $0.gaps == 0 })
    #expect(world["c"].node.node.counters.follows == 0)
  }

  @Test("A fix that the asked hub could not read is refused with its reason, though the driver's hub has not seen it")
  func refusals() {
    let world = ClusterWorld()
    post(in: world, at: "a")
    let now = Fix(coordinate: place, timestamp: world.now.timestamp, accuracy: 5)
    let reply = post([.success(now), .failure(.invalidLocation), .success(now)], in: world, at: "b")
    guard case .ack(let ack)? = reply else {
      Issue.record("\(String(describing: reply))")
      return
    }
    #expect(ack.batch?.accepted == 1 && ack.batch?.duplicates == 1)
    #expect(ack.batch?.rejected == [.init(index: 1, code: .invalidLocation)])
  }
}
