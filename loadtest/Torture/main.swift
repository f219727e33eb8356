// hub-torture: what survives?
//
//   hub-torture histories [--count N | --seconds S] [--seed N]       seeded histories of a simulated world
//   (DurabilityModel) hub-torture kills [--kills N] [--seed N] [--executable PATH]     a real hub under load, killed
//   again and again
//
// Exit code 1 where a promise was broken.
import Glibc
import HubSystem

var words = Array(CommandLine.arguments.dropFirst())
let verb = words.isEmpty ? "" : words.removeFirst()
var options: [String: String] = [:]
while words.count >= 2, words[0].utf8.starts(with: "--".utf8) {
  options[words[0]] = words[1]
  words.removeFirst(2)
}
let folder = CommandLine.arguments[0].split(separator: "/", omittingEmptySubsequences: false).dropLast()
/// The seed: a new one each time, unless it is given. It is printed, and makes the same run again.
let seed = options["--seed"].flatMap { UInt64($0) } ?? UInt64(ClockReading.read().unixMilliseconds)

switch verb {
case "histories":
  let run = HistoryRun(
    firstSeed: seed, count: options["--count"].flatMap { UInt64($0) },
    seconds: options["--seconds"].flatMap { Double($0) } ?? 60)
  exit(try run.run() ? 0 : 1)
case "kills":
  let executable = options["--executable"] ?? (folder + ["locationhub"]).joined(separator: "/")
  let run = try KillRun(executable: executable, seed: seed)
  exit(try run.run(kills: options["--kills"].flatMap { Int($0) } ?? 200) ? 0 : 1)
default:
  print("usage: hub-torture histories [--count N | --seconds S] [--seed N]")
  print("       hub-torture kills [--kills N] [--seed N] [--executable PATH]")
  exit(2)
}
