// What an identity's sessions have left of their rate when they end is what its next ones begin with.
import HubCore
import HubMessages
import HubTransport
import Testing

@testable import HubGateway

@Suite struct LeftoverRateTests {
  private func stage() throws -> (HandClock, HandDrivenHub) {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.sessionRate = 10
      $0.limits.sessionBurst = 50
    }
    return (clock, hub)
  }

  private func spend(_ units: Int, by peer: HandDrivenPeer) {
    for number in 0..<units { peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping("n\(number)"))) }
    for _ in 0..<20 { peer.turn() }
    #expect(peer.messages.count == units)
  }

  /// How many units a session may spend before it waits, at most 60.
  private func unitsLeft(_ hub: HandDrivenHub, _ peer: HandDrivenPeer) -> Int {
    let (pauses, answers) = (hub.counters.ratePauses, peer.messages.count)
    for number in 0..<60 where hub.counters.ratePauses == pauses {
      peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping("m\(number)")))
      peer.turn()
    }
    return peer.messages.count - answers - 1  // the last one overdraws it
  }

  @Test("Who comes again at once has what it left, and after five seconds all of it", arguments: ["rider", "driver"])
  func reconnecting(role: String) throws {
    let (clock, hub) = try stage()
    for _ in 0..<3 {
      let first = try HandDrivenPeer(hub, role: role)
      spend(40, by: first)
      first.abort()
      for _ in 0..<4 { hub.loop.runTurn(timeoutMilliseconds: 0) }
      let second = try HandDrivenPeer(hub, role: role)
      #expect(unitsLeft(hub, second) == 10)
      second.abort()
      // What it sent last is handled when it is level, and costs a unit; only then is its end read.
      for milliseconds in [6000, 1000] as [Int64] {
        clock.advance(milliseconds: milliseconds)
        for _ in 0..<4 { hub.loop.runTurn(timeoutMilliseconds: 0) }
      }
    }
    #expect(unitsLeft(hub, try HandDrivenPeer(hub, role: role)) == 50)
  }

  @Test("A debt is kept, too; other identities and other sessions of the same one have their own")
  func debts() throws {
    let (clock, hub) = try stage()
    let other = try HandDrivenPeer(hub)
    let first = try HandDrivenPeer(hub)
    let dear = HandDrivenPeer.ping("dear", unread: 80_000)  // 20 units
    for _ in 0..<3 { first.send(HandDrivenPeer.frame(dear)) }
    for _ in 0..<10 { first.turn() }
    #expect(first.messages.count == 3)
    first.abort()
    for _ in 0..<4 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    #expect(unitsLeft(hub, other) == 50)
    #expect(unitsLeft(hub, try HandDrivenPeer(hub, id: "r2")) == 50)
    let second = try HandDrivenPeer(hub)
    second.send(HandDrivenPeer.frame(HandDrivenPeer.ping("early")))
    second.turn()
    #expect(second.messages.isEmpty, "ten units are owed")
    clock.advance(milliseconds: 1100)
    second.turn()
    #expect(second.messages.count == 1)
    #expect(unitsLeft(hub, try HandDrivenPeer(hub)) == 50, "a third session of the identity")
  }
}
