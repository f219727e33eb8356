// What arrives at readers that are slow: the newest of each key, everything without one, and never half a frame.

import HubBytes
import HubTestSupport
import Testing

@testable import HubTransport

/// A frame for tests: length, key and number, 4 bytes each, then filling that depends on them.
struct TestFrame: Equatable {
  var key: UInt32
  var number: UInt32
  var filling: Int

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for word in [UInt32(filling), key, number] {
      for shift in [0, 8, 16, 24] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
    }
    return bytes + [UInt8](repeating: UInt8(truncatingIfNeeded: key &* 31 &+ number), count: filling)
  }

  /// The frames in `stream`, or nil when it is torn anywhere.
  static func parse(_ stream: [UInt8]) -> [TestFrame]? {
    var frames: [TestFrame] = []
    var at = 0
    while at < stream.count {
      guard at + 12 <= stream.count else { return nil }
      let words = (0..<3).map { word in
        (0..<4).reduce(UInt32(0)) { $0 | UInt32(stream[at + word * 4 + $1]) << UInt32(8 * $1) }
      }
      let frame = TestFrame(key: words[1], number: words[2], filling: Int(words[0]))
      let bytes = frame.bytes
      guard at + bytes.count <= stream.count, stream[at..<at + bytes.count].elementsEqual(bytes) else { return nil }
      frames.append(frame)
      at += bytes.count
    }
    return frames
  }
}

@Suite struct `Sending` {
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func `a slow reader gets every event in order, the newest of each key, none twice, none torn`(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var limits = EventLoopLimits()
    limits.kernelSendBufferBytes = 32 * 1024
    limits.outboxBytesPerConnection = 64 * 1024 * 1024
    let pair = try Pair(server: limits)
    let (client, server) = try pair.connect()
    var sent: [UInt32: [TestFrame]] = [:]
    for turn in 0..<600 {
      if turn % 50 == 0 { pair.client.pauseReading(client) }
      if turn % 50 == 40 { pair.client.resumeReading(client) }
      for _ in 0..<Int.random(in: 0...12, using: &random) {
        let key = UInt32.random(in: 0...5, using: &random)
        let number = UInt32(sent[key]?.count ?? 0)
        let frame = TestFrame(key: key, number: number, filling: .random(in: 0...3000, using: &random))
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
    let events = arrived.filter { $0.key == 0 }
    let isComplete = events == sent[0]
    #expect(isComplete, "\(events.count) of \(sent[0]?.count ?? 0) events, or not in order")
    for key in UInt32(1)...5 {
      let numbers = arrived.filter { $0.key == key }.map(\.number)
      #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
      #expect(arrived.last { $0.key == key } == sent[key]?.last)
    }
    let all = sent.values.reduce(0) { $0 + $1.count }
    #expect(pair.server.counters.conflated > 0)
    #expect(arrived.count + Int(pair.server.counters.conflated) == all)
    #expect(pair.server.counters.dropped == 0)
    #expect(pair.server.counters.outboxBytes == 0 && pair.server.counters.blockedConnections == 0)
    #expect(pair.atServer.drained.count > 0 && pair.atServer.drained.allSatisfy { $0 == server })
  }

  @Test func `a reader that keeps up gets every frame, whatever its key`() throws {
    let pair = try Pair()
    let (client, server) = try pair.connect()
    let frames = (0..<500).map { TestFrame(key: 1, number: UInt32($0), filling: $0 % 40) }
    for frame in frames {
      pair.atServer.send(frame.bytes, to: server, key: 1)
      // Between frames that lie side by side, some that do not: more pieces than one sendmsg takes.
      if frame.number % 2 == 0 { pair.server.arena.append(0) }
    }
    pair.turn(until: { pair.atClient.received[client]?.count == frames.reduce(0) { $0 + $1.bytes.count } })
    #expect(TestFrame.parse(pair.atClient.received[client] ?? []) == frames)
    #expect(pair.server.counters.conflated == 0)
    #expect(pair.server.counters.writes <= 6)
  }

  @Test func `one range goes to many connections with one call each`() throws {
    let pair = try Pair()
    var ids: [(atClient: ConnectionID, atServer: ConnectionID)] = []
    for _ in 0..<50 { ids.append(try pair.connect()) }
    pair.atServer.onTurnEnding = { [unowned pair] in
      guard pair.server.counters.writes == 0 else { return }
      pair.server.arena.append("position")
      for id in ids {
        pair.server.send(0..<3, to: id.atServer)
        pair.server.send(3..<8, to: id.atServer)
      }
    }
    pair.turn(until: { pair.atClient.received.values.reduce(0) { $0 + $1.count } == 400 })
    #expect(pair.atClient.received.values.allSatisfy { $0 == Array("position".utf8) })
    #expect(pair.server.counters.writes == 50)
    #expect(pair.server.arena.count == 0)
  }

  @Test func `more sends than a turn may hold are written before its end`() throws {
    var limits = EventLoopLimits()
    limits.segmentsPerTurn = 4
    let pair = try Pair(server: limits)
    let (client, server) = try pair.connect()
    for number in 0..<100 { pair.atServer.send([UInt8(number)], to: server) }
    #expect(pair.server.segments.count <= 4)
    pair.turn(until: { pair.atClient.received[client]?.count == 100 })
    #expect(pair.atClient.received[client] == (0..<100).map { UInt8($0) })
  }

  @Test func `what was flushed early and what follows arrive in order, and the arena is free between`() throws {
    let pair = try Pair()
    let (client, server) = try pair.connect()
    pair.atServer.onTurnEnding = { [unowned pair] in
      guard pair.server.counters.writes == 0 else { return }
      for number in 0..<3 as Range<UInt8> {
        pair.atServer.send([number, number], to: server)
        pair.server.flushEarly()
        #expect(pair.server.arena.count == 0 && pair.server.segments.isEmpty)
      }
      pair.atServer.send([9], to: server)
    }
    pair.turn(until: { pair.atClient.received[client]?.count == 7 })
    #expect(pair.atClient.received[client] == [0, 0, 1, 1, 2, 2, 9])
    #expect(pair.atServer.callbacksDuringOperation == 0)
  }

  @Test func `past the limit in bytes it overflows once, and a last word still gets through whole`() throws {
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 100_000
    limits.kernelSendBufferBytes = 16 * 1024
    let pair = try Pair(server: limits)
    let (client, server) = try pair.connect()
    pair.client.pauseReading(client)
    var number: UInt32 = 0
    while pair.atServer.overflowed.isEmpty && number < 100_000 {
      pair.atServer.send(TestFrame(key: 0, number: number, filling: 5000).bytes, to: server)
      pair.turn(times: 1)
      number += 1
      #expect(pair.server.counters.outboxBytes <= 100_000)
    }
    #expect(pair.atServer.overflowed == [server])
    #expect(pair.server.counters.overflowed == 1 && pair.server.counters.overflowedTogether == 0)
    for _ in 0..<50 { pair.atServer.send([1, 2, 3], to: server) }
    pair.turn(times: 3)
    #expect(pair.atServer.overflowed == [server])
    #expect(pair.server.counters.dropped >= 51)

    pair.server.dropPending(server)
    #expect(pair.server.pendingBytes(server) < 5012)
    let goodbye = TestFrame(key: 0, number: .max, filling: 10)
    pair.atServer.send(goodbye.bytes, to: server)
    pair.server.close(server)
    pair.client.resumeReading(client)
    pair.turn(until: { pair.atClient.closed[client] != nil })
    let arrived = try #require(TestFrame.parse(pair.atClient.received[client] ?? []), "the stream is torn")
    #expect(arrived.last == goodbye)
    #expect(arrived.dropLast().map(\.number) == (0..<UInt32(arrived.count - 1)).map { $0 })
    #expect(pair.server.counters.outboxBytes == 0)
    #expect(pair.atServer.callbacksDuringOperation == 0)
  }

  @Test func `a frame larger than the limit gets through where nothing else waits`() throws {
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 100_000
    limits.kernelSendBufferBytes = 16 * 1024
    let pair = try Pair(client: limits)
    let id = try pair.client.connect(pair.address)
    // A connection that is not there yet: nothing can have left.
    pair.atClient.send([UInt8](repeating: 7, count: 2_000_000), to: id)
    pair.turn(until: { pair.atServer.received.values.first?.count == 2_000_000 })
    #expect(pair.atClient.overflowed.isEmpty)
  }

  @Test func `what is sent in answer to drained leaves, and the arena is empty afterwards`() throws {
    let pair = try Pair()
    let (client, server) = try pair.connect()
    var answers = 0
    pair.atServer.onDrained = { [unowned pair] id in
      answers += 1
      if answers == 1 { pair.atServer.send([42], to: id) }
    }
    pair.client.pauseReading(client)
    for _ in 0..<100 where !pair.server.isBlocked(server) {
      pair.atServer.send([UInt8](repeating: 0, count: 900_000), to: server)
      pair.turn(times: 1)
    }
    pair.client.resumeReading(client)
    pair.turn(until: { pair.atClient.received[client]?.last == 42 })
    #expect(answers == 1)
    #expect(pair.server.arena.count == 0 && pair.server.segments.isEmpty)
  }
}
