// Selects the fixes worth sending by the hub's advice (protocol/drivers.md, "sampling"). A phone may measure once a
// second; sending is what costs battery and data.
import HubGeo
public import HubMessages

/// Selects a driver's fixes, in the order in which they were measured.
public struct SamplingGate: Sendable, Equatable {
  /// Phones do not measure exactly on time: a fix this fraction of an interval after the last one is accepted.
  static let onTime = 0.9
  /// A stationary driver still sends, so as not to become stale: after so many seconds, or intervals, whichever is
  /// longer.
  package static let silenceSeconds = 30.0
  package static let silenceIntervals = 2.0

  /// The coordinate of the last fix sent.
  private var place: Coordinate?
  private var time = Timestamp(milliseconds: 0)

  public init() {}

  /// Whether to send this fix; if so, the next one is compared with it. Without advice every fix is sent. A fix from
  /// before the last one, after the phone's clock was set, is sent too: the hub handles it.
  public mutating func takes(_ fix: Fix, by advice: Connected.Sampling?) -> Bool {
    if let advice, let place, isLeftOut(fix, advice, place) { return false }
    place = fix.coordinate
    time = fix.timestamp
    return true
  }

  private func isLeftOut(_ fix: Fix, _ advice: Connected.Sampling, _ place: Coordinate) -> Bool {
    let elapsed = fix.timestamp.seconds(since: time)
    guard elapsed >= 0 else { return false }
    if elapsed < advice.interval * SamplingGate.onTime { return true }
    let silence = max(SamplingGate.silenceSeconds, SamplingGate.silenceIntervals * advice.interval)
    return elapsed < silence * SamplingGate.onTime
      && LocalPlane(origin: place).distance(to: fix.coordinate) < advice.minDistance
  }

  /// Sends the next fix in any case: the driver's trip has changed, for instance.
  public mutating func reset() { place = nil }
}
