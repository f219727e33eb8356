// What may leave only when it is on stable storage, and what must wait behind it, in order.

/// Outputs and inputs that wait for the journal, oldest first.
struct HeldOutputs {
  enum Held {
    case output(HubOutput, loop: UInt32)
    /// Handled again, from the beginning, once its channel's events are stored.
    case input(HubInput)

    /// Whether somebody waits for an answer. Events are nobody's answer: they wait however long it takes.
    var isAnswer: Bool {
      switch self {
      case .output(let output, _): output.isAnswer
      case .input: true
      }
    }
  }

  private var queue: [(ticket: UInt64, held: Held)] = []
  /// Entries before this one were taken.
  private var head = 0

  /// Answers among the entries.
  private(set) var answers = 0

  var count: Int { queue.count - head }

  /// `ticket` never goes back from one call to the next.
  mutating func append(_ held: Held, until ticket: UInt64) {
    queue.append((ticket, held))
    if held.isAnswer { answers += 1 }
  }

  /// Whether an entry has waited long enough.
  @inline(__always)
  func hasNext(storedThrough ticket: UInt64) -> Bool { head < queue.count && queue[head].ticket <= ticket }

  /// The next entry that has waited long enough. O(1), amortised.
  mutating func next(storedThrough ticket: UInt64) -> Held? {
    guard hasNext(storedThrough: ticket) else { return nil }
    let held = queue[head].held
    if held.isAnswer { answers -= 1 }
    head += 1
    if head == queue.count {
      queue.removeAll(keepingCapacity: queue.capacity <= 4096)
      head = 0
    } else if head >= 4096, head * 2 >= queue.count {
      queue.removeFirst(head)
      head = 0
    }
    return held
  }

  /// Takes the answers out, oldest first; the rest stays in its order. O(count).
  mutating func takeAnswers() -> [Held] {
    guard answers > 0 else { return [] }
    let waiting = queue[head...]
    let taken = waiting.filter { $0.held.isAnswer }.map(\.held)
    queue = waiting.filter { !$0.held.isAnswer }
    head = 0
    answers = 0
    return taken
  }
}
