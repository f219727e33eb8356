// hub-loadtest abuse-search: is there a message that costs the hub far more than it is charged for?
//
//   hub-loadtest abuse-search [--seconds S] [--seed N] [--output FILE] [--executable PATH]
//
// Begins with the known dear kinds and changes them at random towards CPU time for each unit of the rate (DearSearch).
// What ordinary messages cost is measured in between, on the same hub in the same minutes, so that a machine that is
// busy makes both dearer. Exit code 1 where a message costs more than 20 times the median of these for each unit,
// measured again three times.
import Glibc
import HubBytes
import HubCommandLine
import HubLoadTestKit
import HubMessages
import HubSystem

struct AbuseSearchRun {
  var seconds = 600.0
  var seed: UInt64 = 1
  var executable: String
  var output: OutputFile?

  /// How often a message is sent for a first look, and how often for each of the three further ones.
  private static let looks = 3
  private static let repeats = 5
  /// Ordinary messages are measured again after so many others; of what they cost, so many values are kept.
  private static let between = 60
  private static let keptOrdinary = 150

  static func run(_ words: [String], executable: String) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .abuseSearch)
    var run = AbuseSearchRun(executable: options.string("executable") ?? executable)
    run.seconds = try options.number("seconds", or: run.seconds)
    run.seed = UInt64(try options.whole("seed", or: 1, in: 1...1_000_000_000))
    try HubProcess.check(executable: run.executable)
    if let path = options.string("output") { run.output = try OutputFile(path) }
    return try run.run()
  }

  private func run() throws(LoadTestError) -> Bool {
    // The rate is no limit here; what would be charged is reckoned by the same rule.
    let server = try HubProcess(
      executable: executable,
      arguments: [
        "serve", "--port", "0", "--dev-auth", "--no-journal", "--loops", "1", "--session-rate", "1000000",
        "--session-burst",
        "1000000", "--log-level", "error",
      ])
    let outcome = Result { () throws(LoadTestError) in try search(server) }
    let violation = server.stop()
    if let violation { show("  VIOLATED: \(violation)") }
    return try outcome.get() && violation == nil
  }

  private func search(_ server: HubProcess) throws(LoadTestError) -> Bool {
    let probe = try HubProbe(server)
    let reader = MessageReader()
    var search = DearSearch(seeds: DearMessage.known, seed: seed)
    var ordinary: [Double] = []
    let end = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
    var nextLine = ClockReading.read().uptimeNanoseconds + 30_000_000_000
    while ClockReading.read().uptimeNanoseconds < end {
      try Interruption.process.check()
      if search.measured % Self.between == 0 {
        for message in DearMessage.ordinary {
          ordinary.append(try probe.cost(of: message, count: Self.looks) / Double(message.units(reader)))
        }
        ordinary = Array(ordinary.suffix(Self.keptOrdinary))
      }
      let message = search.next()
      let units = Double(message.units(reader))
      var cost = try probe.cost(of: message, count: Self.looks) / units
      // What seems dear may have been another's time on the same core.
      if cost > search.dearest.last?.cost ?? 0 || cost > 5 * RankTest.median(ordinary) {
        var again: [Double] = []
        for _ in 0..<3 { again.append(try probe.cost(of: message, count: Self.repeats) / units) }
        cost = RankTest.median(again)
      }
      search.note(message, cost: cost)
      if ClockReading.read().uptimeNanoseconds >= nextLine {
        nextLine += 30_000_000_000
        let dearest = search.dearest.first
        show(
          "  \(search.measured) messages; ordinary \(decimals(RankTest.median(ordinary), 1)) µs a unit, the dearest "
            + "\(decimals(dearest?.cost ?? 0, 1)) (\(dearest?.message.name ?? ""))")
      }
    }
    return try report(search, RankTest.median(ordinary), reader)
  }

  private func report(_ search: DearSearch, _ median: Double, _ reader: MessageReader) throws(LoadTestError) -> Bool {
    show(
      "abuse-search: \(search.measured) messages in \(decimals(seconds, 0)) s, seed \(seed); ordinary messages cost "
        + "\(decimals(median, 1)) µs of CPU a unit (median)")
    var isGood = true
    for found in search.dearestByName {
      let times = found.cost / median
      let isTooDear = times > DearSearch.maximumTimesMedian
      if isTooDear { isGood = false }
      show(
        "  \(isTooDear ? "VIOLATED: " : "")\(found.message.name), \(found.message.carrier.rawValue): "
          + "\(decimals(found.cost, 1)) µs a unit, \(decimals(times, 1)) times the median; \(found.message.bytes.count) B, "
          + "\(found.message.units(reader)) units")
    }
    if let output, let dearest = search.dearest.first?.message {
      let hexadecimal = dearest.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      try output.write(dearest.carrier == .binary ? hexadecimal : String(decoding: dearest.bytes, as: UTF8.self))
    }
    return isGood
  }
}
