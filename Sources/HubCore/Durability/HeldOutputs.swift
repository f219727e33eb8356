// Outputs that wait for stable storage, and what must wait behind them, in order.

/// Outputs and inputs that wait for the journal, oldest first.
struct HeldOutputs {
  enum Held {
    case output(HubOutput, outlet: UInt32)
    /// Handled again from the start once its channel's events are stored.
    case input(HubInput)

    /// Whether a sender waits for it. Events are no answers: they wait as long as it takes.
    var isAnswer: Bool {
      switch self {
      case .output(let output, _): output.isAnswer
      case .input: true
      }
    }
  }

  private var queue = FirstInFirstOut<(ticket: UInt64, held: Held)>()

  /// Answers among the entries.
  private(set) var answers = 0

  var count: Int { queue.count }

  /// `ticket` never decreases from one call to the next.
  mutating func append(_ held: Held, until ticket: UInt64) {
    queue.append((ticket, held))
    if held.isAnswer { answers += 1 }
  }

  /// The next entry whose records are stored. O(1), amortised.
  mutating func next(storedThrough ticket: UInt64) -> Held? {
    guard let first = queue.first, first.ticket <= ticket, let next = queue.next() else { return nil }
    if next.held.isAnswer { answers -= 1 }
    return next.held
  }

  /// Removes and gives the answers, oldest first. O(count).
  mutating func takeAnswers() -> [Held] {
    guard answers > 0 else { return [] }
    var (taken, rest): ([Held], FirstInFirstOut<(ticket: UInt64, held: Held)>) = ([], FirstInFirstOut())
    while let next = queue.next() {
      if next.held.isAnswer { taken.append(next.held) } else { rest.append(next) }
    }
    queue = rest
    answers = 0
    return taken
  }
}
