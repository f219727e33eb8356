// What answers of threads beside the hub take while they are made, wait and are sent: their readers may be slow.
import Synchronization

/// Bytes that may be out at a time.
package final class MemoryBudget: Sendable {
  private let limit: Int
  private let reserved = Atomic<Int>(0)

  package init(bytes: Int) { limit = bytes }

  /// One alone always fits: what makes it long has a limit of its own.
  fileprivate func take(_ bytes: Int) -> Bool {
    let all = reserved.wrappingAdd(bytes, ordering: .relaxed).newValue
    if all <= limit || all == bytes { return true }
    release(bytes)
    return false
  }

  fileprivate func release(_ bytes: Int) { reserved.wrappingSubtract(bytes, ordering: .relaxed) }

  package var reservedBytes: Int { reserved.load(ordering: .relaxed) }
}

/// The memory that an answer takes, until it goes away.
package final class MemoryReservation: Sendable {
  private let bytes: Int
  private let budget: MemoryBudget

  /// Nil where the others leave no room.
  package init?(_ bytes: Int, of budget: MemoryBudget) {
    guard budget.take(bytes) else { return nil }
    (self.bytes, self.budget) = (bytes, budget)
  }

  deinit { budget.release(bytes) }
}
