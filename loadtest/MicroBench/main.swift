// hub-microbench: what the pieces of one message's way cost by themselves, in nanoseconds and instructions.
//
//   swift run -c release hub-microbench            all pieces, nanoseconds a call
//   hub-microbench PIECE CALLS                     that piece so often and nothing else, for callgrind
//   hub-microbench memory [DRIVERS]                what a hub with so many drivers holds (a million)
//   hub-microbench areas [DRIVERS]                 the longest turns of live areas with so many in one cell (100,000)
//   hub-microbench renaming [DRIVERS]              the same at the full hour, which gives all new names (a million)
//   hub-microbench queries [DRIVERS]               the longest turns of the worst queries among so many (100,000)
//   hub-microbench hostile                         a byte of the dearest messages beside one of ordinary ones
//   hub-microbench fences [FIXES]                  the dearest covering; what 10,000 fences cost a fix at the median
//   hub-microbench growth                          what a fix and a publication cost as drivers and channels grow
//   hub-microbench growth PIECE SIZE CALLS         one of these so often and nothing else, for loadtest/growth.sh
//   hub-microbench bytes                           how many bytes messages have in JSON, compressed, and in binary
//   hub-microbench recovery [RECORDS]              a start from a journal of so many trip records
//   hub-microbench start [DRIVERS]                 a start from a journal of so many drivers
//   hub-microbench track [FIXES [DRIVERS]]         one driver's track read from a journal with those of others
//   hub-microbench disk DIR [BYTES]                the disk's own time for a write and its fdatasync
//
// loadtest/microbench.sh runs it both ways. Nanoseconds here differ by a third from run to run on a shared machine;
// instructions don't, so it is those that a change is judged by.

import Glibc

let words = Array(CommandLine.arguments.dropFirst())
let rounds = 9
let callsPerRound = 20_000

do {
  switch words.first {
  case "memory": MemoryBench.run(drivers: numbers(1_000_000)[0])
  case "areas": AreaBench.run(drivers: numbers(100_000)[0])
  case "renaming": AreaBench.runRenaming(drivers: numbers(1_000_000)[0])
  case "queries": QueryBench.run(drivers: numbers(100_000)[0])
  case "hostile":
    numbers()
    HostileBench.run()
  case "fences":
    let fixes = numbers(100_000)[0]
    FenceBench.printCovering()
    FenceBench.printMedians(fixes: fixes)
  case "growth" where words.count == 1: GrowthBench.printTable()
  case "growth":
    guard words.count == 4, let piece = GrowthBench.Piece(rawValue: words[1]), let size = Int(words[2]),
      piece.sizes.contains(size), let calls = count(words[3])
    else { fatalUsage() }
    GrowthBench.run(piece, size: size, calls: calls)
  case "bytes":
    numbers()
    MicroBench().printBytes()
  case "recovery": try RecoveryBench(records: numbers(1_000_000)[0]).run()
  case "start": try StartBench(drivers: numbers(1_000_000)[0]).run()
  case "track":
    let given = numbers(20_000, 50)
    try TrackBench(fixes: given[0], drivers: given[1]).run()
  case "disk":
    guard words.count > 1 else { fatalUsage() }
    try DiskBench(directory: words[1], bytes: numbers(100_000, behind: 2)[0]).run()
  case let name?:
    guard words.count == 2, let piece = Piece(rawValue: name), let calls = count(words[1]) else { fatalUsage() }
    var bench = MicroBench()
    bench.run(piece, calls: calls)
  case nil: timePieces()
  }
} catch {
  print("hub-microbench: \(error)")
  exit(1)
}

func timePieces() {
  for piece in Piece.allCases {
    var bench = MicroBench()
    bench.run(piece, calls: callsPerRound)  // warm
    var best = Double.infinity
    for _ in 0..<rounds {
      let elapsed = ContinuousClock().measure { bench.run(piece, calls: callsPerRound) }
      let (seconds, attoseconds) = elapsed.components
      best = min(best, (Double(seconds) * 1e9 + Double(attoseconds) / 1e9) / Double(callsPerRound))
    }
    print("\(piece.rawValue) \(Int((best * 10).rounded()) / 10).\(Int((best * 10).rounded()) % 10)")
  }
}

/// The numbers behind so many words, each as it is by default where it is not given.
@discardableResult
func numbers(_ defaults: Int..., behind place: Int = 1) -> [Int] {
  let given = words.dropFirst(place).map { text in
    guard let number = count(text) else { fatalUsage() }
    return number
  }
  guard given.count <= defaults.count else { fatalUsage() }
  return given + defaults.dropFirst(given.count)
}

/// How many of something there are to be; nil where it is no such number.
func count(_ text: String) -> Int? {
  Int(text).flatMap { (1...1_000_000_000).contains($0) ? $0 : nil }
}

func fatalUsage() -> Never {
  print(
    "hub-microbench memory [DRIVERS] | areas [DRIVERS] | recovery [RECORDS] | start [DRIVERS] | track [FIXES [DRIVERS]]"
  )
  print("hub-microbench renaming [DRIVERS] | queries [DRIVERS] | fences [FIXES] | growth [fix|move|publish SIZE CALLS]")
  print("hub-microbench disk DIR [BYTES] | bytes | hostile")
  print("hub-microbench PIECE CALLS, where PIECE is one of:")
  for piece in Piece.allCases { print("  \(piece.rawValue)") }
  exit(2)
}
