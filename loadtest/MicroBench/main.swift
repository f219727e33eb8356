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

let words = CommandLine.arguments.dropFirst()
let rounds = 9
let callsPerRound = 20_000

if words.first == "memory" {
  MemoryBench.run(drivers: words.dropFirst().first.flatMap { Int($0) } ?? 1_000_000)
} else if words.first == "areas" {
  AreaBench.run(drivers: words.dropFirst().first.flatMap { Int($0) } ?? 100_000)
} else if words.first == "renaming" {
  AreaBench.runRenaming(drivers: words.dropFirst().first.flatMap { Int($0) } ?? 1_000_000)
} else if words.first == "queries" {
  QueryBench.run(drivers: words.dropFirst().first.flatMap { Int($0) } ?? 100_000)
} else if words.first == "hostile" {
  HostileBench.run()
} else if words.first == "fences" {
  FenceBench.printCovering()
  FenceBench.printMedians(fixes: words.dropFirst().first.flatMap { Int($0) } ?? 100_000)
} else if words.first == "growth" {
  let rest = Array(words.dropFirst())
  if rest.isEmpty {
    GrowthBench.printTable()
  } else if rest.count == 3, let piece = GrowthBench.Piece(rawValue: rest[0]), let size = Int(rest[1]),
    piece.sizes.contains(size), let calls = Int(rest[2])
  {
    GrowthBench.run(piece, size: size, calls: calls)
  } else {
    fatalUsage()
  }
} else if words.first == "bytes" {
  MicroBench().printBytes()
} else if words.first == "recovery" {
  try RecoveryBench(records: words.dropFirst().first.flatMap { Int($0) } ?? 1_000_000).run()
} else if words.first == "start" {
  try StartBench(drivers: words.dropFirst().first.flatMap { Int($0) } ?? 1_000_000).run()
} else if words.first == "track" {
  let numbers = words.dropFirst().compactMap { Int($0) }
  try TrackBench(fixes: numbers.first ?? 20_000, drivers: numbers.dropFirst().first ?? 50).run()
} else if words.first == "disk", let directory = words.dropFirst().first {
  try DiskBench(directory: directory, bytes: words.dropFirst(2).first.flatMap { Int($0) } ?? 100_000).run()
} else if let name = words.first {
  guard let piece = Piece(rawValue: name), let calls = words.dropFirst().first.flatMap({ Int($0) }) else {
    fatalUsage()
  }
  var bench = MicroBench()
  bench.run(piece, calls: calls)
} else {
  for piece in Piece.allCases {
    var bench = MicroBench()
    bench.run(piece, calls: callsPerRound)  // warm
    var best = Double.infinity
    for _ in 0..<rounds {
      let elapsed = ContinuousClock().measure { bench.run(piece, calls: callsPerRound) }
      best = min(best, Double(elapsed.components.attoseconds) / 1e9 / Double(callsPerRound))
    }
    print("\(piece.rawValue) \(Int((best * 10).rounded()) / 10).\(Int((best * 10).rounded()) % 10)")
  }
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
