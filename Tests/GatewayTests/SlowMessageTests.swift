// How long a message may be under way (`Limits.messageSeconds`), by clocks that are moved by hand: seconds that pass
// while the machine is busy with something else would count as the peer's.
import HubWebSocket
import Testing

@testable import HubGateway

@Suite struct SlowMessageTests {
  private func stage() throws -> (HandClock, HandDrivenHub, HandDrivenPeer) {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.sessionRate = 0
      $0.heartbeatInterval = 10
      $0.limits.messageSeconds = 60
    }
    return (clock, hub, try HandDrivenPeer(hub))
  }

  @Test("a message that trickles in must be complete in its time, however diligently its bytes come")
  func trickle() throws {
    let (clock, hub, peer) = try stage()
    let frame = HandDrivenPeer.frame(HandDrivenPeer.ping("", unread: 60_000))
    peer.send(frame[..<5000])
    peer.turn()
    var seconds = 0
    while peer.closeCode == nil, seconds < 100 {
      clock.advance(milliseconds: 1000)
      peer.send(frame[5000 + seconds..<5001 + seconds])
      peer.turn()
      seconds += 1
    }
    #expect(peer.closeCode == CloseCode(4408))
    #expect((60...70).contains(seconds), "it is looked at with the heartbeat")
    #expect(hub.counters.hits(.messageTime) == 1)
  }

  @Test("what the hub holds of a session over its rate is no slow message: it ends with 4429")
  func held() throws {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.sessionRate = 0.01
      $0.limits.sessionBurst = 5
    }
    let peer = try HandDrivenPeer(hub)
    peer.send((0..<100).flatMap { _ in HandDrivenPeer.frame(HandDrivenPeer.ping("here")) })
    peer.turn()
    var seconds = 0
    while peer.closeCode == nil, seconds < 100 {
      clock.advance(milliseconds: 1000)
      peer.turn()
      seconds += 1
    }
    #expect(peer.closeCode == CloseCode(4429), "after \(seconds) s")
    #expect(hub.counters.hits(.messageTime) == 0)
  }

  @Test("large messages one behind the other are no slow message")
  func oneBehindTheOther() throws {
    let (clock, hub, peer) = try stage()
    let frame = HandDrivenPeer.frame(HandDrivenPeer.ping("here", unread: 20_000))
    // Always part of the next message is with the hub: its end comes with the beginning of the one after it.
    peer.send(frame[..<10_000])
    for round in 0..<300 {
      clock.advance(milliseconds: 1000)
      peer.send(frame[10_000...] + frame[..<10_000])
      peer.turn()
      try #require(peer.messages.count == round + 1)
    }
    let answered = peer.messages.filter { $0.contains("\"pong\"") && $0.contains("here") }
    #expect(answered.count == 300)
    #expect(peer.isOpen && peer.closeCode == nil)
    #expect(hub.counters.hits(.messageTime) == 0)
  }
}
