// What hub-loadtest can do beside running a scenario: each verb with its options, which are what it reads and what its
// help lists.
package import HubCommandLine

package struct CommandVerb: Sendable {
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
    options: [Option("html", "FILE", "write it there; must be given")])

  package static let bench = CommandVerb(
    name: "bench", operands: "",
    about: "Instructions, allocations and memory of a message, held against bounds (make bench).",
    options: [
      Option("thresholds", "FILE", "the bounds (loadtest/thresholds.json)"), executable,
    ])

  package static let figures = CommandVerb(
    name: "figures", operands: "", about: "What a message costs, in time, compared with thresholds (make figures).",
    options: [
      Option("rounds", "N", "rounds of all loads (1 to 1000; \(plainSpeed.rounds))"),
      Option(
        "seconds", "S", "seconds of each run that are measured (0.1 to 86400; \(decimals(plainSpeed.seconds, 0)))"),
      Option(
        "scale", "PART", "that part of all sessions, for trying it out (0.001 to 1; \(decimals(plainSpeed.scale, 0)))"),
      Option("only", "NAME,NAME", "these loads; their names are below"),
      serverCPU, threads, executable,
      Option("data", "DIR", "under which directory a journal is made (\(plainSpeed.directory))"),
      Option("json", "FILE", "write the results there"),
      Option("output", "FILE", "write the table there"),
      Option("from", "FILE", "write the table of these results of figures, and measure nothing"),
    ])

  package static let growth = CommandVerb(
    name: "growth", operands: "",
    about: "What a message costs with more and more connections, drivers and channels (make growth).",
    options: [
      Option("rounds", "N", "rounds of all sizes (1 to 1000; \(plainGrowth.rounds))"),
      Option(
        "seconds", "S", "seconds of each run that are measured (0.1 to 86400; \(decimals(plainGrowth.seconds, 0)))"),
      Option(
        "scale", "PART", "that part of all sizes and of the rate (0.001 to 1; \(decimals(plainGrowth.scale, 0)))"),
      serverCPU, threads, executable,
      Option("json", "FILE", "write the results there"),
      Option("html", "FILE", "write a report with plots there"),
    ])

  package static let capacity = CommandVerb(
    name: "capacity", operands: "",
    about: "Measures what each thing costs, and what a city needs of it (make capacity).",
    options: [
      Option(
        "drivers", "N,N,N",
        "three growing sizes, from \(CapacityMeasuring.fewestDrivers) "
          + "(\(plainCapacity.drivers.map(String.init).joined(separator: ",")))"),
      Option(
        "fixes", "N",
        "fixes a second of all drivers together (100 to 1000000; \(decimals(plainCapacity.fixesPerSecond, 0)))"),
      Option(
        "seconds", "S", "seconds of each run that are measured (0.1 to 86400; \(decimals(plainCapacity.seconds, 0)))"),
      serverCPU, threads, executable,
      Option("data", "DIR", "under which directory a journal is made (\(plainCapacity.directory))"),
      Option("json", "FILE", "write the measured terms there"),
      Option("output", "FILE", "write the text there (to standard output)"),
      Option("terms", "FILE", "write the text of these terms, and measure nothing"),
      Option("crossing", "FILE", "what several hubs cost more, as loadtest/crossing.py --json has written it"),
    ])

  package static let abuse = CommandVerb(
    name: "abuse", operands: "",
    about: "Whether others notice hostile connections, and what one rider's token sends within its rate (make abuse).",
    options: [
      Option("duration", "S", "seconds alone, before and after; the attackers begin within as many (15)"),
      Option("attackers", "N", "hostile connections, one after the other (5000)"),
      Option("only", "outside|inside", "the hostile connections alone, or the one token"),
      Option("attack", "NAME", "of the one token's messages, only those of this kind: star, echo, ..."),
      serverCPU, executable,
    ], takesServeOptions: true)

  package static let abuseSearch = CommandVerb(
    name: "abuse-search", operands: "",
    about: "Looks for messages that cost the hub more than they are charged for (make abuse-search).",
    options: [
      Option("seconds", "S", "how long it looks (600)"),
      Option("seed", "N", "what its changes are drawn from (1)"),
      Option("output", "FILE", "write the dearest message there; a binary one in hexadecimal"), executable,
    ])

  package static let feed = CommandVerb(
    name: "feed", operands: "",
    about: "How long the client library takes from a frame that it has read to the loop that reads the feed.",
    options: [
      Option("positions", "N", "measured, one after the other (100 to 1000000; 2000)"),
      Option("map", "N", "of a map with so many drivers instead, one map a second (1 to 100; then 100 positions)"),
      Option("codec", "CODEC", "binary or json (binary)"), executable,
    ])

  package static let drivers = CommandVerb(
    name: "drivers", operands: "",
    about: "What a driver of the client library costs its phone: CPU time and memory, at a fix a second.",
    options: [
      Option("drivers", "N", "in one process (2 to 1000; 20)"),
      Option("seconds", "S", "how long they are measured (5 to 3600; 20)"), executable,
    ])

  package static let comeBack = CommandVerb(
    name: "return", operands: "",
    about: "How evenly clients of the library come back to a hub that was killed, and to one that drained.",
    options: [Option("clients", "N", "each with a thread of its own (100 to 100000; 4000)"), executable])

  package static let all = [
    compare, report, bench, figures, growth, capacity, abuse, abuseSearch, feed, drivers, comeBack,
  ]

  private static let executable = Option("executable", "PATH", "the hub to start (locationhub beside this program)")
  private static let serverCPU = Option("server-cpu", "LIST", "the cores of the hub, as for taskset")
  private static let threads = Option(
    "threads", "N", "threads that make the load (1 to 1000; as many as cores are left)"
  )
  private static var plainSpeed: SpeedRun { SpeedRun(options: RunOptions(executable: "")) }
  private static var plainGrowth: GrowthRun { GrowthRun(options: RunOptions(executable: "")) }
  private static var plainCapacity: CapacityMeasuring { CapacityMeasuring(options: RunOptions(executable: "")) }
}

extension Arguments {
  /// The words behind a verb.
  package init(_ words: [String], _ verb: CommandVerb) throws(LoadTestError) {
    try self.init(
      words, verb: verb.name, options: verb.options, operands: verb.operands, handsOn: verb.takesServeOptions,
      hint: { verb.takesServeOptions ? CommandVerb.serveHint($0, $1) : "" })
  }

  package func number(
    _ name: String, or other: Double, in range: ClosedRange<Double> = 0.1...86_400
  ) throws(LoadTestError) -> Double {
    try value(name, .number(range)) ?? other
  }

  package func whole(_ name: String, or other: Int, in range: ClosedRange<Int> = 1...1000) throws(LoadTestError) -> Int
  {
    try value(name, .whole(range)) ?? other
  }

  /// `name` measures nothing, so whatever says what to measure would be passed over. On which cores is no harm:
  /// loadtest/pinned.sh says so always.
  package func nothingIsMeasured(with name: String, but others: Set<String>) throws(LoadTestError) {
    guard isGiven(name) else { return }
    for other in names where other != name && !others.contains(other) {
      throw .usage("--\(name) measures nothing, so --\(other) has no meaning with it")
    }
  }

  /// How the hub is run.
  package func run() throws(LoadTestError) -> RunOptions {
    var run = RunOptions(executable: string("executable") ?? Machine.hubBesides())
    run.serverCPU = string("server-cpu")
    run.threads = try value("threads", .whole(1...1000))
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
