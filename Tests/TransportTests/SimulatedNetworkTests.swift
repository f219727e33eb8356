// What the kernel does seldom and cannot be made to do: a loop over a simulated network, whose far ends are used by
// hand.
import Glibc
import HubBytes
import HubTransportSupport
import Testing

@testable import HubTransport

@Suite struct SimulatedNetworkTests {
  /// A loop that listens, and one connection to it.
  private struct Scene {
    let network = SimulatedNetwork()
    let loop: EventLoop
    let recorder: Recorder
    let far: SimulatedSocket
    let id: ConnectionID

    init(limits: EventLoopLimits = EventLoopLimits(), window: Int = 1 << 20, clock: HandClock = HandClock()) throws {
      loop = try EventLoop(limits: limits, clock: { clock.reading }, network: network)
      recorder = Recorder(loop)
      _ = try loop.listen(.loopback(port: 0))
      network.window = window
      far = try #require(network.connectToListener())
      loop.runTurn(timeoutMilliseconds: 0)
      id = try #require(recorder.accepted.first)
    }

    func turn() { loop.runTurn(timeoutMilliseconds: 0) }

    func say(_ bytes: [UInt8]) { bytes.withUnsafeBytes { _ = far.send($0) } }
  }

  @Test("bytes are received as they arrive, and the end behind them")
  func arrives() throws {
    let scene = try Scene()
    scene.say([1, 2, 3, 4])
    _ = scene.far.finish()
    scene.turn()
    #expect(scene.recorder.received[scene.id] == nil)
    scene.far.peer?.arrive(1)
    scene.turn()
    #expect(scene.recorder.received[scene.id] == [1])
    scene.far.peer?.arrive(3)
    scene.turn()
    #expect(scene.recorder.received[scene.id] == [1, 2, 3, 4] && scene.recorder.closed.isEmpty)
    scene.far.peer?.arrive()
    scene.turn()
    #expect(scene.recorder.closed[scene.id] == .peerClosed && scene.network.count == 1)
    scene.far.arrive()
    #expect(scene.far.end == .finished)
  }

  @Test("what gives way to another has no later frame behind a hole, though its reader goes on in that turn")
  func noHole() throws {
    var limits = EventLoopLimits()
    (limits.outboxBytesPerConnection, limits.outboxBytesTotal) = (600, 600)
    let scene = try Scene(limits: limits, window: 100)
    let far = try #require(scene.network.connectToListener())
    scene.turn()
    let (small, large) = (scene.id, try #require(scene.recorder.accepted.last))
    for id in [small, large] { scene.recorder.send([UInt8](repeating: 1, count: 100), to: id) }
    scene.turn()
    scene.recorder.send([2], to: small)
    scene.recorder.send([UInt8](repeating: 2, count: 400), to: large)
    scene.turn()
    #expect(scene.loop.counters.outboxBytes == 401 + 2 * EventLoopLimits.frameOverheadBytes)
    far.arrive()
    #expect(far.receiveAll().count == 100)
    // What the small one gets comes first in the turn in which there is room for the large one again.
    scene.recorder.onReceived = { id, _ in scene.recorder.send([UInt8](repeating: 3, count: 100), to: id) }
    scene.recorder.onTurnEnding = { if scene.recorder.received[small] != nil { scene.recorder.send([9], to: large) } }
    scene.say([0])
    scene.far.peer?.arrive()
    scene.turn()
    (scene.recorder.onReceived, scene.recorder.onTurnEnding) = ({ _, _ in }, {})
    #expect(scene.recorder.overflowed == [large])
    for _ in 0..<3 {
      scene.turn()
      far.arrive()
    }
    #expect(far.receiveAll().isEmpty, "a frame came behind those that were dropped")
  }

  @Test("every split of what the kernel takes gives the same bytes", arguments: 1...9)
  func partialWrites(window: Int) throws {
    let scene = try Scene(window: window)
    scene.recorder.send([1, 2, 3], to: scene.id)
    scene.recorder.send([4, 5], to: scene.id)
    var received: [UInt8] = []
    for turn in 0..<12 {
      if turn == 1 { scene.recorder.send([6, 7, 8], to: scene.id) }
      scene.turn()
      scene.far.arrive()
      received += scene.far.receiveAll()
    }
    #expect(received == [1, 2, 3, 4, 5, 6, 7, 8])
    #expect(!scene.loop.isBlocked(scene.id) && scene.recorder.callbacksDuringOperation == 0)
  }

  @Test("pieces that do not lie together are cut where the room ends")
  func cutBetweenPieces() throws {
    let scene = try Scene(window: 4)
    let frame = { (bytes: [UInt8]) -> Range<Int> in
      let start = scene.loop.arena.count
      scene.loop.arena.append(bytes)
      return start..<scene.loop.arena.count
    }
    let (first, _, third) = (frame([1, 2, 3]), frame([9]), frame([4, 5, 6]))
    scene.loop.send(first, to: scene.id)
    scene.loop.send(third, to: scene.id)
    scene.turn()
    scene.far.arrive()
    #expect(scene.far.receiveAll() == [1, 2, 3, 4] && scene.loop.pendingBytes(scene.id) == 2)
    scene.turn()
    scene.far.arrive()
    #expect(scene.far.receiveAll() == [5, 6] && scene.recorder.drained == [scene.id])
  }

  @Test("who reads nothing gets the newest of each key, and past the limit of the outbox nothing")
  func backpressure() throws {
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 300
    let scene = try Scene(limits: limits, window: 2)
    scene.recorder.send([1, 1, 1], to: scene.id)
    scene.turn()
    for value in 2...9 as ClosedRange<UInt8> { scene.recorder.send([value], to: scene.id, key: 7) }
    scene.turn()
    #expect(scene.loop.counters.conflated == 7 && scene.recorder.overflowed.isEmpty)
    for _ in 0..<4 { scene.recorder.send([0], to: scene.id) }
    scene.turn()
    #expect(scene.recorder.overflowed == [scene.id])
    var received: [UInt8] = []
    for _ in 0..<5 {
      scene.far.arrive()
      received += scene.far.receiveAll()
      scene.turn()
    }
    #expect(received.starts(with: [1, 1, 1, 9]))
  }

  @Test("a reset behind unread bytes: the bytes first, then the end")
  func reset() throws {
    let scene = try Scene()
    scene.say([1, 2])
    scene.far.close(reset: false)
    scene.far.peer?.arrive(2)
    scene.turn()
    #expect(scene.recorder.received[scene.id] == [1, 2] && scene.recorder.closed.isEmpty)
    // What is sent to somebody who has gone comes back as a reset.
    scene.recorder.send([3], to: scene.id)
    scene.turn()
    scene.far.peer?.arrive()
    scene.turn()
    #expect(scene.recorder.closed[scene.id] == .peerReset)
  }

  @Test("a reset while reading is paused ends the connection without a byte")
  func resetWhilePaused() throws {
    let scene = try Scene()
    scene.loop.pauseReading(scene.id)
    scene.far.close(reset: true)
    scene.far.peer?.arrive()
    scene.turn()
    #expect(scene.recorder.closed[scene.id] == .peerReset && scene.recorder.received.isEmpty)
  }

  @Test("a write that fails ends the connection with what it failed with")
  func failedWrite() throws {
    let scene = try Scene()
    scene.far.close(reset: true)
    scene.far.peer?.arrive()
    scene.loop.pauseReading(scene.id)
    scene.recorder.send([1], to: scene.id)
    scene.turn()
    #expect(scene.recorder.closed[scene.id] == .peerReset)
  }

  @Test("closing sends what is pending and FIN, and waits for the peer's")
  func closesInOrder() throws {
    let scene = try Scene(window: 3)
    scene.recorder.send([1, 2, 3, 4, 5], to: scene.id)
    scene.turn()
    scene.loop.close(scene.id)
    var received: [UInt8] = []
    for _ in 0..<3 {
      scene.far.arrive()
      received += scene.far.receiveAll()
      scene.turn()
    }
    scene.far.arrive()
    #expect(received == [1, 2, 3, 4, 5] && scene.far.end == .finished && scene.recorder.closed.isEmpty)
    _ = scene.far.finish()
    scene.far.peer?.arrive()
    scene.turn()
    #expect(scene.recorder.closed[scene.id] == .closedByUs)
  }

  @Test("a newcomer that is lost is passed over; without descriptors the listener rests")
  func acceptErrors() throws {
    let clock = HandClock()
    let scene = try Scene(clock: clock)
    scene.network.acceptOutcomes = [.lost, .exhausted]
    let second = scene.network.connectToListener()
    scene.turn()
    scene.turn()
    #expect(second != nil && scene.recorder.accepted.count == 1)
    #expect(scene.loop.counters.acceptErrors == 2 && scene.loop.counters.acceptPauses == 1)
    clock.advance(milliseconds: Int64(scene.loop.limits.acceptRetryMilliseconds))
    scene.turn()
    scene.turn()
    #expect(scene.recorder.accepted.count == 2)
  }

  @Test("where epoll has no room a newcomer is closed, and a connection ends")
  func watchErrors() throws {
    let scene = try Scene()
    scene.network.watchErrors = [ENOSPC]
    let second = try #require(scene.network.connectToListener())
    scene.turn()
    second.arrive()
    #expect(second.end == .finished && scene.recorder.accepted.count == 1)
    scene.network.watchErrors = [ENOMEM]
    scene.loop.pauseReading(scene.id)
    scene.turn()
    #expect(scene.recorder.closed[scene.id] == .failed(errno: ENOMEM) && scene.network.count == 1)
  }

  @Test("what a connection could not keep when epoll refused to watch it is sent to no other")
  func refusedRoom() throws {
    let scene = try Scene(window: 2)
    scene.network.watchErrors = [ENOMEM]
    scene.recorder.send([1, 2, 3, 4], to: scene.id)
    scene.turn()
    #expect(scene.recorder.closed[scene.id] == .failed(errno: ENOMEM))
    #expect(scene.loop.counters.outboxBytes == 0 && scene.loop.counters.blockedConnections == 0)
    let second = try #require(scene.network.connectToListener())
    scene.turn()
    scene.recorder.send([5, 6, 7, 8], to: try #require(scene.recorder.accepted.last))
    var received: [UInt8] = []
    for _ in 0..<4 {
      scene.turn()
      second.arrive()
      received += second.receiveAll()
    }
    #expect(received == [5, 6, 7, 8])
  }

  @Test("connections that the loop begins stand, or fail with what the network says")
  func connects() throws {
    let scene = try Scene()
    let first = try scene.loop.connect(.loopback(port: 9))
    scene.turn()
    #expect(scene.recorder.connected == [first])
    let second = try scene.loop.connect(.loopback(port: 9))
    scene.network.dialled[1].peer?.connectError = ETIMEDOUT
    scene.turn()
    #expect(scene.recorder.closed[second] == .connectFailed(errno: ETIMEDOUT))
    scene.network.connectError = ECONNREFUSED
    let third = try scene.loop.connect(.loopback(port: 9))
    scene.turn()
    #expect(scene.recorder.closed[third] == .connectFailed(errno: ECONNREFUSED))
  }
}
