// A turn of a sleeping loop, run on the thread of another loop that has output for it.
//
// Waking a thread for one message takes two system calls, a thread switch and a return from epoll_wait: it made two
// loops a quarter more expensive than one (loadtest/NOTES.md). So a loop with a little output for a sleeping one runs a
// turn of the sleeping one: not its sockets, timers and wake-ups, only its end (`turnEnding`, the flush, `turnEnded`).
// The sleeper's own thread sleeps on; if it wakes meanwhile, it waits for the end of that turn, and it is woken for
// work that an assist leaves.
//
//     own thread   turn … falls asleep, unlocks ─────── epoll_wait ─────── locks, turn …
//     assistant                                 locks, turn, unlocks
//
// One lock decides whose turn it is. A loop without assistants has none.
import Glibc
public import HubSystem

/// A handle by which other threads run turns of a sleeping loop.
///
/// `@unchecked Sendable`: only the holder of its lock uses the loop, which the compiler cannot see.
public final class LoopAssistant: @unchecked Sendable {
  private let loop: EventLoop
  /// The loop's waker.
  public let waker: Waker

  fileprivate init(_ loop: EventLoop) {
    self.loop = loop
    waker = loop.waker
  }

  /// Makes the loop run the end of a turn soon, as after `Waker.wake`.
  ///
  /// A sleeping loop does that on this thread, before this returns and without `woken`: for work that takes less time
  /// than waking a thread. The caller may be within a turn of its own loop.
  public func assist() { loop.beAssisted() }
}

extension EventLoop {
  /// Allows others to assist the loop. Call once before `run`; costs two operations of a lock for each sleep.
  public func allowAssists() -> LoopAssistant {
    unsafe precondition(state.pointee.turnLock == nil && !state.pointee.isRunning)
    let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    unsafe lock.initialize(to: pthread_mutex_t())
    let number = unsafe pthread_mutex_init(lock, nil)
    precondition(number == 0, "a mutex with default attributes needs nothing that could be short")
    unsafe state.pointee.turnLock = lock
    return LoopAssistant(self)
  }

  /// Whether an assistant runs this turn; if so, it must not wait for other loops.
  public var isAssisted: Bool { unsafe state.pointee.isAssisted }

  func lockTurns() { if let lock = unsafe state.pointee.turnLock { unsafe pthread_mutex_lock(lock) } }

  func unlockTurns() { if let lock = unsafe state.pointee.turnLock { unsafe pthread_mutex_unlock(lock) } }

  func endAssists() {
    guard let lock = unsafe state.pointee.turnLock else { return }
    unsafe pthread_mutex_destroy(lock)
    unsafe lock.deinitialize(count: 1)
    unsafe lock.deallocate()
  }

  /// Runs a turn on the assistant's thread if the loop sleeps; else makes the loop's own thread run one.
  fileprivate func beAssisted() {
    // The loop is awake: it looks for calls before it sleeps.
    guard waker.claim() else { return }
    // Its own thread has just woken, or another assistant is still in its turn. Since `claim` other callers take the
    // loop for awake, so its thread is woken.
    guard let lock = unsafe state.pointee.turnLock, unsafe pthread_mutex_trylock(lock) == 0 else {
      return waker.signal()
    }
    defer { unsafe pthread_mutex_unlock(lock) }
    guard unsafe state.pointee.isRunning else { return }
    let wakesAt = unsafe state.pointee.wakesAt
    unsafe state.pointee.isAssisted = true
    takeAssistedTurn()
    unsafe state.pointee.isAssisted = false
    counters.assists += 1
    // The loop's own thread is woken for a timer that has become due earlier, and for calls during this turn.
    let isDueEarlier = unsafe timeToSleep(atMost: -1) == 0 || state.pointee.wakesAt < wakesAt
    unsafe state.pointee.wakesAt = wakesAt
    if isStopping || isDueEarlier || !waker.announceSleep() { waker.signal() }
  }
}
