// Ending connections, in order or at once. Every path ends in `doom`, which closes the descriptor and notes the
// callback; the slot is freed when that is delivered.

import CHubLinux
import Glibc
import HubSystem

extension EventLoop {
  /// Closes in order: sends pending output, close_notify with TLS, and FIN, waits for the peer's FIN, then closes;
  /// further input is discarded. Later sends do nothing. `closed` comes when all is done.
  ///
  /// It takes at most `closeMilliseconds`, or until the time given to `setTimer` after this call, and from when all is
  /// sent at most `closeMilliseconds`; then the connection is aborted. `timerFired` is not called any more.
  public func close(_ id: ConnectionID) {
    guard let connection = unsafe slab.live(id) else { return }
    switch unsafe connection.pointee.state {
    case .open:
      unsafe connection.pointee.state = .closing
      unsafe connection.pointee.flags.remove(.isReadingPaused)
      wheel.set(id.slot, at: closingEnd, in: slab)
      unsafe watch(id, connection)
      unsafe markDirty(id.slot, connection)
    case .connecting: unsafe doom(id, connection, .closedByUs)
    case .closing, .lingering, .free, .doomed: break
    }
  }

  /// Closes at once and drops what waits here. What the kernel has is still sent, unless `reset`: then the peer gets
  /// RST, and the kernel discards its part, too.
  public func abort(_ id: ConnectionID, reset: Bool = false) {
    guard let connection = unsafe slab.live(id) else { return }
    unsafe doom(id, connection, .closedByUs, reset: reset)
  }

  /// Lets the kernel end the connection where the peer acknowledges nothing of what was sent for so long, or has no
  /// room for it (TCP_USER_TIMEOUT, tcp(7)): `closed` comes with ETIMEDOUT. Without it the kernel tries for a quarter
  /// of an hour, or for ever. A simulated network has no such time.
  public func abortIfUnread(_ id: ConnectionID, afterMilliseconds milliseconds: Int32) {
    guard let connection = unsafe slab.live(id) else { return }
    do throws(SystemError) {
      try unsafe sockets.abortIfUnread(connection.pointee.descriptor, afterMilliseconds: milliseconds)
    } catch {
      unsafe doom(id, connection, .failed(errno: error.errno))
    }
  }

  /// Until when a closing that begins now may take (uptime, ns).
  private var closingEnd: Int64 { now.uptimeNanoseconds + Int64(limits.closeMilliseconds) * 1_000_000 }

  /// All is sent: sends FIN, and waits for the peer's, unless that has come.
  func finishSending(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    if unsafe connection.pointee.flags.contains(.isTLS), unsafe !sayGoodbye(id, connection) { return }
    guard unsafe !connection.pointee.flags.contains(.peerHasFinished),
      unsafe sockets.finish(connection.pointee.descriptor)
    else {
      unsafe doom(id, connection, .closedByUs)
      return
    }
    unsafe connection.pointee.state = .lingering
    wheel.set(id.slot, noLaterThan: closingEnd, in: slab)
    unsafe watch(id, connection)
  }

  /// Ends a connection. Its descriptor is closed now, since the process may be short of them; `closed` is called later.
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
