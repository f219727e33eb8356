// The outcome of a fix for its sender.

enum FixOutcome {
  case accepted, history, duplicate, held
  case clockDoubted(secondsBehind: Double)
  case refused(Tracker.Refusal)

  /// Whether it was accepted: then it is recorded.
  var isTaken: Bool {
    switch self {
    case .accepted, .history, .held, .clockDoubted: true
    case .duplicate, .refused: false
    }
  }
}
