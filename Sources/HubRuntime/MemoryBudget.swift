// The memory of other threads' answers while they are made, wait and are sent, perhaps to slow readers.
import Synchronization

/// A limit of bytes in use.
package final class MemoryBudget: Sendable {
  private let limit: Int
  private let reserved = Atomic<Int>(0)

  package init(bytes: Int) { limit = bytes }

  /// A single one always fits: its length has a limit of its own.
  fileprivate func take(_ bytes: Int) -> Bool {
    let all = reserved.wrappingAdd(bytes, ordering: .relaxed).newValue
    if all <= limit || all == bytes { return true }
    release(bytes)
    return false
  }

  fileprivate func release(_ bytes: Int) { reserved.wrappingSubtract(bytes, ordering: .relaxed) }

  package var reservedBytes: Int { reserved.load(ordering: .relaxed) }
}

/// The memory of an answer, until it is freed.
package final class MemoryReservation: Sendable {
  private let bytes: Int
  private let budget: MemoryBudget
  /// Counts for whoever asked until the memory is free.
  private let question: (any Sendable)?

  /// Nil where the others leave no room. `question` is freed with it.
  package init?(_ bytes: Int, of budget: MemoryBudget, for question: (any Sendable)? = nil) {
    guard budget.take(bytes) else { return nil }
    (self.bytes, self.budget, self.question) = (bytes, budget, question)
  }

  deinit { budget.release(bytes) }
}
