// Each scenario once, small and short, against the built hub: everything that is sent comes, in order, once.
import Foundation
import HubCommandLine
import HubTestCertificates
import HubTransport
import Testing

@testable import HubLoadTestKit

// One after the other: what they load is one machine.
@Suite(.serialized) struct RunTests {
  private func run(
    _ name: String, threads: Int = 1, serve: [String] = [], _ change: (inout Scenario) -> Void
  ) throws -> RunResult {
    var scenario = try LoadArguments.scenario(named: name, in: [repositoryFolder + "/loadtest/scenarios"])
    scenario.warmUp = 0.3
    scenario.duration = 1
    change(&scenario)
    var options = RunOptions(executable: try #require(builtHub, "locationhub is not beside the test bundle"))
    options.threads = threads
    options.serveOptions = serve
    // A busy machine makes a run invalid, which is no fault of what is tested here.
    options.connectSeconds = 120
    let result = try LoadRun(scenario, options).run()
    #expect(result.violations.isEmpty, "\(ResultTable.text(result))")
    return result
  }

  @Test("trip, with two threads against two loops, and over TLS", arguments: [(1, false), (2, false), (1, true)])
  func trip(threads: Int, tls: Bool) throws {
    let result = try run("trip", threads: threads, serve: ["--loops", "\(threads)"]) {
      $0.drivers = 20
      $0.rate = 10
      $0.tls = tls
    }
    #expect(result[.sent] > 200 && result[.delivered] == result[.sent] && result[.connections] == 40)
    #expect(result[.latencyP50] > 0 && result[.latencyMax] >= result[.latencyP99] && result[.cpuPerFix] > 0)
    #expect(result[.events] == 20 && result.parts.count == 1)
    // Within the window, ten of each driver were due.
    #expect(result.buckets.reduce(0) { $0 + $1.count } == 200)
  }

  @Test("in lockstep no two fixes meet, and the run ends with the last")
  func lockstep() throws {
    let result = try run("fan-out") {
      $0.drivers = 2
      $0.ridersPerTrip = 3
      $0.lockstep = 25
      $0.duration = 60
    }
    #expect(result[.sent] == 25 && result[.delivered] == result[.sent] * 3 && result[.fixesPerRead] <= 1)
  }

  @Test("fan-out, compressed or not", arguments: [false, true])
  func fanOut(compression: Bool) throws {
    let result = try run("fan-out") {
      $0.drivers = 2
      $0.rate = 5
      $0.ridersPerTrip = 20
      $0.compression = compression
    }
    #expect(result[.delivered] == result[.sent] * 20 && result[.sent] > 10)
  }

  @Test("idle")
  func idle() throws {
    let result = try run("idle") {
      $0.idle = 200
      $0.warmUp = 0
      $0.duration = 0.2
    }
    #expect(result[.connections] == 200 && result[.residentBytes] > 0 && result[.connectP99] > 0)
    #expect(result.timed.what == "sessions" && !result.buckets.isEmpty && result[.connectMax] >= result[.connectP99])
  }

  @Test("a connect storm: all come, and those who were there lose nothing")
  func connectStorm() throws {
    let result = try run("connect-storm") {
      $0.drivers = 5
      $0.storm = 1000
    }
    #expect(result[.joined] == 1000 && result[.joinMax] > 0 && result[.delivered] == result[.sent])
    #expect(result[.connections] == 10 && result[.mostConnections] == 1010)
    // A thousand take some MB: not so much each of the ten who came first. It may be less than before the storm.
    #expect(result[.bytesUnderLoad] < 20_000, "\(result[.bytesUnderLoad])")
  }

  @Test("a reconnect storm: all who were cut off come again and are up to date")
  func reconnectStorm() throws {
    let result = try run("reconnect-storm", threads: 2) {
      $0.drivers = 5
      $0.storm = 200
    }
    #expect(result[.joined] == 200 && result[.recovered] == 200 && result[.connections] == 210)
  }

  @Test("slow consumers: what they miss was conflated, and riders get everything")
  func slow() throws {
    let result = try run("slow-consumers") {
      $0.drivers = 200
      $0.rate = 20
      $0.slow = 2
      $0.slowBytesPerSecond = 20_000
    }
    #expect(result[.delivered] + result[.conflated] == result[.sent] * 3)
    #expect(result[.slowDelivered] > 0 && result[.conflated] > 0)
    // What gave way did not leave: without that, as many left as were made, three for each fix. A busy machine may have
    // left no second of the hub's own to count in.
    #expect(result[.fixesPerSecond] == 0 || result[.deliveriesPerSecond] < result[.fixesPerSecond] * 2.9)
  }

  @Test("churn: those who leave come again")
  func churn() throws {
    let result = try run("churn") {
      $0.drivers = 10
      $0.churners = 20
      $0.churn = 30
    }
    #expect(result[.joined] >= 30 && result[.delivered] == result[.sent])
  }

  @Test("an area: every watcher gets the cell and what changes in it; the drivers stay in it", arguments: [5, 6, 7])
  func area(characters: Int) throws {
    let result = try run("area") {
      $0.drivers = 30
      $0.rate = 5
      $0.watchers = 40
      $0.cellCharacters = characters
      $0.warmUp = 1.5
      $0.duration = 3
    }
    #expect(result[.sent] > 600 && result[.areaSnapshots] == 40)
    // A tick a second, of which nobody missed one.
    #expect(result[.areasSkipped] == 0 && result[.areaUpdates] >= 40 * (1 + 3))
    #expect(result[.areaUpdatesPerSecond] > 20 && result[.spreadMax] >= result[.spreadP50])
    #expect(result[.bytesOutPerAreaUpdate] > 30 * 100, "all thirty are in each")
    #expect(result.timed.what == "updates" && !result.buckets.isEmpty)
  }

  @Test("batches: each is acknowledged")
  func batch() throws {
    let result = try run("batch") {
      $0.drivers = 5
      $0.rate = 4
      $0.batch = 20
    }
    #expect(result[.acknowledged] == result[.requests] && result[.sent] == result[.requests] * 20)
    #expect(result[.ackMax] > 0 && result.timed.what == "acks" && !result.buckets.isEmpty)
  }

  @Test("the city with a journal: its commits are in the figures")
  func journal() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hub-loadtest-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let result = try run("city", serve: ["--data", folder.path]) {
      $0.drivers = 20
      $0.rate = 60
    }
    #expect(result[.journalGroups] > 0 && result[.journalBytes] > 0 && result[.acknowledged] == result[.requests])
  }

  @Test("the city: moves are acknowledged, and riders get the positions and events of their trips")
  func city() throws {
    let result = try run("city") {
      $0.drivers = 20
      $0.rate = 60
      $0.duration = 2
    }
    #expect(result[.requests] > 20 && result[.acknowledged] == result[.requests])
    #expect(result[.expected] > 100 && result[.delivered] == result[.expected] && result[.events] > 20)
  }

  @Test("a hub that runs already is loaded twice, and the second run is not taken for history")
  func runningHub() throws {
    let hub = try HubProcess(
      executable: try #require(builtHub, "locationhub is not beside the test bundle"),
      arguments: [
        "serve", "--port", "0", "--dev-auth", "--loops", "1", "--no-journal", "--session-rate", "0", "--log-level",
        "warning",
      ])
    defer { hub.stop() }
    for _ in 0..<2 {
      var scenario = Scenario()
      (scenario.drivers, scenario.ridersPerTrip, scenario.rate) = (5, 1, 10)
      (scenario.slow, scenario.warmUp, scenario.duration) = (1, 0, 0.5)
      var options = RunOptions(executable: "")
      options.address = hub.address
      options.pid = hub.pid
      let result = try LoadRun(scenario, options).run()
      #expect(result.violations.isEmpty, "\(ResultTable.text(result))")
      #expect(result[.delivered] + result[.conflated] == result[.sent] * 2 && result[.cpuPerFix] > 0)
    }
  }

  @Test("a hub that runs already is loaded over TLS, as far as its certificate is trusted")
  func runningHubWithTLS() throws {
    let certificate = try RunCertificate()
    defer { certificate.removeFiles() }
    let trusted = FileManager.default.temporaryDirectory.appendingPathComponent("hub-loadtest-\(UUID().uuidString).pem")
    try Data(certificate.authority.pem).write(to: trusted)
    defer { try? FileManager.default.removeItem(at: trusted) }
    let hub = try HubProcess(
      executable: try #require(builtHub, "locationhub is not beside the test bundle"),
      arguments: [
        "serve", "--port", "0", "--dev-auth", "--loops", "1", "--no-journal", "--session-rate", "0", "--log-level",
        "error", "--tls-cert", certificate.certificateFile, "--tls-key", certificate.keyFile,
      ])
    defer { hub.stop() }
    let words = [
      "trip", "--drivers", "5", "--rate", "10", "--warm-up", "0", "--duration", "0.5", "--url",
      "https://localhost:\(hub.address.port)", "--pid", "\(hub.pid)",
    ]
    func run(_ more: [String]) throws -> RunResult {
      let read = try LoadArguments(
        words + more, executable: "", folders: [repositoryFolder + "/loadtest/scenarios"])
      return try LoadRun(read.scenario, read.run).run()
    }
    let result = try run(["--ca", trusted.path])
    #expect(result.violations.isEmpty && result[.sent] > 10 && result[.cpuPerFix] > 0, "\(ResultTable.text(result))")
    #expect(!result.settings.contains { $0.contains("--") }, "a hub that was not started here has no options of ours")
    #expect(throws: LoadTestError.self) { try run([]) }
  }

  @Test("a certificate is in a folder of its own, of which nothing stays; where there can be none, that is said")
  func certificateGone() throws {
    let folder = try TemporaryFolder(in: "/tmp")
    let written = { try FileManager.default.contentsOfDirectory(atPath: folder.path) }
    var certificates = [try RunCertificate(in: folder.path), try RunCertificate(in: folder.path)]
    #expect(try written().count == 2 && readText(certificates[0].keyFile).contains("PRIVATE KEY"))
    for certificate in certificates { certificate.removeFiles() }
    certificates = []
    #expect(try written().isEmpty)
    #expect(throws: LoadTestError.self) { try RunCertificate(in: "/no/folder") }
  }

  @Test("an address on which nothing listens is reported")
  func nobody() throws {
    // Whoever listened there has gone.
    let hub = try HubProcess(
      executable: try #require(builtHub, "locationhub is not beside the test bundle"),
      arguments: ["serve", "--port", "0", "--dev-auth", "--no-journal", "--log-level", "error"])
    hub.stop()
    var options = RunOptions(executable: "")
    options.address = hub.address
    var scenario = Scenario()
    scenario.idle = 5
    do throws(LoadTestError) {
      _ = try LoadRun(scenario, options).run()
      Issue.record("it ran")
    } catch {
      #expect(error.description == "nothing listens on \(hub.address) (Connection refused)")
    }
  }

  @Test("a load that is late by itself calls its run invalid, with the reason")
  func invalid() throws {
    var scenario = Scenario()
    scenario.drivers = 5
    scenario.rate = 50
    scenario.warmUp = 0
    scenario.duration = 0.5
    var options = RunOptions(executable: try #require(builtHub, "locationhub is not beside the test bundle"))
    options.latenessBoundMicroseconds = 0.5
    options.busyBound = 0
    let result = try LoadRun(scenario, options).run()
    #expect(!result.isValid && result.invalid.count == 2)
  }

  @Test("a hub that cannot be started is reported, and so is one that does not print where it listens")
  func noHub() {
    var scenario = Scenario()
    scenario.idle = 1
    #expect(throws: LoadTestError.self) { try LoadRun(scenario, RunOptions(executable: "/no/hub")).run() }
    #expect(throws: LoadTestError.self) { try LoadRun(scenario, RunOptions(executable: "/bin/true")).run() }
    #expect(throws: LoadTestError.self) { try LoadRun(Scenario(), RunOptions(executable: "/bin/true")).run() }
  }
}
