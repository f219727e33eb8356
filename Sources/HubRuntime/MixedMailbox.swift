// A queue to a loop's thread for a turn's batch at a time. Both sides swap lists: the lock is held for a few
// instructions, memory is reused, and the cost is per batch, not per message.
package import HubBytes
import HubSystem
import Synchronization

/// A bounded queue from any threads to one consumer, in order for each producer.
package final class MixedMailbox<Common: BitwiseCopyable & Sendable, Rare: Sendable>: Sendable {
  private let waiting: Locked<MixedList<Common, Rare>>
  /// Whether elements wait: read without the lock, changed with it.
  private let isFilled = Atomic<Bool>(false)
  /// The most elements that may wait.
  package let capacity: Int
  /// Memory for so many elements is kept, whether or not it is used.
  private static var keptElements: Int { 8192 }

  /// Makes an empty mailbox. It does not wake the consumer: that is left to the producer, who knows what is urgent.
  package init(capacity: Int) {
    precondition(capacity > 0)
    self.capacity = capacity
    waiting = Locked(MixedList())
  }

  /// Takes as much of a batch, in order, as there is room for.
  package func append(whatFitsOf batch: inout MixedList<Common, Rare>) {
    if batch.isEmpty { return }
    waiting.withLock { queue in
      isFilled.store(true, ordering: .relaxed)
      if queue.isEmpty, batch.count <= capacity {
        return swap(&queue, &batch)
      }
      let count = min(capacity - queue.count, batch.count)
      if count > 0 { queue.append(first: count, of: &batch) }
    }
  }

  /// Moves all elements into `batch`, which must be empty and whose memory the queue uses from then on. What was
  /// appended before a wake-up of the consumer, or any other synchronisation with it, is there.
  package func drain(into batch: inout MixedList<Common, Rare>) {
    precondition(batch.isEmpty, "what is left of the last batch would be lost")
    guard isFilled.load(ordering: .relaxed) else { return }
    waiting.withLock { queue in
      isFilled.store(false, ordering: .relaxed)
      swap(&queue, &batch)
      // By swaps, producer, queue and consumer use all lists in turn: memory that one stall needed is freed here.
      if queue.capacity > Self.keptElements, queue.capacity / 8 > batch.count { queue = MixedList() }
    }
  }
}
