// Handles a driver's clock that was ahead, was accepted, and is then corrected: how this differs from a backlog, and
// which times are published until the fixes have caught up with those published before.
//
// In both cases fixes arrive that are older than the newest. They differ in when they were sent, by the phone's own
// clock: a phone that empties its queue sends old fixes now, so the envelope's time advances; a clock that was set back
// also sets back the envelope's time. One live message is no proof, since a queue may keep complete messages, so the
// new clock must run at the hub's rate for a minute. The hub's wall clock is not used: it may be set, too.
//
// Published times never go back. Until the fixes have caught up, positions get times that continue from the newest
// published one at half the rate of the hub's clock, as clocks are slewed (adjtime(3)). They rise with every position,
// and their differences stay plausible for clients that draw by them.
import HubMessages

/// The state of a clock that was set back. In a box: hardly any driver has one.
indirect enum ClockChange: Sendable, Equatable {
  /// Live fixes arrive with times behind the newest fix. They are not published until they have agreed with the hub's
  /// clock for `DoubtedClock.agreement`.
  case doubted(DoubtedClock, PublishedClock?)
  /// The new clock is accepted; published times are ahead of it.
  case believed(PublishedClock)

  /// The clock of published times; nil where they are the fixes' own.
  var published: PublishedClock? {
    switch self {
    case .doubted(_, let published): published
    case .believed(let published): published
    }
  }
}

/// Consecutive live fixes by a clock that may be correct.
struct DoubtedClock: Sendable, Equatable {
  /// Milliseconds that a clock must be set back by: fixes catch up with less before it would be accepted.
  static let setBackThreshold: Int64 = 60_000
  /// Milliseconds between a fix and its envelope up to which the fix was not queued.
  static let longestDelay: Int64 = 60_000
  /// Nanoseconds of the hub's uptime for which live fixes must agree.
  static let agreement: Int64 = 60_000_000_000
  /// Milliseconds by which the phone's and the hub's clock may disagree over these fixes: a message may be delayed.
  static let slack: Int64 = 30_000

  /// When the first of them arrived (uptime, ns), and the time of its envelope (ms).
  var received: Int64
  var sent: Int64
  /// The time of the newest of them (ms).
  var newest: Int64

  /// Whether as much time passed by the phone's clock as by the hub's since the first fix.
  func agrees(sent other: Int64, receivedAt uptime: Int64) -> Bool {
    let passedAtHub = (uptime &- received) / 1_000_000
    return abs(other &- sent &- passedAtHub) <= DoubtedClock.slack
  }
}

/// The clock of published times while they are not the fixes' own.
struct PublishedClock: Sendable, Equatable {
  /// How many times slower it runs than the hub's clock.
  static let slowness: Int64 = 2

  /// The published time of the newest position (ms), and when its fix arrived (uptime, ns).
  var milliseconds: Int64
  var received: Int64

  /// The time of the next position: always later than the one before, except that it stays at the last time that can
  /// be written and stored.
  mutating func advance(to uptime: Int64) -> Int64 {
    let passed = max(0, uptime &- received) / (1_000_000 * PublishedClock.slowness)
    milliseconds = min(milliseconds + max(1, passed), Timestamp.accepted.upperBound.milliseconds)
    received = uptime
    return milliseconds
  }
}

extension FixOrder {
  /// Decides about a fix that is not newer than `newest`, the time of the newest one. `sent` is the envelope's time
  /// (ms) of a live fix; nil for a fix of a batch or without an envelope.
  @inline(never)
  mutating func decideLate(
    _ newest: Int64, _ fix: TrackMeasurement, sent: Int64?, receivedAt uptime: Int64
  ) -> Decision {
    let time = fix.milliseconds
    guard time < newest else { return .duplicate }
    // A fix from a batch or a queue says nothing about the clock.
    guard let sent, abs(sent &- time) <= DoubtedClock.longestDelay else { return .history }
    guard newest &- time > DoubtedClock.setBackThreshold, newestSent &- sent > DoubtedClock.setBackThreshold else {
      endDoubt()  // sent by the previous clock
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

  /// Ends the doubt after a fix by the old clock: the clock was not set back.
  @inline(never)
  mutating func endDoubt() {
    guard case .doubted(_, let published) = change else { return }
    change = published.map { .believed($0) }
  }

  /// The published time (ms) of a fix's position after a clock was set back: the fix's own where it is newer than the
  /// last published one. Called once for each position.
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
