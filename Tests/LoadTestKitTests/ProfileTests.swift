// What is read from others: callgrind's files, the hub's metrics, its messages; and what follows from capacity terms.
import HubBytes
import HubTransport
import Testing

@testable import HubLoadTestKit

@Suite struct ProfileTests {
  @Test("callgrind's totals, and the calls of allocators by any of their numbers")
  func callgrind() throws {
    let text = """
      # callgrind format
      events: Ir
      fn=(1) main
      16 400
      cfn=(2) malloc
      calls=3 +20
      17 60
      cfn=(3) helper
      calls=100 +30
      18 90
      fn=(3)
      30 90
      cfn=(2)
      calls=4 +20
      31 80
      cfn=(4) realloc'2
      calls=1 +20
      32 10
      totals: 123456
      """
    let profile = try #require(CallgrindProfile(parsing: text))
    #expect(profile.instructions == 123_456 && profile.allocations == 8)
    #expect(CallgrindProfile(parsing: "fn=(1) main\n") == nil)
    #expect(CallgrindProfile(parsing: "cfn=(1) malloc\ncalls=x 1\ntotals: 1") == nil)
  }

  @Test("bounds are read, what is over one is seen, and a name that is none is refused")
  func thresholds() throws {
    let limits = try Bench.thresholds(
      parsing: #"{"instructionsPerFix": 100, "allocationsPerFix": 0.5}"#, file: "t")
    #expect(Bench.judge([.instructionsPerFix: 100, .allocationsPerFix: 0.5], limits))
    #expect(!Bench.judge([.instructionsPerFix: 101], limits))
    #expect(throws: LoadTestError.self) { try Bench.thresholds(parsing: #"{"speed": 1}"#, file: "t") }
    #expect(throws: LoadTestError.self) { try Bench.thresholds(parsing: #"{"instructionsPerFix": "x"}"#, file: "t") }
    let file = repositoryFolder + "/loadtest/thresholds.json"
    #expect(try Bench.thresholds(parsing: readText(file), file: file).count == BenchFigure.allCases.count)
  }

  @Test("samples of a metrics page by name and label")
  func metrics() {
    let page = MetricsPage(
      parsing: """
        HTTP/1.1 200 OK
        # TYPE locationhub_reads_total counter
        locationhub_reads_total 7
        locationhub_dropped_total{reason="conflated_slow"} 3
        locationhub_dropped_total{reason="conflated_interval"} 2
        """)
    #expect(page("reads_total") == 7 && page.conflated == 5 && page("writes_total") == 0)
  }

  @Test("what gave way to a newer position has not been delivered, and costs nothing by itself")
  func gaveWay() {
    func page(_ made: Int, _ conflated: Int) -> MetricsPage {
      MetricsPage(
        parsing: """
          locationhub_fixes_received_total \(made / 2)
          locationhub_positions_out_total \(made)
          locationhub_dropped_total{reason="conflated_slow"} \(conflated)
          locationhub_dropped_total{reason="conflated_interval"} \(conflated)
          locationhub_written_bytes_total \((made - conflated) * 300)
          """)
    }
    let cpu = { (seconds: Double) in ProcessorTime(user: seconds / 4, system: seconds * 3 / 4, exact: seconds) }
    var figures: [Figure: Double] = [:]
    LoadRun(Scenario(), RunOptions(executable: "")).put(
      LoadRun.Reading(at: 0, cpu: cpu(1), page: page(1000, 500)),
      LoadRun.Reading(at: 2_000_000_000, cpu: cpu(3), page: page(5000, 2500)), into: &figures)
    #expect(figures[.fixesPerSecond] == 1000 && figures[.deliveriesPerSecond] == 1000)
    #expect(figures[.cpuPerDelivery] == 1000 && figures[.userPerDelivery] == 250)
    #expect(figures[.bytesOutPerDelivery] == 300)
  }

  @Test(
    "a percentile that so few values do not carry is left out, the maximum never",
    arguments: [9, 10, 99, 100, 999, 1000])
  func percentiles(count: Int) {
    var counts = Counts()
    counts.parts = [LatencyHistogram()]
    for value in 1...count {
      counts.parts[0].record(microseconds: UInt64(value))
      counts.acks.record(microseconds: UInt64(value))
      counts.connects.record(microseconds: UInt64(value))
    }
    var figures: [Figure: Double] = [:]
    LoadRun(Scenario(), RunOptions(executable: "")).put(counts, into: &figures)
    for (figure, fewest) in [
      (Figure.latencyP50, 1), (.latencyP90, 10), (.latencyP99, 100), (.latencyP999, 1000), (.latencyMax, 1),
      (.ackP50, 1), (.ackP90, 10), (.ackP99, 100), (.ackMax, 1), (.connectP90, 10), (.connectP99, 100),
      (.connectMax, 1),
    ] { #expect((figures[figure] != nil) == (count >= fewest), "\(figure) of \(count)") }
    #expect(figures[.ackMax] == Double(count))
  }

  @Test("memory is reported per session from a thousand on")
  func memory() {
    for (idle, storm) in [(999, 0), (999, 1), (1000, 0)] {
      var scenario = Scenario()
      (scenario.idle, scenario.storm) = (idle, storm)
      var figures: [Figure: Double] = [.bytesPerConnection: 300, .bytesUnderLoad: 400]
      LoadRun(scenario, RunOptions(executable: "")).put(Counts(), into: &figures)
      #expect((figures[.bytesPerConnection] != nil) == (idle >= 1000))
      #expect((figures[.bytesUnderLoad] != nil) == (idle + storm >= 1000))
    }
  }

  @Test("user space is split from the kernel by 50 ticks of CPU or more, or by samples", arguments: [false, true])
  func split(isSampled: Bool) {
    let page = { (count: Int) in
      MetricsPage(parsing: "locationhub_positions_out_total \(count)\nlocationhub_area_updates_out_total \(count)")
    }
    for seconds in [0.19, 0.2] {
      var figures: [Figure: Double] = isSampled ? [.userSamples: 100] : [:]
      LoadRun(Scenario(), RunOptions(executable: "")).put(
        LoadRun.Reading(at: 0, cpu: ProcessorTime(user: 0, system: 0, exact: 0), page: page(0)),
        LoadRun.Reading(at: 1_000_000_000, cpu: ProcessorTime(user: 0, system: 0, exact: seconds), page: page(100)),
        into: &figures)
      #expect(figures[.cpuPerDelivery] != nil && figures[.cpuPerAreaUpdate] != nil)
      for figure in [Figure.userPerDelivery, .systemPerDelivery, .userPerAreaUpdate, .systemPerAreaUpdate] {
        #expect((figures[figure] != nil) == (isSampled || seconds >= 0.2), "\(figure) of \(seconds) s")
      }
    }
  }

  @Test("members of a message are found by name, from the left, and not beyond its end")
  func scan() {
    func with<R>(_ text: String, _ body: (UnsafeRawBufferPointer) -> R) -> R { Array(text.utf8).withUnsafeBytes(body) }
    let message =
      #"{"type":"driver_location","payload":{"driverId":"driver-12","timestamp":1700000005000,"age":0.1},"timestamp":9}"#
    #expect(with(message) { Scan.fixTimestamp($0) } == 1_700_000_005_000)
    #expect(with(message) { Scan.integer("\"driverId\":\"driver-", in: $0) } == 12)
    #expect(with(message) { Scan.integer("\"speed\":", in: $0) } == nil)
    #expect(with("\"a\":") { Scan.integer("\"a\":", in: $0) } == nil)
    #expect(with("\"a\"") { Scan.integer("\"a\":", in: $0) } == nil)
    #expect(with("") { Scan.contains("x", in: $0) } == false)
    #expect(with("aab") { Scan.contains("ab", in: $0) })
    #expect(with(#""replyTo":"0m77","#) { Scan.text("\"replyTo\":\"", in: $0).flatMap(Scan.trailingNumber) } == 77)
  }

  @Test("CPU is exact where the kernel keeps it so, and user and system share it as their ticks do")
  func processorTime() {
    let (first, last) = (ProcessorTime(user: 1, system: 2, exact: 3), ProcessorTime(user: 2, system: 5, exact: 8))
    let used = last.since(first)
    #expect(used.all == 5 && used.user == 1.25 && used.system == 3.75)
    let ticks = ProcessorTime(user: 2, system: 5).since(ProcessorTime(user: 1, system: 2))
    #expect(ticks.all == 4 && ticks.user == 1 && ticks.system == 3)
    #expect(first.since(first).all == 0)
  }

  @Test("a hub's address is found in its first line and in URLs")
  func addresses() {
    #expect(HubProcess.address(in: "listening on http://127.0.0.1:8080 (loops 1)")?.port == 8080)
    #expect(HubProcess.address(in: "ws://[::1]:9/v1/ws")?.isIPv6 == true)
    #expect(HubProcess.address(in: "listening") == nil && HubProcess.address(in: "http://127.0.0.1") == nil)
  }
}

@Suite struct CapacityTests {
  private let terms = CapacityTerms(
    machine: "a machine",
    points: [
      .init(connections: 1000, fix: 5, fixAndPosition: 15), .init(connections: 4000, fix: 6, fixAndPosition: 17),
      .init(connections: 16_000, fix: 7, fixAndPosition: 20),
    ], delivery: 8, heartbeat: 4, connection: 30, idleBytes: 400, riderBytes: 600, driverBytes: 1500, fixBytes: 250,
    positionBytes: 300, mapUpdate: 7, mapBytes: 14_800, stored: 1, storedBytes: 57)

  @Test("a cost is never less than what was measured up to the next larger size, and grows as it grew most")
  func growth() {
    let model = CapacityModel(terms)
    #expect([1, 1000, 1001, 4000, 16_000].map { model.cost(\.fix, connections: $0) } == [5, 5, 6, 6, 7])
    #expect(model.growth(\.fix) == 0.5 && model.cost(\.fix, connections: 64_000) == 8)
    #expect(model.growth(\.fixAndPosition) == 1.5 && model.cost(\.fixAndPosition, connections: 32_000) == 21.5)
    #expect(abs(model.error(\.fix)) < 1e-12 && abs(model.error(\.fixAndPosition) - (19.0 / 20 - 1)) < 1e-12)
  }

  @Test(
    "a size that is cheaper than a smaller one is chance: the most that was measured counts, and growth is none at least"
  )
  func noise() {
    var noisy = terms
    (noisy.points[0].fix, noisy.points[1].fix, noisy.points[2].fix) = (11, 8, 9)
    let model = CapacityModel(noisy)
    #expect(model.cost(\.fix, connections: 4000) == 11 && model.cost(\.fix, connections: 16_000) == 11)
    #expect(model.growth(\.fix) == 0.5 && model.cost(\.fix, connections: 64_000) == 12)
    (noisy.points[1].fix, noisy.points[2].fix) = (9, 8)
    #expect(CapacityModel(noisy).growth(\.fix) == 0 && CapacityModel(noisy).cost(\.fix, connections: 1e6) == 11)
  }

  @Test("a message takes the overhead of each segment that it has")
  func segments() {
    #expect(CapacityModel.onTheWire(300) == 399 && CapacityModel.onTheWire(14_800) == 14_800 + 11 * 99)
  }

  @Test("each need is the sum of its terms, and twice the load needs twice as much")
  func needs() {
    var load = CapacityModel.Load()
    load.followers = 1
    load.connectionsPerHub = 4000
    let needs = CapacityModel(terms).needs(load)
    #expect(abs(needs.fixCores - 100e6 / 60 * (6 + 1) / 1e6) < 1e-9)
    #expect(abs(needs.deliveryCores - 100e6 / 60 * 11 / 1e6) < 1e-9)
    #expect(abs(needs.heartbeatCores - 20e6 / 30 * 4 / 1e6) < 1e-9)
    #expect(abs(needs.mapCores - 20e6 * 0.05 * 7 / 1e6) < 1e-9 && abs(needs.disk - 100e6 / 60 * 57) < 1e-3)
    #expect(needs.memoryBytes == 5e6 * 1500 + 20e6 * 600 && needs.hubs == 6250)
    load.fixesPerSecond *= 2
    #expect(abs(CapacityModel(terms).needs(load).fixCores - 2 * needs.fixCores) < 1e-9)
  }

  private var severalHubs: CapacityTerms {
    var terms = terms
    terms.crossing = CapacityTerms.Crossing(
      frame: 30, position: 1.2, engineFrame: 5, framesPerSecond: 1000, bytes: 52, search: 20,
      checks: [.init(hubs: 3, fixesPerSecond: 6000, connections: 1200, cores: 0.2, engineCores: 0.001)])
    return terms
  }

  @Test("a position crosses to each other hub where somebody follows, and all hubs look who is near")
  func crossings() {
    var load = CapacityModel.Load()
    (load.followers, load.hubs) = (1, 1)
    #expect(CapacityModel.crossings(load, hubs: 1) == 0 && CapacityModel(severalHubs).needs(load).crossingCores == 0)
    #expect(abs(CapacityModel.crossings(load, hubs: 3) - load.fixesPerSecond * 2 / 3) < 1e-6)
    load.followers = 0.4
    #expect(abs(CapacityModel.crossings(load, hubs: 3) - load.fixesPerSecond * 0.4 * 2 / 3) < 1e-6)
    load.followers = 1000
    #expect(abs(CapacityModel.crossings(load, hubs: 3) - load.fixesPerSecond * 2) < 1e-6)
    (load.followers, load.hubs) = (1, 3)
    let (one, several) = (CapacityModel(terms).needs(load), CapacityModel(severalHubs).needs(load))
    let (crossings, frames) = (load.fixesPerSecond * 2 / 3, 6000.0)
    #expect(abs(several.crossingCores - (crossings * 1.2 + frames * 30 + 20e6 / 3600 * 2 * 20) / 1e6) < 1e-9)
    #expect(abs(several.engineCores - frames * 5 / 1e6) < 1e-9)
    #expect(abs(several.cores - one.cores - several.crossingCores / load.busy) < 1e-9)
    #expect(abs(several.networkIn - one.networkIn - crossings * 52 * 8) < 1)
    let said = CapacityModel(severalHubs).expected(severalHubs.crossing!.checks[0])
    #expect(abs(said.engineCores - 4000 * 5 / 1e6) < 1e-9, "each position has a frame of its own")
    #expect(abs(said.cores - (6000 * (5 + 1 + 10) + 4000 * (1.2 + 30) + 600 / 30 * 4) / 1e6) < 1e-9)
    // Fifty hubs gather positions, so that each of them sends 2,000 frames a second.
    #expect(abs(severalHubs.crossing!.frames(of: 1e7, hubs: 50) - 50 * 2000) < 1e-6)
  }

  @Test("terms are read as they were written, and what lacks one is refused")
  func file() throws {
    #expect(try CapacityTerms(parsing: terms.json, file: "t") == terms)
    #expect(try CapacityTerms(parsing: severalHubs.json, file: "t") == severalHubs)
    #expect(throws: LoadTestError.self) {
      try CapacityTerms(parsing: terms.json.replacing("\"delivery\"", with: "\"other\""), file: "t")
    }
  }

  @Test("terms of runs that do not count say so, in the file and in the text; a figure that is missing is not none")
  func doubts() throws {
    var doubted = terms
    doubted.doubts = ["more of them: too busy"]
    #expect(try CapacityTerms(parsing: doubted.json, file: "t") == doubted)
    #expect(CapacityModel(doubted).markdown().contains("**Not to be trusted**"))
    #expect(CapacityModel(doubted).markdown().contains("- more of them: too busy"))
    #expect(!CapacityModel(terms).markdown().contains("trusted"))
    try CapacityMeasuring.check(sampleRun(), has: [.cpuPerFix])
    #expect(throws: LoadTestError.self) { try CapacityMeasuring.check(sampleRun(), has: [.cpuPerFix, .journalBytes]) }
  }

  @Test("the text names the load, the sizes, and how far off the model is")
  func text() {
    let text = CapacityModel(terms).markdown()
    for part in [
      "5,000,000 drivers", "100,000,000 fixes a minute", "20,000,000 riders", "16,000 connections", "-5 %",
      "14,800 B an update of a map", "rounded up", "1.50 µs a fix with its position for each doubling beyond 16,000",
      "NOTES.md#tls",
    ] {
      #expect(text.contains(part), "\(part) in \(text)")
    }
    let several = CapacityModel(severalHubs).markdown()
    #expect(
      several.contains("1.20 µs of both hubs") && several.contains("| 3 | 6,000 | 1,200 | 0.200 | 0.221 | +10 % |"))
    #expect(text.contains("what goes between hubs, ") && !several.contains("what goes between hubs, "))
  }
}
