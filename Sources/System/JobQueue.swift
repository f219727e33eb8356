// A bounded queue to threads that may block: they wait for work here, where a mailbox wakes an event loop.

import Glibc

/// Jobs from any threads, in order, each taken by one thread.
///
/// `@unchecked Sendable`: `state` is touched only while `mutex` is held, and all three pointers live as long as the
/// object.
@safe
public final class JobQueue<Job: Sendable>: @unchecked Sendable {
  private struct State {
    var jobs: [Job?] = []
    /// Jobs before this one were taken, and are nil: what they hold is freed when they are done.
    var head = 0
    var isClosed = false

    mutating func insertFirst(_ job: Job) {
      if head == 0 { return jobs.insert(job, at: 0) }
      head -= 1
      jobs[head] = job
    }

    /// The first waiting job.
    mutating func take(compactingAt capacity: Int) -> Job {
      let job = jobs[head]!
      jobs[head] = nil
      head += 1
      if head == jobs.count {
        jobs.removeAll(keepingCapacity: true)
        head = 0
      } else if head >= capacity {
        jobs.removeFirst(head)
        head = 0
      }
      return job
    }
  }

  /// The most jobs that may wait; more are refused.
  public let capacity: Int
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private let state: UnsafeMutablePointer<State>

  public init(capacity: Int) {
    precondition(capacity > 0)
    self.capacity = capacity
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe condition = .allocate(capacity: 1)
    unsafe condition.initialize(to: pthread_cond_t())
    unsafe state = .allocate(capacity: 1)
    unsafe state.initialize(to: State())
    unsafe pthread_mutex_init(mutex, nil)
    unsafe pthread_cond_init(condition, nil)
  }

  deinit {
    unsafe pthread_cond_destroy(condition)
    unsafe pthread_mutex_destroy(mutex)
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
    unsafe condition.deallocate()
    unsafe mutex.deallocate()
  }

  /// Appends a job; false, and nothing happens, when `limit` jobs wait (by default, and at most, `capacity`) or the
  /// queue is closed. `isNext`: before all that wait.
  public func append(_ job: Job, limit: Int = .max, isNext: Bool = false) -> Bool {
    locked { state in
      guard state.jobs.count - state.head < min(limit, capacity), !state.isClosed else { return false }
      if isNext { state.insertFirst(job) } else { state.jobs.append(job) }
      unsafe pthread_cond_signal(condition)
      return true
    }
  }

  /// Takes the next job, waiting for one; nil once the queue is closed. Jobs left then are never taken.
  public func next() -> Job? {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    // By the pointer, not by `locked`: the optimiser may read an `inout` state only once, and never see a job that is
    // appended during the wait.
    while unsafe state.pointee.head == state.pointee.jobs.count {
      if unsafe state.pointee.isClosed { return nil }
      unsafe pthread_cond_wait(condition, mutex)
    }
    return unsafe state.pointee.isClosed ? nil : state.pointee.take(compactingAt: capacity)
  }

  /// Closes the queue: no more jobs are taken.
  public func close() {
    locked {
      $0.isClosed = true
      unsafe pthread_cond_broadcast(condition)
    }
  }

  /// Whether `close` was called.
  public var isClosed: Bool { locked { $0.isClosed } }

  private func locked<R>(_ body: (inout State) -> R) -> R {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return unsafe body(&state.pointee)
  }
}
