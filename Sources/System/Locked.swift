// A value behind a pthread mutex.
//
// Why not Synchronization's Mutex: the thread sanitizer cannot see into its slow path (`_lockSlow` is in the library,
// which is not instrumented), and reports false races under contention; it knows pthread mutexes. And Mutex spins up to
// 1,000 pauses before it sleeps (swiftlang/swift issue 88440), which takes time from the lock's holder on a machine
// with fewer cores than threads.

public import Glibc

/// A value that one thread at a time can access.
///
/// `@unchecked Sendable`, because the compiler does not know that `value` is touched only while `mutex` is held:
/// `withLock` is the only code that touches it, and only what is Sendable goes in.
@safe
public final class Locked<Value: ~Copyable & Sendable>: @unchecked Sendable {
  // On the heap, because a pthread_mutex_t must not move after pthread_mutex_init. The value too: a class's property
  // would cost a run-time exclusivity check that the mutex makes unnecessary.
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline let value: UnsafeMutablePointer<Value>

  @inlinable
  public init(_ value: consuming Value) {
    unsafe self.value = .allocate(capacity: 1)
    unsafe self.value.initialize(to: value)
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    let number = unsafe pthread_mutex_init(mutex, nil)
    precondition(number == 0, "a mutex with default attributes needs nothing that could be short")
  }

  @inlinable
  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deinitialize(count: 1)
    unsafe mutex.deallocate()
    unsafe value.deinitialize(count: 1)
    unsafe value.deallocate()
  }

  /// Calls `body` with the value while no other thread can. `body` must not call it again: that deadlocks.
  @inlinable
  public func withLock<R: ~Copyable>(_ body: (inout Value) -> R) -> R {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return unsafe body(&value.pointee)
  }
}
