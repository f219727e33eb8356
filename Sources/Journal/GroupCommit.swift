// Between the hub's thread, which never waits for a disk, and the journal's thread: submissions that come while a group
// is being written go into the next one, so that a busy disk makes larger groups and not longer queues (group commit:
// DeWitt et al., 1984).
//
// The files: +Writing (the journal's thread), +Maintenance (the maintenance thread).
import Glibc
import HubSystem
import Synchronization

/// The queue to the journal's thread. One thread submits; one runs it.
///
/// `@unchecked Sendable`: `state` is used only while `mutex` is held, and the pointers live as long as the object.
@safe
public final class GroupCommit: @unchecked Sendable {
  /// Complete submissions in sequence.
  struct Batch {
    var bytes: [UInt8] = []
    /// The end of each submission in `bytes`, and its ticket. A group has complete submissions only.
    var ends: [(offset: Int, ticket: UInt64)] = []
  }

  struct State {
    var pending = Batch()
    var isUrgent = false
    /// When the oldest pending submission must be written (CLOCK_MONOTONIC, ns).
    var deadline: Int64 = .max
    var isClosing = false
    var counters = JournalCounters()
    /// Maintenance requests the end of the newest segment.
    var wantsSeal = false
    /// The last group before the requested end of a segment; nil until the writer has ended it.
    var sealedThrough: UInt64?
    /// Bytes of records at which maintenance is woken.
    var maintenanceBytes = UInt64.max
  }

  let limits: JournalLimits
  /// How long a lazy submission may wait for others, in ns.
  private let lazyDelay: Int64
  /// The delay before a full disk is tried again, in ns.
  let fullRetry: Int64
  /// How often the directory is checked while nothing is written, in ns.
  let checkInterval: Int64
  let mutex: UnsafeMutablePointer<pthread_mutex_t>
  let condition: UnsafeMutablePointer<pthread_cond_t>
  /// The condition that maintenance waits on.
  let maintenanceCondition: UnsafeMutablePointer<pthread_cond_t>
  let state: UnsafeMutablePointer<State>
  let durable = Atomic<UInt64>(0)
  /// `.max` before the writer runs.
  let durableGroups = Atomic<UInt64>(.max)
  let health = Atomic<JournalCondition>(.good)

  public init(
    limits: JournalLimits, lazyMilliseconds: Int = 50, fullRetryMilliseconds: Int = 500,
    checkMilliseconds: Int = 5000
  ) {
    self.limits = limits
    lazyDelay = Int64(lazyMilliseconds) * 1_000_000
    fullRetry = Int64(fullRetryMilliseconds) * 1_000_000
    checkInterval = Int64(checkMilliseconds) * 1_000_000
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe condition = .allocate(capacity: 1)
    unsafe condition.initialize(to: pthread_cond_t())
    unsafe maintenanceCondition = .allocate(capacity: 1)
    unsafe maintenanceCondition.initialize(to: pthread_cond_t())
    unsafe state = .allocate(capacity: 1)
    unsafe state.initialize(to: State())
    unsafe pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    unsafe pthread_condattr_init(&attributes)
    unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)  // setting the wall clock must not stop commits
    unsafe pthread_cond_init(condition, &attributes)
    unsafe pthread_cond_init(maintenanceCondition, &attributes)
    unsafe pthread_condattr_destroy(&attributes)
  }

  deinit {
    unsafe pthread_cond_destroy(condition)
    unsafe pthread_cond_destroy(maintenanceCondition)
    unsafe pthread_mutex_destroy(mutex)
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
    unsafe condition.deallocate()
    unsafe maintenanceCondition.deallocate()
    unsafe mutex.deallocate()
  }

  // MARK: The hub's side

  /// The newest ticket that is on stable storage with all before it.
  public var durableThrough: UInt64 { durable.load(ordering: .acquiring) }

  /// The newest group that is on stable storage with all before it, 0 in an empty journal; nil before `run`.
  public var durableGroup: UInt64? {
    let group = durableGroups.load(ordering: .acquiring)
    return group == .max ? nil : group
  }

  /// Whether records can be stored now.
  public var currentCondition: JournalCondition { health.load(ordering: .acquiring) }

  /// By how many ns the oldest pending records are overdue at an uptime (ns); those being written do not count.
  public func lag(at uptime: Int64) -> Int64 { locked { max(0, uptime - min(uptime, $0.deadline)) } }

  /// A copy of the counters, taken under the lock.
  public var counters: JournalCounters { locked { $0.counters } }

  /// Hands over records, to be stored in order and atomically. `ticket` grows with each call; `isUrgent`: an answer or
  /// event waits for them. Returns false, and takes nothing, if there is no room, or the journal has stopped or closes.
  public func submit(_ records: UnsafeRawBufferPointer, ticket: UInt64, isUrgent: Bool) -> Bool {
    precondition(records.count <= limits.groupBytes, "one turn's records fit a group")
    guard currentCondition != .stopped else { return false }
    return locked { state in
      guard state.pending.bytes.count + records.count <= limits.pendingBytes, !state.isClosing else { return false }
      unsafe state.pending.bytes.append(contentsOf: records)
      state.pending.ends.append((state.pending.bytes.count, ticket))
      let wakes = isUrgent ? !state.isUrgent : state.deadline == .max
      if isUrgent { state.isUrgent = true }
      if state.deadline == .max { state.deadline = Self.now() + lazyDelay }
      if wakes { unsafe pthread_cond_signal(condition) }
      return true
    }
  }

  /// Makes a lazy submission urgent, since something waits for it now. Cheap; no effect if it is being written.
  public func hurry(through ticket: UInt64) {
    locked { state in
      guard !state.isUrgent, let first = state.pending.ends.first, first.ticket <= ticket else { return }
      state.isUrgent = true
      unsafe pthread_cond_signal(condition)
    }
  }

  /// Makes `run` store what is pending and return.
  public func close() {
    locked {
      $0.isClosing = true
      unsafe pthread_cond_signal(condition)
      unsafe pthread_cond_signal(maintenanceCondition)
    }
  }

  /// Whether the journal's thread has taken all submissions.
  public var isIdle: Bool { locked { $0.pending.ends.isEmpty } }

  // MARK: Waiting

  /// Waits until `deadline` (CLOCK_MONOTONIC, ns), with the mutex held. May wake early.
  func wait(on condition: UnsafeMutablePointer<pthread_cond_t>, until deadline: Int64) {
    guard deadline != .max else {
      unsafe pthread_cond_wait(condition, mutex)
      return
    }
    var time = timespec(tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
    unsafe pthread_cond_timedwait(condition, mutex, &time)
  }

  func locked<R>(_ body: (inout State) -> R) -> R {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return unsafe body(&state.pointee)
  }

  static func now() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
