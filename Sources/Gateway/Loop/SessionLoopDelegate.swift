// The object that an event loop calls: passes each call to the loop's sessions.
import HubCore
import HubTransport

@safe
final class SessionLoopDelegate: EventLoopDelegate {
  // Behind a pointer, because each use of a class's stored property is checked for exclusive access at run time.
  // Exclusivity holds: the loop makes one call after the other, and none from within another.
  let sessions: UnsafeMutablePointer<SessionLoop>

  /// The loop's counters.
  var counters: LoopCounters { unsafe sessions.pointee.allCounters }

  init(_ sessions: consuming SessionLoop) {
    unsafe self.sessions = .allocate(capacity: 1)
    unsafe self.sessions.initialize(to: sessions)
  }

  deinit {
    unsafe sessions.deinitialize(count: 1)
    unsafe sessions.deallocate()
  }

  func accepted(_ id: ConnectionID, from peer: SocketAddress) { unsafe sessions.pointee.accepted(id, from: peer) }
  func connected(_ id: ConnectionID) {}  // this loop makes no connections
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    unsafe sessions.pointee.received(id, bytes)
  }
  func drained(_ id: ConnectionID) { unsafe sessions.pointee.drained(id) }
  func overflowed(_ id: ConnectionID) { unsafe sessions.pointee.overflowed(id) }
  func closed(_ id: ConnectionID, _ cause: CloseCause) { unsafe sessions.pointee.closed(id, cause) }
  func timerFired(_ id: ConnectionID) { unsafe sessions.pointee.timerFired(id) }
  func woken() { unsafe sessions.pointee.woken() }
  func loopTimerFired() { unsafe sessions.pointee.loopTimerFired() }
  func turnEnding() { unsafe sessions.pointee.turnEnding() }
  func turnEnded() { unsafe sessions.pointee.turnEnded() }
}
