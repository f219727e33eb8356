// Signals as readable descriptors, by signalfd(2), instead of handlers.

import CHubLinux
import Glibc

/// Blocks signals in the calling thread and in the threads that it starts from then on. Call it in `main` before any
/// thread exists: a signal is delivered the ordinary way to a thread that does not block it.
public func blockSignals(_ signals: [Int32]) throws(SystemError) {
  var set = SignalWatch.set(of: signals)
  let number = unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
  guard number == 0 else { throw SystemError(call: "pthread_sigmask", errno: number) }
}

/// Ignores signals in the whole process.
public func ignoreSignals(_ signals: [Int32]) throws(SystemError) {
  var action = sigaction()
  unsafe action.__sigaction_handler.sa_handler = SIG_IGN
  for signal in signals where unsafe sigaction(signal, &action, nil) != 0 { throw SystemError("sigaction") }
}

/// Sleeps until one of these signals comes; they must be blocked (see `blockSignals`). Gives its number.
@discardableResult
public func waitForSignal(_ signals: [Int32]) -> Int32 {
  var set = SignalWatch.set(of: signals)
  var signal: Int32 = 0
  // Fails only for an invalid set.
  let number = unsafe sigwait(&set, &signal)
  precondition(number == 0)
  return signal
}

/// A signalfd(2), and the handler to call for each signal that comes.
package final class SignalWatch {
  private let descriptor: Descriptor
  private let handler: (Int32) -> Void

  package init(_ signals: [Int32], _ handler: @escaping (Int32) -> Void) throws(SystemError) {
    var set = SignalWatch.set(of: signals)
    let flags = Int32(SFD_NONBLOCK | SFD_CLOEXEC)
    descriptor = try unsafe Descriptor(signalfd(-1, &set, flags), from: "signalfd")
    self.handler = handler
  }

  /// The descriptor that becomes readable when a signal comes.
  package var raw: Int32 { descriptor.raw }

  /// Calls the handler for each signal that came.
  package func deliver() {
    var info = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    // Reads whole records or none; the last read says EAGAIN.
    while unsafe read(descriptor.raw, &info, size) == size { handler(Int32(bitPattern: info.ssi_signo)) }
  }

  static func set(of signals: [Int32]) -> sigset_t {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for signal in signals {
      let outcome = unsafe sigaddset(&set, signal)
      precondition(outcome == 0, "not a signal number")
    }
    return set
  }
}
