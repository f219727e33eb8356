// Many histories of the simulated world, on all cores, and what they came across.
import Glibc
import HubDurabilityModel
import HubSystem

struct HistoryRun {
  var firstSeed: UInt64
  /// Histories; nil for as many as the seconds allow.
  var count: UInt64?
  var seconds: Double

  private struct Sum: Sendable {
    var begun: UInt64 = 0
    var histories: UInt64 = 0
    var reach = HistoryReach()
    var failures: [HistoryFailure] = []
  }

  /// False where a promise was broken.
  func run() throws(SystemError) -> Bool {
    let began = ClockReading.read().uptimeNanoseconds
    let sum = Locked(Sum())
    try work(threads: max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), until: began + Int64(seconds * 1e9), sum)
    let took = Double(ClockReading.read().uptimeNanoseconds - began) / 1e9
    return sum.withLock { report($0, seconds: took) }
  }

  private func work(threads: Int, until end: Int64, _ sum: Locked<Sum>) throws(SystemError) {
    guard threads > 1 else { return work(until: end, sum) }
    let run = self
    let thread = try startThread(name: "histories") { @Sendable in run.work(until: end, sum) }
    try work(threads: threads - 1, until: end, sum)
    thread.join()
  }

  private func work(until end: Int64, _ sum: Locked<Sum>) {
    while true {
      let number = sum.withLock { sum -> UInt64? in
        guard sum.failures.isEmpty else { return nil }
        if let count, sum.begun >= count { return nil }
        if count == nil, ClockReading.read().uptimeNanoseconds >= end { return nil }
        sum.begun += 1
        return sum.begun - 1
      }
      guard let number else { return }
      do throws(HistoryFailure) {
        let reach = try History.run(seed: firstSeed &+ number)
        sum.withLock {
          $0.reach += reach
          $0.histories += 1
        }
      } catch {
        sum.withLock { $0.failures.append(error) }
      }
    }
  }

  private func report(_ sum: Sum, seconds: Double) -> Bool {
    print("| histories from seed \(firstSeed) on | \(sum.histories) in \(Int(seconds)) s |\n| --- | --- |")
    for reach in Reach.allCases { print("| \(reach) | \(sum.reach[reach]) |") }
    for failure in sum.failures { print("\nBROKEN: \(failure)") }
    return sum.failures.isEmpty
  }
}
