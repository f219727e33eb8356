// A signal that asks this program to end, while it has a hub running and results that are not written yet: the
// present run is cut short, its hub stopped, what there is written. A second signal ends the program at once; the hub
// ends with it (HubProcess).
//
// Signals are blocked and waited for by a thread of their own (sigwait(3)), for a handler may call next to nothing.
// Loops that wait or measure look at `signal` in each of their turns.
import Glibc
import HubCommandLine
import HubSystem

package final class Interruption: Sendable {
  private struct State: Sendable {
    var signal: Int32?
    var hubIsStopped = false
  }

  private let state = Locked(State())

  package init() {}

  /// The interruption of this program.
  package static let process = Interruption()

  /// The signal that came; nil while none has.
  package var signal: Int32? { state.withLock { $0.signal } }

  package func note(_ signal: Int32) { state.withLock { $0.signal = signal } }

  /// A hub that was started here has ended.
  func noteStopped() {
    state.withLock { if $0.signal != nil { $0.hubIsStopped = true } }
  }

  /// What came of it, for people; nil where no signal came.
  package var text: String? {
    state.withLock { state in
      state.signal.map { Interruption.text($0) + (state.hubIsStopped ? ", the hub is stopped" : "") }
    }
  }

  static func text(_ signal: Int32) -> String {
    let names = [SIGINT: "SIGINT", SIGTERM: "SIGTERM", SIGHUP: "SIGHUP"]
    return "interrupted by \(names[signal] ?? "signal \(signal)")"
  }

  /// Throws where a signal came, for what has nothing to say without its end.
  package func check() throws(LoadTestError) {
    if let signal { throw .failed(Interruption.text(signal)) }
  }

  // MARK: This program's signals

  /// Watches for them from now on; to be called before there are other threads. What is ignored already stays so: a
  /// shell has what it starts in the background ignore SIGINT, and nohup(1) SIGHUP.
  package static func watch() throws(LoadTestError) {
    let signals = [SIGINT, SIGTERM, SIGHUP].filter { !isIgnored($0) }
    guard !signals.isEmpty else { return }
    do throws(SystemError) {
      try blockSignals(signals)
      _ = try startThread(name: "signals") {
        process.note(waitForSignal(signals))
        _exit(128 + waitForSignal(signals))
      }
    } catch {
      throw .failed("cannot wait for signals: \(error)")
    }
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(signal, nil, &action) == 0 else { return false }
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
