// A turn of a loop that sleeps, on the thread of another that has something for it.
//
// To wake a thread for one message takes two calls of the kernel, a switch of threads and a return from epoll_wait: it
// made two loops a quarter dearer than one (loadtest/NOTES.md). So who has only a little for a loop that sleeps runs a
// turn of it: no look at its sockets, its timers and who called, only its end (`turnEnding`, the flush, `turnEnded`).
// Its own thread sleeps on; if it wakes meanwhile, it waits for the end of that turn, and what an assist leaves to do
// wakes it.
//
//     own thread   turn … falls asleep, unlocks ─────── epoll_wait ─────── locks, turn …
//     assistant                                 locks, turn, unlocks
//
// One lock decides whose turn it is. A loop that nobody assists has none.
import Glibc
public import HubSystem

/// A loop as other threads may use it.
///
/// `@unchecked Sendable`: the loop is touched only by who holds its lock, which the compiler cannot see.
public final class LoopAssistant: @unchecked Sendable {
  private let loop: EventLoop
  /// The loop's.
  public let waker: Waker

  fileprivate init(_ loop: EventLoop) {
    self.loop = loop
    waker = loop.waker
  }

  /// Has the loop end a turn soon, as after `Waker.wake`; where it sleeps, on this thread before this returns, without
  /// `woken`. For work that takes less time than a thread to wake. The caller may be within a turn of its own loop.
  public func assist() { loop.beAssisted() }
}

extension EventLoop {
  /// Makes the loop one that others may assist. Before `run`, once; costs two operations of a lock for each sleep.
  public func allowAssists() -> LoopAssistant {
    unsafe precondition(state.pointee.turnLock == nil && !state.pointee.isRunning)
    let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    unsafe lock.initialize(to: pthread_mutex_t())
    let number = unsafe pthread_mutex_init(lock, nil)
    precondition(number == 0, "a mutex with default attributes needs nothing that could be short")
    unsafe state.pointee.turnLock = lock
    return LoopAssistant(self)
  }

  /// This turn is run by an assistant, who must not wait for anything that other loops do.
  public var isAssisted: Bool { unsafe state.pointee.isAssisted }

  func lockTurns() { if let lock = unsafe state.pointee.turnLock { unsafe pthread_mutex_lock(lock) } }

  func unlockTurns() { if let lock = unsafe state.pointee.turnLock { unsafe pthread_mutex_unlock(lock) } }

  func endAssists() {
    guard let lock = unsafe state.pointee.turnLock else { return }
    unsafe pthread_mutex_destroy(lock)
    unsafe lock.deinitialize(count: 1)
    unsafe lock.deallocate()
  }

  /// On the assistant's thread.
  fileprivate func beAssisted() {
    // Awake: it looks before it sleeps.
    guard waker.claim() else { return }
    // Taken: its thread has just woken by itself, or the assistant before has not yet left. For all others it is awake
    // already.
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
    // What cannot wait until its thread wakes by itself, and who called meanwhile, is for that thread.
    let isDueEarlier = unsafe timeToSleep(atMost: -1) == 0 || state.pointee.wakesAt < wakesAt
    unsafe state.pointee.wakesAt = wakesAt
    if isStopping || isDueEarlier || !waker.mayFallAsleep() { waker.signal() }
  }
}
