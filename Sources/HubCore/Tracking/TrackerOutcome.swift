// The outcome of a fix: for the hub, and for its sender.
import HubMessages

extension Tracker {
  public typealias Refusal = FixRefusal
  public typealias Rules = TrackingRules

  /// What became of a fix. The contract's rule: each accepted fix makes exactly one publication, a refused one none.
  public enum Outcome: Sendable, Equatable {
    /// Publish this.
    case accepted(Position)
    /// This fix confirmed a leap in time: publish the fix that was held back, then this one.
    case acceptedTwo(held: Position, Position)
    /// This fix confirmed a leap in time, but not its place: publish the one that was held back, refuse this one.
    case acceptedHeld(Position, refused: Refusal)
    /// Not newer than the driver's newest: it belongs into the track, and is never published. No error.
    case history
    /// Of one millisecond with the driver's newest (or held) fix: seen before.
    case duplicate
    /// A leap ahead in time: nothing is published until the next fix says whether it is true.
    case held
    /// As `history`, of a live fix: the driver's clock was set back by so many seconds, and is not believed yet. The
    /// sender is told.
    case clockDoubted(secondsBehind: Double)
    /// The clock that was set back is believed from this fix on: publish this, whose `published` goes on from before.
    /// Times by the old clock become times by the new one when `back` milliseconds are taken off.
    case clockBelieved(Position, back: Int64)
    /// Published never; the sender is told.
    case refused(Refusal)
  }

  /// Why a driver's fixes are not published whose clock was ahead and was set right (ClockChange.swift).
  static func explanation(ofClockBehind seconds: Double) -> String {
    "your clock was set back, and this fix is \(Int(seconds.rounded())) s older than your newest: fixes are published "
      + "again after 60 s by the new clock"
  }
}
