// A driver's clock that was ahead, was believed, and is set right: how that differs from a backlog, and what is
// published until the fixes have caught up with what was published before.
//
// Both show fixes that are older than the newest. What tells them apart is when they were sent, by the phone's own
// clock: a phone that empties its queue sends old fixes now, so the envelope's time goes on; a clock that was set back
// takes the envelope's time with it. A live message proves that alone only for a moment (a queue may keep whole
// messages), so the new clock must run like the hub's for a minute. The hub's wall clock has no part in it: it may be
// turned, too.
//
// What was published never goes back in time. So positions then get times that go on from the newest published one,
// half as fast as the hub's clock: that is how clocks are slewed (adjtime(3)). They rise with every position,
// differences stay plausible for those who draw by them, and the fixes' own times catch up.
import HubMessages

/// What is known of a clock that was set back. In a box: hardly any driver has one.
indirect enum ClockChange: Sendable, Equatable {
  /// Live fixes come by a clock that is behind the newest fix. They are not published until they have agreed with the
  /// hub's clock for `DoubtedClock.agreement`.
  case doubted(DoubtedClock, PublishedClock?)
  /// The new clock is believed; published times have not been caught up with.
  case believed(PublishedClock)

  /// What positions are published by; nil where it is their fixes' own time.
  var published: PublishedClock? {
    switch self {
    case .doubted(_, let published): published
    case .believed(let published): published
    }
  }
}

/// A row of live fixes by a clock that may be the right one.
struct DoubtedClock: Sendable, Equatable {
  /// Milliseconds that a clock must have been set back by. What is less is caught up with before it is believed.
  static let leastBack: Int64 = 60_000
  /// Milliseconds between a fix and its envelope, up to which the fix was not kept in a queue.
  static let longestDelay: Int64 = 60_000
  /// Nanoseconds of the hub's uptime for which live fixes must agree.
  static let agreement: Int64 = 60_000_000_000
  /// Milliseconds that the new clock and the hub's may drift apart within one row: a message may be delayed.
  static let slack: Int64 = 30_000

  /// When the first of the row came (uptime, ns), and the time of its envelope (ms).
  var received: Int64
  var sent: Int64
  /// The time of the newest fix of the row (ms).
  var newest: Int64

  /// Whether as much time passed by the phone's clock as by the hub's since the row began.
  func agrees(sent other: Int64, receivedAt uptime: Int64) -> Bool {
    let passedAtHub = (uptime &- received) / 1_000_000
    return abs(other &- sent &- passedAtHub) <= DoubtedClock.slack
  }
}

/// The time that positions are published by while it is not their fixes' own.
struct PublishedClock: Sendable, Equatable {
  /// How many times slower it runs than the hub's clock.
  static let slowness: Int64 = 2

  /// Of the newest position (ms), and when its fix came (uptime, ns).
  var milliseconds: Int64
  var received: Int64

  /// The time of the next position: later than the one before, whatever the clocks did, but for the last one that can
  /// be written and stored: who was believed to live there stays there.
  mutating func advance(to uptime: Int64) -> Int64 {
    let passed = max(0, uptime &- received) / (1_000_000 * PublishedClock.slowness)
    milliseconds = min(milliseconds + max(1, passed), Timestamp.accepted.upperBound.milliseconds)
    received = uptime
    return milliseconds
  }
}

extension FixOrder {
  /// Places a fix that is not newer than the newest one, which is of `newest`. `sent` is the envelope's time (ms) of a
  /// live fix; nil for what came in a batch or without an envelope.
  @inline(never)
  mutating func placeBehind(
    _ newest: Int64, _ fix: TrackMeasurement, sent: Int64?, receivedAt uptime: Int64
  ) -> Placement {
    let time = fix.milliseconds
    guard time < newest else { return .duplicate }
    // What came in a batch, or waited in a queue, says nothing about the clock.
    guard let sent, abs(sent &- time) <= DoubtedClock.longestDelay else { return .history }
    guard newest &- time > DoubtedClock.leastBack, newestSent &- sent > DoubtedClock.leastBack else {
      endDoubt()  // sent by the clock that was there before
      return .history
    }
    let behind = newest &- time
    if case .doubted(var row, let published) = change, row.agrees(sent: sent, receivedAt: uptime) {
      guard time > row.newest else { return .history }
      if uptime &- row.received >= DoubtedClock.agreement {
        let passedAtHub = max(0, uptime &- newestReceived) / 1_000_000
        believe(published, newest: newest, fix: time, sent: sent, receivedAt: uptime)
        return .clockBelieved(back: behind &+ passedAtHub)
      }
      row.newest = time
      change = .doubted(row, published)
    } else {
      change = .doubted(DoubtedClock(received: uptime, sent: sent, newest: time), change?.published)
    }
    return .clockDoubted(behind: behind)
  }

  /// The old clock spoke again: the new one was none.
  @inline(never)
  mutating func endDoubt() {
    guard case .doubted(_, let published) = change else { return }
    change = published.map { .believed($0) }
  }

  /// The time that the position of a fix is published by (ms), after a clock was set back: the fix's own where it is
  /// newer than what was published. To be asked once for each position.
  @inline(never)
  mutating func slewedTime(of time: Int64, receivedAt uptime: Int64) -> Int64 {
    guard var published = change?.published, time <= published.milliseconds else {
      change = nil
      return time
    }
    let slewed = published.advance(to: uptime)
    change = .believed(published)
    return slewed
  }
}
