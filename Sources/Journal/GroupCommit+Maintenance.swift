// Requests of maintenance to the journal's thread: to be woken after enough writing, and to end a segment.
import Glibc

extension GroupCommit {
  /// Whether `close` was called: the threads of the journal are to end.
  public var isClosing: Bool { locked { $0.isClosing } }

  /// Waits until `bytes` of records were stored in all, at most `seconds`.
  public func waitUntilStored(bytes: UInt64, seconds: Double) {
    locked { $0.maintenanceBytes = bytes }
    unsafe maintenanceWaits(seconds: seconds) { unsafe $0.pointee.counters.bytes >= bytes }
    locked { $0.maintenanceBytes = .max }
  }

  /// Makes the writer begin a new segment with its next group, and waits until it will; gives the last group before.
  /// Nil if that takes longer than `seconds`, or the journal closes.
  public func sealSegment(seconds: Double) -> UInt64? {
    locked {
      $0.wantsSeal = true
      $0.sealedThrough = nil
      unsafe pthread_cond_signal(condition)
    }
    unsafe maintenanceWaits(seconds: seconds) { unsafe $0.pointee.sealedThrough != nil }
    return locked {
      $0.wantsSeal = false
      return $0.sealedThrough
    }
  }

  /// Waits until `isDone` or the journal closes, at most `seconds`.
  private func maintenanceWaits(seconds: Double, _ isDone: (UnsafeMutablePointer<State>) -> Bool) {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    let end = Self.now() + Int64(seconds * 1e9)
    while unsafe !state.pointee.isClosing, unsafe !isDone(state), Self.now() < end {
      unsafe wait(on: maintenanceCondition, until: end)
    }
  }
}
