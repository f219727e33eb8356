// The outcome of a fix, as far as its sender is concerned.

enum FixOutcome {
  case accepted, history, duplicate, held
  case clockDoubted(secondsBehind: Double)
  case refused(Tracker.Refusal)

  /// Whether it was taken in: then it belongs into the journal.
  var isTaken: Bool {
    switch self {
    case .accepted, .history, .held, .clockDoubted: true
    case .duplicate, .refused: false
    }
  }
}
