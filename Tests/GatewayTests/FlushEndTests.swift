// Sessions that end while a turn's output is written, behind the turn's exchange with the hub.
import HubBytes
import HubCore
import Testing

@testable import HubGateway
@testable import HubTransport

@Suite struct FlushEndTests {
  private func isWaiting(_ hub: HandDrivenHub) -> Bool { !hub.sessions.sessions.pointee.inputs.isEmpty }

  @Test("the hub hears of it in a turn that follows at once, not at the next tick")
  func overflow() throws {
    let hub = try HandDrivenHub(clock: HandClock()) { $0.allowsDevelopmentCredentials = true }
    let peer = try HandDrivenPeer(hub, role: "driver", id: "d1")
    for _ in 0..<4 { peer.turn() }
    let connection = hub.sessions.sessions.pointee.sessions[try #require(hub.openSlots.first)].connection
    #expect(hub.loop.timeToSleep(atMost: -1) != 0)
    // More than the kernel and the outbox hold, in two frames: the first may have any size.
    for _ in 0..<2 {
      let start = hub.loop.arena.count
      hub.loop.arena.append([UInt8](repeating: 0, count: 10_000_000))
      hub.loop.send(start..<hub.loop.arena.count, to: connection)
    }
    hub.loop.runTurn(timeoutMilliseconds: 0)
    #expect(hub.openSlots.isEmpty && isWaiting(hub))
    #expect(hub.loop.timeToSleep(atMost: -1) == 0)
    hub.loop.runTurn(timeoutMilliseconds: 0)
    #expect(!isWaiting(hub))
  }
}
