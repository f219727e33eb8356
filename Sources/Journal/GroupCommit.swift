// Between the hub's thread, which never waits for a disk, and the journal's, which does little else: what comes while a
// group is being written goes into the next one, so that a busy disk makes larger groups and not longer queues (group
// commit: DeWitt et al., 1984).
import Glibc
import Synchronization
import Transport

/// How the journal is.
public enum JournalCondition: UInt8, Sendable, AtomicRepresentable {
  case good
  /// No room on the disk; it is tried again, and goes on by itself.
  case full
  /// A write failed; nothing is stored any more before a restart.
  case stopped
}

/// What was written so far.
public struct JournalCounters: Sendable, Equatable {
  public var groups: UInt64 = 0
  /// Submissions that these groups held.
  public var submissions: UInt64 = 0
  public var bytes: UInt64 = 0
  /// Time spent in write and fdatasync.
  public var busyNanoseconds: UInt64 = 0
  public var timesFull: UInt64 = 0
}

/// The queue to the journal's thread. One thread submits; one runs it.
///
/// `@unchecked Sendable`: `state` is touched only while `mutex` is held, and the pointers live as long as the object.
public final class GroupCommit: @unchecked Sendable {
  /// Whole submissions, one behind the other.
  fileprivate struct Batch {
    var bytes: [UInt8] = []
    /// Where each submission ends, and its ticket: a group holds whole submissions only.
    var ends: [(offset: Int, ticket: UInt64)] = []
  }

  /// What was taken from the queue and is not stored yet.
  public struct PendingGroups {
    fileprivate var batch = Batch()
    /// Bytes of it that are stored, and the first submission that is not.
    fileprivate var written = 0
    fileprivate var first = 0

    public init() {}

    public var isEmpty: Bool { first == batch.ends.count }

    fileprivate mutating func removeAll(keepingAtMost limit: Int) {
      batch.bytes.removeAll(keepingCapacity: batch.bytes.capacity <= limit)
      batch.ends.removeAll(keepingCapacity: true)
      written = 0
      first = 0
    }
  }

  private struct State {
    var pending = Batch()
    var isUrgent = false
    /// When the oldest pending submission must be written at the latest (CLOCK_MONOTONIC, ns).
    var deadline: Int64 = .max
    var isClosing = false
    var counters = JournalCounters()
    /// The keeper wants the newest segment to be full.
    var wantsSeal = false
    /// The last group of the segments that are full, once that was asked for.
    var sealedThrough: UInt64?
    /// Bytes of records at which the keeper wants to be woken.
    var keeperBytes = UInt64.max
  }

  private let limits: JournalLimits
  /// How long a submission without hurry may wait for company, in ns.
  private let lazyDelay: Int64
  /// How long to wait before a full disk is tried again, in ns.
  private let fullRetry: Int64
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  /// What the keeper waits on.
  private let keeperCondition: UnsafeMutablePointer<pthread_cond_t>
  private let state: UnsafeMutablePointer<State>
  private let durable = Atomic<UInt64>(0)
  private let health = Atomic<JournalCondition>(.good)

  public init(limits: JournalLimits, lazyMilliseconds: Int = 50, fullRetryMilliseconds: Int = 500) {
    self.limits = limits
    lazyDelay = Int64(lazyMilliseconds) * 1_000_000
    fullRetry = Int64(fullRetryMilliseconds) * 1_000_000
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    keeperCondition = .allocate(capacity: 1)
    keeperCondition.initialize(to: pthread_cond_t())
    state = .allocate(capacity: 1)
    state.initialize(to: State())
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)  // a wall clock that is set must not stop commits
    pthread_cond_init(condition, &attributes)
    pthread_cond_init(keeperCondition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_cond_destroy(keeperCondition)
    pthread_mutex_destroy(mutex)
    state.deinitialize(count: 1)
    state.deallocate()
    condition.deallocate()
    keeperCondition.deallocate()
    mutex.deallocate()
  }

  // MARK: The hub's side

  /// The newest ticket that is on stable storage with all before it.
  public var durableThrough: UInt64 { durable.load(ordering: .acquiring) }

  public var currentCondition: JournalCondition { health.load(ordering: .acquiring) }

  public var counters: JournalCounters { locked { $0.counters } }

  /// Whether `bytes` more may be submitted.
  public func hasRoom(for bytes: Int) -> Bool {
    locked { !$0.isClosing && $0.pending.bytes.count + bytes <= limits.pendingBytes } && currentCondition != .stopped
  }

  /// Hands records over, to be stored in order and all or none of them. `ticket` grows with each call; `isUrgent` says
  /// that somebody waits. False, and nothing is taken, where there is no room or the journal has stopped.
  public func submit(_ records: UnsafeRawBufferPointer, ticket: UInt64, isUrgent: Bool) -> Bool {
    precondition(records.count <= limits.groupBytes, "one turn's records fit a group")
    guard currentCondition != .stopped else { return false }
    return locked { state in
      guard state.pending.bytes.count + records.count <= limits.pendingBytes, !state.isClosing else { return false }
      state.pending.bytes.append(contentsOf: records)
      state.pending.ends.append((state.pending.bytes.count, ticket))
      let wakes = isUrgent ? !state.isUrgent : state.deadline == .max
      if isUrgent { state.isUrgent = true }
      if state.deadline == .max { state.deadline = Self.now() + lazyDelay }
      if wakes { pthread_cond_signal(condition) }
      return true
    }
  }

  /// Somebody has come to wait for a submission that was in no hurry. Cheap, and nothing where it is being written already.
  public func hurry(through ticket: UInt64) {
    locked { state in
      guard !state.isUrgent, let first = state.pending.ends.first, first.ticket <= ticket else { return }
      state.isUrgent = true
      pthread_cond_signal(condition)
    }
  }

  /// Has `run` store what is pending and return.
  public func close() {
    locked {
      $0.isClosing = true
      pthread_cond_signal(condition)
      pthread_cond_signal(keeperCondition)
    }
  }

  /// Nothing was submitted that the journal has not taken.
  public var isIdle: Bool { locked { $0.pending.ends.isEmpty } }

  // MARK: The keeper's side

  public var isClosing: Bool { locked { $0.isClosing } }

  /// Waits until `bytes` of records were stored in all, but no longer than so many seconds.
  public func waitUntilStored(bytes: UInt64, seconds: Double) {
    locked { $0.keeperBytes = bytes }
    keeperWaits(seconds: seconds) { $0.pointee.counters.bytes >= bytes }
    locked { $0.keeperBytes = .max }
  }

  /// Has the writer begin a new segment with its next group, and waits until it will; the last group before that. Nil
  /// where the writer does not come to it within so many seconds.
  public func sealSegment(seconds: Double) -> UInt64? {
    locked {
      $0.wantsSeal = true
      $0.sealedThrough = nil
      pthread_cond_signal(condition)
    }
    keeperWaits(seconds: seconds) { $0.pointee.sealedThrough != nil }
    return locked {
      $0.wantsSeal = false
      return $0.sealedThrough
    }
  }

  /// Waits until `isDone`, or the end, or so many seconds.
  private func keeperWaits(seconds: Double, _ isDone: (UnsafeMutablePointer<State>) -> Bool) {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    let end = Self.now() + Int64(seconds * 1e9)
    while !state.pointee.isClosing, !isDone(state), Self.now() < end { wait(on: keeperCondition, until: end) }
  }

  // MARK: The journal's side

  /// What `writeGroup` did.
  public enum Progress: Equatable, Sendable {
    /// Nothing is pending.
    case idle
    case stored
    /// There is no room on the disk; the same group is tried by the next call.
    case full(JournalError)
  }

  /// Writes groups until `close`; returns when everything was stored, or with the error after which nothing can be.
  ///
  /// `clock` gives ms since 1970. `onChange` is called each time that more is on stable storage or the condition changed.
  public func run(
    _ writer: inout JournalWriter, clock: () -> Int64, onChange: () -> Void
  ) throws(JournalError) {
    var groups = PendingGroups()
    while !groups.isEmpty || waitForWork() {
      if groups.isEmpty { sealIfAsked(&writer) }
      let before = currentCondition
      let progress: Progress
      do throws(JournalError) {
        progress = try writeGroup(&groups, &writer, created: clock())
      } catch {
        onChange()
        throw error
      }
      switch progress {
      case .idle: break
      case .stored: onChange()
      case .full(let error):
        if before != .full { onChange() }
        guard !waitForRoom() else { continue }
        health.store(.stopped, ordering: .releasing)
        onChange()
        throw error
      }
    }
  }

  /// Writes the next group of what is pending, and waits for nothing but the disk: what `run` does again and again, and
  /// whoever has no thread for it. `groups` is the caller's, the same each time. After an error nothing can be stored.
  public func writeGroup(
    _ groups: inout PendingGroups, _ writer: inout JournalWriter, created: Int64
  ) throws(JournalError) -> Progress {
    if groups.isEmpty { takePending(&groups.batch) }
    guard !groups.isEmpty else { return .idle }
    let last = lastOfGroup(groups.batch, from: groups.first, at: groups.written)
    let end = groups.batch.ends[last].offset
    do throws(JournalError) {
      try write(groups.batch, groups.written..<end, &writer, created: created)
    } catch {
      guard case .full = error else {
        health.store(.stopped, ordering: .releasing)
        throw error
      }
      if health.exchange(.full, ordering: .acquiringAndReleasing) != .full { locked { $0.counters.timesFull += 1 } }
      return .full(error)
    }
    note(.good, storing: last - groups.first + 1, bytes: end - groups.written)
    durable.store(groups.batch.ends[last].ticket, ordering: .releasing)
    groups.written = end
    groups.first = last + 1
    if groups.isEmpty { groups.removeAll(keepingAtMost: limits.groupBytes) }
    return .stored
  }

  private func sealIfAsked(_ writer: inout JournalWriter) {
    locked { state in
      guard state.wantsSeal else { return }
      writer.sealSegment()
      state.wantsSeal = false
      state.sealedThrough = writer.next - 1
      pthread_cond_signal(keeperCondition)
    }
  }

  /// The last submission that still fits into one group with those from `first` on, which begin at `start`.
  private func lastOfGroup(_ batch: Batch, from first: Int, at start: Int) -> Int {
    var last = first
    while last + 1 < batch.ends.count, batch.ends[last + 1].offset - start <= limits.groupBytes { last += 1 }
    return last
  }

  private func write(
    _ batch: Batch, _ range: Range<Int>, _ writer: inout JournalWriter, created: Int64
  ) throws(JournalError) {
    let began = Self.now()
    _ = try batch.bytes.withBytes { (bytes) throws(JournalError) in
      try writer.append(UnsafeRawBufferPointer(rebasing: bytes[range]), created: created)
    }
    let took = UInt64(Self.now() - began)
    locked { $0.counters.busyNanoseconds += took }
  }

  private func note(_ condition: JournalCondition, storing submissions: Int, bytes: Int) {
    health.store(condition, ordering: .releasing)
    locked {
      $0.counters.groups += 1
      $0.counters.submissions += UInt64(submissions)
      $0.counters.bytes += UInt64(bytes)
      if $0.counters.bytes >= $0.keeperBytes { pthread_cond_signal(keeperCondition) }
    }
  }

  /// Waits for what is worth writing, or for the keeper to ask; false when there is nothing more to come.
  private func waitForWork() -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      let state = state
      let hasWork = !state.pointee.pending.ends.isEmpty
      let isDue = state.pointee.isUrgent || state.pointee.isClosing || Self.now() >= state.pointee.deadline
      if hasWork, isDue { return true }
      if state.pointee.isClosing { return false }
      if state.pointee.wantsSeal { return true }
      wait(on: condition, until: state.pointee.deadline)
    }
  }

  private func takePending(_ batch: inout Batch) {
    locked {
      swap(&batch, &$0.pending)
      $0.isUrgent = false
      $0.deadline = .max
    }
  }

  /// The disk is full: waits a while. False when the hub goes down meanwhile.
  private func waitForRoom() -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    let end = Self.now() + fullRetry
    while !state.pointee.isClosing, Self.now() < end { wait(on: condition, until: end) }
    return !state.pointee.isClosing
  }

  // MARK: Waiting

  /// With the mutex held. Wakes early for anything.
  private func wait(on condition: UnsafeMutablePointer<pthread_cond_t>, until deadline: Int64) {
    guard deadline != .max else {
      pthread_cond_wait(condition, mutex)
      return
    }
    var time = timespec(tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
    pthread_cond_timedwait(condition, mutex, &time)
  }

  private func locked<R>(_ body: (inout State) -> R) -> R {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&state.pointee)
  }

  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
