// The second part of `hub-loadtest abuse`: whatever messages one rider's token sends within its rate, on as many
// sockets as it may have, do others notice? Each kind of dear message in turn, alone phases before, between and after,
// so that an attack is compared with the seconds next to it. One that seems to be noticed is tried three times, and the
// middle one counts: a machine's own pauses come and go, what a message costs is there each time.
import HubBytes
import HubLoadTestKit
import HubSystem

struct InsiderRun {
  /// Seconds of each attack, and of each phase without one.
  var attackSeconds = 6.0
  var aloneSeconds = 4.0
  /// The one kind of message to send; nil for each in turn.
  var attack: String?
  var serverCPU: String?
  var executable: String
  var serverOptions: [String] = []

  /// p99 under attack may be this many times what it is alone, or so many µs, if that is more.
  private static let maximumTimesAlone = 2.0
  private static let freeMicroseconds: UInt64 = 1000

  private struct Outcome {
    var attack: InsideAttack
    var progress: InsideProgress
    var before: UInt64
    var during: UInt64
    var after: UInt64 = 0
    var cpuShare: Double

    var alone: Double { Double(before + after) / 2 }
    var limit: Double { max(InsiderRun.maximumTimesAlone * alone, Double(InsiderRun.freeMicroseconds)) }
    var timesLimit: Double { Double(during) / limit }
    var isTooSlow: Bool { timesLimit > 1 }
  }

  /// True where nothing was violated.
  func run() throws(LoadTestError) -> Bool {
    let arguments =
      ["serve", "--port", "0", "--dev-auth", "--log-level", "error"] + AbuseLoad.serveOptions(serverOptions)
    return try AbuseLoad.run(executable: executable, arguments: arguments, cpus: serverCPU, attackAll)
  }

  private func attackAll(_ server: HubProcess) throws(LoadTestError) -> Bool {
    let crowd = try Crowd(server.address)
    let load = try AbuseLoad(server)
    var outcomes: [Outcome] = []
    var before = p99(load) { load.turn(seconds: aloneSeconds) }
    for attack in InsideAttack.all() where self.attack == nil || self.attack == attack.name {
      var tries: [Outcome] = []
      repeat {
        try crowd.keep()
        load.turn(seconds: 0.5)  // the generator was stalled meanwhile
        let outcome = try outcome(attack, load, before)
        show(line(outcome))
        tries.append(outcome)
        before = outcome.after
      } while tries[0].isTooSlow && tries.count < 3
      tries.sort { $0.timesLimit < $1.timesLimit }
      outcomes.append(tries[tries.count / 2])
    }
    load.generator.isSending = false
    load.turn(seconds: 1)
    return report(outcomes, load)
  }

  private func outcome(
    _ attack: InsideAttack, _ load: AbuseLoad, _ before: UInt64
  ) throws(LoadTestError) -> Outcome {
    try load.check()
    let progress = Locked(InsideProgress())
    let cpu = load.cpuSeconds
    let (target, seconds) = (load.server.address, attackSeconds)
    let thread = try load.begin("insiders") { () throws(SystemError) in
      try Insiders(target: target, attack: attack, seconds: seconds, shared: progress).run()
    }
    var share = 0.0
    let during = p99(load) {
      while !progress.withLock({ $0.isOver }) { load.turn(seconds: 0.1) }
      share = (load.cpuSeconds - cpu) / attackSeconds
    }
    thread.join()
    load.turn(seconds: 1)  // what it has left is cleared away
    let after = p99(load) { load.turn(seconds: aloneSeconds) }
    return Outcome(
      attack: attack, progress: progress.withLock { $0 }, before: before, during: during, after: after, cpuShare: share)
  }

  private func p99(_ load: AbuseLoad, _ body: () -> Void) -> UInt64 {
    load.latency(of: body).value(atQuantile: 0.99)
  }

  // MARK: What came of it

  private func line(_ outcome: Outcome) -> String {
    let times = decimals(Double(outcome.during) / max(1, outcome.alone), 2)
    return "  \(outcome.attack.name), \(outcome.attack.carrier.rawValue): p99 \(outcome.before) µs before, "
      + "\(outcome.during) under attack, \(outcome.after) after (\(times) times"
      + "\(outcome.isTooSlow ? ", over the limit" : "")); \(outcome.progress.sent) messages on "
      + "\(outcome.progress.opened) sockets, \(outcome.progress.refused) refused, "
      + "server \(decimals(outcome.cpuShare * 100, 0)) % of a core"
      + (outcome.progress.ended > 0 ? "; the hub ended \(outcome.progress.ended) sessions" : "")
  }

  private func report(_ outcomes: [Outcome], _ load: AbuseLoad) -> Bool {
    let worst = outcomes.map { Double($0.during) / max(1, $0.alone) }.max() ?? 0
    show(
      "one rider's token, \(Insiders.count) sockets within the rate, \(outcomes.count) kinds of messages: p99 of others at most "
        + "\(decimals(worst, 2)) times what it is alone; delivered \(load.generator.counts.delivered) of "
        + "\(load.generator.counts.expected)"
    )
    var isGood = outcomes.allSatisfy { !$0.isTooSlow }
    for outcome in outcomes where outcome.isTooSlow {
      show("  VIOLATED: \(outcome.attack.name), \(outcome.attack.carrier.rawValue): others wait too long")
    }
    for outcome in outcomes where !outcome.progress.isTaken {
      show(
        "  VIOLATED: \(outcome.attack.name), \(outcome.attack.carrier.rawValue): the hub did not take it from "
          + "\(Insiders.count) sockets")
      isGood = false
    }
    if !load.isComplete {
      show("  VIOLATED: good sessions lost something")
      isGood = false
    }
    return isGood
  }
}
