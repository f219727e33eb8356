// What the machine itself takes to wake a thread that sleeps, for a figure to be held beside: two threads that do
// nothing else. On an idle machine it is most of what a feed's event takes, and longer than on a busy one: a core that
// has gone to sleep has to be woken first, in a virtual machine by its host.
import CHubLoadTest
import Glibc
import HubCommandLine
import HubLoadTestKit
import HubSystem

/// One after the other: `measure` is not to be called again before it has returned.
final class WakeFloor: Sendable {
  /// Who is woken.
  enum Sleeper {
    /// A task, by its continuation, as a feed's reader is.
    case task(CheckedContinuation<Int64, Never>)
    /// A thread, by a pipe; then it says how long that took.
    case thread(CheckedContinuation<Int64, Never>)
  }

  private struct Round {
    var sleeper: Sleeper?
    var begin: Int64 = 0
  }

  private let round = Locked(Round())
  private let waker: Signal
  private let sleeper: Signal

  /// Two threads, which go with the program.
  init() throws(LoadTestError) {
    (waker, sleeper) = (try Signal(), try Signal())
    do throws(SystemError) {
      _ = try startThread(name: "floor-waker") { while true { self.wake() } }
      _ = try startThread(name: "floor-sleeper") { while true { self.sleep() } }
    } catch {
      throw .failed("the floor's threads: \(error)")
    }
  }

  /// Nanoseconds from when a thread begins to wake a task that has slept for some milliseconds until it runs.
  func wakeTask() async -> Int64 {
    let begin = await withCheckedContinuation { ask(.task($0)) }
    return ClockReading.uptime() - begin
  }

  /// Nanoseconds from when a thread begins to wake one that has slept until that one runs.
  func wakeThread() async -> Int64 { await withCheckedContinuation { ask(.thread($0)) } }

  private func ask(_ sleeper: Sleeper) {
    round.withLock { $0.sleeper = sleeper }
    waker.post()
  }

  private func wake() {
    waker.wait()
    pause(microseconds: 3000)
    let asked = round.withLock { round in
      round.begin = ClockReading.uptime()
      return round
    }
    switch asked.sleeper {
    case .task(let continuation): continuation.resume(returning: asked.begin)
    case .thread: sleeper.post()
    case nil: break
    }
  }

  private func sleep() {
    sleeper.wait()
    let end = ClockReading.uptime()
    let asked = round.withLock { $0 }
    if case .thread(let continuation) = asked.sleeper { continuation.resume(returning: end - asked.begin) }
  }
}

/// One thread waits, another posts: a pipe, which stays for as long as the program.
private struct Signal {
  private let ends: [Int32]

  init() throws(LoadTestError) {
    var ends: [Int32] = [0, 0]
    guard pipe2(&ends, O_CLOEXEC) == 0 else { throw .failed("the floor's pipe: \(SystemError.text(errno))") }
    self.ends = ends
  }

  func post() {
    var byte: UInt8 = 0
    while write(ends[1], &byte, 1) < 1 {}
  }

  func wait() {
    var byte: UInt8 = 0
    while read(ends[0], &byte, 1) < 1 {}
  }
}
