// A queue to a loop's thread for a turn's batch at a time. Both sides swap lists: the lock is held for a few
// instructions, memory is reused, and the cost is per batch, not per message. Inlinable, as Mailbox.swift.
public import HubBytes
public import Synchronization

/// A bounded queue from any threads to one consumer, in order for each producer.
public final class MixedMailbox<Common: BitwiseCopyable & Sendable, Rare: Sendable>: Sendable {
  @usableFromInline let waiting: Locked<MixedList<Common, Rare>>
  /// Whether elements wait: read without the lock, changed with it.
  @usableFromInline let isFilled = Atomic<Bool>(false)
  /// The most elements that may wait.
  public let capacity: Int

  /// It wakes nobody: the producer knows how soon the consumer has to look.
  @inlinable public init(capacity: Int) {
    precondition(capacity > 0)
    self.capacity = capacity
    waiting = Locked(MixedList())
  }

  /// Takes as much of a batch, in order, as there is room for.
  @inlinable public func append(whatFitsOf batch: inout MixedList<Common, Rare>) {
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
  @inlinable public func drain(into batch: inout MixedList<Common, Rare>) {
    precondition(batch.isEmpty, "what is left of the last batch would be lost")
    guard isFilled.load(ordering: .relaxed) else { return }
    waiting.withLock { queue in
      isFilled.store(false, ordering: .relaxed)
      swap(&queue, &batch)
    }
  }
}
