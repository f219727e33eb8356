// A hub whose drivers' positions go to the thread of its streams.
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubRuntime
import HubSystem
import HubTestSupport
import HubWebhooks
import Testing

struct DrivingHub {
  let now: Moment
  let source: PositionSource
  private let shared: SharedHub

  /// The streams' outlet holds `capacity` positions. `assist` is called for the loop of those who follow drivers.
  init(now: Moment, capacity: Int, assist: @escaping @Sendable () -> Void = {}) throws {
    self.now = now
    let hub = Hub(
      limits: HubLimits(), timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("e")!, seed: 1,
      pseudonymKey: nil, drawnKey: SipKey(1, 2), outlets: 3, now: now)
    let waker = try Waker()
    let feed = Outlet(lossyCapacity: capacity, waker: waker)
    shared = SharedHub(
      hub,
      outlets: [
        Outlet(capacity: 1000, waker: waker, assist: assist), feed, Outlet(capacity: 1000, waker: waker) {},
      ],
      inboxCapacity: 1000,
      lifecycle: Lifecycle(delaySeconds: 0), metrics: HubMetrics(), now: now)
    source = PositionSource(shared, feed, number: 1)
  }

  /// Somebody on the first loop follows all drivers.
  func follow() {
    var port = HubPort(shared, loop: 0)
    var inputs = HubInputs()
    var outputs = HubOutputs()
    inputs.append(
      .subscribe(
        SubscribeInput(
          session: SessionRef(outlet: 0, slot: 0, generation: 1), actor: Actor(role: .ops, id: Identifier("o")!),
          messageID: MessageID("m")!, request: Subscribe(channel: .fleet), grant: .granted)))
    #expect(port.exchange(&inputs, into: &outputs, now: now))
  }

  /// So many drivers come, and each sends a fix, `seconds` after the hub's start.
  func drive(_ count: UInt32, seconds: Double = 0) {
    let now = moment(seconds)
    var port = HubPort(shared, loop: 2)
    var inputs = fixes(count, now)
    var outputs = HubOutputs()
    #expect(port.exchange(&inputs, into: &outputs, now: now))
  }

  /// So many drivers send a fix, whose output stays in the hub until the next loop runs it.
  func driveUnseen(_ count: UInt32, seconds: Double) {
    HubPort(shared, loop: 2).inspect { $0.handle(fixes(count, moment(seconds)), now: moment(seconds)) }
  }

  private func moment(_ seconds: Double) -> Moment {
    Moment(
      uptime: now.uptime + Int64(seconds * 1e9),
      timestamp: Timestamp(milliseconds: now.timestamp.milliseconds + Int64(seconds * 1000)))
  }

  private func fixes(_ count: UInt32, _ now: Moment) -> HubInputs {
    var inputs = HubInputs()
    for driver in 0..<count {
      let session = SessionRef(outlet: 2, slot: driver, generation: 1)
      inputs.append(.driverConnecting(session, Identifier("D\(driver)")!))
      let update = LocationUpdate(
        fix: Fix(coordinate: Coordinate(latitude: 52, longitude: 13)!, timestamp: now.timestamp, accuracy: 5))
      inputs.append(
        .fix(
          FixInput(
            session: session, messageID: MessageID("m")!, sent: now.timestamp, received: now, update: update,
            tripIsGranted: false)))
    }
    return inputs
  }
}
