// The verbs, in the order of the overview.
import HubCommandLine
import HubPages
import HubSystem
import HubTransport

enum Verbs {
  /// The release in progress; CHANGELOG.md lists its content.
  static var version: String {
    "\(Release.name) (commit \(Build.commit), Swift \(Build.compiler), \(TLSLibrary.version))"
  }

  static let all = [
    serve, demo, replay, watch, filter, simulate, makeToken, device, journal, cluster, webhooks, health,
  ]

  static var overview: String {
    var text = "usage: locationhub VERB [options]\n\nverbs:\n"
    for verb in all {
      let summary = verb.summary.prefix { $0 != "\n" }
      text += "  " + verb.name + String(repeating: " ", count: max(2, 12 - verb.name.count)) + summary + "\n"
    }
    return text + "\nlocationhub VERB --help shows its options, locationhub --version the release.\n"
  }

  /// Runs the verb of a command line.
  static func run(_ words: [String]) throws(CommandError) -> ExitCode {
    guard let name = words.first else { throw .usage("no verb given\n\n" + overview) }
    if ["--version", "version"].contains(name) {
      StandardStream.output.write("locationhub \(version)\n")
      return .ok
    }
    if ["--help", "-h", "help"].contains(name) {
      StandardStream.output.write(overview)
      return .ok
    }
    guard let verb = all.first(where: { $0.name == name }) else {
      throw .usage("there is no verb \(name)\n\n" + overview)
    }
    if words.dropFirst().contains(where: { $0 == "--help" || $0 == "-h" }) {
      StandardStream.output.write(verb.help(program: "locationhub"))
      return .ok
    }
    return try verb.run(Array(words.dropFirst()))
  }
}
