// How TLS ends: with a goodbye, without, halfway; and peers that only make work.

import CHubOpenSSL
import Testing

@testable import HubTransport

@Suite struct `TLS ends` {
  @Test(arguments: tlsVersions)
  func `close sends what is pending and says goodbye, at either end`(version: Int32) throws {
    let pair = try Pair(tls: makeServer())
    let client = try makeClient(version)
    for serverCloses in [true, false] {
      let (atClient, atServer) = try pair.connect(TLSPeer(client, name: "localhost"))
      let payload = [UInt8](repeating: 5, count: 200_000)
      if serverCloses {
        pair.atServer.send(payload, to: atServer)
        pair.server.close(atServer)
      } else {
        pair.atClient.send(payload, to: atClient)
        pair.client.close(atClient)
      }
      pair.turn(until: { pair.atServer.closed[atServer] != nil && pair.atClient.closed[atClient] != nil })
      #expect(pair.atClient.closed[atClient] == (serverCloses ? .peerClosed : .closedByUs))
      #expect(pair.atServer.closed[atServer] == (serverCloses ? .closedByUs : .peerClosed))
      let received = serverCloses ? pair.atClient.received[atClient] : pair.atServer.received[atServer]
      #expect(received == payload)
    }
  }

  @Test func `a peer that has finished gets a close_notify, and what came before is delivered`() throws {
    let pair = try Pair(tls: makeServer())
    let client = try HeldConnection(pair, TLSPeer(makeClient(), name: "localhost"))
    client.shakeHands()
    client.send(client.held.seal(Array("last words".utf8)) + client.held.goodbye())
    client.exchange(until: { client.held.end == .closed })
    #expect(pair.atServer.received[client.atServer] == Array("last words".utf8))
    #expect(client.causeAtServer == .peerClosed)
  }

  @Test func `an end of TCP without a close_notify is reported as one, and a torn record is not delivered`() throws {
    let pair = try Pair(tls: makeServer())
    for keep in [0, 3, 5, 20] {
      let client = try HeldConnection(pair, TLSPeer(makeClient(), name: "localhost"))
      client.shakeHands()
      client.send(client.held.seal(Array("whole".utf8)))
      client.send(Array(client.held.seal(Array("torn in the middle".utf8)).prefix(keep)))
      pair.turn(times: 3)
      pair.client.close(client.atClient)
      pair.turn(until: { client.causeAtServer != nil })
      #expect(client.causeAtServer == .tlsFailed(.truncated))
      #expect(pair.atServer.received[client.atServer] == Array("whole".utf8))
    }
  }

  @Test func `a connection that is cut off is reported as such, whatever the handshake had come to`() throws {
    let pair = try Pair(tls: makeServer())
    let peer = TLSPeer(try makeClient(), name: "localhost")
    let (atClient, atServer) = try pair.connect(peer)
    pair.client.abort(atClient, reset: true)
    pair.turn(until: { pair.atServer.closed[atServer] != nil })
    #expect(pair.atServer.closed[atServer] == .peerReset)
    let second = try pair.client.connect(pair.address, tls: peer)
    pair.turn(until: { pair.atServer.accepted.count == 2 })
    pair.client.abort(second, reset: true)
    pair.turn(until: { pair.atServer.closed.count == 2 })
    #expect(pair.server.counters.connections == 0)
  }

  @Test func `closing during the handshake ends it, and the time limit of closing holds`() throws {
    let clock = HandClock()
    let pair = try Pair(tls: makeServer(), clock: clock)
    let client = try HeldConnection(pair, TLSPeer(makeClient(), name: "localhost"))
    client.send(Array(client.held.start().prefix(50)))
    pair.turn(until: { pair.server.tls.pointer(client.atServer.slot).pointee.hasBegun })
    pair.client.pauseReading(client.atClient)
    pair.server.close(client.atServer)
    pair.turn(times: 3)
    #expect(client.causeAtServer == nil, "it waits for the peer's end")
    clock.advance(milliseconds: 6000)
    pair.turn(until: { client.causeAtServer == .closedByUs })
    #expect(pair.server.counters.tlsHandshakesFailed == 1)
  }

  @Test func `new keys are followed, and too many without data end the connection`() throws {
    var limits = EventLoopLimits()
    limits.tlsKeyUpdates = 5
    let pair = try Pair(tls: makeServer(), server: limits)
    let client = try HeldConnection(pair, TLSPeer(makeClient(TLS1_3_VERSION), name: "localhost"))
    client.shakeHands()
    for round in 1...20 {
      client.send(client.held.keyUpdate() + client.held.seal(Array("x".utf8)))
      client.exchange(until: { pair.atServer.received[client.atServer]?.count == round })
      pair.atServer.send(Array("y".utf8), to: client.atServer)
      client.exchange(until: { client.held.plaintext.count == round })
    }
    for _ in 0..<5 { client.send(client.held.keyUpdate()) }
    pair.turn(times: 5)
    #expect(client.causeAtServer == nil)
    client.send(client.held.keyUpdate())
    pair.turn(until: { client.causeAtServer != nil })
    #expect(client.causeAtServer == .tlsFailed(.tooManyKeyUpdates))
  }

  @Test func `renegotiations are refused, and too many without data end the connection`() throws {
    for limit in [1, 0] {
      var limits = EventLoopLimits()
      limits.tlsKeyUpdates = limit
      let pair = try Pair(tls: makeServer(), server: limits)
      let client = try HeldConnection(pair, TLSPeer(makeClient(TLS1_2_VERSION), name: "localhost"))
      client.shakeHands()
      client.send(client.held.renegotiation())
      var answer: [UInt8] = []
      pair.turn(until: {
        answer += client.takeReceived()
        return !answer.isEmpty
      })
      #expect(answer.first == UInt8(SSL3_RT_ALERT), "no_renegotiation (RFC 5246 §7.2.2)")
      pair.turn(times: 5)
      #expect(client.causeAtServer == (limit == 0 ? .tlsFailed(.tooManyKeyUpdates) : nil))
    }
  }

  @Test func `the client hears the alert that a broken record brings about`() throws {
    let pair = try Pair(tls: makeServer())
    let client = try HeldConnection(pair, TLSPeer(makeClient(TLS1_3_VERSION), name: "localhost"))
    client.shakeHands()
    var record = client.held.seal(Array("damaged".utf8))
    record[10] ^= 1
    client.send(record)
    client.exchange(until: { client.held.end != .none })
    // bad_record_mac (RFC 8446 §5.2).
    #expect(client.held.end == .failed(TLSFailure(code: SSL_R_SSLV3_ALERT_BAD_RECORD_MAC)))
    #expect(pair.server.counters.tlsFailures == 1)
  }

  @Test func `who makes the server answer and never reads is cut off at the limit`() throws {
    var limits = EventLoopLimits()
    limits.kernelSendBufferBytes = 4 * 1024
    limits.tlsUnsentBytes = 32 * 1024
    let pair = try Pair(tls: makeServer(), server: limits)
    let client = try HeldConnection(pair, TLSPeer(makeClient(TLS1_3_VERSION), name: "localhost"))
    client.shakeHands()
    pair.client.pauseReading(client.atClient)
    // What the kernels hold between them is filled first.
    pair.turn(until: {
      pair.atServer.send([UInt8](repeating: 0, count: 16_000), to: client.atServer)
      return pair.server.counters.blockedConnections == 1
    })
    var held = 0
    pair.turn(until: {
      let data = [UInt8](repeating: 1, count: 32)
      for _ in 0..<100 { client.send(client.held.keyUpdate() + client.held.seal(data)) }
      held = max(held, pair.server.counters.outboxBytes)
      return client.causeAtServer != nil
    })
    #expect(client.causeAtServer == .tlsFailed(.unreadAnswers))
    #expect(pair.server.counters.outboxBytes == 0)
  }
}
