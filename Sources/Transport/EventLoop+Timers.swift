// One timer for each connection, one for the loop, and the wait before accepting again.
import HubBytes
import HubSystem

extension EventLoop {
  /// Sets the connection's timer to an uptime in nanoseconds, replacing the one it had; nil unsets it. `timerFired`
  /// comes at that time or up to some 70 ms later, never earlier; where more than `timersPerTurn` are due together,
  /// some turns later. O(1); pushing it back on each message costs a store.
  public func setTimer(_ id: ConnectionID, at uptimeNanoseconds: Int64?) {
    guard let connection = unsafe slab.live(id) else { return }
    switch unsafe connection.pointee.state {
    case .connecting, .open: break
    // The timer bounds the closing now: it may be moved, not removed.
    case .closing, .lingering: if uptimeNanoseconds == nil { return }
    case .free, .doomed: return
    }
    wheel.set(id.slot, at: uptimeNanoseconds, in: slab)
  }

  /// Sets the loop's own timer to an uptime in nanoseconds, which may be past; nil unsets it. `loopTimerFired` comes at
  /// that time or up to a millisecond later.
  public func setLoopTimer(at uptimeNanoseconds: Int64?) { loopTimerAt = uptimeNanoseconds }

  /// Whether due timers are left for the next turn.
  var hasDueTimers: Bool { nextDueTimer < dueTimers.count }

  func fireTimers(_ delegate: (any EventLoopDelegate)?) {
    if let time = acceptRetryAt, time <= now.uptimeNanoseconds { resumeAccepting() }
    wheel.advance(to: now.uptimeNanoseconds, in: slab, due: &dueTimers)
    // By index, so that no access to the list is under way during a callback.
    var room = limits.timersPerTurn
    while room > 0, nextDueTimer < dueTimers.count {
      let id = dueTimers[nextDueTimer]
      nextDueTimer += 1
      // An earlier callback may have ended the connection, or set its timer again.
      guard let connection = unsafe slab.live(id), wheel.takeDue(id.slot, in: slab) else { continue }
      room -= 1
      switch unsafe connection.pointee.state {
      case .connecting, .open: delegate?.timerFired(id)
      case .closing, .lingering: unsafe doom(id, connection, .closedByUs)
      case .free, .doomed: break
      }
    }
    if !hasDueTimers {
      dueTimers.removeAll()
      nextDueTimer = 0
    }
    if let time = loopTimerAt, time <= now.uptimeNanoseconds {
      loopTimerAt = nil
      delegate?.loopTimerFired()
    }
  }
}
