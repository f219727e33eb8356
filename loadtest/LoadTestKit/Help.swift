// What hub-loadtest says of itself: of all, of a verb, of a scenario with its own values.
import HubCommandLine

package enum Help {
  /// The text that the words ask for; nil where they ask for something else than help.
  package static func asked(by words: [String], folders: [String]) throws(LoadTestError) -> String? {
    guard let first = words.first else { return nil }
    if isHelp(first) || first == "help" {
      return words.count > 1 ? try text(of: words[1], folders: folders) : LoadArguments.help(folders: folders)
    }
    // Behind -- it is the hub's.
    guard words.prefix(while: { $0 != "--" }).contains(where: isHelp) else { return nil }
    return try text(of: first, folders: folders)
  }

  private static func isHelp(_ word: String) -> Bool { word == "--help" || word == "-h" }

  private static func text(of name: String, folders: [String]) throws(LoadTestError) -> String {
    if isHelp(name) || name == "help" { return LoadArguments.help(folders: folders) }
    if let verb = CommandVerb.all.first(where: { $0.name == name }) { return text(of: verb) }
    return text(of: try LoadArguments.scenario(named: name, in: folders), named: name)
  }

  private static func text(of verb: CommandVerb) -> String {
    var usage = ["usage: hub-loadtest", verb.name]
    if !verb.options.isEmpty { usage.append("[options]") }
    if !verb.operands.isEmpty { usage.append(verb.operands) }
    if verb.takesServeOptions { usage.append("[-- options of `locationhub serve`]") }
    var lines = [usage.joined(separator: " "), "", verb.about]
    if !verb.options.isEmpty { lines += ["", "options:"] + verb.options.map(\.line) }
    if verb.name == CommandVerb.figures.name { lines += ["", "loads:"] + SpeedRun.names.map { "  " + $0 } }
    return (lines + ["", exitCodes(of: verb)]).joined(separator: "\n")
  }

  private static func text(of scenario: Scenario, named name: String) -> String {
    var lines = [
      "usage: hub-loadtest \(name) [options] [-- options of `locationhub serve`]", "", scenario.about, "", "options:",
    ]
    lines += LoadArguments.options.map(\.line) + ["", "settings: what they may be; what they are in \(name)"]
    lines += Scenario.settings.map {
      Option($0.name, $0.placeholder, "\($0.help) (\($0.range); \($0.write(scenario) ?? "none"))").line
    }
    if !scenario.serve.isEmpty { lines += ["", "options of its hub: \(scenario.serve.joined(separator: " "))"] }
    return (lines + ["", exitCodes]).joined(separator: "\n")
  }

  static let exitCodes =
    "exit codes: 0 good; 1 the hub did what it must not, or the run is not valid; 2 asked for wrongly;\n" + bySignal
  private static let bySignal =
    "128 + N ended by signal N: the hub that was started is stopped, and what was measured is written"

  private static func exitCodes(of verb: CommandVerb) -> String {
    switch verb.name {
    case CommandVerb.compare.name:
      "exit codes: 0 nothing got worse; 1 something did; 2 asked for wrongly, or there was nothing to compare"
    case CommandVerb.bench.name, CommandVerb.growth.name:
      "exit codes: 0 good; 1 a threshold is missed, or a run does not count; 2 asked for wrongly;\n" + bySignal
    case CommandVerb.figures.name:
      "exit codes: 0 good; 1 a threshold is missed, the hub did what it must not, or no run counts; 2 asked for wrongly;\n"
        + bySignal
    case _: exitCodes
    }
  }
}
