// What all connections of a loop may have unsent, and who gives way where that is too much. Over a simulated network,
// since which bytes the kernel takes is part of these tests.
import HubBytes
import HubTransportSupport
import Testing

@testable import HubTransport

@Suite struct FullOutboxesTests {
  /// A reader that reads when the test says so.
  private struct Reader {
    let id: ConnectionID
    let far: SimulatedSocket
  }

  /// A loop whose connections may have 300,000 unsent bytes each, and 500,000 together.
  private struct Scene {
    let network = SimulatedNetwork()
    let loop: EventLoop
    let recorder: Recorder

    init() throws {
      var limits = EventLoopLimits()
      limits.outboxBytesPerConnection = 300_000
      limits.outboxBytesTotal = 500_000
      network.window = 20_000
      let clock = HandClock()
      loop = try EventLoop(limits: limits, clock: { clock.reading }, network: network)
      recorder = Recorder(loop)
      _ = try loop.listen(.loopback(port: 0))
    }

    var unsent: Int { loop.counters.outboxBytes }

    func turn() { loop.runTurn(timeoutMilliseconds: 0) }

    func connect() throws -> Reader {
      let far = try #require(network.connectToListener())
      turn()
      return Reader(id: try #require(recorder.accepted.last), far: far)
    }

    /// Sends so many bytes, and has a turn.
    func send(_ byte: UInt8 = 1, count: Int, to id: ConnectionID, key: UInt64 = 0) {
      recorder.send([UInt8](repeating: byte, count: count), to: id, key: key)
      turn()
    }

    /// What a reader gets that reads until nothing comes any more.
    func readAll(_ reader: Reader) -> [UInt8] {
      var (bytes, isOver): ([UInt8], Bool) = ([], false)
      while !isOver {
        reader.far.arrive()
        let more = reader.far.receiveAll()
        bytes += more
        isOver = more.isEmpty
        turn()
      }
      return bytes
    }

    /// Three that read nothing, with so much unsent together.
    func hoarders(_ bytes: Int) throws -> [Reader] {
      let readers = try (0..<3).map { _ in try connect() }
      for _ in 0..<1000 where unsent < bytes { for reader in readers { send(count: 2000, to: reader.id) } }
      try #require(unsent >= bytes && recorder.overflowed.isEmpty)
      return readers
    }

    /// One that reads nothing and holds little is sent 80 frames, which all outboxes together have no room for.
    func sendMuch() throws -> (reader: Reader, frames: [TestFrame]) {
      let reader = try connect()
      var frames: [TestFrame] = []
      func send(_ filling: Int) {
        frames.append(TestFrame(key: 0, number: UInt32(frames.count), filling: filling))
        recorder.send(frames[frames.count - 1].bytes, to: reader.id)
        turn()
      }
      for _ in 0..<1000 where !loop.isBlocked(reader.id) { send(5000) }
      try #require(loop.isBlocked(reader.id))
      for _ in 0..<80 { send(1000) }
      #expect(!recorder.overflowed.contains(reader.id) && loop.counters.overflowedTogether == 1)
      // The rest of a frame that has begun is kept whatever the limit says: one a connection.
      #expect(unsent <= 500_000 + 4 * 5076)
      return (reader, frames)
    }
  }

  @Test func `a frame larger than the limit overflows behind another`() throws {
    let scene = try Scene()
    let reader = try scene.connect()
    for _ in 0..<1000 where !scene.loop.isBlocked(reader.id) { scene.send(count: 5000, to: reader.id) }
    try #require(scene.loop.isBlocked(reader.id))
    let waiting = scene.loop.pendingBytes(reader.id)
    scene.send(count: 350_000, to: reader.id)
    #expect(scene.recorder.overflowed == [reader.id] && scene.loop.pendingBytes(reader.id) == waiting)
  }

  @Test func `all outboxes together have a limit, too`() throws {
    let scene = try Scene()
    let readers = try (0..<4).map { _ in try scene.connect() }
    for _ in 0..<1000 where scene.recorder.overflowed.isEmpty {
      for reader in readers { scene.recorder.send([UInt8](repeating: 1, count: 10_000), to: reader.id) }
      scene.turn()
      #expect(scene.unsent <= 500_000 + 4 * 10_064)
    }
    try #require(!scene.recorder.overflowed.isEmpty)
    #expect(scene.loop.counters.overflowedTogether == scene.loop.counters.overflowed)
    #expect(readers.allSatisfy { scene.loop.pendingBytes($0.id) < 300_000 })
    for reader in readers { scene.loop.abort(reader.id) }
    scene.turn()
    #expect(scene.unsent == 0 && scene.loop.counters.blockedConnections == 0)
  }

  @Test func `where all outboxes are full together, one that holds much gives way to a reader that has little unsent`()
    throws
  {
    let scene = try Scene()
    let hoarders = try scene.hoarders(450_000)
    let (reader, frames) = try scene.sendMuch()
    #expect(scene.recorder.overflowed.count == 1 && hoarders.map(\.id).contains(scene.recorder.overflowed[0]))
    #expect(TestFrame.parse(scene.readAll(reader)) == frames)
    for hoarder in hoarders { scene.loop.abort(hoarder.id) }
    scene.turn()
    #expect(scene.unsent == 0 && scene.loop.outboxRanks.largest() == nil)
    #expect(scene.recorder.callbacksDuringOperation == 0)
  }

  @Test func `closing connections that hold much end for it, so that a reader with little unsent goes on`() throws {
    let scene = try Scene()
    let hoarders = try scene.hoarders(450_000)
    for hoarder in hoarders { scene.loop.close(hoarder.id) }
    let (reader, frames) = try scene.sendMuch()
    let ended = hoarders.filter { scene.recorder.closed[$0.id] != nil }
    #expect(ended.count == 1 && scene.recorder.closed[ended[0].id] == .closedByUs)
    #expect(scene.recorder.overflowed.isEmpty)
    #expect(TestFrame.parse(scene.readAll(reader)) == frames)
    #expect(scene.recorder.callbacksDuringOperation == 0)
  }

  @Test func `one that gives way still gets a last word`() throws {
    let scene = try Scene()
    let hoarders = try scene.hoarders(450_000)
    scene.recorder.onOverflowed = { id in
      scene.loop.dropPending(id)
      scene.recorder.send([9, 8, 7], to: id)
      scene.loop.close(id)
    }
    defer { scene.recorder.onOverflowed = { _ in } }
    _ = try scene.sendMuch()
    let loser = try #require(hoarders.first { $0.id == scene.recorder.overflowed.first })
    #expect(scene.recorder.closed[loser.id] == nil)
    #expect(scene.readAll(loser).suffix(3) == [9, 8, 7] && loser.far.end == .finished)
  }

  @Test func `a newer state that takes the place of an older one closes nobody's connection`() throws {
    let scene = try Scene()
    let hoarders = try scene.hoarders(400_000)
    let small = try scene.connect()
    for _ in 0..<1000 where !scene.loop.isBlocked(small.id) { scene.send(count: 5000, to: small.id) }
    scene.send(2, count: 1000, to: small.id, key: 7)
    for _ in 0..<1000 where scene.unsent + 1064 < 500_000 { scene.send(count: 900, to: hoarders[0].id) }
    try #require(scene.loop.isBlocked(small.id) && scene.unsent + 1064 >= 500_000)
    #expect(scene.recorder.overflowed.isEmpty)
    for _ in 0..<20 { scene.send(3, count: 1000, to: small.id, key: 7) }
    #expect(scene.recorder.overflowed.isEmpty && scene.loop.counters.conflated == 20)
  }
}
