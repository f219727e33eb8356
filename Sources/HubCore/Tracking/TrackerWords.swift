// What senders are told of fixes that are not published.

extension Tracker.Refusal {
  /// What the sender is told.
  var explanation: String {
    switch self {
    case .inaccurate: "the fix's accuracy radius is too large to be of use"
    case .nullIsland: "the fix is at 0, 0, which is what broken software sends for no position"
    case .gated: "the fix is too far from where the track says the driver must be"
    case .tooFast: "the fix implies a speed that no vehicle has"
    }
  }
}

extension Tracker {
  /// Why a driver's fixes are not published whose clock was ahead and was set right (ClockChange.swift).
  static func explanation(ofClockBehind seconds: Double) -> String {
    "your clock was set back, and this fix is \(Int(seconds.rounded())) s older than your newest: fixes are published "
      + "again after 60 s by the new clock"
  }
}
