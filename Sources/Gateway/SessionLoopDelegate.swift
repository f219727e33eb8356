// The object that an event loop calls: hands each call on to the loop's sessions.
import HubCore
import Transport

final class SessionLoopDelegate: EventLoopDelegate {
  private var sessions: SessionLoop

  init(_ sessions: consuming SessionLoop) { self.sessions = sessions }

  func accepted(_ id: ConnectionID, from peer: SocketAddress) { sessions.accepted(id, from: peer) }
  func connected(_ id: ConnectionID) {}  // this loop makes no connections
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) { sessions.received(id, bytes) }
  func drained(_ id: ConnectionID) { sessions.drained(id) }
  func overflowed(_ id: ConnectionID) { sessions.overflowed(id) }
  func closed(_ id: ConnectionID, _ cause: CloseCause) { sessions.closed(id, cause) }
  func timerFired(_ id: ConnectionID) { sessions.timerFired(id) }
  func woken() { sessions.woken() }
  func loopTimerFired() { sessions.loopTimerFired() }
  func turnEnding() { sessions.turnEnding() }
  func turnEnded() { sessions.turnEnded() }
}
