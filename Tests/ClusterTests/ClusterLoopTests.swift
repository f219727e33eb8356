// The cluster's thread on an event loop without a kernel, whose clock a test moves.
import HubBackplane
import HubBytes
import HubCore
import HubMessages
import HubRuntime
import HubSystem
import HubTransport
import HubTransportSupport
import Testing

@testable import HubCluster

private final class Clock {
  var reading = ClockReading(uptimeNanoseconds: 1_000_000_000, unixMilliseconds: 1_763_680_000_000)
}

@Suite struct ClusterLoopTests {
  @Test("However many turns there are, what waits is counted for /metrics once in its time")
  func countTime() throws {
    let (clock, counts) = (Clock(), Locked(0))
    let loop = try EventLoop(
      limits: ClusterLoop.loopLimits, clock: { clock.reading }, network: SimulatedNetwork())
    let now = Moment(clock.reading)
    var hub = Hub(
      limits: HubLimits(), timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("epoch")!, seed: 7,
      outlets: 1, now: now)
    hub.joinCluster(outlet: 0)
    let node = try #require(EngineAddress("redis://127.0.0.1:6379"))
    let identity = ClusterIdentity(name: "a", address: "127.0.0.1:1", version: "test", keys: testKeys)
    let cluster = ClusterLoop(
      loop, HubPort(hub: hub), outlet: 0,
      ClusterConfiguration(identity: identity, engine: EngineConfiguration(bus: [node], ledgers: [.node(node)])),
      lifecycle: Lifecycle(delaySeconds: 0), log: .silent, seed: 1, openSessions: { _ in [:] },
      show: { _ in counts.withLock { $0 += 1 } })
    withExtendedLifetime(cluster) {
      for _ in 0..<1000 {
        clock.reading.uptimeNanoseconds += 1_000_000
        clock.reading.unixMilliseconds += 1
        loop.runTurn(timeoutMilliseconds: 0)
      }
    }
    let expected = Int(1_000_000_000 / ClusterLimits().countTime)
    #expect(counts.withLock { $0 } == expected)
  }
}
