// A lock that nobody waits for: a thread that finds it taken leaves the work to the holder.
//
// It is the lock of flat combining (Hendler, Incze, Shavit, Tzafrir: Flat Combining and the Synchronization-Parallelism
// Tradeoff, SPAA 2010). Work is queued elsewhere first; a holder that was called meanwhile looks at the queue again
// before it unlocks.
import Synchronization

/// Lets one thread at a time work on something that several threads have work for.
///
/// What a thread did before `lockOrDelegate` is visible to the holder after the `unlock` that gave false, and to the
/// next holder.
public final class CombiningLock: Sendable {
  private static let free: UInt8 = 0
  private static let held: UInt8 = 1
  /// Held, and called by another thread.
  private static let wanted: UInt8 = 2

  private let state = Atomic<UInt8>(CombiningLock.free)

  public init() {}

  /// Takes the lock if it is free.
  public func tryLock() -> Bool {
    state.compareExchange(
      expected: CombiningLock.free, desired: CombiningLock.held, ordering: .acquiringAndReleasing
    ).exchanged
  }

  /// Takes the lock if it is free; else makes its holder look for work once more, and gives false.
  public func lockOrDelegate() -> Bool {
    var seen = state.load(ordering: .relaxed)
    while true {
      // A store even where it is wanted already: this thread's work must become visible.
      let next = seen == CombiningLock.free ? CombiningLock.held : CombiningLock.wanted
      let (exchanged, original) = state.compareExchange(
        expected: seen, desired: next, ordering: .acquiringAndReleasing)
      if exchanged { return seen == CombiningLock.free }
      seen = original
    }
  }

  /// Unlocks; false if another thread called: the caller still holds the lock, and must look for work again.
  public func unlock() -> Bool {
    if state.compareExchange(
      expected: CombiningLock.held, desired: CombiningLock.free, ordering: .acquiringAndReleasing
    ).exchanged {
      return true
    }
    _ = state.exchange(CombiningLock.held, ordering: .acquiringAndReleasing)
    return false
  }

  /// Unlocks even if another thread called: the caller sees to it that the lock is taken again.
  public func unlockAnyway() { _ = state.exchange(CombiningLock.free, ordering: .acquiringAndReleasing) }
}
