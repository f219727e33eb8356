// Ending connections: in order, or at once. Every way ends in `doom`, which closes the descriptor and notes the
// callback; the slot is freed when that is delivered.

import CHubLinux
import Glibc
import HubSystem

extension EventLoop {
  /// Closes in order: sends what is pending, says goodbye where there is TLS, says FIN, waits for the peer's FIN, then
  /// closes; what still comes from the peer is thrown away. Sends after this do nothing. `closed` comes when all is
  /// done.
  ///
  /// All of it takes at most `closeMilliseconds`, or until the time given to `setTimer` after this call; then the
  /// connection is cut off. `timerFired` is not called any more.
  public func close(_ id: ConnectionID) {
    guard let connection = unsafe slab.live(id) else { return }
    switch unsafe connection.pointee.state {
    case .open:
      unsafe connection.pointee.state = .closing
      unsafe connection.pointee.flags.remove(.isReadingPaused)
      let end = now.uptimeNanoseconds + Int64(limits.closeMilliseconds) * 1_000_000
      wheel.set(id.slot, at: end, in: slab)
      unsafe watch(id, connection)
      unsafe markDirty(id.slot, connection)
    case .connecting: unsafe doom(id, connection, .closedByUs)
    case .closing, .lingering, .free, .doomed: break
    }
  }

  /// Closes at once, without what is pending here; what the kernel has goes out still, unless `reset`: then the peer
  /// gets RST and the kernel throws its part away, too.
  public func abort(_ id: ConnectionID, reset: Bool = false) {
    guard let connection = unsafe slab.live(id) else { return }
    unsafe doom(id, connection, .closedByUs, reset: reset)
  }

  /// All is sent: says so to the peer, and waits for its end, unless that came already.
  func finishSending(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    if unsafe connection.pointee.flags.contains(.isTLS), unsafe !hasSaidGoodbye(id, connection) { return }
    guard unsafe !connection.pointee.flags.contains(.peerHasFinished),
      unsafe sockets.finish(connection.pointee.descriptor)
    else {
      unsafe doom(id, connection, .closedByUs)
      return
    }
    unsafe connection.pointee.state = .lingering
    unsafe watch(id, connection)
  }

  /// Ends a connection. The descriptor is closed now, since descriptors are what may be short; the callback waits.
  func doom(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ cause: CloseCause, reset: Bool = false
  ) {
    switch unsafe connection.pointee.state {
    case .free, .doomed: return
    case .connecting, .open, .closing, .lingering: break
    }
    unsafe releaseOutbox(connection)
    if unsafe connection.pointee.flags.contains(.isTLS) {
      unsafe connection.pointee.flags.remove(.isTLS)
      dropStream(id, cause)
    }
    unsafe sockets.close(connection.pointee.descriptor, reset: reset)
    unsafe connection.pointee.descriptor = -1
    unsafe connection.pointee.state = .doomed
    unsafe connection.pointee.cause = cause
    note(id, in: &doomedNotices)
  }
}
