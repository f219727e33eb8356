import HubTestSupport
import HubWebSocket
import Testing

@Suite struct CloseHandshakeTests {
  @Test("A server answers the client's Close with its code and ends TCP") func serverAnswers() {
    var closing = CloseHandshake(role: .server)
    #expect(closing.maySend)
    #expect(closing.received(.goingAway) == .sendCloseThenDisconnect(.goingAway))
    #expect(!closing.maySend)
    #expect(closing.transportEnded() == .goingAway)
  }

  @Test("An empty Close is answered with an empty Close, and counts as 1005") func emptyClose() {
    var closing = CloseHandshake(role: .server)
    #expect(closing.received(nil) == .sendCloseThenDisconnect(nil))
    #expect(closing.state == .closed(.noStatus))
  }

  @Test("A server that sent Close ends TCP when the client's has come") func serverStarts() {
    var closing = CloseHandshake(role: .server)
    #expect(closing.start(.goingAway) == .sendClose(.goingAway))
    #expect(closing.start(.normal) == .nothing)
    #expect(closing.received(.goingAway) == .disconnect)
  }

  @Test("A client answers and leaves TCP to the server") func client() {
    var closing = CloseHandshake(role: .client)
    #expect(closing.received(CloseCode(4413)) == .sendClose(CloseCode(4413)))
    #expect(closing.state == .awaitingServer(CloseCode(4413)))
    #expect(closing.transportEnded() == CloseCode(4413))
    var starting = CloseHandshake(role: .client)
    #expect(starting.start(.normal) == .sendClose(.normal))
    #expect(starting.received(.normal) == .nothing)
    #expect(starting.transportEnded() == .normal)
  }

  @Test("A peer that breaks the protocol gets the reason, once") func failure() {
    var closing = CloseHandshake(role: .server)
    #expect(closing.failed(.invalidUTF8) == .sendCloseThenDisconnect(.invalidPayload))
    #expect(closing.failed(.invalidUTF8) == .nothing)
    var waiting = CloseHandshake(role: .server)
    #expect(waiting.start(.normal) == .sendClose(.normal))
    #expect(waiting.failed(.reservedBits(0x40)) == .disconnect)
  }

  @Test("A connection that ends without the peer's Close ended with 1006") func abnormal() {
    var closing = CloseHandshake(role: .server)
    #expect(closing.transportEnded() == .abnormal)
    var waiting = CloseHandshake(role: .client)
    #expect(waiting.start(.normal) == .sendClose(.normal))
    #expect(waiting.transportEnded() == .abnormal)
  }

  @Test("Whatever happens, one Close is sent at most, and nothing after the end") func invariants() {
    var random = SplitMix64(seed: 10)
    for round in 0..<2_000 {
      var closing = CloseHandshake(role: round % 2 == 0 ? .server : .client)
      var closes = 0
      var disconnects = 0
      for _ in 0..<8 {
        let action: ClosingAction
        switch UInt8.random(in: 0..<4, using: &random) {
        case 0: action = closing.start(.normal)
        case 1: action = closing.received(Bool.random(using: &random) ? .goingAway : nil)
        case 2: action = closing.failed(.unmaskedFrame)
        default:
          if Bool.random(using: &random) { _ = closing.transportEnded() }
          action = .nothing
        }
        switch action {
        case .nothing: break
        case .sendClose: closes += 1
        case .sendCloseThenDisconnect:
          closes += 1
          disconnects += 1
        case .disconnect: disconnects += 1
        }
        #expect(closing.maySend == (closing.state == .open))
      }
      #expect(closes <= 1)
      #expect(disconnects <= 1)
    }
  }
}
