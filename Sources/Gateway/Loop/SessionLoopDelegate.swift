// The object that an event loop calls: hands each call on to the loop's sessions.
import HubCore
import HubTransport

final class SessionLoopDelegate: EventLoopDelegate {
  // Behind a pointer, because every use of a class's stored variable is checked for exclusive access while the program
  // runs. What that would find can't be: the loop makes one call after the other, and none from within what it is asked
  // to do.
  let sessions: UnsafeMutablePointer<SessionLoop>

  /// What the loop has counted so far.
  var counters: LoopCounters { sessions.pointee.allCounters }

  init(_ sessions: consuming SessionLoop) {
    self.sessions = .allocate(capacity: 1)
    self.sessions.initialize(to: sessions)
  }

  deinit {
    sessions.deinitialize(count: 1)
    sessions.deallocate()
  }

  func accepted(_ id: ConnectionID, from peer: SocketAddress) { sessions.pointee.accepted(id, from: peer) }
  func connected(_ id: ConnectionID) {}  // this loop makes no connections
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) { sessions.pointee.received(id, bytes) }
  func drained(_ id: ConnectionID) { sessions.pointee.drained(id) }
  func overflowed(_ id: ConnectionID) { sessions.pointee.overflowed(id) }
  func closed(_ id: ConnectionID, _ cause: CloseCause) { sessions.pointee.closed(id, cause) }
  func timerFired(_ id: ConnectionID) { sessions.pointee.timerFired(id) }
  func woken() { sessions.pointee.woken() }
  func loopTimerFired() { sessions.pointee.loopTimerFired() }
  func turnEnding() { sessions.pointee.turnEnding() }
  func turnEnded() { sessions.pointee.turnEnded() }
}
