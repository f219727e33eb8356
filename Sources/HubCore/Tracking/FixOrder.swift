// Where a fix belongs in time: in front of the filter, which only ever sees fixes in order.
//
// The rules are the contract's ("Fixes in time"). Phones are wrong about the time, and traces are replayed, so how
// old a timestamp is by the hub's clock says nothing. But one fix with a clock far ahead would make history of all
// that follow and silence the driver; so a leap ahead waits until a second fix says the same.

/// The order of one driver's fixes by their own timestamps. At most 88 bytes, no allocation.
struct FixOrder: Sendable, Equatable {
  /// What to do with a fix.
  enum Placement: Equatable {
    /// Newer than all before it.
    case next
    /// It confirms the leap of `held`, which comes first; both are in order.
    case confirms(held: TrackMeasurement)
    /// A leap ahead; the next fix decides.
    case held
    /// Older than the newest.
    case history
    /// The same millisecond as the newest, or as the one held back.
    case duplicate
  }

  /// The timestamp of the newest fix in order, or nil before the first.
  private(set) var newest: Int64?
  /// When that one came, in nanoseconds of the hub's uptime.
  private var newestReceived: Int64 = 0
  private(set) var held: TrackMeasurement?
  private var heldReceived: Int64 = 0
  /// How many held fixes were dropped: the next one did not confirm them, or their place was refused. Wraps.
  private(set) var dropped: UInt32 = 0

  init() {}

  /// Places a fix that came at `uptime` (nanoseconds, monotonic). A fix that is history or a duplicate says nothing
  /// about a held one, which goes on waiting; any other that does not confirm it drops it. O(1).
  ///
  /// A driver's first fix has none before it to leap from: it counts as a leap where it is further ahead of `hubClock`
  /// (Unix milliseconds, where the caller has one) than a leap may be. How far it is behind says nothing.
  mutating func place(
    _ fix: TrackMeasurement, receivedAt uptime: Int64, hubClock: Int64?, leapMilliseconds: Int64
  ) -> Placement {
    let time = fix.milliseconds
    if let newest {
      if time == newest { return .duplicate }
      if time < newest { return .history }
    }
    if let held {
      if time == held.milliseconds { return .duplicate }
      let step = FixOrder.excess(from: held.milliseconds, heldReceived, to: time, uptime)
      self.held = nil
      if time > held.milliseconds, step <= leapMilliseconds {
        _ = advance(to: time, receivedAt: uptime)
        return .confirms(held: held)
      }
      countDropped()
    }
    let ahead =
      newest.map { FixOrder.excess(from: $0, newestReceived, to: time, uptime) } ?? hubClock.map { time &- $0 }
    if let ahead, ahead > leapMilliseconds {
      held = fix
      heldReceived = uptime
      return .held
    }
    return advance(to: time, receivedAt: uptime)
  }

  mutating func countDropped() { dropped &+= 1 }

  private mutating func advance(to time: Int64, receivedAt uptime: Int64) -> Placement {
    newest = time
    newestReceived = uptime
    return .next
  }

  /// How many milliseconds more passed between two fixes by their own clock than by the hub's.
  private static func excess(from first: Int64, _ firstReceived: Int64, to second: Int64, _ received: Int64) -> Int64 {
    let passedAtHub = max(0, received &- firstReceived) / 1_000_000
    return (second &- first) &- passedAtHub
  }
}
