// The outcome of a fix: for the hub, and for its sender.
import HubMessages

extension Tracker {
  /// Why a fix is refused.
  public typealias Refusal = FixRefusal
  /// The limits that a fix must keep to be accepted.
  public typealias Rules = TrackingRules

  /// The outcome of a fix. Each accepted fix makes exactly one publication, a refused one none
  /// (protocol/tracking.md).
  public enum Outcome: Sendable, Equatable {
    /// Publish this.
    case accepted(Position)
    /// This fix confirmed a leap in time: publish the held fix, then this one.
    case acceptedTwo(held: Position, Position)
    /// This fix confirmed a leap in time, but is refused itself: publish the held one, refuse this one.
    case acceptedHeld(Position, refused: Refusal)
    /// Not newer than the driver's newest: it is part of the track, and never published. No error.
    case history
    /// It has the timestamp of the driver's newest (or held) fix: seen before.
    case duplicate
    /// A leap ahead in time: nothing is published until the next fix confirms it or not.
    case held
    /// A live fix that is part of the track and is not published, because the driver's clock was set back by so many
    /// seconds, which is not accepted yet. The sender is notified.
    case clockDoubted(secondsBehind: Double)
    /// The clock that was set back is accepted from this fix on: publish this; its `published` is later than the last.
    /// Times by the old clock minus `back` milliseconds are times by the new one.
    case clockBelieved(Position, back: Int64)
    /// Never published; the sender is notified.
    case refused(Refusal)
  }

  /// Explains why fixes of a driver are not published whose clock was ahead and was corrected (ClockChange.swift).
  static func explanation(ofClockBehind seconds: Double) -> String {
    "your clock was set back, and this fix is \(Int(seconds.rounded())) s older than your newest: fixes are published "
      + "again after 60 s by the new clock"
  }
}
