// epoll(7), level triggered: what was not read or accepted in this turn is reported again in the next, so no readiness
// is lost and nothing has to be remembered. Edge triggering measured no faster.

import CHubLinux
import Glibc
import HubSystem

/// An epoll instance and the memory of its reports.
@safe
struct Poller: ~Copyable {
  private let epoll: Descriptor
  private let reports: UnsafeMutableBufferPointer<epoll_event>
  /// Used instead of epoll, if set; `isSimulated` says so without a retain.
  private let network: (any Network)?
  private let isSimulated: Bool

  init(eventsPerTurn: Int, network: (any Network)? = nil) throws(SystemError) {
    self.network = network
    isSimulated = network != nil
    epoll = try Descriptor(epoll_create1(Int32(EPOLL_CLOEXEC)), from: "epoll_create1")
    unsafe reports = .allocate(capacity: eventsPerTurn)
    unsafe reports.initialize(repeating: epoll_event())
  }

  deinit {
    unsafe reports.deinitialize()
    unsafe reports.deallocate()
  }

  /// Watches a descriptor; closing it ends that, unless another one is open for the same socket (epoll(7)).
  func add(_ descriptor: Int32, token: UInt64, _ interest: Interest) throws(SystemError) {
    try control(EPOLL_CTL_ADD, descriptor, token: token, interest)
  }

  func modify(_ descriptor: Int32, token: UInt64, _ interest: Interest) throws(SystemError) {
    try control(EPOLL_CTL_MOD, descriptor, token: token, interest)
  }

  /// Ends the watch of a descriptor.
  func remove(_ descriptor: Int32) {
    if isSimulated { return }  // closing ends it
    // It can't fail: the descriptor is watched, and this takes no memory.
    _ = epoll_ctl(epoll.raw, EPOLL_CTL_DEL, descriptor, nil)
  }

  private func control(
    _ operation: Int32, _ descriptor: Int32, token: UInt64, _ interest: Interest
  ) throws(SystemError) {
    if isSimulated, let network { return try network.watch(descriptor, token: token, for: interest) }
    var event = unsafe epoll_event()
    unsafe event.events = interest.events
    unsafe event.data.u64 = token
    guard unsafe epoll_ctl(epoll.raw, operation, descriptor, &event) == 0 else { throw SystemError("epoll_ctl") }
  }

  /// Sleeps until something is ready or `milliseconds` have passed (negative: no limit), and returns the number of
  /// ready descriptors, which `readiness` gives. A signal ends the sleep with 0.
  @inline(__always)
  func wait(milliseconds: Int32) -> Int {
    if isSimulated, let network { return unsafe take(network.ready(limit: reports.count), milliseconds) }
    let count = unsafe epoll_wait(epoll.raw, reports.baseAddress!, Int32(reports.count), milliseconds)
    if count >= 0 { return Int(count) }
    // The others (EBADF, EFAULT, EINVAL) would mean a bug of our own.
    precondition(errno == EINTR, "epoll_wait failed on the loop's own descriptor")
    return 0
  }

  private func take(_ ready: [Readiness], _ milliseconds: Int32) -> Int {
    precondition(milliseconds == 0, "a loop over a simulated network never sleeps: its turns have a timeout of 0")
    for (index, readiness) in ready.enumerated() {
      // Not member by member: the thread sanitizer of Swift 6.3.1 makes code of it that LLVM refuses.
      var event = unsafe epoll_event()
      unsafe event.events = readiness.events
      unsafe event.data.u64 = readiness.token
      unsafe reports[index] = event
    }
    return ready.count
  }

  /// Sleeps until something is ready or `nanoseconds` have passed, and reports nothing: the next `wait` does. By
  /// ppoll(2) on the epoll descriptor, because epoll_wait(2) counts in milliseconds.
  func sleep(nanoseconds: Int64) { epoll.sleepUntilReadable(nanoseconds: nanoseconds) }

  /// The report of `wait` at `index`.
  func readiness(_ index: Int) -> Readiness {
    unsafe Readiness(token: reports[index].data.u64, events: reports[index].events)
  }
}
