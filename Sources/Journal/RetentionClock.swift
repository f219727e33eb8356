// The time by which history is too old. The wall clock alone would not do: one that is wrong for a second, after a bad
// time server or a suspended machine, would have everything deleted, and nothing brings that back. Uptime cannot be
// set. So the wall clock is believed as far as it goes as uptime does; where it has leapt ahead, time goes on as before
// by uptime, until the new time has held for a day. History that is deleted a day late harms nobody:
// `RetentionRule.bytes` bounds it meanwhile.
//
// A hub that starts has no uptime to hold against the wall clock, and goes by when its segments were begun. Those that
// were begun while the clock was wrong must not count. They stand out by a leap: more than a week between two
// neighbours, which is believed when later segments show that the new time has held for a day.
//
// What that does not cover: a clock that is ahead by less than a week, a segment begun then, and a restart before it is
// set right; or one that runs away in steps of less than a week, with a segment and a restart in each. So much history
// may be deleted too early. The other way round, a hub whose segments are all more than a week apart, and which never
// runs for a day, deletes nothing for its age.

/// Believes a wall clock that leaps ahead only after a day.
public struct RetentionClock: Sendable {
  /// What a look found out.
  public enum Finding: Sendable, Equatable {
    case nothing
    /// The wall clock has leapt ahead by so many ms since the last look, and is not believed.
    case leapt(milliseconds: Int64)
    /// The leap has lasted for a day, and is believed now.
    case believed
  }

  /// A clock that was set ahead by no more than this is believed at once, in ms.
  static let tolerance: Int64 = 60_000
  /// How long, by uptime, a leap must last, in ms.
  static let holding: Int64 = 24 * 3600 * 1000
  /// A segment that was begun later than the one before it by more than this is a leap, in ms. Shorter, and hubs with
  /// few drivers that are often restarted would delete nothing; longer, and more could be lost by a wrong clock.
  static let longestPause: Int64 = 7 * holding

  /// What the wall clock is ahead of uptime by, as far as it is believed, in ms.
  private var offset: Int64
  /// Since when (uptime, ms) it is ahead of that, and by how much at least.
  private var leap: (since: Int64, offset: Int64)?
  /// Ahead by this much was told of.
  private var toldOffset: Int64

  /// Begins with the time that the newest segment was begun that is believed (`newestBelieved`), where there is one: a
  /// hub that starts while its clock is wrong has no uptime to hold against it. Both clocks in ms; `newest` in ms since
  /// 1970.
  public init(uptime: Int64, wall: Int64, newest: Int64?) {
    offset = min(wall, newest ?? wall) - uptime
    // A hub that was away for a while is nothing to tell of.
    toldOffset = wall - uptime
  }

  /// The time to count ages from, in ms since 1970; never ahead of the wall clock by more than a minute.
  public mutating func time(uptime: Int64, wall: Int64) -> (time: Int64, finding: Finding) {
    let ahead = wall - uptime
    guard ahead > offset + Self.tolerance else {
      offset = ahead
      leap = nil
      toldOffset = ahead
      return (wall, .nothing)
    }
    let since = leap?.since ?? uptime
    let least = min(leap?.offset ?? ahead, ahead)
    if uptime - since >= Self.holding {
      offset = least
      leap = nil
      toldOffset = max(toldOffset, least)
      return (uptime + offset, .believed)
    }
    leap = (since, least)
    guard ahead > toldOffset + Self.tolerance else { return (uptime + offset, .nothing) }
    let distance = ahead - toldOffset
    toldOffset = ahead
    return (uptime + offset, .leapt(milliseconds: distance))
  }

  /// The newest that is believed of the times at which segments were begun, in the segments' order; nil of none. As
  /// when the hub runs, a time that goes back is believed at once, and a leap ahead when it has held for a day.
  static func newestBelieved(_ times: [Int64]) -> Int64? {
    guard var believed = times.first else { return nil }
    var leap: (since: Int64, newest: Int64)?
    for time in times.dropFirst() {
      if time &- believed <= longestPause {
        believed = time
        leap = nil
      } else if let known = leap, time >= known.since, time &- known.newest <= longestPause {
        leap = (known.since, time)
        if time &- known.since >= holding {
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
