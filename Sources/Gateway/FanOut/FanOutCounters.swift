// One loop's counters of output to sessions.
import HubBytes
import HubMessages

struct FanOutCounters: Sendable {
  /// Present subscriptions.
  var subscriptions = 0
  /// Replies since the start; all counters below count since then, too.
  var repliesOut: UInt64 = 0
  /// Publications handed to sockets, and the positions among them.
  var publicationsOut: UInt64 = 0
  var positionsOut: UInt64 = 0
  /// Updates of cells among them, updates skipped for slow sessions, and snapshots of cells.
  var areaUpdatesOut: UInt64 = 0
  var areaUpdatesSkipped: UInt64 = 0
  var areaSnapshotsOut: UInt64 = 0
  /// Publications that were encoded; without sharing these would be `publicationsOut`.
  var encodes: UInt64 = 0
  /// Times that a channel's names were sent to its binary subscribers.
  var namesSent: UInt64 = 0
  var conflatedByInterval: UInt64 = 0
  /// Events sent to subscribers that resumed.
  var recovered: UInt64 = 0
  /// Subscriptions that ended unasked, by `Unsubscribed.Reason.rawValue`.
  var subscriptionsEnded = [UInt64](repeating: 0, count: Unsubscribed.Reason.allCases.count)
  /// From reading a fix, or the end of an area's tick, to writing its publications to the kernel.
  var latency = LatencyHistogram()
  var compression = CompressionCounters()
}
