// Two loops in one thread over the real loopback, driven turn by turn; a clock that is set by hand; seeded randomness.

import HubBytes
import HubSystem
import Testing

@testable import HubTransport

/// Records what a loop says; `on…` closures do more.
final class Recorder: EventLoopDelegate {
  unowned let loop: EventLoop
  var accepted: [ConnectionID] = []
  var peers: [SocketAddress] = []
  var connected: [ConnectionID] = []
  var received: [ConnectionID: [UInt8]] = [:]
  var drained: [ConnectionID] = []
  var overflowed: [ConnectionID] = []
  var closed: [ConnectionID: CloseCause] = [:]
  var closedTwice = false
  var timers: [ConnectionID] = []
  var loopTimers = 0
  var wakeUps = 0
  var isInOperation = false
  var callbacksDuringOperation = 0

  var onAccepted: (ConnectionID) -> Void = { _ in }
  var onReceived: (ConnectionID, UnsafeMutableRawBufferPointer) -> Void = { _, _ in }
  var onClosed: (ConnectionID) -> Void = { _ in }
  var onDrained: (ConnectionID) -> Void = { _ in }
  var onOverflowed: (ConnectionID) -> Void = { _ in }
  var onTimer: (ConnectionID) -> Void = { _ in }
  var onWoken: () -> Void = {}
  var onTurnEnding: () -> Void = {}

  init(_ loop: EventLoop) {
    self.loop = loop
    loop.delegate = self
  }

  func note() { if isInOperation { callbacksDuringOperation += 1 } }

  func accepted(_ id: ConnectionID, from peer: SocketAddress) {
    note()
    accepted.append(id)
    peers.append(peer)
    onAccepted(id)
  }
  func connected(_ id: ConnectionID) {
    note()
    connected.append(id)
  }
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    note()
    received[id, default: []].append(contentsOf: bytes)
    onReceived(id, bytes)
  }
  func drained(_ id: ConnectionID) {
    note()
    drained.append(id)
    onDrained(id)
  }
  func overflowed(_ id: ConnectionID) {
    note()
    overflowed.append(id)
    onOverflowed(id)
  }
  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    note()
    if closed.updateValue(cause, forKey: id) != nil { closedTwice = true }
    onClosed(id)
  }
  func timerFired(_ id: ConnectionID) {
    note()
    timers.append(id)
    onTimer(id)
  }
  func woken() {
    wakeUps += 1
    onWoken()
  }
  func loopTimerFired() { loopTimers += 1 }
  func turnEnding() { onTurnEnding() }

  /// Sends bytes as one frame, and notes callbacks that come from within.
  func send(_ bytes: [UInt8], to id: ConnectionID, key: UInt64 = 0) {
    let start = loop.arena.count
    loop.arena.append(bytes)
    isInOperation = true
    loop.send(start..<loop.arena.count, to: id, conflationKey: key)
    isInOperation = false
  }
}

/// A server loop and a client loop, and what they say. Their time stands still unless a test moves it, so a slow
/// machine makes no timeout.
final class Pair {
  let server: EventLoop
  let client: EventLoop
  let atServer: Recorder
  let atClient: Recorder
  var address = SocketAddress.loopback(port: 0)

  init(
    server serverLimits: EventLoopLimits = EventLoopLimits(), client clientLimits: EventLoopLimits = EventLoopLimits(),
    host: SocketAddress = .loopback(port: 0), clock: HandClock = HandClock()
  ) throws {
    let read = { clock.reading }
    server = try EventLoop(limits: serverLimits, clock: read)
    client = try EventLoop(limits: clientLimits, clock: read)
    atServer = Recorder(server)
    atClient = Recorder(client)
    address = try server.listen(host)
  }

  /// Turns both loops until `condition` holds. A bound in turns instead of a sleep: each turn waits a millisecond
  /// at most, and only when nothing is ready.
  func turn(until condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    var turns = 0
    while !condition() {
      server.runTurn(timeoutMilliseconds: turns % 2 == 0 ? 0 : 1)
      client.runTurn(timeoutMilliseconds: 0)
      turns += 1
      if turns > 20_000 {
        Issue.record("the condition did not come about", sourceLocation: sourceLocation)
        return
      }
    }
  }

  func turn(times: Int) {
    for _ in 0..<times {
      server.runTurn(timeoutMilliseconds: 0)
      client.runTurn(timeoutMilliseconds: 0)
    }
  }

  /// A connection, by its ids at the client and at the server.
  func connect() throws -> (atClient: ConnectionID, atServer: ConnectionID) {
    let before = atServer.accepted.count
    let id = try client.connect(address)
    turn(until: { atServer.accepted.count > before && atClient.connected.contains(id) })
    return (id, atServer.accepted[before])
  }
}

/// Time that the test advances.
final class HandClock {
  var reading = ClockReading(uptimeNanoseconds: 1_000_000_000, unixMilliseconds: 1_763_680_000_000)

  func advance(milliseconds: Int64) {
    reading.uptimeNanoseconds += milliseconds * 1_000_000
    reading.unixMilliseconds += milliseconds
  }
}
