// Times on the wire and in the hub. This module reads no clock: callers pass the time in.

/// A point in time: whole milliseconds since 1970-01-01T00:00:00Z (Unix time, no leap seconds).
public struct Timestamp: Sendable, Hashable, Comparable, BitwiseCopyable {
  public var milliseconds: Int64

  @inlinable public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// Whether `a` is earlier than `b`.
  @inlinable public static func < (a: Timestamp, b: Timestamp) -> Bool { a.milliseconds < b.milliseconds }

  /// The beginning of the second that this time is in.
  @inlinable public var wholeSecond: Timestamp {
    let rest = milliseconds % 1000
    return Timestamp(milliseconds: milliseconds - (rest < 0 ? rest + 1000 : rest))
  }

  /// Saturates at the limits of 64 bits.
  @inlinable public static func + (time: Timestamp, milliseconds: Int64) -> Timestamp {
    let (sum, overflow) = time.milliseconds.addingReportingOverflow(milliseconds)
    return Timestamp(milliseconds: overflow ? (milliseconds < 0 ? .min : .max) : sum)
  }

  /// Seconds from `earlier` to this time; negative when this one is before.
  @inlinable public func seconds(since earlier: Timestamp) -> Double {
    Double(milliseconds &- earlier.milliseconds) / 1000
  }

  /// The range that can be written and stored: years 1970 to 9999, so that every difference fits.
  public static let accepted = Timestamp(milliseconds: 0)...Timestamp(milliseconds: 253_402_300_799_999)
  /// 2000-01-01T00:00:00Z: the earliest time that a client may name for a fix, for sending one, or for a trip's move.
  ///
  /// Seconds since 2001 or 1970, misread as milliseconds since 1970, are times of January 1970. So this detects a
  /// client without the `time=` option.
  public static let earliestFromClients = Timestamp(milliseconds: 946_684_800_000)
}

/// How timestamps are written on one connection, in both directions (the `time` option of the URL).
public enum TimeFormat: UInt8, Sendable, CaseIterable {
  /// Integer milliseconds since 1970.
  case unixMilliseconds
  /// Seconds since 2001-01-01T00:00:00Z as a number, which is what Swift's JSONEncoder writes for a Date.
  case apple
  /// An RFC 3339 string with milliseconds, UTC.
  case rfc3339

  /// Milliseconds from 1970 to 2001-01-01T00:00:00Z, the reference date of Foundation's Date.
  public static let appleEpochMilliseconds: Int64 = 978_307_200_000
}

/// One reading of both clocks, taken once a turn and passed down.
public struct Moment: Sendable, Hashable, BitwiseCopyable {
  /// Monotonic nanoseconds since an arbitrary origin: for intervals and deadlines.
  public var uptime: Int64
  /// Wall-clock time: for what is written into messages.
  public var timestamp: Timestamp

  @inlinable public init(uptime: Int64, timestamp: Timestamp) {
    self.uptime = uptime
    self.timestamp = timestamp
  }
}

/// Seconds as nanoseconds of uptime, at most 31 years: some of these times come from a peer, and one that does not fit
/// would end the process.
@inlinable @inline(__always)
package func nanoseconds(_ seconds: Double) -> Int64 { Int64(max(-1e9, min(1e9, seconds)) * 1e9) }
