// What one loop counts of what it sends to its sessions.
import HubBytes
import HubMessages

struct FanOutCounters: Sendable {
  /// Now.
  var subscriptions = 0
  /// Since the start, as all below.
  var repliesOut: UInt64 = 0
  /// Publications handed to sockets, and the positions among them.
  var publicationsOut: UInt64 = 0
  var positionsOut: UInt64 = 0
  /// Updates of cells among them, those that sessions were too slow for, and snapshots of cells.
  var areaUpdatesOut: UInt64 = 0
  var areaUpdatesSkipped: UInt64 = 0
  var areaSnapshotsOut: UInt64 = 0
  /// Publications that were encoded: what `publicationsOut` would cost without sharing.
  var encodes: UInt64 = 0
  /// Times that the ids of a channel's positions were said to its binary subscribers.
  var namesSent: UInt64 = 0
  var conflatedByInterval: UInt64 = 0
  /// Events sent to bring a subscriber up to date.
  var recovered: UInt64 = 0
  /// Subscriptions that ended unasked, by `Unsubscribed.Reason.rawValue`.
  var subscriptionsEnded = [UInt64](repeating: 0, count: Unsubscribed.Reason.allCases.count)
  /// From reading a fix, or the end of an area's second, to having written what came of it to the kernel.
  var latency = LatencyHistogram()
  var compression = CompressionCounters()
}
