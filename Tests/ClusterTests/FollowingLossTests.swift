// Answers and events of followed channels that cross, come twice or are lost.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubTestSupport
import Testing

@testable import HubCluster
@testable import HubMessages

@Suite struct FollowingLossTests {
  @Test(
    "Answers to questions from before a session came tell it of no gap where nothing is lost", arguments: [1, 2, 9])
  func oldQuestions(count: Int) throws {
    let world = ClusterWorld()
    let rider = world.followTrip()
    let (channel, b) = (Channel.trip(id("t1")), world["b"])
    // The frame with the next event is lost, and what the hub has asked for before comes behind it.
    world.engine.cuts = ["a>b control"]
    world.move("t1", .driverEnRoute, by: "d1", at: "a", slot: 1)
    for _ in 0..<5 { world.step() }
    world.engine.cuts = []
    let follow = try #require(b.node.node.following.follows[channel])
    b.node.node.following.follows[channel]?.point = nil
    for _ in 0..<count { b.node.node.following.askAnew(try #require(follow.peer), channel) }
    b.node.node.following.follows[channel]?.point = follow.point
    world.run(seconds: 1)
    #expect(rider.answers.count == 1 && rider.gaps == 0 && rider.doubles == 0 && rider.faults == [])
    #expect(rider.point?.since == world.newest(channel, at: "a") && rider.moves.last?.status == .driverEnRoute)
  }

  @Test("No event follows the highest number that an owner can give its newest")
  func highestNumber() {
    let world = ClusterWorld(["a", "b"])
    let rider = world.followTrip()
    let before = rider.seen
    world["b"].node.node.following.follows[.trip(id("t1"))]?.point?.since = .max
    world.notify("t1", at: "a", number: 1)
    world.run(seconds: 0.5)
    #expect(rider.seen == before && rider.faults == [])
  }

  @Test("A session may resume from any number: the link to the channel's hub has no gap for it")
  func hugeSince() throws {
    let world = ClusterWorld(["a", "b"])
    let rider = world.followTrip()
    let epoch = try #require(rider.point?.epoch)
    let asked: [UInt64] = [1 << 63 - 2, 1 << 63 - 1, 1 << 63, .max - 1, .max]
    let late = asked.map { since in
      let follower = world.follow(.trip(id("t1")), at: "b", slot: world.nextSlot())
      follower.point = ResumePoint(since: since, epoch: epoch)
      return follower
    }
    func trouble() -> [Int] {
      world.members.flatMap { member in
        let counters = member.node.node.counters
        let gaps = member.notices.count { if case .gap = $0 { true } else { false } }
        return [gaps, Int(counters.restarts), Int(counters.framesRefused)]
      }
    }
    let before = trouble()
    world.run(seconds: 1)
    #expect(late.allSatisfy { $0.answers.count == 1 && $0.answers.last?.recovered == false && $0.refusals.isEmpty })
    #expect(trouble() == before && rider.faults == [] && rider.gaps == 0)
  }

  @Test("A number in a frame has up to 64 bits, and no more")
  func numbers() throws {
    for number in [0, 127, 128, 1 << 63 - 1, 1 << 63, .max - 1, .max] as [UInt64] {
      var bytes = ByteBuffer()
      bytes.append(varint: number)
      var reader = ClusterFrameReader(bytes.array()[...])
      let read = try reader.varint()
      #expect(read == number && reader.isAtEnd)
    }
    for last in [[2], [0x81, 0]] as [[UInt8]] {
      var reader = ClusterFrameReader(([UInt8](repeating: 0xFF, count: 9) + last)[...])
      #expect(throws: ClusterFrameError.short) { _ = try reader.varint() }
    }
  }

  @Test("An event whose frame is lost comes to all, also where another session's answer was behind it")
  func lostBeforeAnAnswer() {
    let world = ClusterWorld(["a", "b"])
    let rider = world.followTrip()
    world.engine.faults.lost = 1
    world.notify("t1", at: "a", number: 1)
    world.step()
    world.engine.faults.lost = 0
    let late = world.follow(.trip(id("t1")), at: "b", slot: 6)
    world.run(seconds: 3)
    #expect(rider.seen["epoch1"]?.count == 1 && rider.faults == [] && rider.gaps == 0)
    #expect(late.point == rider.point && late.faults == [] && late.doubles == 0 && late.answers.count == 1)
  }

  @Test("A question is sent again before its answer comes: an event between the two answers comes all the same")
  func answeredTwice() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 1)
    let rider = world.follow(.trip(id("t1")), at: "b", slot: 5)
    let context = world["b"].node.node.context
    let peer = context.peers[context.knownPeer("a")!]
    for _ in 0..<1000 where world["b"].node.node.following.follows[.trip(id("t1"))]?.peer == nil { world.step() }
    // Its first question is on the way. With the next one comes that `b` follows nothing at `a` any more.
    peer.wantsRestart = true
    world.step()
    #expect(!peer.wantsRestart)
    world.move("t1", .driverEnRoute, by: "d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    #expect(rider.moves.last?.status == .driverEnRoute || rider.answers.last?.snapshot?.trip?.status == .driverEnRoute)
    #expect(rider.faults == [] && rider.gaps == 0 && rider.unrecovered == 0)
  }
}
