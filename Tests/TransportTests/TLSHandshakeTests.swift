// How TLS begins: in pieces, with the wrong words, cut off, refused, or many at a time.

import CHubOpenSSL
import HubTestCertificates
import HubTestSupport
import Testing

@testable import HubTransport

@Suite struct `TLS handshakes` {
  @Test(arguments: tlsVersions)
  func `bytes go both ways, and what was sent before the handshake was done comes, too`(version: Int32) throws {
    let pair = try Pair(tls: makeServer())
    let peer = TLSPeer(try makeClient(version), name: "localhost")
    let id = try pair.client.connect(pair.address, tls: peer)
    pair.atClient.send(Array("early".utf8), to: id)
    #expect(pair.client.isBlocked(id))
    pair.turn(until: { pair.atServer.received.values.first?.count == 5 })
    let server = pair.atServer.accepted[0]
    #expect(pair.atServer.received[server] == Array("early".utf8))
    pair.atServer.send(Array("answer".utf8), to: server)
    pair.turn(until: { pair.atClient.received[id]?.count == 6 })
    #expect(pair.atClient.received[id] == Array("answer".utf8))
    #expect(pair.atClient.connected == [id] && !pair.client.isBlocked(id))
    for counters in [pair.server.counters, pair.client.counters] {
      #expect(counters.tlsHandshakes == 1 && counters.tlsHandshakesResumed == 0 && counters.tlsHandshakesFailed == 0)
      #expect(counters.outboxBytes == 0 && counters.blockedConnections == 0)
    }
    #expect(pair.atServer.callbacksDuringOperation == 0 && pair.atClient.callbacksDuringOperation == 0)
  }

  @Test(arguments: tlsVersions)
  func `a handshake whose bytes come one by one is done as one in a piece`(version: Int32) throws {
    let pair = try Pair(tls: makeServer())
    let client = try HeldConnection(pair, TLSPeer(makeClient(version), name: "localhost"))
    var flight = client.held.start()
    while !client.held.isSecured || !flight.isEmpty {
      for byte in flight {
        client.send([byte])
        pair.turn(times: 2)
      }
      pair.turn(times: 2)
      flight = client.held.take(client.takeReceived())
    }
    pair.turn(until: { pair.server.counters.tlsHandshakes == 1 })
    for byte in client.held.seal(Array("whole".utf8)) {
      #expect(pair.atServer.received[client.atServer] == nil, "nothing of a record before all of it")
      client.send([byte])
      pair.turn(times: 2)
    }
    pair.turn(until: { pair.atServer.received[client.atServer] == Array("whole".utf8) })
  }

  @Test func `what is no TLS ends the connection and is counted`() throws {
    let pair = try Pair(tls: makeServer())
    var random = SplitMix64(seed: 7)
    var openings = (0..<40).map { _ in
      (0..<Int.random(in: 5...400, using: &random)).map { _ in UInt8(random.next() & 0xFF) }
    }
    openings.append(Array("GET / HTTP/1.1\r\nHost: hub\r\n\r\n".utf8))
    // A handshake record that is none, one that is too long (RFC 8446 §5.1), an alert, application data.
    openings += [[22, 3, 1, 0, 4, 9, 9, 9, 9], [22, 3, 1, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 300)]
    openings += [[21, 3, 3, 0, 2, 2, 40], [23, 3, 3, 0, 3, 1, 2, 3]]
    for opening in openings {
      let (client, server) = try pair.connect()
      pair.atClient.send(opening, to: client)
      pair.atClient.send([UInt8](repeating: 0, count: 20_000), to: client)
      pair.turn(until: { pair.atServer.closed[server] != nil })
      guard case .tlsFailed(let failure) = pair.atServer.closed[server] else {
        Issue.record("\(opening.prefix(8)): \(String(describing: pair.atServer.closed[server]))")
        continue
      }
      #expect(!failure.description.isEmpty)
      #expect(pair.atServer.received[server] == nil)
    }
    #expect(pair.server.counters.tlsHandshakesFailed == UInt64(openings.count))
    #expect(pair.server.counters.tlsHandshakes == 0)
    // What they left unread, all in one buffer of the loop, is not the next one's.
    #expect(try pair.refusal(TLSPeer(makeClient(), name: "localhost")) == nil)
  }

  /// A record with the header of a ClientHello of so many bytes, and records with a byte of it each.
  private func helloHeaders(_ count: Int) -> [[UInt8]] {
    let header = [UInt8(SSL3_MT_CLIENT_HELLO)] + [16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) }
    return [[22, 3, 3, 0, 4] + header, header.flatMap { [22, 3, 3, 0, 1, $0] }]
  }

  @Test func `a ClientHello that would be too long is refused when it says so, before there is room for it`() throws {
    let pair = try Pair(tls: makeServer())
    for (count, isTaken) in [(EventLoopLimits.clientHelloBytes, true), (EventLoopLimits.clientHelloBytes + 1, false)] {
      for opening in helloHeaders(count) {
        let (client, server) = try pair.connect()
        let before = pair.server.counters.bytesRead
        pair.atClient.send(opening, to: client)
        pair.turn(until: { pair.server.counters.bytesRead == before + UInt64(opening.count) })
        #expect(pair.atServer.closed[server] == (isTaken ? nil : .tlsFailed(.longHandshake)))
      }
    }
    #expect(pair.server.counters.tlsHandshakesFailed == 2)
  }

  @Test func `so is the second one, which a server asks for that wants another group`() throws {
    let server = try makeServer()
    let context = server.current.first.raw
    let isSet = "P-384".withCString {
      SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, UnsafeMutableRawPointer(mutating: $0))
    }
    #expect(isSet == 1)
    let pair = try Pair(tls: server)
    let honest = try HeldConnection(pair, TLSPeer(makeClient(TLS1_3_VERSION), name: "localhost"))
    honest.shakeHands()
    for header in helloHeaders(EventLoopLimits.clientHelloBytes + 1) {
      let client = try HeldConnection(pair, TLSPeer(makeClient(TLS1_3_VERSION), name: "localhost"))
      client.send(client.held.start())
      pair.turn(until: { !client.takeReceived().isEmpty })
      client.send(header)
      pair.turn(until: { client.causeAtServer != nil })
      #expect(client.causeAtServer == .tlsFailed(.longHandshake))
    }
  }

  @Test(arguments: tlsVersions)
  func `a handshake is read up to a limit`(version: Int32) throws {
    var limits = EventLoopLimits()
    limits.tlsHandshakeReadBytes = 100
    let pair = try Pair(tls: makeServer(), server: limits)
    let client = try HeldConnection(pair, TLSPeer(makeClient(version), name: "localhost"))
    client.send(client.held.start())
    pair.turn(until: { client.causeAtServer != nil })
    #expect(client.causeAtServer == .tlsFailed(.longHandshake))
    #expect(pair.server.counters.tlsHandshakesFailed == 1)
  }

  @Test(arguments: tlsVersions)
  func `a handshake that is cut anywhere ends the connection and is counted`(version: Int32) throws {
    let server = try makeServer()
    let client = try makeClient(version)
    let pair = try Pair(tls: server)
    var cuts: UInt64 = 0
    for flightToCut in 0...1 {
      var sent = 1
      while true {
        let connection = try HeldConnection(pair, TLSPeer(client, name: "localhost"))
        var flight = connection.held.start()
        if flightToCut == 1 {
          connection.send(flight)
          flight = []
          pair.turn(until: {
            flight += connection.held.take(connection.takeReceived())
            return !flight.isEmpty
          })
        }
        if sent >= flight.count { break }
        connection.send(Array(flight[..<sent]))
        pair.turn(times: 2)
        pair.client.close(connection.atClient)
        pair.turn(until: { connection.causeAtServer != nil })
        #expect(connection.causeAtServer == .tlsFailed(.handshakeCut))
        cuts += 1
        sent += 17
      }
    }
    #expect(cuts > 8 && pair.server.counters.tlsHandshakesFailed >= cuts)
    #expect(pair.atServer.received.isEmpty)
  }

  @Test func `who offers only other protocols gets the alert no_application_protocol, who offers none is served`()
    throws
  {
    let pair = try Pair(tls: makeServer())
    for (offer, isServed) in [([2] + Array("h2".utf8), false), ([2] + Array("h2".utf8) + TLSContext.protocols, true)] {
      let client = try makeClient()
      SSL_CTX_set_alpn_protos(client.context.raw, offer, UInt32(offer.count))
      let cause = try pair.refusal(TLSPeer(client, name: "localhost"))
      guard !isServed else {
        #expect(cause == nil)
        continue
      }
      #expect("\(try #require(cause))".contains("no application protocol"), "\(String(describing: cause))")
    }
    let silent = try makeClient()
    SSL_CTX_set_alpn_protos(silent.context.raw, nil, 0)
    #expect(try pair.refusal(TLSPeer(silent, name: "localhost")) == nil)
  }

  @Test func `TLS 1_1 is refused`() throws {
    let pair = try Pair(tls: makeServer())
    let client = try makeClient(TLS1_1_VERSION)
    SSL_CTX_set_security_level(client.context.raw, 0)
    SSL_CTX_set_cipher_list(client.context.raw, "ALL")
    let cause = try pair.refusal(TLSPeer(client, name: "localhost"))
    guard case .tlsFailed = cause else {
      Issue.record("\(String(describing: cause))")
      return
    }
  }

  @Test func `a silent connection has no state of OpenSSL, and its end is no failed handshake`() throws {
    let pair = try Pair(tls: makeServer())
    let (client, server) = try pair.connect()
    let hasBegun = pair.server.tls.pointer(server.slot).pointee.hasBegun
    #expect(!hasBegun)
    pair.client.close(client)
    pair.turn(until: { pair.atServer.closed[server] != nil })
    #expect(pair.atServer.closed[server] == .peerClosed && pair.server.counters.tlsHandshakesFailed == 0)
  }

  @Test func `handshakes beyond the limit of a turn are put off, and all get done`() throws {
    var limits = EventLoopLimits()
    limits.tlsHandshakesPerTurn = 2
    let pair = try Pair(tls: makeServer(), server: limits)
    let client = try makeClient()
    let ids = try (0..<30).map { _ in try pair.client.connect(pair.address, tls: TLSPeer(client, name: "localhost")) }
    pair.turn(until: {
      let before = pair.server.counters.tlsHandshakes
      pair.server.runTurn(timeoutMilliseconds: 0)
      #expect(pair.server.counters.tlsHandshakes - before <= 2)
      return pair.atClient.connected.count == ids.count
    })
    pair.turn(until: { pair.server.counters.tlsHandshakes == UInt64(ids.count) })
    #expect(pair.server.counters.tlsHandshakesDeferred > 0)
  }

  @Test func `a step of a handshake counts as much reading, and the others that are ready wait for the next turn`()
    throws
  {
    var limits = EventLoopLimits()
    limits.readBytesPerTurn = EventLoopLimits.tlsHandshakeBytes
    let pair = try Pair(tls: makeServer(), server: limits)
    let clients = try (0..<4).map { _ in try HeldConnection(pair, TLSPeer(makeClient(), name: "localhost")) }
    for client in clients { client.send(client.held.start()) }
    // Over the loopback they are there when they are written.
    pair.client.runTurn(timeoutMilliseconds: 0)
    for turn in 1...4 {
      pair.server.runTurn(timeoutMilliseconds: 0)
      #expect(clients.count { pair.server.tls.pointer($0.atServer.slot).pointee.hasBegun } == turn)
    }
    #expect(pair.server.counters.turnsCut == 3)
  }

  @Test func `a thousand handshakes, and their memory is the kernel's and OpenSSL's only while they stand`() throws {
    let pair = try Pair(tls: makeServer())
    let client = try makeClient()
    for round in 1...20 {
      let peers = (0..<50).map { _ in TLSPeer(client, name: "localhost") }
      let ids = try peers.map { try pair.client.connect(pair.address, tls: $0) }
      pair.turn(until: { pair.atClient.connected.count == round * 50 })
      for id in ids { pair.client.close(id) }
      pair.turn(until: { pair.atClient.closed.count == round * 50 && pair.atServer.closed.count == round * 50 })
    }
    #expect(pair.server.counters.tlsHandshakes == 1000 && pair.client.counters.tlsHandshakes == 1000)
    #expect(pair.atServer.closed.values.allSatisfy { $0 == .peerClosed })
    #expect(pair.server.counters.connections == 0 && pair.server.counters.outboxBytes == 0)
  }

  @Test func `a plain server is no TLS server, and the client says so`() throws {
    let pair = try Pair()
    pair.atServer.onReceived = { [unowned pair] id, _ in
      pair.atServer.send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), to: id)
      pair.server.close(id)
    }
    let cause = try pair.refusal(TLSPeer(makeClient(), name: "localhost"))
    #expect("\(try #require(cause))".contains("wrong version number"), "\(String(describing: cause))")
    #expect(pair.client.counters.tlsHandshakesFailed == 1)
  }
}
