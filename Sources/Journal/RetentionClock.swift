// The time by which history is too old. The wall clock alone would not do: one that is wrong for a second, after a bad time
// server or a suspended machine, would have everything deleted, and nothing brings that back. Uptime cannot be set. So the wall
// clock is believed as far as it goes as uptime does; where it has leapt ahead, time goes on as before by uptime, until the new
// time has held for a day. History that is deleted a day late harms nobody: `RetentionRule.bytes` bounds it meanwhile.

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

  /// What the wall clock is ahead of uptime by, as far as it is believed, in ms.
  private var offset: Int64
  /// Since when (uptime, ms) it is ahead of that, and by how much at least.
  private var leap: (since: Int64, offset: Int64)?
  /// Ahead by this much was told of.
  private var toldOffset: Int64

  /// Begins with the time that the newest file of the journal was begun, where that is known: a hub that starts while its
  /// clock is wrong has no uptime to hold against it. Both clocks in ms; `newest` in ms since 1970.
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
}
