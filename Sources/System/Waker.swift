// How another thread wakes a loop. A busy loop looks at the flag before it sleeps, so waking costs a system call only
// when the loop really sleeps.

import CHubLinux
import Glibc
import Synchronization

/// Wakes one event loop from any thread.
///
/// What happened before `wake` is visible to the loop in the `woken` call that follows. No wake-up is lost; several
/// before that call become one.
public final class Waker: Sendable {
  // Awake, and nobody has called; asleep, or about to be; called since the loop last looked.
  private static let awake: UInt8 = 0
  private static let asleep: UInt8 = 1
  private static let called: UInt8 = 2

  private let state = Atomic<UInt8>(Waker.awake)
  private let event: Descriptor

  package init() throws(SystemError) {
    event = try Descriptor(
      eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC)), from: "eventfd")
  }

  /// The descriptor that becomes readable.
  package var descriptor: Int32 { event.raw }

  /// Has the loop call `woken` soon. One atomic exchange; a write to an eventfd if the loop sleeps.
  public func wake() {
    if state.exchange(Waker.called, ordering: .sequentiallyConsistent) == Waker.asleep { signal() }
  }

  /// Claims the turn of a sleeping loop: true, and the loop counts as awake. If it is awake, it is called as by `wake`:
  /// false.
  package func claim() -> Bool {
    while true {
      let (exchanged, seen) = state.compareExchange(
        expected: Waker.asleep, desired: Waker.awake, ordering: .sequentiallyConsistent)
      if exchanged { return true }
      let (isCalled, _) = state.compareExchange(
        expected: seen, desired: Waker.called, ordering: .sequentiallyConsistent)
      if isCalled { return false }
    }
  }

  /// Ends the loop's sleep.
  package func signal() {
    var one: UInt64 = 1
    // It can only fail with EAGAIN at 2^64 − 2 unread wake-ups, and then the descriptor is readable anyway.
    _ = unsafe write(event.raw, &one, MemoryLayout<UInt64>.size)
  }

  /// Sleeps for `nanoseconds`, or until it is called.
  package func sleep(nanoseconds: Int64) { event.sleepUntilReadable(nanoseconds: nanoseconds) }

  /// Announces the loop's sleep; false when it was called meanwhile, so that it must not sleep.
  package func announceSleep() -> Bool {
    state.compareExchange(
      expected: Waker.awake, desired: Waker.asleep, ordering: .sequentiallyConsistent
    ).exchanged
  }

  /// Announces that the loop is awake; true when it was called since the last time.
  package func awaken() -> Bool {
    state.exchange(Waker.awake, ordering: .sequentiallyConsistent) == Waker.called
  }

  /// Makes the descriptor unreadable again.
  package func reset() {
    var count: UInt64 = 0
    // EAGAIN: it was not readable.
    _ = unsafe read(event.raw, &count, MemoryLayout<UInt64>.size)
  }
}
