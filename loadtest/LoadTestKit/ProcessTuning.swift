// What a process that makes load asks of the kernel.
import Glibc
import HubCommandLine
import HubSystem

package enum ProcessTuning {
  /// All descriptors that there may be, and sleeps that end when they should: the kernel lets timers of an ordinary
  /// thread be late by 50 µs, to save power (timer slack), which is more than the hub takes. Threads inherit it.
  package static func apply() throws(LoadTestError) {
    do throws(SystemError) {
      let limit = try ProcessFacts.raiseOpenFileLimit()
      try ProcessFacts.makeRoomForOpenFiles(min(limit, 128 * 1024))
    } catch {
      throw .failed("cannot raise the limit of open files: \(error)")
    }
    let file = open("/proc/self/timerslack_ns", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    // Refused, the load is 50 µs late now and then, which it says.
    _ = Glibc.write(file, "1000", 4)
    close(file)
  }
}
