// The writer's side of the queue: takes pending submissions, and writes them group by group.
import Glibc
import HubBytes
import Synchronization

extension GroupCommit {
  /// Submissions that were taken from the queue and are not stored yet.
  public struct PendingGroups {
    var batch = Batch()
    /// Bytes of the batch that are stored, and the index of its first submission that is not.
    var written = 0
    var first = 0

    public init() {}

    /// Whether everything that was taken is stored.
    public var isEmpty: Bool { first == batch.ends.count }

    mutating func removeAll(keepingAtMost limit: Int) {
      batch.bytes.removeAll(keepingCapacity: batch.bytes.capacity <= limit)
      batch.ends.removeAll(keepingCapacity: true)
      written = 0
      first = 0
    }
  }

  /// The result of `writeGroup`.
  public enum Progress: Equatable, Sendable {
    /// Nothing is pending.
    case idle
    case stored
    /// The disk is full, or the directory is gone; the next call tries the same group.
    case full(JournalError)
  }

  /// Why the journal's thread was woken.
  private enum Wake {
    case work
    /// Nothing was written for a while: check whether the directory still exists.
    case look
    case end
  }

  /// Writes groups until `close`; returns when everything is stored, or with a permanent error.
  ///
  /// `clock` gives ms since 1970. `onChange` is called each time that more is on stable storage or the condition
  /// changed.
  public func run(
    _ writer: inout JournalWriter, clock: () -> Int64, onChange: () -> Void
  ) throws(JournalError) {
    var groups = PendingGroups()
    var nextLook = Int64.min
    durableGroups.store(writer.next - 1, ordering: .releasing)
    while true {
      lookAtRoom(writer, next: &nextLook)
      if groups.isEmpty {
        switch waitForWork() {
        case .end: return
        case .look:
          if updateCondition(writer) { onChange() }
          continue
        case .work: sealIfAsked(&writer)
        }
      }
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

  /// Writes the next pending group: one step of `run`, also for tests, which have no journal thread. It waits only for
  /// the disk. A caller passes the same `groups` each time. After an error nothing can be stored.
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
      guard error.isPassing else {
        health.store(.stopped, ordering: .releasing)
        throw error
      }
      noteFull(error)
      return .full(error)
    }
    durableGroups.store(writer.next - 1, ordering: .releasing)
    // Published before the counters change, which may wake maintenance.
    durable.store(groups.batch.ends[last].ticket, ordering: .releasing)
    note(.good, storing: last - groups.first + 1, bytes: end - groups.written)
    groups.written = end
    groups.first = last + 1
    if groups.isEmpty { groups.removeAll(keepingAtMost: limits.groupBytes) }
    return .stored
  }

  /// Notes that nothing can be stored for now, and why.
  private func noteFull(_ error: JournalError) {
    locked { $0.counters.lastFull = error }
    if health.exchange(.full, ordering: .acquiringAndReleasing) != .full { locked { $0.counters.timesFull += 1 } }
  }

  /// Checks whether a start would find what is written next; true where that has changed.
  private func updateCondition(_ writer: borrowing JournalWriter) -> Bool {
    let before = currentCondition
    do throws(JournalError) {
      try writer.checkPaths()
      // Nothing is pending, so the cause was not lack of room but the directory, which is back.
      if before == .full { health.store(.good, ordering: .releasing) }
    } catch {
      noteFull(error)
    }
    return currentCondition != before
  }

  /// Reads the free space of the disk, at most once each `checkInterval`: on this thread, since on some disks even that
  /// waits.
  private func lookAtRoom(_ writer: borrowing JournalWriter, next: inout Int64) {
    guard Self.now() >= next else { return }
    let free = writer.freeBytes()
    locked { $0.counters.freeBytes = free }
    next = Self.now() + checkInterval
  }

  private func sealIfAsked(_ writer: inout JournalWriter) {
    locked { state in
      guard state.wantsSeal else { return }
      writer.sealSegment()
      state.wantsSeal = false
      state.sealedThrough = writer.next - 1
      unsafe pthread_cond_signal(maintenanceCondition)
    }
  }

  /// The last submission that fits into one group with those from `first` on, which begin at `start`.
  private func lastOfGroup(_ batch: Batch, from first: Int, at start: Int) -> Int {
    var last = first
    while last + 1 < batch.ends.count, batch.ends[last + 1].offset - start <= limits.groupBytes { last += 1 }
    return last
  }

  private func write(
    _ batch: Batch, _ range: Range<Int>, _ writer: inout JournalWriter, created: Int64
  ) throws(JournalError) {
    let began = Self.now()
    _ = try unsafe batch.bytes.withBytes { (bytes) throws(JournalError) in
      try unsafe writer.append(UnsafeRawBufferPointer(rebasing: bytes[range]), created: created)
    }
    let took = Self.now() - began
    locked {
      $0.counters.busyNanoseconds += UInt64(took)
      $0.counters.commitTimes.record(nanoseconds: took)
    }
  }

  private func note(_ condition: JournalCondition, storing submissions: Int, bytes: Int) {
    health.store(condition, ordering: .releasing)
    locked {
      $0.counters.groups += 1
      $0.counters.submissions += UInt64(submissions)
      $0.counters.bytes += UInt64(bytes)
      if $0.counters.bytes >= $0.maintenanceBytes { unsafe pthread_cond_signal(maintenanceCondition) }
    }
  }

  /// Waits for submissions, a request of maintenance, or the time to check the directory.
  private func waitForWork() -> Wake {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    let look = Self.now() + (currentCondition == .full ? fullRetry : checkInterval)
    while true {
      let state = unsafe state
      let hasWork = unsafe !state.pointee.pending.ends.isEmpty
      let isDue = unsafe state.pointee.isUrgent || state.pointee.isClosing || Self.now() >= state.pointee.deadline
      if hasWork, isDue { return .work }
      if unsafe state.pointee.isClosing { return .end }
      if unsafe state.pointee.wantsSeal { return .work }
      if Self.now() >= look { return .look }
      unsafe wait(on: condition, until: min(state.pointee.deadline, look))
    }
  }

  private func takePending(_ batch: inout Batch) {
    locked {
      swap(&batch, &$0.pending)
      $0.isUrgent = false
      $0.deadline = .max
    }
  }

  /// The disk is full: waits a while. False when the hub stops meanwhile.
  private func waitForRoom() -> Bool {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    let end = Self.now() + fullRetry
    while unsafe !state.pointee.isClosing, Self.now() < end { unsafe wait(on: condition, until: end) }
    return unsafe !state.pointee.isClosing
  }
}
