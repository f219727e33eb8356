// hub-torture: what survives?
//
//   hub-torture histories [--count N | --seconds S] [--seed N]     seeded histories of a simulated world
//   hub-torture kills [--kills N] [--seed N] [--executable PATH]   a real hub under load, killed again and again
//
// The world is DurabilityModel's.
//
// Exit code 1 where a promise was broken.
import Glibc
import HubCommandLine
import HubSystem

let usage = """
  usage: hub-torture histories [--count N | --seconds S] [--seed N]
         hub-torture kills [--kills N] [--seed N] [--executable PATH]

  """

func fail(_ text: String, _ code: Int32) -> Never {
  StandardStream.error.write("hub-torture: \(text)\n" + (code == 2 ? usage : ""))
  exit(code)
}

/// A new one each time, unless it is given. It is printed, and makes the same run again.
func seed(_ options: Arguments) throws(CommandError) -> UInt64 {
  try options.value("seed", .whole(0...UInt64.max)) ?? UInt64(ClockReading.read().unixMilliseconds)
}

func histories(_ words: [String]) throws -> Bool {
  let options = try Arguments(
    words, verb: "histories", options: [Option("count", "N", ""), Option("seconds", "S", ""), Option("seed", "N", "")])
  if options.isGiven("count"), options.isGiven("seconds") {
    throw CommandError.usage("--count and --seconds do not go together")
  }
  let run = HistoryRun(
    firstSeed: try seed(options), count: try options.value("count", .whole(1...UInt64.max)),
    seconds: try options.value("seconds", .number(0.1...1e6)) ?? 60)
  return try run.run()
}

func kills(_ words: [String]) throws -> Bool {
  let options = try Arguments(
    words, verb: "kills",
    options: [Option("kills", "N", ""), Option("seed", "N", ""), Option("executable", "PATH", "")])
  let count = try options.value("kills", .whole(1...1_000_000)) ?? 200
  let folder = CommandLine.arguments[0].split(separator: "/", omittingEmptySubsequences: false).dropLast()
  let executable = options.string("executable") ?? (folder + ["locationhub"]).joined(separator: "/")
  return try KillRun(executable: executable, seed: try seed(options)).run(kills: count)
}

do {
  let words = Array(CommandLine.arguments.dropFirst(2))
  switch CommandLine.arguments.dropFirst().first {
  case "histories": exit(try histories(words) ? 0 : 1)
  case "kills": exit(try kills(words) ? 0 : 1)
  case let verb?: fail("there is no \(verb)", 2)
  case nil: fail("histories or kills?", 2)
  }
} catch CommandError.usage(let text) {
  fail(text, 2)
} catch {
  fail("\(error)", 1)
}
