// What ends a run before its time: a signal to the load test, the end of its hub, and a hub that does not end.
import Foundation
import HubCommandLine
import HubSystem
import HubTransport
import Testing

@testable import HubLoadTestKit

@Suite(.serialized) struct InterruptionTests {
  private static let serve = [
    "serve", "--port", "0", "--dev-auth", "--loops", "1", "--no-journal", "--session-rate", "0", "--log-level",
    "warning",
  ]

  private func startHub() throws -> HubProcess {
    try HubProcess(
      executable: try #require(builtHub, "locationhub is not beside the test bundle"), arguments: Self.serve)
  }

  /// A folder with a name of the hub in it that nobody else uses, so that its process is found by it.
  private func withHub(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hub-loadtest-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let hub = folder.path + "/hub"
    try FileManager.default.createSymbolicLink(
      atPath: hub, withDestinationPath: try #require(builtHub, "locationhub is not beside the test bundle"))
    try body(hub)
  }

  /// The process that was started under this name, where it has not ended.
  private static func process(of executable: String) -> pid_t? {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return all.compactMap { pid_t($0) }.first { pid in
      guard let words = try? readText("/proc/\(pid)/cmdline") else { return false }
      return words.hasPrefix(executable + "\0") && ProcessReadings(pid: pid).isThere
    }
  }

  /// Whether that has ended within a minute.
  private func isGone(_ executable: String) -> Bool {
    let limit = ClockReading.read().uptimeNanoseconds + 60_000_000_000
    while Self.process(of: executable) != nil {
      if ClockReading.read().uptimeNanoseconds > limit { return false }
      pause(microseconds: 5000)
    }
    return true
  }

  /// A run that would take minutes; `meanwhile` is called each second from when more than twenty positions have come.
  private func run(
    _ executable: String, address: SocketAddress? = nil, pid: pid_t? = nil, interruption: Interruption = Interruption(),
    stopSeconds: Double = HubProcess.patience, _ meanwhile: @escaping @Sendable () -> Void
  ) throws -> RunResult {
    var scenario = Scenario()
    (scenario.drivers, scenario.ridersPerTrip, scenario.rate) = (5, 1, 20)
    (scenario.warmUp, scenario.duration) = (0, 300)
    var options = RunOptions(executable: executable)
    (options.address, options.pid, options.interruption) = (address, pid, interruption)
    options.stopSeconds = stopSeconds
    let positions = Locked(0)
    options.progress = { line in
      guard let found = line.firstMatch(of: /([0-9,]+) positions in this second/)?.1 else { return }
      let count = Int(found.filter { $0 != "," }) ?? 0
      let all = positions.withLock { sum in
        sum += count
        return sum
      }
      if all > 20 { meanwhile() }
    }
    return try LoadRun(scenario, options).run()
  }

  @Test("a signal cuts a run short: what was measured is there, not valid, and the hub is stopped")
  func interrupted() throws {
    try withHub { hub in
      let interruption = Interruption()
      let result = try run(hub, interruption: interruption) { interruption.note(SIGTERM) }
      #expect(result.invalid == ["interrupted by SIGTERM"] && result.violations.isEmpty)
      #expect(result[.sent] > 20 && result[.latencyP50] > 0 && result.figures[.lost] == nil)
      #expect(interruption.text == "interrupted by SIGTERM, the hub is stopped")
      #expect(Self.process(of: hub) == nil)
    }
  }

  @Test("a hub that dies in the middle is what is reported of the run, and not what broke by it")
  func killed() throws {
    try withHub { hub in
      let result = try run(hub) { if let pid = Self.process(of: hub) { kill(pid, SIGKILL) } }
      let said = try #require(result.violations.first)
      #expect(said.hasPrefix("the hub ended by signal 9 after ") && said.hasSuffix(" s"))
      #expect(result.violations.count == 1 && result[.sent] > 20)
    }
  }

  @Test("a hub that ends while sessions connect is reported, too")
  func killedEarly() throws {
    var scenario = Scenario()
    scenario.idle = 10
    var options = RunOptions(executable: try #require(builtHub, "locationhub is not beside the test bundle"))
    // Says where it listens, and is gone.
    options.wrapper = ["/bin/sh", "-c", "echo listening on http://127.0.0.1:1; exit 3"]
    let result = try LoadRun(scenario, options).run()
    #expect(result.violations == ["the hub ended with exit code 3 while sessions were connecting"])
    // What has no figure must not be taken for none at all.
    let folder = try TemporaryFolder(in: "/tmp")
    let hub = folder.path + "/hub"
    try write("#!/bin/sh\necho listening on http://127.0.0.1:1; exit 3\n", to: hub)
    chmod(hub, 0o755)
    #expect(throws: LoadTestError.self) { try Bench(executable: hub).residentBytes(1) }
  }

  @Test("a signal ends the waiting for a hub that does not say where it listens")
  func silent() {
    let interruption = Interruption()
    interruption.note(SIGINT)
    do throws(LoadTestError) {
      _ = try HubProcess(executable: "/bin/sleep", arguments: ["60"], interruption: interruption)
      Issue.record("it listens")
    } catch {
      #expect(error.description == "interrupted by SIGINT")
    }
  }

  @Test("a hub that does not say where it listens is not waited for without end")
  func late() {
    do throws(LoadTestError) {
      _ = try HubProcess(executable: "/bin/sleep", arguments: ["60"], within: 0.1)
      Issue.record("it listens")
    } catch {
      #expect(error.description == "/bin/sleep 60 did not say where it listens within 0.1 s")
    }
  }

  @Test("what is not there cannot be started, and the reason is the kernel's")
  func cannotStart() {
    do throws(LoadTestError) {
      _ = try HubProcess(executable: "/no/hub", arguments: [])
      Issue.record("it listens")
    } catch {
      #expect(error.description == "cannot start /no/hub: No such file or directory")
    }
  }

  @Test("the process of a hub that runs already is watched as well")
  func killedElsewhere() throws {
    let hub = try startHub()
    let result = try run("", address: hub.address, pid: hub.pid) { kill(hub.pid, SIGKILL) }
    hub.crash()
    #expect(result.violations.first?.hasPrefix("the hub's process \(hub.pid) is gone after ") == true)
  }

  @Test("a stalled hub is killed when its time is over, which is reported")
  func standsStill() throws {
    let hub = try startHub()
    kill(hub.pid, SIGSTOP)
    #expect(hub.ending == nil)
    #expect(hub.stop(within: 0.2)?.hasSuffix("and was killed") == true)
    #expect(!ProcessReadings(pid: hub.pid).isThere)
    #expect(try startHub().stop() == nil)
  }

  /// A program that says where it listens, and then does what a shell is told.
  private func shell(_ words: String) throws -> HubProcess {
    try HubProcess(executable: "/bin/sh", arguments: ["-c", "echo listening on http://127.0.0.1:1; \(words)"])
  }

  @Test("a hub that does not end in order when it is asked to, or had ended before, is reported")
  func endsInDisorder() throws {
    let hub = try HubProcess(
      executable: "/bin/sh",
      arguments: ["-c", "trap 'exit 3' TERM; echo listening on http://127.0.0.1:1; while :; do sleep 0.01; done"])
    #expect(hub.stop() == "the hub ended with exit code 3 when it was asked to by SIGTERM")
    #expect(try shell("exec sleep 60").stop() == "the hub ended by signal 15 when it was asked to by SIGTERM")
    let gone = try shell("exit 0")
    while gone.ending == nil { pause(microseconds: 1000) }
    #expect(gone.stop() == "the hub ended with exit code 0 before it was asked to")
  }

  @Test("a hub that is stalled at the end of a run takes none of its results")
  func standsStillInRun() throws {
    try withHub { hub in
      let interruption = Interruption()
      let result = try run(hub, interruption: interruption, stopSeconds: 0.5) {
        if let pid = Self.process(of: hub) { kill(pid, SIGSTOP) }
        interruption.note(SIGINT)
      }
      #expect(result[.sent] > 20 && result.invalid == ["interrupted by SIGINT"])
      #expect(result.violations == ["the hub did not end within 0.5 s of SIGTERM, and was killed"])
    }
  }

  // MARK: The built program

  /// The program gets signals that whoever started the tests ignores, as a shell does for what runs in the background.
  private static let withoutIgnored = "exec env --default-signal=INT,HUP \"$0\" \"$@\""

  /// Starts a run of minutes, calls `body` with its process when it has sent for a second, and waits for its end.
  private func program(
    _ words: [String], shell: String = Self.withoutIgnored, _ body: (pid_t) -> Void
  ) throws -> (status: Int32, text: String) {
    let built = try #require(builtHub, "locationhub is not beside the test bundle")
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments =
      ["-c", shell, URL(fileURLWithPath: built).deletingLastPathComponent().path + "/hub-loadtest"] + words
    process.currentDirectoryURL = URL(fileURLWithPath: repositoryFolder)
    process.standardOutput = output
    process.standardError = output
    try process.run()
    var text = ""
    var isCalled = false
    while true {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      text += String(decoding: more, as: UTF8.self)
      if !isCalled, text.contains("positions in this second") {
        isCalled = true
        body(process.processIdentifier)
      }
    }
    process.waitUntilExit()
    return (process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus, text)
  }

  private func words(_ hub: String, duration: String = "300") -> [String] {
    [
      "trip", "--drivers", "5", "--rate", "20", "--warm-up", "0", "--duration", duration, "--executable", hub,
      "--lateness-bound", "100s",
    ]
  }

  @Test(
    "the program ends with 128 and the signal, and leaves results but no hub", arguments: [SIGINT, SIGTERM, SIGHUP])
  func signals(signal: Int32) throws {
    try withHub { hub in
      let file = hub + ".json"
      let outcome = try program(words(hub) + ["--json", file, "--html", hub + ".html"]) { kill($0, signal) }
      #expect(outcome.status == 128 + signal && outcome.text.contains(", the hub is stopped\n"), "\(outcome.text)")
      let results = try Results(parsing: readText(file), file: file)
      #expect(results.runs.count == 1 && results.runs[0].invalid.first?.hasPrefix("interrupted by SIG") == true)
      #expect(try readText(hub + ".html").hasPrefix("<!doctype html>"))
      #expect(Self.process(of: hub) == nil)
    }
  }

  @Test("a kill -9 of the program leaves no hub")
  func killedProgram() throws {
    try withHub { hub in
      let outcome = try program(words(hub)) { kill($0, SIGKILL) }
      #expect(outcome.status == -SIGKILL && isGone(hub))
    }
  }

  @Test("a second signal ends the program at once, and its stalled hub")
  func secondSignal() throws {
    try withHub { hub in
      let outcome = try program(words(hub)) { program in
        stopHub(hub)
        kill(program, SIGINT)
        // Of two that wait, the lower number comes first.
        kill(program, SIGTERM)
      }
      #expect(outcome.status == 128 + SIGTERM, "\(outcome.text)")
      #expect(isGone(hub))
    }
  }

  private func stopHub(_ executable: String) {
    if let hub = Self.process(of: executable) { kill(hub, SIGSTOP) }
  }

  @Test("a SIGINT that was ignored when it started stays ignored")
  func ignored() throws {
    try withHub { hub in
      let outcome = try program(words(hub, duration: "2"), shell: "trap '' INT; exec \"$0\" \"$@\"") {
        kill($0, SIGINT)
      }
      #expect(outcome.status == 0 && !outcome.text.contains("interrupted"), "\(outcome.text)")
    }
  }
}
