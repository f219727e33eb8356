// Plain threads: a loop runs on one for the life of the process, so neither Dispatch nor a Swift task's pool fits.

import CHubLinux
import Glibc

/// A started thread; join it to wait for its end. It runs on if it is not joined.
public struct ThreadHandle: ~Copyable, Sendable {
  private let thread: pthread_t

  fileprivate init(_ thread: pthread_t) { self.thread = thread }

  deinit {
    // Fails only for a thread that is joined or detached already, which `discard` rules out.
    _ = pthread_detach(thread)
  }

  /// Waits until the thread's body has returned.
  public consuming func join() {
    let number = pthread_join(thread, nil)
    precondition(number == 0, "a thread can only be joined once, and not by itself")
    discard self
  }
}

/// Starts a thread that runs `body`. The first 15 bytes of `name` show in top and gdb. What `body` captures is sent to
/// the thread.
public func startThread(
  name: String, _ body: sending @escaping () -> Void
) throws(SystemError) -> ThreadHandle {
  // The box crosses pthread_create as a pointer that owns one reference, which the new thread takes over.
  let box = unsafe Unmanaged.passRetained(ThreadBody(name: name, body))
  var thread = pthread_t()
  let number = unsafe pthread_create(
    &thread, nil,
    { argument in
      let body = unsafe Unmanaged<ThreadBody>.fromOpaque(argument!).takeRetainedValue()
      body.run()
      return nil
    }, unsafe box.toOpaque())
  guard number == 0 else {
    unsafe box.release()
    throw SystemError(call: "pthread_create", errno: number)
  }
  return ThreadHandle(thread)
}

private final class ThreadBody {
  private let name: String
  private let body: () -> Void

  init(name: String, _ body: @escaping () -> Void) {
    self.name = String(decoding: name.utf8.prefix(15), as: UTF8.self)
    self.body = body
  }

  func run() {
    // A refused name only means that tools show the process's.
    _ = unsafe pthread_setname_np(pthread_self(), name)
    body()
  }
}

/// Puts the calling thread to sleep, where it can only poll another thread's state; not for event loops.
public func pause(microseconds: Int) {
  var time = timespec(tv_sec: microseconds / 1_000_000, tv_nsec: microseconds % 1_000_000 * 1000)
  // A signal ends it early, and the caller looks again.
  _ = unsafe nanosleep(&time, nil)
}

/// Lowers the calling thread's priority (setpriority(2), per thread on Linux): for background work.
public func lowerThreadPriority() {
  // If it is refused, the priority stays.
  _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
}

/// A thread that is joined at most once, from any thread.
public final class Joinable: Sendable {
  private let handle: Locked<ThreadHandle?>

  public init(_ handle: consuming ThreadHandle) { self.handle = Locked(consume handle) }

  /// Waits until the thread has ended; calls after the first return at once, perhaps before that.
  public func join() {
    let taken = handle.withLock { $0.take() }
    if let taken { taken.join() }
  }
}
