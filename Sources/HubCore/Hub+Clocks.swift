// A driver whose clock was ahead and was set right (Tracking/ClockChange.swift): what its app is told, and what of the
// hub goes by the new clock once it is believed.
import HubMessages

extension Hub {
  /// Whether nothing of the driver is published because its clock was ahead: its newest fix is of the hub's future, by
  /// more than a leap, and this one is not.
  func isBehindClock(_ fix: Fix, driver: Int) -> Bool {
    let future = now.timestamp.milliseconds &+ limits.tracking.leapMilliseconds
    guard let newest = drivers[driver].tracker.newest else { return false }
    return newest.milliseconds > future && fix.timestamp.milliseconds <= future
  }

  /// A live fix by a clock that is not believed yet: it goes into the track as history. It is a sign of life all the
  /// same.
  mutating func noteDoubted(_ fix: Fix, driver: Int, isRecorded: Bool) {
    counters.fixesHistory += 1
    counters.fixesBehindClock += 1
    if isRecorded { record(fix, .history, nil, driver: driver) }
    drivers[driver].lastFix = now.uptime
    if drivers[driver].isStale { returnUnpublished(driver) }
  }

  /// A driver that was offline counts as online, where its newest position is. The record of a fix that is not
  /// published says nothing of that, so the driver's own record does: after a restart `driver_online` must not come
  /// again.
  private mutating func returnUnpublished(_ driver: Int) {
    let wasOffline = drivers[driver].durable.isOffline
    returnFromStale(driver)
    if wasOffline, !drivers[driver].durable.isOffline { recordDriver(driver) }
    if let place = drivers[driver].position?.coordinate {
      index.move(UInt32(driver), to: place, label: label(of: driver))
    }
    noteArea(driver)
  }

  /// The app of a driver is told why its fixes are not published.
  mutating func refuseClock(_ session: SessionRef, _ messageID: MessageID, secondsBehind: Double) {
    let seconds = Int(secondsBehind.rounded())
    refuse(
      session, messageID, .implausibleLocation,
      "your clock was set back, and this fix is \(seconds) s older than your newest: fixes are published again after 60 s "
        + "by the new clock")
  }

  /// From the fix on that is being handled the driver's new clock counts. `sent` is the time of its envelope; `back` is
  /// how many milliseconds the clock was set back by.
  mutating func believeClock(_ driver: Int, sent: Timestamp?, back: Int64) {
    counters.clocksBelieved += 1
    drivers[driver].clock = SessionClock()
    if let sent { drivers[driver].clock.observe(sent: sent, received: now.timestamp) }
    moveStays(of: driver, back: back)
  }
}
