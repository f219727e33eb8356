// A lock for which nobody waits: who finds it taken leaves the work to whoever has it.
//
// It is the lock of flat combining (Hendler, Incze, Shavit, Tzafrir: Flat Combining and the Synchronization-Parallelism
// Tradeoff, SPAA 2010). What is to be done is left somewhere before; the holder looks there once more before it lets
// go, if somebody came meanwhile.
import Synchronization

/// Who works on something that several threads have work for: one at a time.
///
/// What a thread did before `lockOrDelegate` is visible to the holder after the `unlock` that gave false, and to the
/// next holder.
public final class CombiningLock: Sendable {
  private static let free: UInt8 = 0
  private static let held: UInt8 = 1
  /// Held, and somebody came meanwhile.
  private static let wanted: UInt8 = 2

  private let state = Atomic<UInt8>(CombiningLock.free)

  public init() {}

  /// Takes the lock if nobody has it.
  public func tryLock() -> Bool {
    state.compareExchange(
      expected: CombiningLock.free, desired: CombiningLock.held, ordering: .acquiringAndReleasing
    ).exchanged
  }

  /// Takes the lock; or, false, has its holder look once more at what there is to do.
  public func lockOrDelegate() -> Bool {
    var seen = state.load(ordering: .relaxed)
    while true {
      // Where it is wanted already this is a store all the same: what this thread has left must become visible.
      let next = seen == CombiningLock.free ? CombiningLock.held : CombiningLock.wanted
      let (exchanged, original) = state.compareExchange(
        expected: seen, desired: next, ordering: .acquiringAndReleasing)
      if exchanged { return seen == CombiningLock.free }
      seen = original
    }
  }

  /// Lets go. False where somebody came meanwhile: the caller has it still, and must look at what they left.
  public func unlock() -> Bool {
    if state.compareExchange(
      expected: CombiningLock.held, desired: CombiningLock.free, ordering: .acquiringAndReleasing
    ).exchanged {
      return true
    }
    _ = state.exchange(CombiningLock.held, ordering: .acquiringAndReleasing)
    return false
  }

  /// Lets go, whoever came: the caller sees to it that somebody takes it again.
  public func unlockAnyway() { _ = state.exchange(CombiningLock.free, ordering: .acquiringAndReleasing) }
}
