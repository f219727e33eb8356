// The command line of a scenario: hub-loadtest SCENARIO [options] [-- options of `locationhub serve`].
import Glibc
import HubCommandLine
import HubTransport

package struct LoadArguments: Sendable {
  package var scenario: Scenario
  package var run: RunOptions
  /// A second hub that is run in turn with the first, to compare both.
  package var against: String?
  package var rounds = 1
  package var json: String?
  package var html: String?
  package var seeksMaximum = false
  /// µs
  package var bound = 50_000.0
  /// A hub that runs already, and whose certificates to trust where it speaks TLS.
  private var url: String?
  private var authority: String?

  private init(_ scenario: Scenario, _ run: RunOptions) {
    self.scenario = scenario
    self.run = run
  }

  /// What there is beside the settings of a scenario.
  private static let settings: [Setting<LoadArguments>] = [
    Setting(
      "url", "URL", "load a hub that runs already: http://127.0.0.1:8080, or https://",
      mustBe: "http://ADDRESS:PORT or https://ADDRESS:PORT, where the address is numeric or localhost",
      write: { $0.url ?? "without: start one" },
      read: { arguments, text in
        guard let address = HubProcess.address(in: text), isPlain(text) || isTLS(text) else { return false }
        (arguments.url, arguments.run.address) = (text, address)
        return true
      }),
    Setting(
      "ca", \.authority, .text, "FILE", "of that hub: whose certificates to trust, as PEM",
      otherwise: "whom the system trusts"),
    Setting(
      "pid", \.run.pid, .whole(1...Int32.max), "PID", "its process, where it is on this machine: for its CPU and memory"
    ),
    Setting(
      "executable", \.run.executable, .text, "PATH", "the hub to start", otherwise: "locationhub beside this program"),
    Setting("against", \.against, .text, "PATH", "a second one, run in turn with the first, and compared"),
    Setting("rounds", \.rounds, .whole(1...1000), "N", "runs of each"),
    Setting("server-cpu", \.run.serverCPU, .text, "LIST", "the cores of the hub that is started, as for taskset"),
    Setting(
      "threads", \.run.threads, .whole(1...64), "N", "threads that make the load",
      otherwise: "as many as cores are left"),
    Setting("max", \.seeksMaximum, "find the highest rate at which p99 stays under the bound"),
    Setting("bound", \.bound, .microseconds, "TIME", "that bound: 50ms, 200us, 1s"),
    Setting(
      "lateness-bound", \.run.latenessBoundMicroseconds, .microseconds, "TIME",
      "the load's own lateness p99 over which a run is not valid"),
    Setting(
      "sample", \.run.samplesModes,
      "tell user space from the kernel by samples instead of ticks (root: perf_event_open)"
    ),
    Setting("json", \.json, .text, "FILE", "write the results there"),
    Setting("html", \.html, .text, "FILE", "write a report with plots there"),
  ]

  static let options = settings.map { $0.option(LoadArguments(Scenario(), RunOptions(executable: ""))) }

  /// The hubs that are started in turn. Where there are two, results use their names: their paths may be
  /// the same, which shows what differs by chance.
  package var hubs: [(name: String, executable: String)] {
    guard let against else { return [(run.executable, run.executable)] }
    return [("A \(run.executable)", run.executable), ("B \(against)", against)]
  }

  /// `folders`: where scenarios are looked for by name.
  package init(_ words: [String], executable: String, folders: [String]) throws(LoadTestError) {
    guard let name = words.first else { throw .usage("name a scenario; --help lists them") }
    if name.hasPrefix("-") {
      throw .usage("there is no option \(name) here: a scenario or a verb comes first; --help lists them")
    }
    self.init(try LoadArguments.scenario(named: name, in: folders), RunOptions(executable: executable))
    let options = LoadArguments.options + Scenario.settings.map { $0.option(scenario) }
    let given = try Arguments(
      Array(words.dropFirst()), verb: name, options: options, handsOn: true, hint: CommandVerb.serveHint)
    try given.apply(LoadArguments.settings, to: &self)
    try given.apply(Scenario.settings, to: &scenario)
    run.serveOptions = given.rest
    if let contradiction = scenario.contradiction { throw .usage("\(scenario.name): \(contradiction)") }
    try checkTarget(given)
    if seeksMaximum, scenario.drivers == 0 || scenario.bookings || scenario.batch > 0 {
      throw .usage("--max needs a scenario of drivers and riders whose rate can be raised")
    }
    if seeksMaximum, scenario.ridersPerTrip == 0 {
      throw .usage("--max holds the latency of positions against its bound: it needs riders-per-trip")
    }
    if given.isGiven("bound"), !seeksMaximum {
      throw .usage("--bound is what --max keeps: it has no meaning without")
    }
    if given.isGiven("rounds"), seeksMaximum { throw .usage("--max tries each rate once: it has no --rounds") }
  }

  private static func isPlain(_ url: String) -> Bool { url.hasPrefix("http://") || url.hasPrefix("ws://") }
  private static func isTLS(_ url: String) -> Bool { url.hasPrefix("https://") || url.hasPrefix("wss://") }

  /// What goes only with a hub that is started here, and what only with one that runs already, is refused with the
  /// other: it would be without effect.
  private mutating func checkTarget(_ given: Arguments) throws(LoadTestError) {
    guard let url else {
      for option in ["pid", "ca"] where given.isGiven(option) {
        throw .usage("--\(option) is of a hub that runs already: it needs --url")
      }
      return
    }
    for option in ["against", "executable", "server-cpu"] where given.isGiven(option) {
      throw .usage("--\(option) is for hubs that are started here: not with --url")
    }
    guard run.serveOptions.isEmpty else {
      let words = run.serveOptions.joined(separator: " ")
      throw .usage("-- \(words): these are for hubs that are started here: not with --url")
    }
    if let pid = run.pid, !ProcessReadings(pid: pid).isThere { throw .usage("--pid \(pid): there is no such process") }
    if LoadArguments.isTLS(url) {
      let server = url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" }
      let host = server[..<(server.lastIndex(of: ":") ?? server.endIndex)]
      let name = host.drop { $0 == "[" }.prefix { $0 != "]" }
      run.tls = try ServerTrust(name: String(name), authority: authority)
      scenario.tls = true
    } else if let file = authority {
      throw .usage("--ca \(file) needs an https:// URL, not \(url)")
    } else if scenario.tls {
      throw .usage("tls is on: it needs an https:// URL, not \(url)")
    }
  }

  /// A scenario by its name, or by the path of its file.
  package static func scenario(named name: String, in folders: [String]) throws(LoadTestError) -> Scenario {
    let isPath = name.contains("/") || name.hasSuffix(".scenario")
    let paths = isPath ? [name] : folders.map { "\($0)/\(name).scenario" }
    guard let path = paths.first(where: { access($0, R_OK) == 0 }) else {
      throw .usage("there is no scenario \(name); there are \(names(in: folders).joined(separator: ", "))")
    }
    let file = String(path.split(separator: "/").last ?? "")
    return try Scenario(name: String(file.prefix { $0 != "." }), parsing: try readText(path), file: path)
  }

  /// The scenarios that have files there.
  package static func names(in folders: [String]) -> [String] {
    var names: Set<String> = []
    for folder in folders {
      guard let stream = opendir(folder) else { continue }
      defer { _ = closedir(stream) }
      while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name.hasSuffix(".scenario") { names.insert(String(name.dropLast(".scenario".count))) }
      }
    }
    return names.sorted()
  }

  package static func help(folders: [String]) -> String {
    var lines = [
      "usage: hub-loadtest SCENARIO [options] [-- options of `locationhub serve`]",
      "       hub-loadtest VERB [options]",
      "       hub-loadtest help SCENARIO | VERB           its options and what they are by default",
      "", "verbs:",
    ]
    lines += CommandVerb.all.map { "  " + padded($0.name, to: 20) + $0.about }
    lines += [
      "", "scenarios:",
    ]
    for name in names(in: folders) {
      do throws(LoadTestError) {
        lines.append("  " + padded(name, to: 20) + (try scenario(named: name, in: folders)).about)
      } catch { lines.append("  " + padded(name, to: 20) + "\(error)") }
    }
    lines += ["", "options:"]
    lines += options.map(\.line)
    lines += ["", "settings of a scenario, as in its file:"]
    lines += Scenario.settings.map { Option($0.name, $0.placeholder, "\($0.help) (\($0.range))").line }
    lines += ["", Help.exitCodes]
    return lines.joined(separator: "\n")
  }
}

extension ValueKind<Double> {
  /// A time in microseconds: `50ms`, `200us`, `1.5s`.
  static var microseconds: ValueKind {
    let units = [("us", 1.0), ("µs", 1.0), ("ms", 1000.0), ("s", 1e6)]
    return ValueKind(
      "a time with its unit, for instance 50ms",
      read: { text in
        for (unit, factor) in units where text.hasSuffix(unit) {
          guard let number = Double(text.dropLast(unit.count)), number > 0, number < 1e6 else { continue }
          return number * factor
        }
        return nil
      }, write: { "\(decimals($0 / 1000, 0))ms" })
  }

}
