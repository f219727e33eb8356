// What the journal has of a driver: the part that is kept in the driver's record. The rest is in `StorageMarks`.
import HubMessages

struct DriverStorage {
  /// The newest published fix that has a record.
  @Packed var newest: Timestamp?
  /// The journal has a record of this driver.
  var isKnown = false
  /// `driver_offline` was published, and no `driver_online` since. Also without a journal.
  var isOffline = false
  /// The interval in its newest record of fixes (`StoredTracking.sendingInterval`), in seconds.
  var sendingInterval: UInt16 = 0
  /// When the fix of `newest`, or without one the driver's last message, arrived by the hub's wall clock.
  var heard = Timestamp(milliseconds: 0)

  /// Notes a record of the driver's fixes or another message that came at `time`.
  mutating func note(heard time: Timestamp, hasPublished: Bool) {
    isKnown = true
    if hasPublished || newest == nil { heard = time }
  }

  /// Notes that `driver_offline` is published, and recorded where there is a journal.
  mutating func goOffline(at time: Timestamp, isStored: Bool) {
    isOffline = true
    guard isStored else { return }
    if !isKnown { heard = time }
    isKnown = true
  }

  /// `heard` as an uptime of this hub (ns), perhaps negative; `now` where the wall clock was set back behind it.
  func uptimeHeard(at now: Moment) -> Int64 {
    let passed = now.timestamp.milliseconds - heard.milliseconds
    return now.uptime - min(max(passed, 0), 1 << 40) * 1_000_000
  }
}
