// The command line of a scenario: hub-loadtest SCENARIO [options] [-- options of `locationhub serve`].
import Glibc
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
  /// Options of this list that were given, with what they were given.
  private var given: [String: String] = [:]

  /// Options beside the settings of a scenario.
  static let options: [(name: String, placeholder: String?, help: String)] = [
    ("url", "URL", "load a hub that runs already: http://127.0.0.1:8080, or https:// (without: start one)"),
    ("ca", "FILE", "of that hub: whose certificates to trust, as PEM (whom the system trusts)"),
    ("pid", "PID", "its process, where it is on this machine: for its CPU and memory"),
    ("executable", "PATH", "the hub to start (locationhub beside this program)"),
    ("against", "PATH", "a second one, run in turn with the first, and compared"),
    ("rounds", "N", "runs of each (1 to 1000; 1)"),
    ("server-cpu", "LIST", "the cores of the hub that is started, as for taskset"),
    ("threads", "N", "threads that make the load (1 to 64; as many as cores are left)"),
    ("max", nil, "find the highest rate at which p99 stays under the bound"),
    ("bound", "TIME", "that bound: 50ms, 200us, 1s (50ms)"),
    ("lateness-bound", "TIME", "the load's own lateness p99 over which a run is not valid (5ms)"),
    ("sample", nil, "tell user space from the kernel by samples instead of ticks (root: perf_event_open)"),
    ("json", "FILE", "write the results there"),
    ("html", "FILE", "write a report with plots there"),
  ]

  /// The hubs that are started in turn. Where there are two, results tell them apart by their names: their paths may be
  /// the same, which shows what differs by chance.
  package var hubs: [(name: String, executable: String)] {
    guard let against else { return [(run.executable, run.executable)] }
    return [("A \(run.executable)", run.executable), ("B \(against)", against)]
  }

  /// `folders`: where scenarios are looked for by name.
  package init(_ words: [String], executable: String, folders: [String]) throws(LoadTestError) {
    var words = words[...]
    var given: Set<String> = []
    guard let name = words.popFirst() else { throw .usage("name a scenario; --help lists them") }
    if name.hasPrefix("-") {
      throw .usage("there is no option \(name) here: a scenario or a verb comes first; --help lists them")
    }
    scenario = try LoadArguments.scenario(named: name, in: folders)
    run = RunOptions(executable: executable)
    while let word = words.popFirst() {
      if word == "--" {
        run.serveOptions = Array(words)
        break
      }
      guard word.hasPrefix("--") else { throw .usage("\(word): what is that? options begin with --") }
      let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let option = String(parts[0])
      guard LoadArguments.isKnown(option) else {
        throw .usage("there is no option --\(option)\(CommandVerb.serveHint(word, words))")
      }
      given.insert(option)
      if option == "max" {
        seeksMaximum = true
        continue
      }
      if option == "sample" {
        run.samplesModes = true
        continue
      }
      guard let value = parts.count == 2 ? String(parts[1]) : words.popFirst() else {
        throw .usage("--\(option) needs a value")
      }
      try set(option, value)
    }
    if let contradiction = scenario.contradiction { throw .usage("\(scenario.name): \(contradiction)") }
    try checkTarget()
    if seeksMaximum, scenario.drivers == 0 || scenario.bookings || scenario.batch > 0 {
      throw .usage("--max needs a scenario of drivers and riders whose rate can be raised")
    }
    if given.contains("bound"), !seeksMaximum { throw .usage("--bound is what --max keeps: it has no meaning without") }
    if given.contains("rounds"), seeksMaximum { throw .usage("--max tries each rate once: it has no --rounds") }
  }

  private static func isKnown(_ option: String) -> Bool {
    options.contains { $0.name == option } || ScenarioSetting.all.contains { $0.name == option }
  }

  private static func isPlain(_ url: String) -> Bool { url.hasPrefix("http://") || url.hasPrefix("ws://") }
  private static func isTLS(_ url: String) -> Bool { url.hasPrefix("https://") || url.hasPrefix("wss://") }

  /// What goes only with a hub that is started here, and what only with one that runs already, is refused with the
  /// other: it would be without effect.
  private mutating func checkTarget() throws(LoadTestError) {
    guard let url = given["url"] else {
      for option in ["pid", "ca"] where given[option] != nil {
        throw .usage("--\(option) is of a hub that runs already: it needs --url")
      }
      return
    }
    for option in ["against", "executable", "server-cpu"] where given[option] != nil {
      throw .usage("--\(option) is for hubs that are started here: not with --url")
    }
    guard run.serveOptions.isEmpty else {
      let words = run.serveOptions.joined(separator: " ")
      throw .usage("-- \(words): these are for hubs that are started here: not with --url")
    }
    if let pid = run.pid, !ProcessReadings(pid: pid).isThere { throw .usage("--pid \(pid): there is no such process") }
    if LoadArguments.isTLS(url) {
      let authority = url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" }
      let host = authority[..<(authority.lastIndex(of: ":") ?? authority.endIndex)]
      let name = host.drop { $0 == "[" }.prefix { $0 != "]" }
      run.tls = try ServerTrust(name: String(name), authority: given["ca"])
      scenario.tls = true
    } else if let file = given["ca"] {
      throw .usage("--ca \(file) needs an https:// URL, not \(url)")
    } else if scenario.tls {
      throw .usage("tls is on: it needs an https:// URL, not \(url)")
    }
  }

  private mutating func set(_ option: String, _ value: String) throws(LoadTestError) {
    given[option] = value
    switch option {
    case "url":
      guard let address = HubProcess.address(in: value), LoadArguments.isPlain(value) || LoadArguments.isTLS(value)
      else {
        throw .usage(
          "--url must be http://ADDRESS:PORT or https://ADDRESS:PORT, where the address is numeric or localhost, not "
            + value)
      }
      run.address = address
    case "ca": break  // with the URL, which may come later
    case "pid": run.pid = pid_t(try LoadArguments.whole(option, value, 1...Int(Int32.max)))
    case "executable": run.executable = value
    case "against": against = value
    case "rounds": rounds = try LoadArguments.whole(option, value, 1...1000)
    case "server-cpu": run.serverCPU = value
    case "threads": run.threads = try LoadArguments.whole(option, value, 1...64)
    case "bound": bound = try LoadArguments.microseconds(option, value)
    case "lateness-bound": run.latenessBoundMicroseconds = try LoadArguments.microseconds(option, value)
    case "json": json = value
    case "html": html = value
    case _:
      do throws(ScenarioError) {
        try scenario.set(option, value, place: "--\(option)")
      } catch { throw .usage("\(error)") }
    }
  }

  static func whole(_ option: String, _ value: String, _ range: ClosedRange<Int>) throws(LoadTestError) -> Int {
    guard let number = Int(value), range.contains(number) else {
      throw .usage("--\(option) must be a whole number from \(range.lowerBound) to \(range.upperBound), not \(value)")
    }
    return number
  }

  /// `50ms`, `200us`, `1.5s`.
  static func microseconds(_ option: String, _ value: String) throws(LoadTestError) -> Double {
    for (unit, factor) in [("us", 1.0), ("µs", 1.0), ("ms", 1000.0), ("s", 1e6)] where value.hasSuffix(unit) {
      guard let number = Double(value.dropLast(unit.count)), number > 0, number < 1e6 else { continue }
      return number * factor
    }
    throw .usage("--\(option) must be a time with its unit, for instance 50ms, not \(value)")
  }

  /// A scenario by its name, or by the path of its file.
  package static func scenario(named name: String, in folders: [String]) throws(LoadTestError) -> Scenario {
    let isPath = name.contains("/") || name.hasSuffix(".scenario")
    let paths = isPath ? [name] : folders.map { "\($0)/\(name).scenario" }
    guard let path = paths.first(where: { access($0, R_OK) == 0 }) else {
      throw .usage("there is no scenario \(name); there are \(names(in: folders).joined(separator: ", "))")
    }
    let file = String(path.split(separator: "/").last ?? "")
    do throws(ScenarioError) {
      return try Scenario(
        name: String(file.prefix { $0 != "." }), parsing: try text(path), file: path)
    } catch {
      throw .usage("\(error)")
    }
  }

  private static func text(_ path: String) throws(ScenarioError) -> String {
    do throws(LoadTestError) { return try readText(path) } catch { throw ScenarioError(path, error.description) }
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
    lines += options.map(Help.line)
    lines += ["", "settings of a scenario, as in its file:"]
    for setting in ScenarioSetting.all {
      lines.append(padded("  --\(setting.name) \(setting.placeholder)", to: 28) + "\(setting.help) (\(setting.range))")
    }
    lines += ["", Help.exitCodes]
    return lines.joined(separator: "\n")
  }
}
