// hub-loadtest: what does a hub carry, and what does a message cost it? `hub-loadtest --help` says how to ask.
import Glibc
import HubCommandLine
import HubLoadTestKit
import HubSystem

let words = Array(CommandLine.arguments.dropFirst())
let folders = Machine.scenarioFolders()

/// Verbs that start no hub: a signal ends them as it ends any program.
let reading: Set<String?> = [nil, "compare", "report"]

func fail(_ text: String, _ code: Int32 = 2) -> Never {
  StandardStream.error.write("hub-loadtest: \(text)\n")
  exit(code)
}

/// As a shell has it: 128 and the signal.
func endIfInterrupted() {
  guard let signal = Interruption.process.signal, let text = Interruption.process.text else { return }
  fail(text, 128 + signal)
}

func endIfOutputIsLost() { if let error = StandardStream.outputError { fail("\(error)", 1) } }

do throws(LoadTestError) {
  if let help = try Help.asked(by: words, folders: folders) {
    show(help)
    endIfOutputIsLost()
    exit(0)
  }
  if !reading.contains(words.first) { try Interruption.watch() }
  let isGood: Bool
  switch words.first {
  case nil:
    StandardStream.error.write(LoadArguments.help(folders: folders) + "\n")
    exit(2)
  case "compare": isGood = try ReportVerbs.compare(Array(words.dropFirst()))
  case "report": isGood = try ReportVerbs.report(Array(words.dropFirst()))
  case "bench": isGood = try MeasuringVerbs.bench(Array(words.dropFirst()))
  case "capacity": isGood = try MeasuringVerbs.capacity(Array(words.dropFirst()))
  case "figures": isGood = try SpeedVerbs.figures(Array(words.dropFirst()))
  case "growth": isGood = try SpeedVerbs.growth(Array(words.dropFirst()))
  case "abuse": isGood = try AbuseRun.run(Array(words.dropFirst()), executable: Machine.hubBesides())
  case "abuse-search":
    isGood = try AbuseSearchRun.run(Array(words.dropFirst()), executable: Machine.hubBesides())
  case "feed": isGood = try FeedRun.run(Array(words.dropFirst()), executable: Machine.hubBesides())
  case "drivers": isGood = try DriversRun.run(Array(words.dropFirst()), executable: Machine.hubBesides())
  case "return": isGood = try ReturnRun.run(Array(words.dropFirst()), executable: Machine.hubBesides())
  case _: isGood = try ScenarioVerb(words, folders).run()
  }
  endIfInterrupted()
  endIfOutputIsLost()
  exit(isGood ? 0 : 1)
} catch .usage(let text) {
  fail(text, 2)
} catch .failed(let text) {
  endIfInterrupted()
  fail(text, 1)
}
