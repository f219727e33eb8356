// hub-torture: what survives?
//
//   hub-torture histories [--count N | --seconds S] [--seed FIRST]   seeded histories in a simulated world (DurabilityModel)
//   hub-torture kills [--kills N] [--executable PATH] [--seed N]     kill -9 of a real hub under load, again and again
//
// Exit code 1 where a promise was broken.
import Glibc
import Transport

var words = Array(CommandLine.arguments.dropFirst())
let verb = words.isEmpty ? "" : words.removeFirst()
var options: [String: String] = [:]
while words.count >= 2 {
  options[words[0]] = words[1]
  words.removeFirst(2)
}
let path = CommandLine.arguments[0].split(separator: "/", omittingEmptySubsequences: false).dropLast()
let clock = UInt64(ClockReading.read().unixMilliseconds)
let seed = options["--seed"].flatMap { UInt64($0) } ?? clock

switch verb {
case "histories":
  let run = HistoryRun(
    firstSeed: seed, count: options["--count"].flatMap { UInt64($0) }, seconds: options["--seconds"].flatMap { Double($0) } ?? 60)
  exit(try run.run() ? 0 : 1)
default:
  print("hub-torture histories | kills")
  exit(2)
}
