// Connections from their beginning to each of their ends.

import Glibc
import HubSystem
import HubTestSupport
import Testing

@testable import HubTransport

@Suite struct `Connections over loopback` {
  @Test func `bytes come back from an echo, and can be changed where they lie`() throws {
    let pair = try Pair()
    pair.atServer.onReceived = { [unowned pair] id, bytes in
      for index in bytes.indices { bytes[index] ^= 0xFF }
      pair.atServer.send(Array(bytes), to: id)
    }
    let (client, server) = try pair.connect()
    pair.atClient.send([1, 2, 3], to: client)
    pair.turn(until: { pair.atClient.received[client]?.count == 3 })
    #expect(pair.atServer.received[server] == [1, 2, 3])
    #expect(pair.atClient.received[client] == [0xFE, 0xFD, 0xFC])
    #expect(pair.server.counters.accepted == 1)
    #expect(pair.server.counters.bytesRead == 3)
    #expect(pair.client.counters.bytesWritten == 3)
  }

  @Test func `IPv6 works where the machine has it, and a dual-stack listener shows IPv4 peers as IPv4`() throws {
    do {
      let pair = try Pair(host: try #require(SocketAddress(host: "::", port: 0)))
      let port = pair.address.port
      let six = try #require(SocketAddress(host: "::1", port: port))
      _ = try pair.client.connect(six)
      pair.turn(until: { pair.atServer.accepted.count == 1 && pair.atClient.connected.count == 1 })
      _ = try pair.client.connect(.loopback(port: port))
      pair.turn(until: { pair.atServer.accepted.count == 2 })
      #expect(pair.atServer.peers.map(\.host) == ["::1", "127.0.0.1"])
    } catch let error as SystemError where error.errno == EAFNOSUPPORT || error.errno == EADDRNOTAVAIL {
      print("skipped: no IPv6 on this machine (\(error))")
    }
  }

  @Test func `a refused connect is reported by closed, once, and never from within connect`() throws {
    let pair = try Pair()
    pair.atClient.isInOperation = true
    // Nobody listens there, whereas a port at which somebody has listened may be another test's by now.
    let id = try pair.client.connect(.loopback(port: 1))
    pair.atClient.isInOperation = false
    pair.turn(until: { pair.atClient.closed[id] != nil })
    #expect(pair.atClient.closed[id] == .connectFailed(errno: ECONNREFUSED))
    #expect(pair.atClient.connected.isEmpty)
    #expect(pair.atClient.callbacksDuringOperation == 0)
    #expect(pair.client.counters.connections == 0)
  }

  @Test func `what is sent before the connection stands goes out when it does`() throws {
    let pair = try Pair()
    let id = try pair.client.connect(pair.address)
    #expect(pair.client.isBlocked(id))
    pair.atClient.send([7], to: id)
    pair.turn(until: { pair.atServer.received.values.first == [7] })
    #expect(!pair.client.isBlocked(id))
    #expect(pair.client.counters.outboxBytes == 0)
  }

  @Test func `a connection can come from a chosen address`() throws {
    let pair = try Pair()
    let local = try #require(SocketAddress(host: "127.0.0.9", port: 0))
    _ = try pair.client.connect(pair.address, from: local)
    pair.turn(until: { pair.atServer.peers.count == 1 })
    #expect(pair.atServer.peers.first?.host == "127.0.0.9")
  }

  @Test func `accepted sockets inherit the options of the listener`() throws {
    let pair = try Pair()
    let (_, server) = try pair.connect()
    let descriptor = pair.server.slab.pointer(server.slot).pointee.descriptor
    for (option, expected) in [(TCP_NODELAY, Int32(1)), (25, pair.server.limits.kernelUnsentBytes)] {
      var value: Int32 = 0
      var length = socklen_t(4)
      #expect(getsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, &length) == 0)
      #expect(value == expected)
    }
    #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
  }

  @Test func `everything that a peer sent before its end is delivered first`() throws {
    var limits = EventLoopLimits()
    limits.readBufferBytes = 1024
    let pair = try Pair(server: limits)
    let (client, server) = try pair.connect()
    let bytes = (0..<50_000).map { UInt8(truncatingIfNeeded: $0) }
    pair.atClient.send(bytes, to: client)
    pair.client.close(client)
    pair.turn(until: { pair.atServer.closed[server] != nil && pair.atClient.closed[client] != nil })
    // Compared outside of the macro, which would print both.
    let isWhole = pair.atServer.received[server] == bytes
    #expect(isWhole)
    #expect(pair.atServer.closed[server] == .peerClosed)
    #expect(pair.atClient.closed[client] == .closedByUs)
  }

  @Test func `a reset is reported as one`() throws {
    let pair = try Pair()
    let (client, server) = try pair.connect()
    pair.client.abort(client, reset: true)
    pair.turn(until: { pair.atServer.closed[server] != nil })
    #expect(pair.atServer.closed[server] == .peerReset)
    #expect(pair.atClient.closed[client] == nil || pair.atClient.closed[client] == .closedByUs)
  }

  @Test func `a paused connection is not read, and its peer's reset is noticed nonetheless`() throws {
    let pair = try Pair()
    let (client, server) = try pair.connect()
    pair.server.pauseReading(server)
    pair.atClient.send([1], to: client)
    pair.turn(times: 5)
    #expect(pair.atServer.received[server] == nil)
    pair.server.resumeReading(server)
    pair.turn(until: { pair.atServer.received[server] == [1] })

    pair.server.pauseReading(server)
    pair.client.abort(client, reset: true)
    pair.turn(until: { pair.atServer.closed[server] != nil })
    #expect(pair.atServer.closed[server] == .peerReset)
  }

  @Test func `past the maximum a newcomer is turned away, and the others stay`() throws {
    var limits = EventLoopLimits()
    limits.maximumConnections = 2
    let pair = try Pair(server: limits)
    _ = try pair.connect()
    _ = try pair.connect()
    let third = try pair.client.connect(pair.address)
    pair.turn(until: { pair.atClient.closed[third] != nil })
    #expect(pair.server.counters.refused == 1)
    #expect(pair.server.counters.connections == 2)
    #expect(pair.atServer.accepted.count == 2)
    #expect(throws: SystemError.self) { try pair.server.connect(pair.address) }
  }

  @Test func `a listener without a pace accepts some more than the maximum, which no flood can take`() throws {
    var limits = EventLoopLimits()
    limits.maximumConnections = 2
    let pair = try Pair(server: limits)
    let admin = try pair.server.listen(.loopback(port: 0), isPaced: false)
    for _ in 0..<5 { _ = try pair.client.connect(pair.address) }
    pair.turn(until: { pair.atServer.accepted.count == 2 && pair.server.counters.refused == 3 })
    for _ in 0...EventLoopLimits.unpacedConnections { _ = try pair.client.connect(admin) }
    pair.turn(until: { pair.server.counters.refused == 4 })
    #expect(pair.atServer.accepted.count == 2 + EventLoopLimits.unpacedConnections)
  }

  @Test func `a thousand connections echo, and all of them end`() throws {
    _ = try ProcessFacts.raiseOpenFileLimit()
    let pair = try Pair()
    pair.atServer.onReceived = { [unowned pair] id, bytes in pair.atServer.send(Array(bytes), to: id) }
    var ids: [ConnectionID] = []
    for _ in 0..<1000 {
      ids.append(try pair.client.connect(pair.address))
      if ids.count % 100 == 0 { pair.turn(times: 1) }
    }
    pair.turn(until: { pair.atClient.connected.count == 1000 && pair.atServer.accepted.count == 1000 })
    for (index, id) in ids.enumerated() {
      pair.atClient.send([UInt8(index & 255), UInt8(index >> 8)], to: id)
    }
    pair.turn(until: { pair.atClient.received.values.reduce(0) { $0 + $1.count } == 2000 })
    for (index, id) in ids.enumerated() {
      #expect(pair.atClient.received[id] == [UInt8(index & 255), UInt8(index >> 8)])
      pair.client.close(id)
    }
    pair.turn(until: { pair.atServer.closed.count == 1000 && pair.atClient.closed.count == 1000 })
    #expect(!pair.atServer.closedTwice && !pair.atClient.closedTwice)
    #expect(pair.server.counters.connections == 0 && pair.client.counters.connections == 0)
  }

  @Test func `an idle connection takes no more than 64 bytes of the slab`() {
    #expect(MemoryLayout<Connection>.stride <= 64)
  }
}

@Suite struct `Closing a connection` {
  @Test func `a stale id touches nothing, although its slot has another connection`() throws {
    let pair = try Pair()
    let (client, old) = try pair.connect()
    pair.server.abort(old)
    pair.turn(until: { pair.atClient.closed[client] != nil && pair.atServer.closed[old] != nil })
    let (second, new) = try pair.connect()
    #expect(new.slot == old.slot && new.generation != old.generation)

    pair.atServer.send([9], to: old)
    pair.server.close(old)
    pair.server.abort(old)
    pair.server.dropPending(old)
    pair.server.pauseReading(old)
    pair.server.setTimer(old, at: 0)
    pair.server.close(.none)
    pair.server.abort(ConnectionID(slot: 1_000_000, generation: 1))
    #expect(!pair.server.isBlocked(old))
    #expect(pair.server.pendingBytes(old) == 0)
    pair.atServer.send([1], to: new)
    pair.turn(until: { pair.atClient.received[second] != nil })
    #expect(pair.atClient.received[second] == [1])
    #expect(pair.atServer.closed.count == 1)
  }

  @Test func `a slot's generation is never one that a stale id may have`() {
    var slab = ConnectionSlab()
    let first = slab.insert(descriptor: 1, state: .open)
    slab.pointer(first.slot).pointee.generation = .max
    slab.remove(first.slot)
    let next = slab.insert(descriptor: 1, state: .open)
    #expect(next == ConnectionID(slot: first.slot, generation: 1))
    let isStale = slab.live(.none) == nil
    #expect(isStale)
  }

  @Test func `close sends everything first, also to a peer that reads late and talks on`() throws {
    let pair = try Pair()
    let (client, server) = try pair.connect()
    let bytes = (0..<900_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    pair.client.pauseReading(client)
    pair.atServer.send(bytes, to: server)
    pair.server.close(server)
    pair.turn(times: 20)
    #expect(pair.server.isBlocked(server))
    // What the peer says meanwhile would make a plain close reset the connection and lose our last bytes.
    pair.atClient.send([UInt8](repeating: 1, count: 10_000), to: client)
    pair.turn(times: 20)
    pair.client.resumeReading(client)
    pair.turn(until: { pair.atClient.closed[client] != nil && pair.atServer.closed[server] != nil })
    // Compared outside of the macro, which would print both.
    let isWhole = pair.atClient.received[client] == bytes
    #expect(isWhole)
    #expect(pair.atClient.closed[client] == .peerClosed)
    #expect(pair.atServer.closed[server] == .closedByUs)
    #expect(pair.atServer.received[server] == nil, "nobody wants what comes after close")
  }

  @Test func `a peer that never ends its side is cut off in time`() throws {
    let clock = HandClock()
    let pair = try Pair(clock: clock)
    let (client, server) = try pair.connect()
    pair.client.pauseReading(client)
    pair.server.close(server)
    pair.turn(times: 5)
    #expect(pair.atServer.closed[server] == nil)
    clock.advance(milliseconds: Int64(pair.server.limits.closeMilliseconds))
    pair.turn(times: 2)
    #expect(pair.atServer.closed[server] == nil, "a timer is never early")
    clock.advance(milliseconds: 80)
    pair.turn(times: 2)
    #expect(pair.atServer.closed[server] == .closedByUs)
    #expect(pair.atServer.timers.isEmpty)
  }

  @Test func `a peer may have longer for what is unsent, and then no longer than others to end its side`() throws {
    let clock = HandClock()
    let pair = try Pair(clock: clock)
    let (client, server) = try pair.connect()
    let closing = Int64(pair.server.limits.closeMilliseconds)
    pair.client.pauseReading(client)
    pair.atServer.send([UInt8](repeating: 7, count: 20_000_000), to: server)
    pair.server.close(server)
    pair.server.setTimer(server, at: pair.server.now.uptimeNanoseconds + 100 * closing * 1_000_000)
    pair.turn(times: 20)
    try #require(pair.server.isBlocked(server))
    clock.advance(milliseconds: 50 * closing)
    pair.turn(times: 2)
    #expect(pair.atServer.closed[server] == nil)
    pair.client.resumeReading(client)
    // The client's turn comes first: behind the server's last one it would see that end, and end its own side. Where
    // the kernel lets nothing through for a while, it waits.
    for _ in 0..<20_000 where pair.server.isBlocked(server) {
      pair.client.runTurn(timeoutMilliseconds: 1)
      pair.server.runTurn(timeoutMilliseconds: 0)
    }
    try #require(!pair.server.isBlocked(server))
    pair.client.pauseReading(client)
    pair.turn(times: 2)
    #expect(pair.atServer.closed[server] == nil, "it has all, and does not end its side")
    clock.advance(milliseconds: closing + 80)
    pair.turn(times: 2)
    #expect(pair.atServer.closed[server] == .closedByUs)
  }

  @Test func `a peer that leaves everything unread is given up by the kernel, where the loop was told when`() throws {
    let pair = try Pair()
    let (client, server) = try pair.connect()
    pair.client.pauseReading(client)
    pair.server.abortIfUnread(server, afterMilliseconds: 50)
    pair.atServer.send([UInt8](repeating: 7, count: 20_000_000), to: server)
    pair.turn(until: { pair.atServer.closed[server] != nil })
    #expect(pair.atServer.closed[server] == .failed(errno: ETIMEDOUT))
  }

  @Test func `callbacks may close anything, the current connection and its neighbours included`() throws {
    let pair = try Pair()
    var pairs: [(atClient: ConnectionID, atServer: ConnectionID)] = []
    for _ in 0..<20 { pairs.append(try pair.connect()) }
    let everyone = pairs.map(\.atServer)
    pair.atServer.onReceived = { [unowned pair] _, _ in
      for id in everyone { pair.server.abort(id) }
      for id in everyone { pair.atServer.send([1], to: id) }
    }
    for ids in pairs { pair.atClient.send([1], to: ids.atClient) }
    pair.turn(until: { pair.atServer.closed.count == 20 && pair.atClient.closed.count == 20 })
    #expect(pair.atServer.received.count == 1, "the others ended before their bytes were looked at")
    #expect(!pair.atServer.closedTwice)
    #expect(pair.atServer.callbacksDuringOperation == 0)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `whatever is called in whatever order, each connection is closed exactly once`(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 4000
    limits.segmentsPerTurn = 16
    let clock = HandClock()
    let pair = try Pair(server: limits, clock: clock)
    var late = 0
    pair.atServer.onReceived = { [unowned pair] id, _ in if pair.atServer.closed[id] != nil { late += 1 } }
    pair.atServer.onClosed = { [unowned pair] id in pair.atServer.send([1], to: id) }
    var started: [ConnectionID] = []
    for _ in 0..<4000 {
      let side = Bool.random(using: &random)
      let recorder = side ? pair.atServer : pair.atClient
      let known = side ? pair.atServer.accepted : pair.atClient.connected
      let id = known.randomElement(using: &random) ?? .none
      switch Int.random(in: 0..<14, using: &random) {
      case 0, 1:
        if pair.client.counters.connections < 30 {
          started.append(try pair.client.connect(pair.address))
        }
      case 2: recorder.loop.close(id)
      case 3: recorder.loop.abort(id, reset: Bool.random(using: &random))
      case 4: recorder.loop.pauseReading(id)
      case 5: recorder.loop.resumeReading(id)
      case 6: recorder.loop.dropPending(id)
      case 7:
        recorder.loop.setTimer(
          id, at: clock.reading.uptimeNanoseconds + .random(in: -5...5_000_000_000, using: &random))
      case 8: clock.advance(milliseconds: .random(in: 0...200, using: &random))
      case 9...11:
        let bytes = [UInt8](repeating: 7, count: .random(in: 1...100_000, using: &random))
        recorder.send(bytes, to: id, key: .random(in: 0...3, using: &random))
      case _: pair.turn(times: 1)
      }
    }
    pair.turn(until: { pair.atServer.accepted.count == started.count })
    for id in started { pair.client.abort(id) }
    for id in pair.atServer.accepted { pair.server.abort(id) }
    pair.turn(until: { pair.client.counters.connections == 0 && pair.server.counters.connections == 0 })
    #expect(pair.atClient.closed.count == started.count)
    #expect(pair.atServer.closed.count == pair.atServer.accepted.count)
    #expect(!pair.atServer.closedTwice && !pair.atClient.closedTwice)
    #expect(late == 0)
    #expect(pair.server.counters.outboxBytes == 0 && pair.server.counters.blockedConnections == 0)
    #expect(pair.atServer.callbacksDuringOperation == 0)
  }
}
