// Positions on their way from a hub to the thread of its streams, which may be slow.
import HubMessages
import HubSystem
import Testing

@testable import HubRuntime
@testable import HubWebhooks

@Suite struct PositionFeedTests {
  @Test("Each driver's position is taken; what the mailbox has no room for is left out, and the hub does not wait")
  func lossy() throws {
    let now = Moment(uptime: 1_000_000_000_000, timestamp: Timestamp(milliseconds: 1_764_000_000_000))
    let hub = try DrivingHub(now: now, capacity: 4)
    let feed = PositionFeed(hub.source)
    feed.take(now) { _ in Issue.record("no driver is there") }
    hub.drive(10)
    var found: Set<Identifier> = []
    feed.take(now) { found.insert($0.location.driverID) }
    #expect(found.count == 4 && feed.leftOut == 6)
  }

  @Test("Up to 16,384 positions wait for the streams")
  func waiting() throws {
    let outlet = PositionSource.outlet(waking: try Waker())
    #expect(outlet.isLossy && outlet.mailbox.capacity == PositionSource.waitingPositions)
    #expect(PositionSource.waitingPositions == 16_384)
  }

  @Test("A stream whose settings have no positions any more has no figures of them")
  func turnedOff() throws {
    let filter = EventFilter(channels: [.all])!
    var stream = StreamEndpoint(name: "bus", url: StreamURL("nats://127.0.0.1:4222")!, filter: filter)
    stream.hasPositions = true
    let scene = try LoopScene(Deliveries(streams: [stream]))
    defer { scene.remove() }
    #expect(scene.stream?.positionsSent == 0)
    stream.hasPositions = false
    scene.control.replace(Deliveries(streams: [stream]))
    scene.turn()
    #expect(scene.stream != nil && scene.stream?.positionsSent == nil)
  }

  @Test("What its turn of the hub has for a loop that sleeps is sent by that loop, which is assisted")
  func assists() throws {
    let now = Moment(uptime: 1_000_000_000_000, timestamp: Timestamp(milliseconds: 1_764_000_000_000))
    let assists = Locked(0)
    let hub = try DrivingHub(now: now, capacity: 100) { assists.withLock { $0 += 1 } }
    hub.follow()
    hub.drive(1)
    hub.driveUnseen(1, seconds: 1)
    let before = assists.withLock { $0 }
    PositionFeed(hub.source).take(now) { _ in }
    #expect(assists.withLock { $0 } == before + 1)
  }
}
