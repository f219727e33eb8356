// A queue to a loop's thread. Producers append, the consumer takes everything at once by swapping two arrays: the lock
// is held for a few instructions, and memory is reused. Inlinable, because an unspecialised generic costs ten times as
// much.

/// A bounded queue from any threads to one consumer, in order for each producer.
public final class Mailbox<Message: Sendable>: Sendable {
  @usableFromInline let waiting: Locked<[Message]>
  @usableFromInline let waker: Waker?
  /// The most messages that may wait; more are refused.
  public let capacity: Int

  /// Each message wakes `waker`, the consumer's loop, if any.
  @inlinable public init(capacity: Int, waking waker: Waker?) {
    precondition(capacity > 0)
    self.capacity = capacity
    self.waker = waker
    waiting = Locked([])
  }

  /// Appends one message; false, and nothing happens, when `capacity` messages wait.
  @inlinable public func append(_ message: Message) -> Bool {
    let fits = waiting.withLock { queue in
      guard queue.count < capacity else { return false }
      queue.append(message)
      return true
    }
    if fits { waker?.wake() }
    return fits
  }

  /// Moves all messages into `batch`, which must be empty and whose memory the queue uses from then on.
  @inlinable public func drain(into batch: inout [Message]) {
    precondition(batch.isEmpty, "messages of the last batch would be lost")
    waiting.withLock { queue in swap(&queue, &batch) }
  }

  /// The number of waiting messages; another thread may change it at any moment.
  @inlinable public var count: Int { waiting.withLock { $0.count } }
}
