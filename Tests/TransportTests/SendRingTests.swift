// Sends of many connections in one system call: the same arrives as by sends one by one, whatever happens to some.

import Glibc
import HubBytes
import HubSystem
import HubTestSupport
import Testing

@testable import HubTransport

@Suite struct `Sends together` {
  static let kernelAllows = SendRing() != nil
  static let withoutRing: Comment = "this kernel has no io_uring, or something forbids it"

  private static func limits(together: Bool) -> EventLoopLimits {
    var limits = EventLoopLimits()
    limits.sendsTogether = together
    return limits
  }

  @Test(.enabled(if: kernelAllows, withoutRing), arguments: [1, 2, 3] as [UInt64], [true, false])
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
          let filling = Int.random(in: 0..<10, using: &random) == 0 ? 9_000 : Int.random(in: 0...300, using: &random)
          let frame = TestFrame(key: 0, number: UInt32(sent[index].count), filling: filling)
          sent[index].append(frame)
          pair.atServer.send(frame.bytes, to: id.atServer)
        }
        // Its own end, in the turn of its last frames.
        if index % 20 == 11, turn == 20 { pair.server.close(id.atServer) }
      }
      pair.turn(times: 1)
    }
    let others = ids.indices.filter { ![7, 11].contains($0 % 20) }
    for index in others { pair.server.close(ids[index].atServer) }
    pair.turn(until: { others.allSatisfy { pair.atClient.closed[ids[$0].atClient] != nil } })
    pair.turn(until: { pair.server.counters.connections == 0 })

    for index in ids.indices {
      let bytes = pair.atClient.received[ids[index].atClient] ?? []
      let all = sent[index].flatMap(\.bytes)
      let isRight = others.contains(index) ? bytes == all : all.starts(with: bytes)
      #expect(isRight, "connection \(index): \(bytes.count) of \(all.count) bytes, or others")
    }
    let counters = pair.server.counters
    #expect(together ? counters.sendBatches > 45 : counters.sendBatches == 0)
    #expect(counters.writes > 7_000)
    #expect(counters.dropped == 0 && counters.outboxBytes == 0 && counters.blockedConnections == 0)
    #expect(!pair.atServer.closedTwice && pair.atServer.callbacksDuringOperation == 0)
  }

  @Test(.enabled(if: kernelAllows, withoutRing))
  func `more pieces than the ring has for a connection arrive in order`() throws {
    let pair = try Pair()
    let ids = try (0..<SendRing.worthwhileFrom).map { _ in try pair.connect() }
    pair.atServer.onTurnEnding = { [unowned pair] in
      guard pair.server.counters.writes == 0 else { return }
      for number in 0..<UInt8(3 * SendRing.pieceCount) {
        for id in ids { pair.atServer.send([number, 255 - number], to: id.atServer) }
      }
    }
    let expected = (0..<UInt8(3 * SendRing.pieceCount)).flatMap { [$0, 255 - $0] }
    pair.turn(until: { ids.allSatisfy { pair.atClient.received[$0.atClient]?.count == expected.count } })
    #expect(ids.allSatisfy { pair.atClient.received[$0.atClient] == expected })
    // The ring's, and one for the rest of each.
    #expect(pair.server.counters.sendBatches == 1)
    #expect(pair.server.counters.writes == UInt64(2 * ids.count))
  }

  @Test(.enabled(if: kernelAllows, withoutRing))
  func `what the kernel does not take is sent one by one`() throws {
    let pair = try Pair()
    let ids = try (0..<10).map { _ in try pair.connect() }
    for id in ids { pair.atServer.send([0], to: id.atServer) }
    pair.turn(until: { pair.atClient.received.count == 10 })
    // Any descriptor that is no ring: each call fails.
    let number = unsafe pair.server.state.pointee.sendRing?.ring.raw ?? -1
    #expect(dup2(pair.server.waker.descriptor, number) == number)
    pair.atServer.onTurnEnding = { [unowned pair] in
      guard pair.server.counters.writes == 10 else { return }
      for (index, id) in ids.enumerated() { pair.atServer.send([UInt8(index), 1], to: id.atServer) }
    }
    pair.turn(until: { pair.atClient.received.values.reduce(0) { $0 + $1.count } == 30 })
    for (index, id) in ids.enumerated() { #expect(pair.atClient.received[id.atClient] == [0, UInt8(index), 1]) }
    #expect(pair.server.counters.writes == 20)
  }

  @Test func `few sends need no ring, and off is off`() throws {
    for together in [true, false] {
      let pair = try Pair(server: Self.limits(together: together))
      let ids = try (0..<SendRing.worthwhileFrom).map { _ in try pair.connect() }
      pair.atServer.send([1], to: ids[0].atServer)
      for id in ids.dropFirst(2) { pair.atServer.send([1], to: id.atServer) }
      pair.turn(until: { pair.atClient.received.count == ids.count - 1 })
      #expect(pair.server.counters.sendBatches == 0)
      for id in ids { pair.atServer.send([2], to: id.atServer) }
      pair.turn(until: { pair.atClient.received.values.reduce(0) { $0 + $1.count } == 2 * ids.count - 1 })
      #expect(pair.server.counters.sendBatches == (together && Self.kernelAllows ? 1 : 0))
    }
  }
}
