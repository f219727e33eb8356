// Which of a phone's fixes are worth sending, by the hub's advice (protocol/drivers.md, "sampling"). A phone measures
// once a second whether it sends or not; what costs its battery and its data is the sending.
import HubGeo
public import HubMessages

/// Chooses among a driver's fixes, in the order in which they were measured.
public struct SamplingGate: Sendable, Equatable {
  /// Phones do not measure on the beat: a fix this part of an interval after the last one is on time.
  static let onTime = 0.9
  /// A driver who stands still is heard all the same, so that it does not count as gone: after so many seconds, or so
  /// many intervals, whichever is longer.
  package static let silenceSeconds = 30.0
  package static let silenceIntervals = 2.0

  /// Of the last fix that was sent.
  private var place: Coordinate?
  private var time = Timestamp(milliseconds: 0)

  public init() {}

  /// Whether to send this fix; then the next one is measured against it. Without advice every fix is. A fix from before
  /// the last one, because the phone's clock was set, is sent too: what to make of it the hub knows.
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

  /// The next fix is sent, whatever it is: the driver's trip has changed, for instance.
  public mutating func reset() { place = nil }
}
