// How long a hub takes from its first instruction to the line that says that it listens, and what it holds before
// anybody has come.
import Glibc
import HubCommandLine
import HubSystem

package struct StartRun {
  package var options: RunOptions
  package var times = 15
  static let name = "start"

  package init(options: RunOptions) { self.options = options }

  /// The medians.
  package func run() throws(LoadTestError) -> RunResult {
    let arguments = ["serve", "--port", "0", "--dev-auth", "--loops", "1", "--no-journal", "--log-level", "error"]
    let startedAt = Double(ClockReading.read().unixMilliseconds)
    var (times, resident, own): ([Double], [Double], [Double]) = ([], [], [])
    for _ in 0..<self.times {
      try options.interruption.check()
      let began = ClockReading.read().uptimeNanoseconds
      let hub = try HubProcess(
        executable: options.executable, arguments: arguments, cpus: options.serverCPU,
        interruption: options.interruption)
      times.append(Double(ClockReading.read().uptimeNanoseconds - began) / 1000)
      let memory = hub.facts.memory
      if let violation = hub.stop(within: options.stopSeconds) { throw .failed(violation) }
      guard let memory else { continue }
      resident.append(Double(memory.resident))
      own.append(Double(memory.own))
    }
    var status = stat()
    let path = try HubProcess.check(executable: options.executable)
    guard stat(path, &status) == 0 else { throw .failed("there is no \(path)") }
    var figures: [Figure: Double] = [
      .startTime: RankTest.median(times), .startSlowest: times.max() ?? 0, .executableBytes: Double(status.st_size),
    ]
    if !resident.isEmpty {
      figures[.startBytes] = RankTest.median(resident)
      figures[.startOwnBytes] = RankTest.median(own)
    }
    return RunResult(
      scenario: StartRun.name, about: "from its start to listening, \(self.times) times, and what it holds then",
      settings: arguments, hub: options.executable, startedAt: startedAt, figures: figures, parts: [], buckets: [],
      invalid: [], violations: [])
  }
}
