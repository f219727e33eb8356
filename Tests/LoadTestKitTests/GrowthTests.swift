// Curves of growth, and what only has to be there for them.
import Glibc
import HubSystem
import Testing

@testable import HubLoadTestKit

@Suite(.serialized) struct GrowthTests {
  private func runs(_ sizes: [(size: Double, user: Double)], positions: Double = 1e9) -> [RunResult] {
    sizes.map { size, user in
      var run = sampleRun(GrowthCurve.index.rawValue)
      run.figures[.fleet] = size
      run.figures[.userPerDelivery] = user
      run.figures[.systemPerDelivery] = 10
      run.buckets = [.init(microseconds: 40, count: positions)]
      return run
    }
  }

  @Test("a curve has the mean at each size, and grows from its first to its last")
  func line() throws {
    let line = try #require(GrowthLine(.index, runs([(10, 2), (1000, 2.1), (10, 3), (1000, 3), (10, 4), (1000, 3)])))
    #expect(line.points.map(\.size) == [10, 1000] && line.points[0].user == 3)
    #expect(abs((line.userGrowth?.part ?? 0) + 0.1) < 1e-12 && line.text.contains("from 3.00 to 2.70 µs: -10 ± 9 %"))
    #expect(GrowthLine(.index, runs([(10, 0), (20, 2)]))?.userGrowth == nil, "too short to see")
    #expect(GrowthLine(.index, runs([(10, 2)])) == nil && GrowthLine(.channels, runs([(10, 2), (20, 2)])) == nil)
  }

  @Test("what the samples cannot distinguish from the threshold is open, too")
  func samples() throws {
    let verdicts = try [50.0, 50_000].map { samples in
      var runs = runs([(10, 2), (1000, 2.1)])
      for index in runs.indices { runs[index].figures[.userSamples] = samples }
      return try #require(GrowthLine(.index, runs)).verdict
    }
    #expect(verdicts == [.open, .met])
  }

  @Test("a process's time is split by samples, as far as this program may")
  func sampler() throws {
    #expect(ModeSampler(pid: pid_t.max) == nil, "there is no such process")
    guard let sampler = ModeSampler(pid: getpid()) else {
      return print("skipped: this process may not sample (kernel.perf_event_paranoid)")
    }
    // Half a second of this thread in user space: some 2,000 samples.
    let end = ProcessFacts.threadCPUTimeNanoseconds() + 500_000_000
    var sum = 0
    while ProcessFacts.threadCPUTimeNanoseconds() < end { for number in 0..<100_000 { sum &+= number &* sum | 1 } }
    sampler.collect()
    #expect(sampler.user > 1000 && sampler.kernel < sampler.user && sum != 0)
    let (user, kernel) = (sampler.user, sampler.kernel)
    var time = ProcessorTime(user: 9, system: 9, exact: 9)
    time.split(sampler)
    #expect(time.user == Double(user) / Double(ModeSampler.frequency) && time.exact == 9)
    #expect(time.system == Double(kernel) / Double(ModeSampler.frequency))
  }

  @Test("what few ticks cannot distinguish from the threshold is open", arguments: [1e9, 1e5])
  func ticks(positions: Double) throws {
    // 1e5 positions of 2 µs are 50 ticks: each end is known to 14 %.
    let verdicts = try [2.1, 2.5, 9].map { last in
      try #require(GrowthLine(.index, runs([(10, 2), (1000, last)], positions: positions))).verdict
    }
    #expect(verdicts == (positions == 1e9 ? [.met, .missed, .missed] : [.open, .open, .missed]))
  }

  @Test("a page of curves says how much each grew, and whether that is within the threshold")
  func page() {
    let good = HTMLReport.page([("growth", Results(machine: "", runs: runs([(10, 2), (1000, 2.1)])))])
    #expect(
      good.contains("from 10 to 1,000 drivers in the index") && good.contains("5 ± 0 % (the threshold: 10 %, met)"))
    let bad = HTMLReport.page([("growth", Results(machine: "", runs: runs([(10, 2), (1000, 3)])))])
    #expect(bad.contains("verdict bad") && !good.contains("verdict bad"))
  }

  @Test("answers over HTTP are found at every split point")
  func answers() throws {
    let text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 5\r\n\r\nabcde"
    let bytes = Array((text + "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n").utf8)
    for count in 0..<text.utf8.count { #expect(HTTPAnswer(Array(bytes[..<count]), from: 0) == nil) }
    let first = try #require(HTTPAnswer(bytes, from: 0))
    #expect(first.status == 200 && first.end == text.utf8.count)
    let second = try #require(HTTPAnswer(bytes, from: first.end))
    #expect(second.status == 503 && second.end == bytes.count && HTTPAnswer(bytes, from: bytes.count) == nil)
  }

  @Test("drivers are sent over HTTP and channels followed before the load begins, by several threads")
  func there() throws {
    var scenario = Scenario()
    (scenario.drivers, scenario.ridersPerTrip, scenario.rate) = (4, 1, 10)
    (scenario.fleet, scenario.idle, scenario.quietChannels) = (3000, 5, 203)
    (scenario.warmUp, scenario.duration) = (0.2, 0.5)
    let hub = try HubProcess(
      executable: try #require(builtHub, "locationhub is not beside the tests"),
      arguments: [
        "serve", "--port", "0", "--dev-auth", "--no-journal", "--session-rate", "0", "--log-level", "warning",
      ])
    defer { hub.stop() }
    var options = RunOptions(executable: "")
    (options.address, options.pid, options.threads) = (hub.address, hub.pid, 2)
    let result = try LoadRun(scenario, options).run()
    #expect(result.violations.isEmpty && result[.delivered] == result[.sent], "\(ResultTable.text(result))")
    let page = try #require(MetricsPage.fetch(hub.address))
    #expect(page("fixes_received_total") >= 3000)
  }

  @Test("all sizes are run, smaller: connections, index, channels")
  func small() throws {
    var run = GrowthRun(options: RunOptions(executable: try #require(builtHub, "locationhub is not beside the tests")))
    (run.rounds, run.seconds, run.scale) = (1, 0.2, 0.002)
    let results = try run.run()
    #expect(results.runs.count == GrowthCurve.allCases.reduce(0) { $0 + $1.sizes.count })
    for run in results.runs { #expect(run.violations.isEmpty, "\(ResultTable.text(run))") }
    for curve in GrowthCurve.allCases { #expect(GrowthLine(curve, results.runs) != nil, "\(curve)") }
  }
}
