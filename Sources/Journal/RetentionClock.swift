// The time by which history is too old. The wall clock alone is not enough: if it were wrong for a second, after a bad
// time server or a suspended machine, everything would be deleted. Uptime cannot be set. So the wall clock is
// trusted as far as it advances like uptime; after a leap ahead, time continues by uptime, until the new time has
// lasted for a day. Deleting history a day late is harmless: `RetentionRule.bytes` bounds it meanwhile.
//
// A hub that starts has no uptime to compare with, and uses the times of its segments. Those begun while the clock was
// wrong must not count. They are detected by a leap: more than a week between two neighbours, which is trusted when
// later segments show that the new time has lasted for a day.
//
// Not covered: a clock that is ahead by less than a week, a segment begun then, and a restart before it is corrected;
// or one that runs away in steps of less than a week, with a segment and a restart in each. So much history may be
// deleted too early. Conversely, a hub whose segments are all more than a week apart, and which never runs for a day,
// deletes nothing for its age.

/// Trusts a wall clock that leaps ahead only after a day.
public struct RetentionClock: Sendable {
  /// The result of a look.
  public enum Finding: Sendable, Equatable {
    case nothing
    /// The wall clock has leapt ahead by so many ms since the last look, and is not trusted.
    case leapt(milliseconds: Int64)
    /// The leap has lasted for a day, and is trusted now.
    case believed
  }

  /// A clock that was set ahead by at most this is trusted at once, in ms.
  static let tolerance: Int64 = 60_000
  /// How long, by uptime, a leap must last, in ms.
  static let confirmationTime: Int64 = 24 * 3600 * 1000
  /// A segment begun later than the one before it by more than this is a leap, in ms. With a shorter time, often
  /// restarted hubs with few drivers would delete nothing; with a longer one, a wrong clock could lose more.
  static let longestPause: Int64 = 7 * confirmationTime

  /// How far the trusted time is ahead of uptime, in ms.
  private var offset: Int64
  /// Since when (uptime, ms) the wall clock has led the trusted time, and its smallest lead over uptime since then.
  private var leap: (since: Int64, offset: Int64)?
  /// The largest lead of the wall clock over uptime, in ms, that is not to be reported (again).
  private var reportedOffset: Int64

  /// Begins with the time of the newest trusted segment (`newestBelieved`), if there is one: a hub that starts while
  /// its clock is wrong has no uptime to compare with. Both clocks in ms; `newest` in ms since 1970.
  public init(uptime: Int64, wall: Int64, newest: Int64?) {
    offset = min(wall, newest ?? wall) - uptime
    // The time since the newest segment may be downtime, and is not reported as a leap.
    reportedOffset = wall - uptime
  }

  /// The time to count ages from, in ms since 1970; never ahead of the wall clock.
  public mutating func time(uptime: Int64, wall: Int64) -> (time: Int64, finding: Finding) {
    let ahead = wall - uptime
    guard ahead > offset + Self.tolerance else {
      offset = ahead
      leap = nil
      reportedOffset = ahead
      return (wall, .nothing)
    }
    let since = leap?.since ?? uptime
    let least = min(leap?.offset ?? ahead, ahead)
    if uptime - since >= Self.confirmationTime {
      offset = least
      leap = nil
      reportedOffset = max(reportedOffset, least)
      return (uptime + offset, .believed)
    }
    leap = (since, least)
    guard ahead > reportedOffset + Self.tolerance else { return (uptime + offset, .nothing) }
    let distance = ahead - reportedOffset
    reportedOffset = ahead
    return (uptime + offset, .leapt(milliseconds: distance))
  }

  /// The newest trusted one of the times at which segments were begun, given in the segments' order; nil without any.
  /// As while the hub runs, a time that goes back is trusted at once, and a leap ahead when it has lasted for a day.
  static func newestBelieved(_ times: [Int64]) -> Int64? {
    guard var believed = times.first else { return nil }
    var leap: (since: Int64, newest: Int64)?
    for time in times.dropFirst() {
      if time &- believed <= longestPause {
        believed = time
        leap = nil
      } else if let known = leap, time >= known.since, time &- known.newest <= longestPause {
        leap = (known.since, time)
        if time &- known.since >= confirmationTime {
          believed = time
          leap = nil
        }
      } else {
        leap = (time, time)
      }
    }
    return believed
  }
}
