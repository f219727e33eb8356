// What goes through TLS: much, slowly, in few records, and to the end.

import CHubOpenSSL
import HubTestSupport
import Testing

@testable import HubTransport

@Suite struct `TLS transfers` {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `a slow reader gets every event in order, the newest of each key, none twice, none torn`(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var limits = EventLoopLimits()
    limits.kernelSendBufferBytes = 32 * 1024
    limits.outboxBytesPerConnection = 64 * 1024 * 1024
    let pair = try Pair(tls: makeServer(), server: limits)
    let (client, server) = try pair.connect(TLSPeer(makeClient(), name: "localhost"))
    var sent: [UInt32: [TestFrame]] = [:]
    for turn in 0..<600 {
      if turn % 50 == 0 { pair.client.pauseReading(client) }
      if turn % 50 == 40 { pair.client.resumeReading(client) }
      for _ in 0..<Int.random(in: 0...12, using: &random) {
        let key = UInt32.random(in: 0...5, using: &random)
        let frame = TestFrame(
          key: key, number: UInt32(sent[key]?.count ?? 0), filling: .random(in: 0...3000, using: &random))
        sent[key, default: []].append(frame)
        pair.atServer.send(frame.bytes, to: server, key: UInt64(key))
      }
      pair.turn(times: 1)
    }
    pair.client.resumeReading(client)
    pair.turn(until: { !pair.server.isBlocked(server) })
    pair.server.close(server)
    pair.turn(until: { pair.atClient.closed[client] != nil })

    let arrived = try #require(TestFrame.parse(pair.atClient.received[client] ?? []), "the stream is torn")
    let isComplete = arrived.filter { $0.key == 0 } == sent[0]
    #expect(isComplete)
    for key in UInt32(1)...5 {
      let numbers = arrived.filter { $0.key == key }.map(\.number)
      #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
      #expect(arrived.last { $0.key == key } == sent[key]?.last)
    }
    let all = sent.values.reduce(0) { $0 + $1.count }
    #expect(pair.server.counters.conflated > 0)
    #expect(arrived.count + Int(pair.server.counters.conflated) == all)
    #expect(pair.server.counters.outboxBytes == 0 && pair.server.counters.blockedConnections == 0)
    #expect(!pair.atServer.drained.isEmpty)
    #expect(pair.atClient.closed[client] == .peerClosed)
  }

  @Test(arguments: tlsVersions)
  func `megabytes go both ways at once`(version: Int32) throws {
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 64 * 1024 * 1024
    let pair = try Pair(tls: makeServer(), server: limits, client: limits)
    let (client, server) = try pair.connect(TLSPeer(makeClient(version), name: "127.0.0.1"))
    var random = SplitMix64(seed: 11)
    var up: [UInt8] = []
    var down: [UInt8] = []
    while up.count < 3_000_000 {
      let size = Int.random(in: 1...100_000, using: &random)
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ size) }
      up += bytes
      pair.atClient.send(bytes, to: client)
      down += bytes.reversed()
      pair.atServer.send(bytes.reversed(), to: server)
      pair.turn(times: 1)
    }
    pair.turn(until: {
      pair.atServer.received[server]?.count == up.count && pair.atClient.received[client]?.count == down.count
    })
    let isEqual = pair.atServer.received[server] == up && pair.atClient.received[client] == down
    #expect(isEqual)
    #expect(pair.server.counters.blockedConnections == 0 && pair.client.counters.blockedConnections == 0)
  }

  @Test func `what a turn has for a connection leaves in records of 16 KiB, each with one write`() throws {
    let pair = try Pair(tls: makeServer())
    let (client, server) = try pair.connect(TLSPeer(makeClient(), name: "localhost"))
    let before = pair.server.counters
    for number in 0..<100 { pair.atServer.send([UInt8](repeating: UInt8(number), count: 100), to: server) }
    pair.server.runTurn(timeoutMilliseconds: 0)
    #expect(pair.server.counters.writes - before.writes == 1)
    // 5 of header, 1 of type, 16 of tag (RFC 8446 §5.2).
    #expect(pair.server.counters.bytesWritten - before.bytesWritten == 10_000 + 22)
    pair.turn(until: { pair.atClient.received[client]?.count == 10_000 })

    let middle = pair.server.counters
    for _ in 0..<400 { pair.atServer.send([UInt8](repeating: 9, count: 100), to: server) }
    pair.server.runTurn(timeoutMilliseconds: 0)
    #expect(pair.server.counters.writes - middle.writes == 3)
    pair.turn(until: { pair.atClient.received[client]?.count == 50_000 })
  }

  @Test func `a connection whose unsent bytes pass the limit overflows, with TLS as without`() throws {
    var limits = EventLoopLimits()
    limits.kernelSendBufferBytes = 8 * 1024
    limits.outboxBytesPerConnection = 64 * 1024
    let pair = try Pair(tls: makeServer(), server: limits)
    let (client, server) = try pair.connect(TLSPeer(makeClient(), name: "localhost"))
    pair.client.pauseReading(client)
    pair.turn(until: {
      pair.atServer.send([UInt8](repeating: 1, count: 10_000), to: server)
      return pair.atServer.overflowed == [server]
    })
    #expect(pair.server.counters.outboxBytes <= 64 * 1024 + 2 * TLSBuffers.recordBytes)
    pair.server.dropPending(server)
    pair.atServer.send(Array("last".utf8), to: server)
    pair.client.resumeReading(client)
    pair.turn(until: { pair.atClient.received[client]?.suffix(4) == Array("last".utf8)[...] })
    pair.turn(until: { pair.server.counters.blockedConnections == 0 })
    #expect(pair.server.counters.outboxBytes == 0)
  }

  @Test(arguments: tlsVersions)
  func `records that come in pieces of any size are opened as they were sealed`(version: Int32) throws {
    let pair = try Pair(tls: makeServer())
    let client = try HeldConnection(pair, TLSPeer(makeClient(version), name: "localhost"))
    client.shakeHands()
    var random = SplitMix64(seed: 23)
    var expected: [UInt8] = []
    var wire: [UInt8] = []
    for number in 0..<60 {
      let size = number % 10 == 0 ? 16_384 : Int.random(in: 1...600, using: &random)
      let bytes = [UInt8](repeating: UInt8(number), count: size)
      expected += bytes
      wire += client.held.seal(bytes)
    }
    var rest = wire[...]
    while !rest.isEmpty {
      let size =
        Bool.random(using: &random) ? Int.random(in: 1...7, using: &random) : .random(in: 8...4000, using: &random)
      client.send(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
      pair.turn(times: 1)
    }
    pair.turn(until: { pair.atServer.received[client.atServer]?.count == expected.count })
    let isEqual = pair.atServer.received[client.atServer] == expected
    #expect(isEqual)
  }

  @Test(arguments: tlsVersions)
  func `who asks for short records (RFC 6066 §4) gets all of a long output in them`(version: Int32) throws {
    let pair = try Pair(tls: makeServer())
    let client = try makeClient(version)
    #expect(SSL_CTX_set_tlsext_max_fragment_length(client.context.raw, UInt8(TLSEXT_max_fragment_length_512)) == 1)
    let (atClient, atServer) = try pair.connect(TLSPeer(client, name: "localhost"))
    let before = pair.server.counters.bytesWritten
    let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    pair.atServer.send(bytes, to: atServer)
    pair.atClient.send(bytes, to: atClient)
    pair.turn(until: {
      pair.atClient.received[atClient]?.count == bytes.count && pair.atServer.received[atServer]?.count == bytes.count
    })
    let isEqual = pair.atClient.received[atClient] == bytes && pair.atServer.received[atServer] == bytes
    #expect(isEqual)
    #expect(pair.server.counters.bytesWritten - before >= UInt64(bytes.count + bytes.count / 512 * 22))
  }

  @Test(arguments: ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
  func `every cipher of TLS 1_3 works, with padding too`(cipher: String) throws {
    let pair = try Pair(tls: makeServer())
    let client = try makeClient(TLS1_3_VERSION)
    #expect(SSL_CTX_set_ciphersuites(client.context.raw, cipher) == 1)
    #expect(SSL_CTX_set_block_padding(client.context.raw, 512) == 1)
    let (atClient, atServer) = try pair.connect(TLSPeer(client, name: "localhost"))
    for round in 1...10 {
      pair.atClient.send([UInt8](repeating: 1, count: 300), to: atClient)
      pair.atServer.send([UInt8](repeating: 2, count: 300), to: atServer)
      pair.turn(until: {
        pair.atServer.received[atServer]?.count == round * 300 && pair.atClient.received[atClient]?.count == round * 300
      })
    }
  }

  @Test func `bytes that were changed on the way end the connection and are not delivered`() throws {
    let pair = try Pair(tls: makeServer())
    for flip in [0, 3, 5, 20, 30] {
      let client = try HeldConnection(pair, TLSPeer(makeClient(), name: "localhost"))
      client.shakeHands()
      client.send(client.held.seal(Array("good".utf8)))
      pair.turn(until: { pair.atServer.received[client.atServer]?.count == 4 })
      var record = client.held.seal(Array("damaged on the way".utf8))
      record[flip] ^= 0x40
      client.send(record + [UInt8](repeating: 0, count: 20_000))
      pair.turn(until: { client.causeAtServer != nil })
      guard case .tlsFailed = client.causeAtServer else {
        Issue.record("byte \(flip): \(String(describing: client.causeAtServer))")
        continue
      }
      #expect(pair.atServer.received[client.atServer] == Array("good".utf8))
    }
    #expect(pair.server.counters.tlsHandshakesFailed == 0)
  }

  @Test func `while reading is paused nothing is delivered, and afterwards everything`() throws {
    let pair = try Pair(tls: makeServer())
    let (client, server) = try pair.connect(TLSPeer(makeClient(), name: "localhost"))
    pair.atServer.onReceived = { [unowned pair] id, _ in pair.server.pauseReading(id) }
    var expected = 0
    for _ in 0..<40 {
      pair.atClient.send([UInt8](repeating: 3, count: 5000), to: client)
      expected += 5000
    }
    pair.turn(until: { pair.atServer.received[server] != nil })
    let first = pair.atServer.received[server]?.count
    pair.turn(times: 50)
    #expect(pair.atServer.received[server]?.count == first)
    pair.turn(until: {
      pair.server.resumeReading(server)
      return pair.atServer.received[server]?.count == expected
    })
  }
}
