// Sends of many connections in one system call: the same arrives as by sends one by one, whatever happens to some.

import Glibc
import HubSystem
import HubTestSupport
import Testing

@testable import HubTransport

@Suite(.timeLimit(.minutes(2))) struct `Sends together` {
  static let kernelAllows = SendRing() != nil
  static let withoutRing: Comment = "this kernel has no io_uring, or something forbids it"

  private static func limits(together: Bool) -> EventLoopLimits {
    var limits = EventLoopLimits()
    limits.sendsTogether = together
    return limits
  }

  @Test(.enabled(if: kernelAllows, withoutRing), arguments: [1, 2] as [UInt64], [true, false])
  func `whoever is slow, gone or goes, the others get everything in order`(seed: UInt64, together: Bool) throws {
    _ = try ProcessFacts.raiseOpenFileLimit()
    var random = SplitMix64(seed: seed)
    var limits = Self.limits(together: together)
    limits.kernelSendBufferBytes = 8 * 1024
    limits.outboxBytesPerConnection = 64 * 1024 * 1024
    let pair = try Pair(server: limits)
    // More than one call takes.
    let ids = try (0..<SendRing.capacity + 20).map { _ in try pair.connect() }
    var sent = [[TestFrame]](repeating: [], count: ids.count)
    var mostBlocked = 0
    for turn in 0..<40 {
      for (index, id) in ids.enumerated() {
        switch (index % 20, turn) {
        case (3, 10): pair.client.pauseReading(id.atClient)
        case (3, 30): pair.client.resumeReading(id.atClient)
        case (7, 15): pair.client.abort(id.atClient, reset: true)
        default: break
        }
        if index % 20 == 11, turn > 20 { continue }
        let count = Int.random(in: 0..<40, using: &random) == 0 ? 0 : Int.random(in: 1...3, using: &random)
        for _ in 0..<count {
          let filling = Int.random(in: 0..<30, using: &random) == 0 ? 60_000 : Int.random(in: 0...300, using: &random)
          let frame = TestFrame(key: 0, number: UInt32(sent[index].count), filling: filling)
          sent[index].append(frame)
          pair.atServer.send(frame.bytes, to: id.atServer)
        }
        // Its own end, in the turn of its last frames.
        if index % 20 == 11, turn == 20 { pair.server.close(id.atServer) }
      }
      pair.turn(times: 1)
      mostBlocked = max(mostBlocked, pair.server.counters.blockedConnections)
    }
    let others = ids.indices.filter { ![7, 11].contains($0 % 20) }
    for index in others { pair.server.close(ids[index].atServer) }
    pair.turn(until: { others.allSatisfy { pair.atClient.closed[ids[$0].atClient] != nil } })
    pair.turn(until: { pair.server.counters.connections == 0 })

    for index in ids.indices {
      let bytes = pair.atClient.received[ids[index].atClient] ?? []
      let all = sent[index].flatMap(\.bytes)
      let isRight = index % 20 == 7 ? all.starts(with: bytes) : bytes == all
      #expect(isRight, "connection \(index): \(bytes.count) of \(all.count) bytes, or others")
    }
    let counters = pair.server.counters
    #expect(together ? counters.sendBatches > 45 : counters.sendBatches == 0)
    #expect(counters.writes > 7_000 && mostBlocked >= 14)
    #expect(counters.dropped == 0 && counters.outboxBytes == 0 && counters.blockedConnections == 0)
    #expect(!pair.atServer.closedTwice && pair.atServer.callbacksDuringOperation == 0)
  }

  @Test(.enabled(if: kernelAllows, withoutRing))
  func `more pieces than the ring has for a connection arrive in order`() throws {
    let pair = try Pair(server: Self.limits(together: true))
    let ids = try (0..<SendRing.worthwhileFrom).map { _ in try pair.connect() }
    let count = UInt8(3 * SendRing.pieceCount)
    pair.atServer.onTurnEnding = { [unowned pair] in
      guard pair.server.counters.writes == 0 else { return }
      for number in 0..<count { for id in ids { pair.atServer.send([number, 255 - number], to: id.atServer) } }
    }
    let expected = (0..<count).flatMap { [$0, 255 - $0] }
    pair.turn(until: { ids.allSatisfy { pair.atClient.received[$0.atClient]?.count == expected.count } })
    #expect(ids.allSatisfy { pair.atClient.received[$0.atClient] == expected })
    // The ring's, and one for the rest of each.
    #expect(pair.server.counters.sendBatches == 1)
    #expect(pair.server.counters.writes == UInt64(2 * ids.count))
  }

  @Test(.enabled(if: kernelAllows, withoutRing))
  func `a peer that resets its connection before the call ends that one alone`() throws {
    let pair = try Pair(server: Self.limits(together: true))
    let ids = try (0..<10).map { _ in try pair.connect() }
    pair.atServer.onTurnEnding = { [unowned pair] in
      guard pair.server.counters.writes == 0 else { return }
      pair.client.abort(ids[3].atClient, reset: true)
      for id in ids { pair.atServer.send([1, 2, 3], to: id.atServer) }
    }
    pair.turn(until: { pair.atClient.received.count == 9 && pair.atServer.closed.count == 1 })
    #expect(pair.atServer.closed == [ids[3].atServer: .peerReset])
    #expect(pair.atClient.received.values.allSatisfy { $0 == [1, 2, 3] })
    #expect(pair.server.counters.sendBatches == 1 && pair.server.counters.writes == 9)
  }

  @Test(.enabled(if: kernelAllows, withoutRing))
  func `readers that take nothing overflow, each by itself, and no frame is torn`() throws {
    var limits = Self.limits(together: true)
    limits.kernelSendBufferBytes = 8 * 1024
    limits.outboxBytesPerConnection = 64 * 1024
    let pair = try Pair(server: limits)
    let ids = try (0..<20).map { _ in try pair.connect() }
    for id in ids.prefix(10) { pair.client.pauseReading(id.atClient) }
    var frames: [TestFrame] = []
    for number in 0..<150 as Range<UInt32> {
      frames.append(TestFrame(key: 0, number: number, filling: 9_000))
      for id in ids { pair.atServer.send(frames[Int(number)].bytes, to: id.atServer) }
      pair.turn(times: 2)
    }
    #expect(Set(pair.atServer.overflowed) == Set(ids.prefix(10).map(\.atServer)))
    for id in ids.prefix(10) {
      pair.server.close(id.atServer)
      pair.client.resumeReading(id.atClient)
    }
    pair.turn(until: { ids.prefix(10).allSatisfy { pair.atClient.closed[$0.atClient] != nil } })
    for (index, id) in ids.enumerated() {
      let arrived = try #require(TestFrame.parse(pair.atClient.received[id.atClient] ?? []), "torn")
      let isBeginning = frames.starts(with: arrived) && (index < 10) == (arrived.count < frames.count)
      #expect(isBeginning, "connection \(index): \(arrived.count) frames")
    }
  }

  @Test(.enabled(if: kernelAllows, withoutRing))
  func `what the kernel does not take is sent one by one, and never again`() throws {
    let pair = try Pair(server: Self.limits(together: true))
    let ids = try (0..<10).map { _ in try pair.connect() }
    let ring = unsafe pair.server.state.pointee.sendRing?.ring.raw ?? -1
    let kept = dup(ring)
    defer { close(kept) }
    var expected: [UInt8] = []
    for round in 0..<4 as Range<UInt8> {
      // Of a descriptor that is no ring each call fails.
      if round == 1 { #expect(dup2(pair.server.waker.descriptor, ring) == ring) }
      if round == 3 { #expect(dup2(kept, ring) == ring) }
      // In another order, so that the old sends would bring other bytes.
      for index in round == 3 ? ids.indices.reversed() : Array(ids.indices) {
        pair.atServer.send([round, UInt8(index)], to: ids[index].atServer)
      }
      expected += [round, 0]
      pair.turn(until: {
        pair.atClient.received.values.allSatisfy { $0.count == expected.count } && pair.atClient.received.count == 10
      })
      #expect(pair.server.counters.sendBatches == (round < 3 ? 1 : 2))
    }
    for (index, id) in ids.enumerated() {
      #expect(pair.atClient.received[id.atClient] == (0..<4).flatMap { [UInt8($0), UInt8(index)] })
    }
    #expect(pair.server.counters.writes == 40)
  }

  @Test func `few sends need no ring, and off is off`() throws {
    for together in [true, false] {
      let pair = try Pair(server: Self.limits(together: together))
      let ids = try (0..<SendRing.worthwhileFrom).map { _ in try pair.connect() }
      for id in ids.dropFirst(1) { pair.atServer.send([1], to: id.atServer) }
      pair.turn(until: { pair.atClient.received.count == ids.count - 1 })
      #expect(pair.server.counters.sendBatches == 0)
      for id in ids { pair.atServer.send([2], to: id.atServer) }
      pair.turn(until: { pair.atClient.received.values.reduce(0) { $0 + $1.count } == 2 * ids.count - 1 })
      #expect(pair.server.counters.sendBatches == (together && Self.kernelAllows ? 1 : 0))
    }
  }
}
