// Ending connections: in order, or at once. Every way ends in `doom`, which closes the descriptor and notes the
// callback; the slot is freed when that is delivered.

import CHubLinux
import Glibc

extension EventLoop {
  /// Closes in order: sends what is pending, says goodbye where there is TLS, says FIN, waits for the peer's FIN, then
  /// closes; what still comes from the peer is thrown away. Sends after this do nothing. `closed` comes when all is
  /// done.
  ///
  /// All of it takes at most `closeMilliseconds`, or until the time given to `setTimer` after this call; then the
  /// connection is cut off. `timerFired` is not called any more.
  public func close(_ id: ConnectionID) {
    guard let connection = slab.live(id) else { return }
    switch connection.pointee.state {
    case .open:
      connection.pointee.state = .closing
      connection.pointee.flags.remove(.isReadingPaused)
      let end = now.uptimeNanoseconds + Int64(limits.closeMilliseconds) * 1_000_000
      wheel.set(id.slot, at: end, in: slab)
      watch(id, connection)
      markDirty(id.slot, connection)
    case .connecting: doom(id, connection, .closedByUs)
    case .closing, .lingering, .free, .doomed: break
    }
  }

  /// Closes at once, without what is pending here; what the kernel has goes out still, unless `reset`: then the peer
  /// gets RST and the kernel throws its part away, too.
  public func abort(_ id: ConnectionID, reset: Bool = false) {
    guard let connection = slab.live(id) else { return }
    doom(id, connection, .closedByUs, reset: reset)
  }

  /// All is sent: says so to the peer, and waits for its end, unless that came already.
  func finishSending(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    if connection.pointee.flags.contains(.isTLS), !hasSaidGoodbye(id, connection) { return }
    guard !connection.pointee.flags.contains(.peerHasFinished), sockets.finish(connection.pointee.descriptor)
    else {
      doom(id, connection, .closedByUs)
      return
    }
    connection.pointee.state = .lingering
    watch(id, connection)
  }

  /// Ends a connection. The descriptor is closed now, since descriptors are what may be short; the callback waits.
  func doom(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ cause: CloseCause, reset: Bool = false
  ) {
    switch connection.pointee.state {
    case .free, .doomed: return
    case .connecting, .open, .closing, .lingering: break
    }
    releaseOutbox(connection)
    if connection.pointee.flags.contains(.isTLS) {
      connection.pointee.flags.remove(.isTLS)
      dropStream(id, cause)
    }
    sockets.close(connection.pointee.descriptor, reset: reset)
    connection.pointee.descriptor = -1
    connection.pointee.state = .doomed
    connection.pointee.cause = cause
    note(id, in: &doomedNotices)
  }
}
