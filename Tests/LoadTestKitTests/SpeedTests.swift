// The table of speeds from made-up results, its loads, and a small run of it.
import Testing

@testable import HubLoadTestKit

@Suite struct SpeedTests {
  /// A run of a load: µs in user space and in the kernel.
  private func run(_ load: SpeedLoad, user: Double, system: Double, _ more: [Figure: Double] = [:]) -> RunResult {
    var run = sampleRun(load.name)
    run.figures[.userPerDelivery] = user
    run.figures[.systemPerDelivery] = system
    run.figures[.cpuPerDelivery] = user + system
    run.figures[.latencyP99] = 300
    run.figures.merge(more) { $1 }
    return run
  }

  private func row(_ runs: [RunResult], _ what: String) throws -> SpeedTable.Row {
    let rows = SpeedTable(Results(machine: "here", runs: runs)).rows
    return try #require(rows.first { $0.what.contains(what) })
  }

  @Test(
    "a threshold is held against the median of the rounds",
    arguments: [([2.0, 9, 2.5], "target met"), ([3.5, 3.5, 2], "met"), ([4.5, 4.5, 2], "**missed**")])
  func verdict(users: [Double], verdict: String) throws {
    let row = try row(users.map { run(.unpacedTrip, user: $0, system: 10) }, "one fix in, one position out")
    #expect(row.verdict == verdict)
  }

  @Test("a load of which a run does not count judges nothing, and says why")
  func doubt() throws {
    var bad = run(.unpacedTrip, user: 1, system: 1)
    bad.invalid = ["p99 is 90 ms"]
    let runs = [run(.unpacedTrip, user: 1, system: 1), bad]
    #expect(try row(runs, "one fix in, one position out").verdict == "does not count: p99 is 90 ms")
    let table = SpeedTable(Results(machine: "", runs: runs))
    #expect(table.missed == 0 && !table.isGood, "nothing could be judged")
    #expect(try row([], "one fix in, one position out").verdict == "not measured")
    #expect(
      try row([run(.unpacedTrip, user: 0, system: 9)], "one fix in, one position out").verdict.contains("too short"))
  }

  @Test("it is good where something is judged and nothing missed or violated")
  func good() {
    func isGood(_ runs: [RunResult]) -> Bool { SpeedTable(Results(machine: "", runs: runs)).isGood }
    let met = run(.unpacedTrip, user: 1, system: 1)
    #expect(isGood([met]) && !isGood([run(.unpacedTrip, user: 9, system: 1)]))
    var late = run(.fanOut, user: 0.1, system: 1)
    late.invalid = ["p99 is 90 ms"]
    #expect(isGood([met, late]) && !isGood([late]))
    // Of a load that no threshold is for, and of one that is.
    for load in [SpeedLoad.fastFanOut, .fanOut] {
      var violated = run(load, user: 0.1, system: 1)
      #expect(isGood([met, violated]))
      violated.violations = ["lost: 3"]
      #expect(!isGood([met, violated]))
    }
  }

  @Test("a ratio is the median of those within each round, so that a slow round meets both")
  func ratio() throws {
    let runs = [
      run(.trip, user: 2, system: 8), run(.stored, user: 3, system: 9),
      run(.trip, user: 4, system: 16), run(.stored, user: 6, system: 18),
      run(.trip, user: 2, system: 8), run(.stored, user: 2, system: 8),
    ]
    let row = try row(runs, "with a journal")
    #expect(row.value == 1.2 && row.verdict == "met")
  }

  @Test("an update of a cell is held against a position, the kernel's part of as many bytes counted as equal")
  func area() throws {
    let costs: [Figure: Double] = [.cpuPerAreaUpdate: 8, .userPerAreaUpdate: 1, .systemPerAreaUpdate: 7]
    let runs = [run(.area, user: 0, system: 0, costs), run(.wideFanOut, user: 0.5, system: 5)]
    #expect(try row(runs, "with 100 drivers").value == 8 / 7.5)
  }

  @Test("memory of a session is what more of them take")
  func memory() throws {
    let runs = [(SpeedLoad.fewIdle, 2000.0, 10e6), (.idle, 10_000, 12e6)].map { load, connections, bytes in
      run(load, user: 0, system: 0, [.connections: connections, .residentBytes: bytes, .cpuPerConnection: 30])
    }
    #expect(try row(runs, "each additional idle connection").value == 250)
    #expect(
      try row([run(.unpacedFastTrip, user: 1, system: 1)], "20,000/s without pauses: p50").verdict == "target missed")
    #expect(try row(runs, "accept and upgrade").verdict == "met")
  }

  @Test("the page has every load that ran, and each threshold once")
  func page() {
    var results = Results(machine: "2 × a processor", runs: [run(.unpacedTrip, user: 1, system: 9)])
    results.bound = 20_000
    let text = SpeedTable(results).markdown
    #expect(text.contains("2 × a processor") && text.contains("| unpaced trip: the same with --turn-pace 0"))
    #expect(text.contains("no rate that was tried") && !text.contains("nan"))
    #expect(text.contains("one fix in, one position out") && !text.contains("not measured"))
    #expect(SpeedTable(results).rows.count == Set(SpeedTable(results).rows.map(\.what)).count)
  }

  @Test("what no load was run for is not on the page: no rounds, no empty table")
  func startOnly() {
    var start = sampleRun(StartRun.name)
    start.figures = [.startTime: 5000, .startBytes: 12e6, .startOwnBytes: 1e6, .executableBytes: 28e6]
    let text = SpeedTable(Results(machine: "here", runs: [start])).markdown
    #expect(text.contains("start to listening | 5000 µs") && !text.contains("round") && !text.contains("## The loads"))
    let none = SpeedTable(Results(machine: "here", runs: [run(.stored, user: 1, system: 9)])).markdown
    #expect(!none.contains("| measured |") && none.contains("rows are left out") && none.contains("| trip stored:"))
    let one = SpeedTable(Results(machine: "here", runs: [run(.fanOut, user: 1, system: 9)])).markdown
    #expect(one.contains("medians of 1 interleaved round") && one.contains("| fan-out: 10 drivers × 1 Hz"))
  }

  @Test("where user and kernel could not be distinguished, neither is shown")
  func unsplit() throws {
    var short = run(.unpacedTrip, user: 0, system: 0, [.cpuPerDelivery: 14])
    (short.figures[.userPerDelivery], short.figures[.systemPerDelivery]) = (nil, nil)
    #expect(try row([short], "one fix in, one position out").verdict.contains("too short"))
    #expect(SpeedTable(Results(machine: "", runs: [short])).markdown.contains("| 14.0 µs |  |  |"))
    let area = run(.area, user: 0, system: 0, [.cpuPerAreaUpdate: 8])
    #expect(try row([area, run(.wideFanOut, user: 1, system: 5)], "with 100 drivers").value == nil)
  }

  @Test("a load's name has no comma, which stands between names, and its p99 counts though there be few latencies")
  func names() throws {
    #expect(SpeedRun.names.allSatisfy { !$0.contains(",") })
    var few = run(.trip, user: 1, system: 9, [.latencyMax: 90_000])
    few.figures[.latencyP99] = nil
    #expect(few.tail == 90_000 && run(.trip, user: 1, system: 9).tail == 300)
    var search = RateSearch(first: 10, bound: 20_000)
    search.note(few)
    #expect(search.steps[0].isKept == false && search.steps[0].p99 == 90_000)
  }

  @Test("loads are what the table says, and nobody is lost by making them small")
  func loads() {
    for (load, rate) in [(SpeedLoad.trip, 9000.0), (.fastTrip, 19_800), (.fanOut, 10)] {
      // A little slower, and no whole number of fixes in a tick of the kernel's clock, nor of ticks in the time between
      // two.
      let sent = load.scenario.fixesPerSecond
      #expect(sent < rate && sent > rate * 0.997)
      for ticks in [100.0, 250, 1000] {
        for ratio in [sent / ticks, ticks / sent] { #expect(abs(ratio.rounded() - ratio) > 1e-4) }
      }
    }
    #expect(SpeedLoad.plain.scenario.sessions == 1000)
    for load in SpeedLoad.all {
      #expect(load.scenario.contradiction == nil, "\(load.name)")
      #expect(load.sized(0.001, seconds: 1).contradiction == nil)
      #expect(load.sized(1, seconds: 8).sessions == load.scenario.sessions)
    }
    #expect(Set(SpeedRun.names).count == SpeedRun.names.count)
  }

  @Test("a run that fails is one that does not count, and the others go on")
  func failure() throws {
    var run = SpeedRun(options: RunOptions(executable: "/bin/true"))
    (run.rounds, run.only) = (2, ["unpaced trip"])
    let results = try run.run()
    #expect(results.runs.count == 2 && results.runs.allSatisfy { !$0.isValid })
    #expect(try row(results.runs, "one fix in, one position out").verdict.contains("did not say where it listens"))
    let growth = try GrowthRun(options: RunOptions(executable: "/bin/true")).run()
    #expect(growth.runs.count == 42 && GrowthLine(.index, growth.runs) == nil)
    #expect(HTMLReport.page([("growth", growth)]).contains("does not count"))
  }

  @Test("a small round runs: without a journal, with one, which is gone afterwards, and a start")
  func small() throws {
    var run = SpeedRun(options: RunOptions(executable: try #require(builtHub, "locationhub is not beside the tests")))
    (run.rounds, run.seconds, run.scale, run.only) = (
      1, 0.3, 0.005, ["start", "trip", "trip stored", "10000 riders"]
    )
    let results = try run.run()
    #expect(results.runs.map(\.scenario) == ["start", "trip", "trip stored", "10000 riders"])
    for run in results.runs { #expect(run.violations.isEmpty, "\(ResultTable.text(run))") }
    let start = results.runs[0]
    #expect(start[.startTime] > 0 && start[.startBytes] > start[.startOwnBytes] && start[.executableBytes] > 0)
    #expect(results.runs[2][.journalGroups] > 0 && results.runs[1][.journalGroups] == 0)
  }
}
