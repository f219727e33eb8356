// One run: starts the hub, connects everybody, runs the load for its time on several threads, and puts together
// its result.
//
// Two clocks are kept apart. Messages are counted over the whole run, warm-up included, for those counts must agree
// with the hub's own to the last one. Latencies, CPU and rates are of the window. How much CPU a message costs is the
// hub's CPU within the window divided by what the hub says it read and wrote within the same window.
import Glibc
import HubCommandLine
import HubSystem
import HubTransport

package struct LoadRun {
  /// What the threads and their starter share.
  struct Board: Sendable {
    var standing = 0
    var schedule: Schedule?
    /// The hub's own counts are read, or the run is cut short: sessions may go, and threads end.
    var isOver = false
    var failure: LoadTestError?
    var progress: [Progress]
    var results: [Counts] = []
  }

  /// What the hub has used and counted at one moment.
  struct Reading {
    var at = ClockReading.read().uptimeNanoseconds
    var cpu: ProcessorTime?
    var page: MetricsPage?
  }

  /// What is loaded.
  struct Target {
    let address: SocketAddress
    let tls: ServerTrust?
    /// Where it was started here.
    let hub: HubProcess?
    /// Where its process is known.
    let facts: ProcessReadings?

    /// How the hub has ended; nil while it is there, or nobody knows.
    var ending: String? {
      if let hub { return hub.ending.map { "the hub ended \($0)" } }
      guard let facts, !facts.isThere else { return nil }
      return "the hub's process \(facts.pid) is gone"
    }
  }

  /// How far a run is.
  struct Course {
    let startedAt = ClockReading.read()
    var figures: [Figure: Double] = [:]
    var schedule: Schedule?
    var lines: ProgressLines
    var threads: [Joinable] = []
  }

  package private(set) var scenario: Scenario
  package let options: RunOptions

  package init(_ scenario: Scenario, _ options: RunOptions) {
    self.scenario = scenario
    self.options = options
    // The hub may have seen the same drivers in an earlier run, whose fixes would make these history.
    if options.address != nil { self.scenario.tag = String(ClockReading.read().unixMilliseconds, radix: 36) + "-" }
  }

  /// Runs it once. What cuts it short, a signal or the hub's end, is in the result.
  package func run() throws(LoadTestError) -> RunResult {
    if let contradiction = scenario.contradiction { throw .usage(contradiction) }
    let certificate = scenario.tls && options.address == nil ? try RunCertificate() : nil
    let own = try certificate.map { certificate throws(LoadTestError) in try certificate.trust() }
    let start = Result { () throws(LoadTestError) in try startHub(certificate) }
    certificate?.removeFiles()
    let hub = try start.get()
    guard let address = options.address ?? hub?.address else { throw .usage("there is no hub to load") }
    let facts = (options.pid ?? hub?.pid).map(ProcessReadings.init)
    let outcome = Result { () throws(LoadTestError) in
      try load(Target(address: address, tls: options.tls ?? own, hub: hub, facts: facts))
    }
    let violation = hub?.stop(within: options.stopSeconds)
    var (result, saysEnd) = try outcome.get()
    if let violation, !saysEnd { result.violations.append(violation) }
    return result
  }

  /// Runs it once, as one of many: what goes wrong makes it a run that does not count, and not the end of all others.
  package func runOrSay() -> RunResult {
    let startedAt = Double(ClockReading.read().unixMilliseconds)
    do throws(LoadTestError) {
      return try run()
    } catch {
      return RunResult(
        scenario: scenario.name, about: scenario.about, settings: [], hub: options.executable, startedAt: startedAt,
        figures: [:], parts: [], buckets: [], invalid: ["\(error)"], violations: [])
    }
  }

  // MARK: The hub

  private var loops: Int {
    ServeOptions.value("--loops", in: serveWords).flatMap { Int($0) } ?? 1
  }

  /// The scenario's options of the hub and those that were given, which win.
  private var serveWords: [String] {
    let ofScenario = ServeOptions.merged(options.serveOptions, over: scenario.serve)
    return ServeOptions.merged(ofScenario, over: ["--loops", "1", "--session-rate", "0", "--log-level", "warning"])
  }

  private func startHub(_ certificate: RunCertificate?) throws(LoadTestError) -> HubProcess? {
    if options.address != nil { return nil }
    var arguments = ["serve", "--port", "0", "--dev-auth"] + serveWords
    if !ServeOptions.sayWhatIsStored(arguments) { arguments.append("--no-journal") }
    if let certificate { arguments += ["--tls-cert", certificate.certificateFile, "--tls-key", certificate.keyFile] }
    return try HubProcess(
      executable: options.executable, arguments: arguments, cpus: options.serverCPU, wrapper: options.wrapper,
      quiet: options.quiet, within: options.connectSeconds, interruption: options.interruption)
  }

  /// Cores that the hub leaves.
  var threadCount: Int {
    let wanted = options.threads ?? max(1, min(8, ProcessFacts.processors - loops))
    return max(1, min(wanted, max(scenario.drivers, scenario.maximumSessions / 1000)))
  }

  // MARK: The load

  /// The result, and whether it says that the hub has ended.
  private func load(_ target: Target) throws(LoadTestError) -> (result: RunResult, saysEnd: Bool) {
    var course = Course(lines: ProgressLines(name: scenario.name))
    let board = Locked(Board(progress: Array(repeating: Progress(), count: threadCount)))
    defer {
      // The hub sees all sessions end before it is stopped: else it would close some of them, or none.
      board.withLock { $0.isOver = true }
      for thread in course.threads { thread.join() }
    }
    var cut: Cut?
    do throws(Cut) { try measure(target, board, &course) } catch { cut = error }
    if case .failed(let error) = cut { throw error }
    if cut != nil { end(board) }
    var counts = Counts()
    for part in board.withLock({ $0.results }) { counts.merge(part) }
    counts.expected += counts.sent * scenario.slow
    put(counts, into: &course.figures)
    if cut == nil {
      let missing = Double(counts.expected - counts.delivered)
      course.figures[.lost] = max(0, missing - course.figures[.conflated, default: 0])
    }
    let figures = course.figures
    var result = RunResult(
      scenario: scenario.name, about: scenario.about,
      settings: settings, hub: options.address.map { "\($0)" } ?? options.executable,
      startedAt: Double(course.startedAt.unixMilliseconds), figures: figures, parts: [], buckets: [],
      invalid: cut.map(\.invalid) ?? faults(counts), violations: cut.map(\.violations) ?? violations(counts, figures))
    if let schedule = course.schedule { result.plot(counts, schedule) }
    if case .hubEnded = cut { return (result, true) }
    return (result, false)
  }

  /// The scenario's, and the hub's where it was started here.
  private var settings: [String] {
    let words = options.address == nil ? ServeOptions.groups(serveWords) : []
    return scenario.settings.map { "\($0.name) \($0.value)" } + words.map { $0.joined(separator: " ") }
  }

  private func measure(_ target: Target, _ board: Locked<Board>, _ course: inout Course) throws(Cut) {
    let (address, facts, tls) = (target.address, target.facts, target.tls)
    let before = (resident: facts?.residentBytes, cpu: facts?.cpu)
    do throws(LoadTestError) {
      try ProcessTuning.apply()
      for index in 0..<threadCount {
        course.threads.append(try startThread(Share(index: index, of: threadCount), target, board))
      }
    } catch {
      throw .failed(error)
    }
    let all = threadCount
    try wait(target, board, &course, "sessions stand") { $0.standing == all }
    course.figures[.connectSeconds] = seconds(since: course.startedAt.uptimeNanoseconds)
    let connectCPU = LoadRun.seconds(from: before.cpu, to: facts?.cpu)
    pause(microseconds: 300_000)
    putSessions(residentBefore: before.resident, residentBytes: facts?.residentBytes, connectCPU, into: &course.figures)

    let schedule = Schedule(scenario, start: ClockReading.read().uptimeNanoseconds + 20_000_000)
    let atStart = MetricsPage.fetch(address, tls: tls)
    course.schedule = schedule
    board.withLock { $0.schedule = schedule }
    enter(.warmUp, board, &course)
    try wait(target, board, &course, until: schedule.window.lowerBound)
    let sampler = options.samplesModes ? facts.flatMap { ModeSampler(pid: $0.pid) } : nil
    let begin = read(address, facts, sampler, tls)
    enter(.window, board, &course)
    try wait(target, board, &course, until: schedule.window.upperBound, sampler)
    let end = read(address, facts, sampler, tls)
    if let sampler { course.figures[.userSamples] = Double(sampler.user) }
    enter(.waiting, board, &course)
    try wait(target, board, &course, "what was sent has come") { $0.results.count == all }
    let atEnd = MetricsPage.fetch(address, tls: tls)
    if let first = before.resident, let last = facts?.residentBytes {
      course.figures[.bytesUnderLoad] = Double(last - first) / Double(max(1, scenario.maximumSessions))
    }
    put(begin, end, into: &course.figures)
    course.figures[.conflated] = atEnd.flatMap { end in atStart.map { end.conflated - $0.conflated } } ?? 0
    if scenario.watchers > 0, let atStart, let atEnd {
      course.figures[.areasSkipped] = atEnd.areasSkipped - atStart.areasSkipped
    }
  }

  /// How many sessions there are, and what they have cost until they all stood.
  private func putSessions(
    residentBefore: Int?, residentBytes: Int?, _ connectCPU: ProcessorTime?, into figures: inout [Figure: Double]
  ) {
    if let residentBytes {
      figures[.residentBytes] = Double(residentBytes)
      let count = Double(max(1, scenario.sessions))
      if let residentBefore { figures[.bytesPerConnection] = Double(residentBytes - residentBefore) / count }
      if let connectCPU { figures[.cpuPerConnection] = connectCPU.all * 1e6 / count }
    }
    figures[.connections] = Double(scenario.sessions)
    if scenario.fleet > 0 { figures[.fleet] = Double(scenario.fleet) }
    if scenario.quietChannels > 0 { figures[.quietChannels] = Double(scenario.quietChannels) }
  }

  private func startThread(
    _ share: Share, _ target: Target, _ board: Locked<Board>
  ) throws(LoadTestError) -> Joinable {
    let (scenario, seconds, address, tls) = (scenario, options.connectSeconds, target.address, target.tls)
    do throws(SystemError) {
      let thread = try HubSystem.startThread(name: "load-\(share.index)") { @Sendable in
        do throws(LoadTestError) {
          try LoadRun.work(scenario, share, address, tls, board, connectWithin: seconds)
        } catch {
          board.withLock { $0.failure = $0.failure ?? error }
        }
      }
      return Joinable(thread)
    } catch {
      throw .failed("cannot start a thread: \(error)")
    }
  }

  /// How long nothing has come for when nothing more is expected, and how long is waited for that (ns).
  private static let quiet: Int64 = 3_000_000_000
  private static let patience: Int64 = 60_000_000_000

  /// What each thread does.
  private static func work(
    _ scenario: Scenario, _ share: Share, _ address: SocketAddress, _ tls: ServerTrust?, _ board: Locked<Board>,
    connectWithin seconds: Double
  ) throws(LoadTestError) {
    let generator: Generator
    do throws(SystemError) {
      generator = try Generator(scenario, address: address, tls: tls, share: share)
    } catch {
      throw .failed("no event loop: \(error)")
    }
    /// Reports its progress; false where the run is over.
    let report = { () -> Bool in
      let progress = generator.takeProgress()
      return board.withLock { board in
        board.progress[share.index].update(progress)
        return !board.isOver
      }
    }
    guard try generator.connectAll(within: seconds, while: report) else { return }
    board.withLock { $0.standing += 1 }
    var schedule: Schedule?
    while schedule == nil {
      generator.turn()
      let isOver = board.withLock { board in
        schedule = board.schedule
        return board.isOver
      }
      if isOver { return }
    }
    guard let schedule else { return }
    generator.begin(schedule)
    var nextReport = schedule.start
    var goesOn = true
    while goesOn, loopTime(generator) < schedule.window.upperBound, !generator.isDone {
      generator.turn()
      if loopTime(generator) >= nextReport {
        nextReport += reportInterval
        goesOn = report()
      }
    }
    generator.turn()
    generator.isSending = false
    // What was due at the end may take its time. What has not come when nothing has for a while is lost.
    let end = schedule.window.upperBound
    while goesOn, !generator.hasAll, loopTime(generator) < min(max(end, generator.lastCame) + quiet, end + patience) {
      generator.turn()
      goesOn = report()
    }
    generator.countMissingUpdates()
    board.withLock { $0.results.append(generator.counts) }
    // Sessions stay until the hub's own counts are read.
    while !board.withLock({ $0.isOver }) { generator.turn() }
    generator.closeAll()
  }

  private static let reportInterval: Int64 = 100_000_000

  private static func loopTime(_ generator: Generator) -> Int64 { ClockReading.read().uptimeNanoseconds }

  private func seconds(since start: Int64) -> Double {
    Double(ClockReading.read().uptimeNanoseconds - start) / 1e9
  }
}
