// epoll(7), level triggered: what was not read or accepted in this turn is reported again in the next, so no readiness
// is ever lost and nothing has to be remembered. Edge triggering measured no faster (loadtest notes of the design).

import CHubLinux
import Glibc
import HubSystem

/// An epoll instance and the memory into which it reports.
struct Poller: ~Copyable {
  /// What to watch a descriptor for. Errors and hang-ups are always reported. EPOLLRDHUP is left out on purpose: a
  /// peer's FIN makes the socket readable, the read after the last bytes returns 0, and while reading is paused
  /// nothing may be done about it anyway.
  struct Interest: OptionSet {
    let rawValue: UInt8
    static let readable = Interest(rawValue: 1)
    static let writable = Interest(rawValue: 2)

    var events: UInt32 {
      (contains(.readable) ? EPOLLIN.rawValue : 0) | (contains(.writable) ? EPOLLOUT.rawValue : 0)
    }
  }

  /// What epoll reported for one descriptor.
  struct Readiness {
    let token: UInt64
    let events: UInt32
    var isReadable: Bool { events & EPOLLIN.rawValue != 0 }
    var isWritable: Bool { events & EPOLLOUT.rawValue != 0 }
    /// EPOLLERR or EPOLLHUP: reset, failed, or shut down in both directions.
    var isBroken: Bool { events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 }
  }

  private let epoll: Descriptor
  private let reports: UnsafeMutableBufferPointer<epoll_event>

  init(eventsPerTurn: Int) throws(SystemError) {
    epoll = try Descriptor(epoll_create1(Int32(EPOLL_CLOEXEC)), from: "epoll_create1")
    reports = .allocate(capacity: eventsPerTurn)
    reports.initialize(repeating: epoll_event())
  }

  deinit {
    reports.deinitialize()
    reports.deallocate()
  }

  /// Watches a descriptor; closing it ends that by itself.
  func add(_ descriptor: Int32, token: UInt64, _ interest: Interest) throws(SystemError) {
    try control(EPOLL_CTL_ADD, descriptor, token: token, interest)
  }

  func modify(_ descriptor: Int32, token: UInt64, _ interest: Interest) throws(SystemError) {
    try control(EPOLL_CTL_MOD, descriptor, token: token, interest)
  }

  func remove(_ descriptor: Int32) throws(SystemError) {
    try control(EPOLL_CTL_DEL, descriptor, token: 0, [])
  }

  private func control(
    _ operation: Int32, _ descriptor: Int32, token: UInt64, _ interest: Interest
  ) throws(SystemError) {
    var event = epoll_event()
    event.events = interest.events
    event.data.u64 = token
    guard epoll_ctl(epoll.raw, operation, descriptor, &event) == 0 else { throw SystemError("epoll_ctl") }
  }

  /// Sleeps until something is ready or `milliseconds` passed (negative: without end), and returns how many
  /// descriptors are; `readiness` gives them. A signal ends the sleep with 0.
  func wait(milliseconds: Int32) -> Int {
    let count = epoll_wait(epoll.raw, reports.baseAddress!, Int32(reports.count), milliseconds)
    if count >= 0 { return Int(count) }
    // The others (EBADF, EFAULT, EINVAL) would mean that we broke our own descriptor or memory.
    precondition(errno == EINTR, "epoll_wait failed on the loop's own descriptor")
    return 0
  }

  /// Sleeps until something is ready or `nanoseconds` passed, and reports nothing: the next `wait` does. epoll_wait(2)
  /// counts in milliseconds; an epoll instance is itself a descriptor that can be polled to the nanosecond.
  func sleep(nanoseconds: Int64) {
    var watched = pollfd(fd: epoll.raw, events: Int16(POLLIN), revents: 0)
    var time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    // A failure is a signal's (EINTR); the caller looks at the clock again anyway.
    _ = ppoll(&watched, 1, &time, nil)
  }

  /// What `wait` reported at `index`.
  func readiness(_ index: Int) -> Readiness {
    Readiness(token: reports[index].data.u64, events: reports[index].events)
  }
}
