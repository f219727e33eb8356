// hub-loadtest abuse: do those inside notice when 5,000 hostile connections come and go, and what one rider's token can
// send?
//
//   hub-loadtest abuse [--duration S] [--attackers N] [--only outside|inside] [--attack NAME] [--server-cpu LIST]
//                      [--executable PATH] [-- options of `serve`]
//
// The second part is InsiderRun.swift.
//
// One run has all phases, so that they are compared on the same machine in the same minutes: 1,000 good sessions under
// load alone, then with the attackers, then alone again. Exit code 1 where a good session lost anything, where p99 grew
// by half or more of what it was before, or where memory did not return. What it is afterwards shows how much of a
// difference is chance.
import Glibc
import HubBytes
import HubCommandLine
import HubLoadTestKit
import HubSystem

struct AbuseRun {
  var duration = 15.0
  var attackers = 5000
  var serverCPU: String?
  var executable: String
  var serverOptions: [String] = []

  /// How much more memory there may be at the end: what the tables have grown by for the peak of connections, and what
  /// the allocator keeps of it.
  static let marginBytes = 12 << 20

  /// The hub's own limits, but for times, which are short so that a run sees their end; and an address may have 150
  /// connections, where the attackers have far more and the good ones 100.
  private static let options = [
    "serve", "--port", "0", "--dev-auth", "--heartbeat", "2", "--handshake-time", "3", "--keep-alive", "3",
    "--message-time", "3", "--max-per-address", "150", "--request-rate", "500", "--log-level", "error",
  ]

  static func run(_ words: [String], executable: String) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .abuse)
    var run = AbuseRun(executable: options.string("executable") ?? executable)
    run.duration = try options.number("duration", or: run.duration)
    run.attackers = try options.whole("attackers", or: run.attackers, in: 1...1_000_000)
    run.serverCPU = options.string("server-cpu")
    run.serverOptions = options.rest
    try HubProcess.check(executable: run.executable)
    let part = options.string("only")
    guard part == nil || part == "outside" || part == "inside" else {
      throw .usage("--only must be outside or inside")
    }
    let attack = options.string("attack")
    let names = Set(InsideAttack.all().map(\.name))
    if let attack, !names.contains(attack) {
      throw .usage("--attack takes one of: \(names.sorted().joined(separator: ", "))")
    }
    if attack != nil, part == "outside" {
      throw .usage("--attack is one of the messages of the one token: not with --only outside")
    }
    var isGood = true
    if part != "inside", attack == nil { isGood = try run.run() }
    if part != "outside" {
      try ProcessTuning.apply()
      let inside = InsiderRun(
        attack: attack, serverCPU: run.serverCPU, executable: run.executable, serverOptions: run.serverOptions)
      isGood = try inside.run() && isGood
    }
    return isGood
  }

  /// True where nothing was violated.
  func run() throws(LoadTestError) -> Bool {
    try ProcessTuning.apply()
    return try AbuseLoad.run(
      executable: executable, arguments: Self.options + AbuseLoad.serveOptions(serverOptions), cpus: serverCPU, attack)
  }

  private func attack(_ server: HubProcess) throws(LoadTestError) -> Bool {
    let load = try AbuseLoad(server)
    let residentBefore = server.facts.residentBytes ?? 0
    let before = phase(load) { load.turn(seconds: duration) }
    try load.check()
    let progress = Locked(AttackProgress())
    let (target, count, seconds) = (server.address, attackers, duration)
    let thread = try load.begin("attackers") { () throws(SystemError) in
      let attackers = try Attackers(
        target: target, total: count, seconds: seconds, trips: AbuseLoad.good.drivers, shared: progress)
      attackers.run()
    }
    var residentPeak = 0
    let during = phase(load) {
      repeat {
        load.turn(seconds: 0.5)
        residentPeak = max(residentPeak, server.facts.residentBytes ?? 0)
      } while progress.withLock({ $0.ended < count }) && Interruption.process.signal == nil && server.ending == nil
    }
    try load.check()
    thread.join()
    // What is closing may take a few seconds, and the hub's timers as well.
    load.turn(seconds: 6)
    let residentAfter = server.facts.residentBytes ?? 0
    let after = phase(load) { load.turn(seconds: duration) }
    load.generator.isSending = false
    load.turn(seconds: 1)
    try load.check()
    return report(
      before, during, after, progress.withLock { $0 }, load,
      resident: (residentBefore, residentPeak, residentAfter))
  }

  private struct Phase {
    var latency: LatencyHistogram
    var cpuShare: Double
    var seconds: Double
  }

  private func phase(_ load: AbuseLoad, _ body: () -> Void) -> Phase {
    var (cpuShare, seconds) = (0.0, 0.0)
    let latency = load.latency {
      let (cpu, start) = (load.cpuSeconds, ClockReading.read().uptimeNanoseconds)
      body()
      seconds = Double(ClockReading.read().uptimeNanoseconds - start) / 1e9
      cpuShare = (load.cpuSeconds - cpu) / seconds
    }
    return Phase(latency: latency, cpuShare: cpuShare, seconds: seconds)
  }

  // MARK: What came of it

  private func report(
    _ before: Phase, _ during: Phase, _ after: Phase, _ attack: AttackProgress, _ load: AbuseLoad,
    resident: (before: Int, peak: Int, after: Int)
  ) -> Bool {
    let good = load.generator.counts
    let statuses = attack.statuses.sorted { $0.key < $1.key }.map { "\($0.value)× \($0.key)" }
    show(
      "abuse: \(attack.started) hostile connections in \(decimals(during.seconds, 1)) s, \(attack.peak) at once; the hub "
        + "ended \(attack.cutOff); answers: \(statuses.joined(separator: ", "))")
    show(
      "  1,000 good sessions: sent \(good.sent), expected \(good.expected), delivered \(good.delivered), out of order "
        + "\(good.outOfOrder), errors \(good.errors)")
    for (name, phase) in [("before", before), ("during", during), ("after", after)] {
      let latency = phase.latency
      show(
        "  \(name): p50 \(latency.value(atQuantile: 0.5)) µs, p90 \(latency.value(atQuantile: 0.9)), "
          + "p99 \(latency.value(atQuantile: 0.99)), max \(latency.maximum); "
          + "server \(decimals(phase.cpuShare * 100, 0)) % of a core")
    }
    show(
      "  resident: \(resident.before / 1024) KiB before, \(resident.peak / 1024) at most, \(resident.after / 1024) after"
    )
    var violations: [String] = []
    if !load.isComplete { violations.append("good sessions lost something") }
    let (p99, limit) = (during.latency.value(atQuantile: 0.99), before.latency.value(atQuantile: 0.99) * 3 / 2)
    if p99 >= limit { violations.append("p99 grew to \(p99) µs, \(limit) and more is too much") }
    if resident.after > resident.before + Self.marginBytes {
      violations.append("\((resident.after - resident.before) >> 10) KiB of memory did not come back")
    }
    if attack.failed > attack.started / 100 { violations.append("\(attack.failed) attackers failed to connect") }
    for violation in violations { show("  VIOLATED: \(violation)") }
    return violations.isEmpty
  }
}
