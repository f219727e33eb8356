// Positions on their way from a hub to the thread of its streams, which may be slow.
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubRuntime
import HubSystem
import HubTestSupport
import Testing

@testable import HubWebhooks

@Suite struct PositionFeedTests {
  @Test("Each driver's position is taken; what the mailbox has no room for is left out, and the hub does not wait")
  func lossy() throws {
    let now = Moment(uptime: 1_000_000_000_000, timestamp: Timestamp(milliseconds: 1_764_000_000_000))
    let hub = Hub(
      limits: HubLimits(), timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("e")!, seed: 1,
      pseudonymKey: nil, drawnKey: SipKey(1, 2), outlets: 2, now: now)
    let waker = try Waker()
    let feedOutlet = Outlet(lossyCapacity: 4, waker: waker)
    let shared = SharedHub(
      hub, outlets: [Outlet(capacity: 1000, waker: waker) {}, feedOutlet], inboxCapacity: 1000,
      lifecycle: Lifecycle(delaySeconds: 0), metrics: HubMetrics(), now: now)
    let feed = PositionFeed(PositionSource(shared, feedOutlet, number: 1))
    var port = HubPort(shared, loop: 0)
    var inputs = HubInputs()
    var outputs = HubOutputs()
    feed.take(now) { _ in Issue.record("no driver is there") }
    for driver in 0..<10 as Range<UInt32> {
      let session = SessionRef(outlet: 0, slot: driver, generation: 1)
      inputs.append(.driverConnecting(session, Identifier("D\(driver)")!))
      let update = LocationUpdate(
        fix: Fix(coordinate: Coordinate(latitude: 52, longitude: 13)!, timestamp: now.timestamp, accuracy: 5))
      inputs.append(
        .fix(
          FixInput(
            session: session, messageID: MessageID("m")!, sent: now.timestamp, received: now, update: update,
            tripIsGranted: false)))
    }
    #expect(port.exchange(&inputs, into: &outputs, now: now))
    var found: Set<Identifier> = []
    feed.take(now) { found.insert($0.location.driverID) }
    #expect(found.count == 4 && feed.leftOut == 6)
  }
}
