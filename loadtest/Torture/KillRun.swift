// A real hub with a journal, under load over sockets, killed at a moment that nobody chose, started again, and so on.
// All clients are the project's own library, as phones are: they keep what was not acked, come back, and subscribe from
// where they were. After each kill the disk must hold every fix of an acked batch; after each start a witness that was
// never there asks for all events, which must be all that anybody saw and all that was acked.
//
// They are clients of one ClientLoop, which is what DriverHub and RiderHub are made with: these hide the acks, the
// numbers of events and the epochs that are compared here.
import Glibc
import HubClientLoop
import HubCore
import HubDurabilityModel
import HubGeo
import HubLoadTestKit
import HubMessages
import HubSystem
import HubTestSupport
import HubTransport

final class KillRun {
  static let pairs = 20
  /// Each driver goes this far behind the clock's back a second, so that every fix is believed.
  static let metersPerSecond = 8.0
  private static let tickNanoseconds: Int64 = 10_000_000

  private let executable: String
  private let seed: UInt64
  private var random: SplitMix64
  private let directory: String
  private let disk: JournalTail
  private let crowd: Crowd
  private var port: UInt16 = 0
  private var startMilliseconds: [Double] = []

  init(executable: String, seed: UInt64) throws(SystemError) {
    self.executable = executable
    self.seed = seed
    random = SplitMix64(seed: seed)
    directory = "/tmp/hub-torture-\(getpid())"
    disk = JournalTail(directory: directory)
    crowd = try Crowd(pairs: Self.pairs, seed: seed)
  }

  /// False where a promise was broken.
  func run(kills: Int) throws -> Bool {
    defer { removeDirectory() }
    var hub = try start(0)
    try crowd.connect(to: hub.address)
    for number in 1...kills {
      turn(milliseconds: Int.random(in: 150...900, using: &random))
      if let ending = hub.ending { crowd.findings.fail("before kill \(number) the hub ended \(ending)") }
      hub.crash()
      turn(milliseconds: 5)  // what had left it arrives
      try disk.read()
      crowd.findings.check(fixes: crowd.promisedFixes, stored: disk.fixes)
      hub = try start(number)
      crowd.beginAudit()
      if number % 20 == 0 { print("\(number) kills, \(crowd.findings.broken.count) broken promises") }
      if !crowd.findings.broken.isEmpty { break }
    }
    crowd.stop()
    settle()
    crowd.auditAll()
    settle()
    if let violation = hub.stop() { crowd.findings.fail(violation) }
    try disk.read()
    crowd.findings.check(fixes: crowd.allFixes, stored: disk.fixes)
    return report(kills)
  }

  private func start(_ number: Int) throws -> HubProcess {
    let began = ClockReading.read().uptimeNanoseconds
    // Hub and loop on one thread, and on two.
    let loops = number % 2 == 0 ? "1" : "2"
    let hub = try HubProcess(
      executable: executable,
      arguments: [
        "serve", "--port", "\(port)", "--dev-auth", "--session-rate", "0", "--log-level", "error", "--data", directory,
        "--loops", loops,
      ],
      // A hub that dies by itself would stay for as long as its backtrace takes, and be killed meanwhile.
      wrapper: ["env", "SWIFT_BACKTRACE=enable=no"])
    port = hub.address.port
    if number > 0 { startMilliseconds.append(Double(ClockReading.read().uptimeNanoseconds - began) / 1e6) }
    return hub
  }

  private func turn(milliseconds: Int) {
    let end = ClockReading.read().uptimeNanoseconds + Int64(milliseconds) * 1_000_000
    while ClockReading.read().uptimeNanoseconds < end {
      crowd.loop.runTurn(timeoutMilliseconds: 5)
      crowd.tick(interval: Self.tickNanoseconds)
    }
  }

  /// Until nobody has anything left to say or to hear, for at most a minute.
  private func settle() {
    for _ in 0..<600 where !crowd.isAtRest { turn(milliseconds: 100) }
    turn(milliseconds: 200)
    crowd.noteRest()
  }

  private func report(_ kills: Int) -> Bool {
    let findings = crowd.findings
    startMilliseconds.sort()
    let slowest = startMilliseconds.last ?? 0
    let median = startMilliseconds.isEmpty ? 0 : startMilliseconds[startMilliseconds.count / 2]
    let rows: [(String, Int)] = [
      ("kill -9 under load", startMilliseconds.count), ("acked moves", findings.ackedMoves),
      ("acked batches", findings.ackedBatches), ("fixes of them", crowd.promisedFixes.count),
      ("fixes sent live or in batches", crowd.allFixes.count), ("events that riders saw", findings.eventsSeen),
      ("events that witnesses were shown after a kill", findings.eventsAudited),
      ("connections made", crowd.opened), ("fixes sent again after a break", Int(crowd.resent)),
      ("start after a kill, median (ms)", Int(median)), ("start after a kill, slowest (ms)", Int(slowest)),
      ("broken promises", findings.broken.count),
    ]
    print("| seed \(seed) | |\n| --- | --- |")
    for (name, count) in rows { print("| \(name) | \(count) |") }
    for text in findings.broken.prefix(10) { print("BROKEN: \(text)") }
    return findings.broken.isEmpty && startMilliseconds.count == kills
  }

  private func removeDirectory() {
    guard let stream = opendir(directory) else { return }
    var names: [String] = []
    while let entry = readdir(stream) {
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    closedir(stream)
    for name in names where name != "." && name != ".." { unlink("\(directory)/\(name)") }
    rmdir(directory)
  }
}
