// One run: starts the hub, connects everybody, lets the load go on for its time on several threads, and puts together what
// came of it.
//
// Two clocks are kept apart. Messages are counted over the whole run, warm-up included, for those counts must agree with the
// hub's own to the last one. Latencies, CPU and rates are of the window. How much CPU a message costs is the hub's CPU
// within the window divided by what the hub says it read and wrote within the same window.
import Glibc
import Transport

package struct LoadRun {
  /// What the threads and the one who started them tell each other.
  private struct Board: Sendable {
    var standing = 0
    var schedule: Schedule?
    var mayEnd = false
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

  package private(set) var scenario: Scenario
  package let options: RunOptions

  package init(_ scenario: Scenario, _ options: RunOptions) {
    self.scenario = scenario
    self.options = options
    // The hub may have seen the same drivers in an earlier run, whose fixes would make these history.
    if options.address != nil { self.scenario.tag = String(ClockReading.read().unixMilliseconds, radix: 36) + "-" }
  }

  /// Runs it once.
  package func run() throws(LoadTestError) -> RunResult {
    if let contradiction = scenario.contradiction { throw .usage(contradiction) }
    let certificate = scenario.tls && options.address == nil ? RunCertificate() : nil
    let tls = try certificate.map { certificate throws(LoadTestError) in try certificate.client() }
    let hub = try startHub(certificate)
    defer { hub?.stop() }
    certificate?.removeFiles()
    guard let address = options.address ?? hub?.address else { throw .usage("there is no hub to load") }
    let facts = (options.pid ?? hub?.pid).map(ProcessReadings.init)
    return try load(address, facts, tls)
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
    let words = serveWords
    return words.firstIndex(of: "--loops").flatMap { Int(words[($0 + 1)...].first ?? "") } ?? 1
  }

  /// The scenario's options of the hub and those that were given, which win.
  private var serveWords: [String] {
    var words = options.serveOptions
    for option in LoadRun.options(scenario.serve + ["--loops", "1", "--session-rate", "0", "--log-level", "warning"])
    where !words.contains(option[0]) { words += option }
    return words
  }

  /// Words as options, each with its value.
  static func options(_ words: [String]) -> [[String]] {
    var options: [[String]] = []
    for word in words {
      if word.hasPrefix("--") || options.isEmpty {
        options.append([word])
      } else {
        options[options.count - 1].append(word)
      }
    }
    return options
  }

  private func startHub(_ certificate: RunCertificate?) throws(LoadTestError) -> HubProcess? {
    if options.address != nil { return nil }
    var arguments = ["serve", "--port", "0", "--dev-auth"] + serveWords
    if !arguments.contains("--data"), !arguments.contains("--no-journal") { arguments.append("--no-journal") }
    if let certificate { arguments += ["--tls-cert", certificate.certificateFile, "--tls-key", certificate.keyFile] }
    return try HubProcess(
      executable: options.executable, arguments: arguments, cpus: options.serverCPU, wrapper: options.wrapper,
      quiet: options.quiet)
  }

  /// Cores that the hub leaves.
  private var threadCount: Int {
    let wanted = options.threads ?? max(1, min(8, ProcessFacts.processors - loops))
    return max(1, min(wanted, max(scenario.drivers, scenario.mostSessions / 1000)))
  }

  // MARK: The load

  private func load(
    _ address: SocketAddress, _ facts: ProcessReadings?, _ tls: TLSClient?
  ) throws(LoadTestError) -> RunResult {
    let startedAt = ClockReading.read()
    var figures: [Figure: Double] = [:]
    let before = (resident: facts?.residentBytes, cpu: facts?.cpu)
    let board = Locked(Board(progress: Array(repeating: Progress(), count: threadCount)))
    var threads: [Int] = []
    try ProcessTuning.apply()
    for index in 0..<threadCount {
      try startThread(Share(index: index, of: threadCount), address, tls, board)
      threads.append(index)
    }
    try wait(board, "sessions stand") { $0.standing == threads.count }
    figures[.connectSeconds] = Double(ClockReading.read().uptimeNanoseconds - startedAt.uptimeNanoseconds) / 1e9
    let connectCPU = LoadRun.seconds(from: before.cpu, to: facts?.cpu)
    pause(microseconds: 300_000)
    if let resident = facts?.residentBytes {
      figures[.residentBytes] = Double(resident)
      let count = Double(max(1, scenario.sessions))
      if let first = before.resident { figures[.bytesPerConnection] = Double(resident - first) / count }
      if let connectCPU { figures[.cpuPerConnection] = connectCPU.all * 1e6 / count }
    }
    figures[.connections] = Double(scenario.sessions)
    if scenario.fleet > 0 { figures[.fleet] = Double(scenario.fleet) }
    if scenario.quietChannels > 0 { figures[.quietChannels] = Double(scenario.quietChannels) }

    let schedule = Schedule(scenario, start: ClockReading.read().uptimeNanoseconds + 20_000_000)
    let atStart = MetricsPage.fetch(address, tls: tls)
    board.withLock { $0.schedule = schedule }
    try wait(board, until: schedule.window.lowerBound)
    let sampler = options.samplesModes ? facts.flatMap { ModeSampler(pid: $0.pid) } : nil
    let begin = read(address, facts, sampler, tls)
    try wait(board, until: schedule.window.upperBound, sampler)
    let end = read(address, facts, sampler, tls)
    if let sampler { figures[.userSamples] = Double(sampler.user) }
    try wait(board, "what was sent has come") { $0.results.count == threads.count }
    let atEnd = MetricsPage.fetch(address, tls: tls)
    if let first = before.resident, let last = facts?.residentBytes {
      figures[.bytesUnderLoad] = Double(last - first) / Double(max(1, scenario.mostSessions))
    }
    var counts = Counts()
    for part in board.withLock({ $0.results }) { counts.merge(part) }
    board.withLock { $0.mayEnd = true }

    counts.expected += counts.sent * scenario.slow
    put(counts, into: &figures)
    put(begin, end, into: &figures)
    let conflated = atEnd.flatMap { end in atStart.map { end.conflated - $0.conflated } } ?? 0
    figures[.conflated] = conflated
    figures[.lost] = max(0, Double(counts.expected - counts.delivered) - conflated)
    var result = RunResult(
      scenario: scenario.name, about: scenario.about,
      settings: scenario.settings.map { "\($0.name) \($0.value)" }
        + LoadRun.options(serveWords).map {
          $0.joined(separator: " ")
        }, hub: options.address.map { "\($0)" } ?? options.executable, startedAt: Double(startedAt.unixMilliseconds),
      figures: figures, parts: [], buckets: [], invalid: faults(counts), violations: violations(counts, figures))
    result.plot(counts, schedule)
    return result
  }

  private func startThread(
    _ share: Share, _ address: SocketAddress, _ tls: TLSClient?, _ board: Locked<Board>
  ) throws(LoadTestError) {
    let (scenario, seconds) = (scenario, options.connectSeconds)
    do throws(SystemError) {
      _ = try Transport.startThread(name: "load-\(share.index)") { @Sendable in
        do throws(LoadTestError) {
          try LoadRun.work(scenario, share, address, tls, board, connectWithin: seconds)
        } catch {
          board.withLock { $0.failure = $0.failure ?? error }
        }
      }
    } catch {
      throw .failed("cannot start a thread: \(error)")
    }
  }

  /// How long nothing has come for when nothing more is expected, and how long is waited for that (ns).
  private static let quiet: Int64 = 3_000_000_000
  private static let patience: Int64 = 60_000_000_000

  /// What each thread does.
  private static func work(
    _ scenario: Scenario, _ share: Share, _ address: SocketAddress, _ tls: TLSClient?, _ board: Locked<Board>,
    connectWithin seconds: Double
  ) throws(LoadTestError) {
    let generator: Generator
    do throws(SystemError) {
      generator = try Generator(scenario, address: address, tls: tls, share: share)
    } catch {
      throw .failed("no event loop: \(error)")
    }
    try generator.connectAll(within: seconds)
    board.withLock { $0.standing += 1 }
    var schedule: Schedule?
    while schedule == nil {
      generator.turn()
      schedule = board.withLock { $0.failure == nil ? $0.schedule : nil }
      if board.withLock({ $0.failure != nil }) { return }
    }
    guard let schedule else { return }
    generator.begin(schedule)
    var nextReport = schedule.start
    while loopTime(generator) < schedule.window.upperBound, !generator.isDone {
      generator.turn()
      if loopTime(generator) >= nextReport {
        nextReport += 100_000_000
        let progress = generator.takeProgress()
        board.withLock { $0.progress[share.index] = progress }
      }
    }
    generator.turn()
    generator.isSending = false
    // What was due at the end may take its time. What has not come when nothing has for a while is lost.
    let end = schedule.window.upperBound
    while !generator.hasAll, loopTime(generator) < min(max(end, generator.lastCame) + quiet, end + patience) {
      generator.turn()
    }
    board.withLock { $0.results.append(generator.counts) }
    // Sessions stay until the hub's own counts are read.
    while !board.withLock({ $0.mayEnd || $0.failure != nil }) { generator.turn() }
    generator.closeAll()
  }

  private static func loopTime(_ generator: Generator) -> Int64 { ClockReading.read().uptimeNanoseconds }
}

extension LoadRun {
  // MARK: Waiting

  /// Until the threads have come so far; a failure of one ends it.
  private func wait(
    _ board: Locked<Board>, _ what: String, until isTrue: (Board) -> Bool
  ) throws(LoadTestError) {
    let end = ClockReading.read().uptimeNanoseconds + Int64((options.connectSeconds + 10) * 1e9)
    while true {
      let (isDone, failure) = board.withLock { (isTrue($0), $0.failure) }
      if let failure { throw failure }
      if isDone { return }
      guard ClockReading.read().uptimeNanoseconds < end else { throw .failed("gave up waiting until \(what)") }
      pause(microseconds: 2000)
    }
  }

  /// Until a time, or until all threads are done before it.
  private func wait(
    _ board: Locked<Board>, until time: Int64, _ sampler: ModeSampler? = nil
  ) throws(LoadTestError) {
    var nextLine = ClockReading.read().uptimeNanoseconds + 1_000_000_000
    var last = Progress()
    while true {
      let (failure, isDone) = board.withLock { ($0.failure, $0.results.count == threadCount) }
      if let failure { throw failure }
      let now = ClockReading.read().uptimeNanoseconds
      if now >= time || isDone { return }
      sampler?.collect()
      if now >= nextLine, let progress = options.progress {
        nextLine += 1_000_000_000
        let sum = board.withLock { board in
          let sum = LoadRun.sum(board.progress)
          for index in board.progress.indices { board.progress[index].worst = 0 }
          return sum
        }
        progress(
          "\(scenario.name): \(grouped(sum.ready)) sessions, \(grouped(sum.sent - last.sent)) fixes and "
            + "\(grouped(sum.delivered - last.delivered)) positions in this second, worst "
            + "\(Figure.latencyMax.text(Double(sum.worst)))"
            + (sum.joined > 0 ? ", \(grouped(sum.joined)) came again" : "")
            + (sum.errors > 0 ? ", \(grouped(sum.errors)) errors" : ""))
        last = sum
      }
      pause(microseconds: Int(min(20_000, max(1, (time - now) / 1000))))
    }
  }

  private static func sum(_ all: [Progress]) -> Progress {
    var sum = Progress()
    for one in all {
      sum.ready += one.ready
      sum.sent += one.sent
      sum.delivered += one.delivered
      sum.joined += one.joined
      sum.errors += one.errors
      sum.worst = max(sum.worst, one.worst)
    }
    return sum
  }
}
