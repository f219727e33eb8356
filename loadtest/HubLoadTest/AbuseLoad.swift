// What both parts of `hub-loadtest abuse` have in common: a hub of their own, and 1,000 good sessions under load.
import HubBytes
import HubCommandLine
import HubLoadTestKit
import HubSystem

struct AbuseLoad {
  /// 200 drivers with 4 riders each, 1,000 sessions: 800 fixes and 3,200 deliveries a second.
  static var good: Scenario {
    var scenario = Scenario()
    scenario.name = "abuse"
    scenario.drivers = 200
    scenario.rate = 4
    scenario.ridersPerTrip = 4
    scenario.sessionsPerAddress = 100
    return scenario
  }

  let server: HubProcess
  let generator: Generator

  /// Options of its hub: those that were given, with one loop and without a journal where they say nothing else.
  static func serveOptions(_ given: [String]) -> [String] {
    let options = ServeOptions.merged(given, over: ["--loops", "1"])
    return ServeOptions.sayWhatIsStored(options) ? options : options + ["--no-journal"]
  }

  /// Runs a hub while `body` does its work. False where that is not good, or where the hub complains at its end.
  static func run(
    executable: String, arguments: [String], cpus: String?,
    _ body: (HubProcess) throws(LoadTestError) -> Bool
  ) throws(LoadTestError) -> Bool {
    let server = try HubProcess(executable: executable, arguments: arguments, cpus: cpus)
    let outcome = Result { () throws(LoadTestError) in try body(server) }
    let violation = server.stop()
    if let violation { show("  VIOLATED: \(violation)") }
    return try outcome.get() && violation == nil
  }

  /// The good sessions come, and begin to send.
  init(_ server: HubProcess) throws(LoadTestError) {
    self.server = server
    do throws(SystemError) {
      generator = try Generator(AbuseLoad.good, address: server.address, tls: nil)
    } catch {
      throw .failed("no event loop: \(error)")
    }
    try generator.connectAll { Interruption.process.signal == nil }
    var load = AbuseLoad.good
    load.duration = 86_400
    load.warmUp = 0
    generator.begin(Schedule(load, start: ClockReading.read().uptimeNanoseconds + 10_000_000))
    turn(seconds: 2)
  }

  func turn(seconds: Double) {
    let end = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
    while ClockReading.read().uptimeNanoseconds < end, Interruption.process.signal == nil { generator.turn() }
  }

  /// How long what was due in a phase is waited for behind its end.
  private static let patience: Int64 = 10_000_000_000

  /// Latencies of all that is due while `body` runs, however long after its end it comes: what an attack delays may
  /// come when the attack is over. What does not come counts as long as it was waited for.
  func latency(of body: () -> Void) -> LatencyHistogram {
    generator.beginPhase(at: ClockReading.read().uptimeNanoseconds)
    body()
    let end = ClockReading.read().uptimeNanoseconds
    generator.endPhase(at: end)
    while generator.missingOfPhase > 0, ClockReading.read().uptimeNanoseconds < end + Self.patience,
      Interruption.process.signal == nil, server.ending == nil
    {
      generator.turn()
    }
    var latency = generator.counts.latency
    for _ in 0..<generator.missingOfPhase { latency.record(nanoseconds: Self.patience) }
    return latency
  }

  /// CPU time of the hub so far.
  var cpuSeconds: Double { server.facts.cpu?.all ?? 0 }

  /// Throws where there is no sense in going on.
  func check() throws(LoadTestError) {
    try Interruption.process.check()
    if let ending = server.ending { throw .failed("the hub ended \(ending)") }
  }

  /// Those who do harm, on a thread of their own.
  func begin(
    _ name: String, _ body: @escaping @Sendable () throws(SystemError) -> Void
  ) throws(LoadTestError) -> ThreadHandle {
    do throws(SystemError) {
      return try startThread(name: name) { @Sendable in
        do throws(SystemError) { try body() } catch { fail("the \(name) cannot start: \(error)") }
      }
    } catch {
      throw .failed("the \(name) cannot start: \(error)")
    }
  }

  /// Whether the good sessions got all that they should have.
  var isComplete: Bool {
    let counts = generator.counts
    return counts.delivered == counts.expected && counts.duplicated == 0 && counts.outOfOrder == 0
      && counts.errors == 0
  }
}
