// Silence and rates by clocks that are moved by hand: in turn as documented, and where the hub itself stalled, as
// on a machine that was suspended. What it did not read is no violation of its peers.
import HubBytes
import HubTransport
import HubWebSocket
import Testing

@testable import HubGateway

@Suite struct StallTests {
  private func stage(rate: Double = 0) throws -> (HandClock, HandDrivenHub, HandDrivenPeer) {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.heartbeatInterval = 10
      $0.limits.sessionRate = rate
      $0.limits.sessionBurst = 5
      $0.limits.rateWarningSeconds = 5
      $0.limits.rateCloseSeconds = 60
    }
    return (clock, hub, try HandDrivenPeer(hub))
  }

  private func pass(_ seconds: Int, _ clock: HandClock, _ peer: HandDrivenPeer) {
    for _ in 0..<seconds {
      clock.advance(milliseconds: 1000)
      peer.turn()
    }
  }

  @Test("after a silent interval comes one ping, and after two and a half 4408")
  func silence() throws {
    let (clock, _, peer) = try stage()
    pass(9, clock, peer)
    #expect(peer.pings == 0)
    pass(2, clock, peer)
    #expect(peer.pings == 1)
    pass(13, clock, peer)
    #expect(peer.pings == 1 && peer.closeCode == nil)
    pass(3, clock, peer)
    #expect(peer.pings == 1 && peer.closeCode == CloseCode(4408))
  }

  @Test("who answers the ping is silent from then on", arguments: [true, false])
  func answered(byPong: Bool) throws {
    let (clock, _, peer) = try stage()
    pass(11, clock, peer)
    #expect(peer.pings == 1)
    pass(10, clock, peer)
    peer.send(byPong ? HandDrivenPeer.pong() : HandDrivenPeer.frame(HandDrivenPeer.ping("I am here")))
    pass(9, clock, peer)
    #expect(peer.pings == 1 && peer.closeCode == nil)
    pass(3, clock, peer)
    #expect(peer.pings == 2)
    pass(16, clock, peer)
    #expect(peer.closeCode == CloseCode(4408))
  }

  @Test("a hub that stalled for an hour closes nobody whom it has not asked")
  func suspended() throws {
    let (clock, _, peer) = try stage()
    pass(5, clock, peer)
    clock.advance(milliseconds: 3_600_000)
    peer.turn()
    #expect(peer.pings == 1 && peer.closeCode == nil)
    pass(14, clock, peer)
    #expect(peer.pings == 1 && peer.closeCode == nil)
    pass(2, clock, peer)
    #expect(peer.closeCode == CloseCode(4408), "asked, and silent for one and a half more")
  }

  @Test("an answer that came while the hub was stalled is read before its sender is judged")
  func answeredMeanwhile() throws {
    let (clock, _, peer) = try stage()
    pass(11, clock, peer)
    #expect(peer.pings == 1)
    clock.advance(milliseconds: 3_600_000)
    peer.send(HandDrivenPeer.pong())
    peer.turn()
    #expect(peer.closeCode == nil)
    pass(11, clock, peer)
    #expect(peer.pings == 2 && peer.closeCode == nil)
  }

  @Test("over the rate: warned after so many seconds, closed after so many more", arguments: [false, true])
  func rate(isSuspended: Bool) throws {
    let (clock, hub, peer) = try stage(rate: 1)
    peer.send((0..<300).flatMap { _ in HandDrivenPeer.frame(HandDrivenPeer.ping("")) })
    peer.turn()
    #expect(hub.counters.ratePauses >= 1)
    var warnings: Int { peer.messages.count { $0.contains("rate_limited") } }
    if isSuspended {
      clock.advance(milliseconds: 100_000)
      peer.turn()
    } else {
      pass(4, clock, peer)
      #expect(warnings == 0)
      pass(2, clock, peer)
    }
    #expect(warnings == 1 && peer.closeCode == nil, "warned before it is closed, however late")
    pass(53, clock, peer)
    #expect(warnings == 1 && peer.closeCode == nil)
    pass(4, clock, peer)
    #expect(peer.closeCode == CloseCode(4429))
  }

  @Test("a message that was cut in two by a stall of an hour has its time")
  func message() throws {
    let (clock, hub, peer) = try stage()
    let frame = HandDrivenPeer.frame(HandDrivenPeer.ping("", unread: 5000))
    peer.send(frame[..<3000])
    peer.turn()
    pass(5, clock, peer)
    clock.advance(milliseconds: 3_600_000)
    peer.turn()
    #expect(peer.closeCode == nil && hub.counters.stalls == 1)
    peer.send(frame[3000...])
    peer.turn()
    #expect(peer.messages.count { $0.contains("\"pong\"") } == 1 && peer.closeCode == nil)
  }

  @Test("drivers of a hub that was stalled stay online while what they sent is read")
  func drivers() throws {
    let (clock, hub, peer) = try stage()
    try hub.addDrivers(3)
    let watcher = try HandDrivenPeer(hub, role: "ops", id: "o1")
    watcher.send(
      HandDrivenPeer.frame(
        #"{"type":"subscribe","payload":{"channel":"driver:driver-0"},"timestamp":1763680000000,"messageId":"s"}"#))
    watcher.turn()
    var offline: Int { watcher.messages.count { $0.contains("driver_offline") } }
    clock.advance(milliseconds: 3_600_000)
    watcher.turn()
    #expect(offline == 0)
    for _ in 0..<58 {
      clock.advance(milliseconds: 1000)
      watcher.send(HandDrivenPeer.pong())
      watcher.turn()
    }
    #expect(offline == 0)
    for _ in 0..<4 {
      clock.advance(milliseconds: 1000)
      watcher.turn()
    }
    #expect(offline == 1)
    withExtendedLifetime(peer) {}
  }

  @Test("a page of metrics waits for a loop that is stalled, and not for ever")
  func metrics() throws {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock, idleLoops: 1) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.metricsSeconds = 3
    }
    let request = try HandDrivenRequest(hub, "/metrics?role=ops&id=o1")
    func pass(_ milliseconds: Int64) {
      clock.advance(milliseconds: milliseconds)
      for _ in 0..<4 { hub.loop.runTurn(timeoutMilliseconds: 0) }
      request.ownTurn()
    }
    for _ in 0..<29 { pass(100) }
    #expect(request.text.isEmpty && hub.counters.hits(.metricsTime) == 0)
    pass(200)
    #expect(request.status == "200" && request.text.contains("locationhub_turns_total"))
    #expect(hub.counters.hits(.metricsTime) == 1)
  }
}
