// What hub-loadtest can do beside running a scenario: each verb with its options, which are what it reads and what its
// help lists.

package struct CommandVerb: Sendable {
  package typealias Option = (name: String, placeholder: String?, help: String)

  package let name: String
  /// What stands behind it beside options; empty for nothing.
  package let operands: String
  package let about: String
  package let options: [Option]
  /// Whether options of the hub may stand behind `--`.
  package var takesServeOptions = false

  package static let compare = CommandVerb(
    name: "compare", operands: "A.json [B.json …]",
    about: "What got better or worse from A to each other file, beyond noise; of one file, between the two hubs in it.",
    options: [])

  package static let report = CommandVerb(
    name: "report", operands: "A.json …", about: "One page with plots of several results.",
    options: [("html", "FILE", "write it there; must be given")])

  package static let bench = CommandVerb(
    name: "bench", operands: "",
    about: "Instructions, allocations and memory of a message, held against bounds (make bench).",
    options: [
      ("thresholds", "FILE", "the bounds (loadtest/thresholds.json)"), executable,
    ])

  package static let figures = CommandVerb(
    name: "figures", operands: "", about: "What a message costs, in time, compared with thresholds (make figures).",
    options: [
      ("rounds", "N", "rounds of all loads (1 to 1000; \(plainSpeed.rounds))"),
      ("seconds", "S", "seconds of each run that are measured (\(decimals(plainSpeed.seconds, 0)))"),
      ("scale", "PART", "that part of all sessions, for trying it out (\(decimals(plainSpeed.scale, 0)))"),
      ("only", "NAME,NAME", "these loads; their names are below"),
      serverCPU, threads, executable,
      ("data", "DIR", "under which directory a journal is made (\(plainSpeed.directory))"),
      ("json", "FILE", "write the results there"),
      ("output", "FILE", "write the table there"),
      ("from", "FILE", "write the table of these results of figures, and measure nothing"),
    ])

  package static let growth = CommandVerb(
    name: "growth", operands: "",
    about: "What a message costs with more and more connections, drivers and channels (make growth).",
    options: [
      ("rounds", "N", "rounds of all sizes (1 to 1000; \(plainGrowth.rounds))"),
      ("seconds", "S", "seconds of each run that are measured (\(decimals(plainGrowth.seconds, 0)))"),
      ("scale", "PART", "that part of all sizes and of the rate (\(decimals(plainGrowth.scale, 0)))"),
      serverCPU, threads, executable,
      ("json", "FILE", "write the results there"),
      ("html", "FILE", "write a report with plots there"),
    ])

  package static let capacity = CommandVerb(
    name: "capacity", operands: "",
    about: "Measures what each thing costs, and what a city needs of it (make capacity).",
    options: [
      (
        "drivers", "N,N,N",
        "three growing sizes, from \(CapacityMeasuring.fewestDrivers) "
          + "(\(plainCapacity.drivers.map(String.init).joined(separator: ",")))"
      ),
      ("fixes", "N", "fixes a second of all drivers together (\(decimals(plainCapacity.fixesPerSecond, 0)))"),
      ("seconds", "S", "seconds of each run that are measured (\(decimals(plainCapacity.seconds, 0)))"),
      serverCPU, threads, executable,
      ("data", "DIR", "under which directory a journal is made (\(plainCapacity.directory))"),
      ("json", "FILE", "write the measured terms there"),
      ("output", "FILE", "write the text there (to standard output)"),
      ("terms", "FILE", "write the text of these terms, and measure nothing"),
    ])

  package static let abuse = CommandVerb(
    name: "abuse", operands: "",
    about: "Whether others notice hostile connections, and what one rider's token sends within its rate (make abuse).",
    options: [
      ("duration", "S", "seconds alone, before and after; the attackers begin within as many (15)"),
      ("attackers", "N", "hostile connections, one after the other (5000)"),
      ("only", "outside|inside", "the hostile connections alone, or the one token"),
      ("attack", "NAME", "of the one token's messages, only those of this kind: star, echo, ..."),
      serverCPU, executable,
    ], takesServeOptions: true)

  package static let abuseSearch = CommandVerb(
    name: "abuse-search", operands: "",
    about: "Looks for messages that cost the hub more than they are charged for (make abuse-search).",
    options: [
      ("seconds", "S", "how long it looks (600)"),
      ("seed", "N", "what its changes are drawn from (1)"),
      ("output", "FILE", "write the dearest message there; a binary one in hexadecimal"), executable,
    ])

  package static let all = [compare, report, bench, figures, growth, capacity, abuse, abuseSearch]

  private static let executable: Option = ("executable", "PATH", "the hub to start (locationhub beside this program)")
  private static let serverCPU: Option = ("server-cpu", "LIST", "the cores of the hub, as for taskset")
  private static let threads: Option = (
    "threads", "N", "threads that make the load (1 to 1000; as many as cores are left)"
  )
  private static var plainSpeed: SpeedRun { SpeedRun(options: RunOptions(executable: "")) }
  private static var plainGrowth: GrowthRun { GrowthRun(options: RunOptions(executable: "")) }
  private static var plainCapacity: CapacityMeasuring { CapacityMeasuring(options: RunOptions(executable: "")) }
}

/// The words behind a verb.
package struct VerbOptions {
  private var values: [String: String] = [:]
  package private(set) var operands: [String] = []
  /// What stood behind `--`.
  package private(set) var serveOptions: [String] = []

  package init(_ words: [String], _ verb: CommandVerb) throws(LoadTestError) {
    var words = words[...]
    while let word = words.popFirst() {
      if word == "--", verb.takesServeOptions {
        serveOptions = Array(words)
        return
      }
      guard word.hasPrefix("-") else {
        guard !verb.operands.isEmpty else {
          throw .usage("\(word): what is that? options of \(verb.name) begin with --")
        }
        operands.append(word)
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard verb.options.contains(where: { "--\($0.name)" == parts[0] }) else {
        throw .usage(
          "\(verb.name): there is no option \(parts[0])"
            + (verb.takesServeOptions ? CommandVerb.serveHint(word, words) : ""))
      }
      guard let value = parts.count == 2 ? parts[1] : words.popFirst() else { throw .usage("\(word) needs a value") }
      values[parts[0]] = value
    }
  }

  package subscript(_ name: String) -> String? { values[name] }

  package func number(_ name: String, or other: Double) throws(LoadTestError) -> Double {
    guard let text = values[name] else { return other }
    guard let value = Double(text), value > 0, value < 1e6 else { throw .usage("\(name) must be a positive number") }
    return value
  }

  package func whole(_ name: String, or other: Int, in range: ClosedRange<Int> = 1...1000) throws(LoadTestError) -> Int
  {
    guard let text = values[name] else { return other }
    return try LoadArguments.whole(String(name.dropFirst(2)), text, range)
  }

  /// `name` measures nothing, so whatever says what to measure would be passed over. On which cores is no harm:
  /// loadtest/pinned.sh says so always.
  package func nothingIsMeasured(with name: String, but others: Set<String>) throws(LoadTestError) {
    guard values[name] != nil else { return }
    for other in values.keys.sorted() where other != name && !others.contains(other) {
      throw .usage("\(name) measures nothing, so \(other) has no meaning with it")
    }
  }

  /// How the hub is run.
  package func run() throws(LoadTestError) -> RunOptions {
    var run = RunOptions(executable: values["--executable"] ?? Machine.hubBesides())
    run.serverCPU = values["--server-cpu"]
    if values["--threads"] != nil { run.threads = try whole("--threads", or: 1) }
    return run
  }
}

extension CommandVerb {
  /// Said of an option that is not this program's: it may be the hub's.
  static func serveHint(_ word: String, _ rest: ArraySlice<String>) -> String {
    let value = rest.first.flatMap { $0.hasPrefix("-") ? nil : " " + $0 } ?? ""
    return "; options of the hub stand at the end, behind --: -- \(word)\(value)"
  }
}
