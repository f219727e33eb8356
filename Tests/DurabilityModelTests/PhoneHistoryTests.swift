// A driver's phone through simulated days: the client's engine and its queue on one side, a whole hub with its journal
// on the other, and between them whatever happens to phones (PhoneDay.swift). At the end each fix is in the hub's
// history once, or counted, and each move of a trip has happened once.
import Foundation
import Testing

@Suite struct PhoneHistoryTests {
  private static func number(_ name: String) -> UInt64? {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
  }
  /// Whole days: so many, of seeds from `PHONE_SEED=` on (`make torture`). Without them two of four hours.
  private static let days = number("PHONE_DAYS")
  private static let hours = days == nil ? (ProcessInfo.processInfo.environment["HUB_TESTS"] == "brief" ? 1 : 4) : 24
  private static var seeds: Range<UInt64> {
    let first = number("PHONE_SEED") ?? 1
    return first..<first + (days ?? 2)
  }

  @Test(
    "over a day of trips, cuts, app kills, full disks, wrong clocks and 7 h without a hub all comes once, or counts",
    arguments: PhoneHistoryTests.seeds)
  func day(seed: UInt64) throws {
    let day = try PhoneDay(seed: seed)
    for second in 0..<Self.hours * 3600 {
      // In a day more fixes than the queue has room for.
      if second == Self.hours * 1200 { try day.endHub(for: Self.hours * 1050) }
      try day.second()
    }
    try day.finish()
    print("phone, seed \(seed), \(Self.hours) h: \(day)")
    try checkFixes(day)
    checkMoves(day)
    // A whole day has all that it is for.
    guard Self.hours == 24 else { return }
    #expect(day.cuts > 50 && day.kills > 5 && day.restarts > 2 && day.fullSpells > 2 && day.stalls > 100)
    #expect(day.clockChanges > 5 && day.lostSeconds > 60)
    #expect(day.dropped > 0 && day.moves.count > 200 && day.movesCutOff > 20 && day.ride.meters > 100_000)
  }

  /// No fix is in the history twice; one that is missing is counted; and one that is counted is missing, unless it was
  /// on its way when the connection ended: then it may have arrived, and nobody knows.
  private func checkFixes(_ day: PhoneDay) throws {
    let stored = try day.storedFixes()
    #expect(stored.values.allSatisfy { $0 == 1 }, "none is there twice")
    #expect(Set(stored.keys).isSubset(of: day.measured))
    let missing = day.measured.subtracting(stored.keys).subtracting(day.inMemoryAtKill)
    let words =
      "\(missing.count) of \(day.measured.count) missing, \(day.lost) counted as lost, \(day.onTheirWay) on the way"
    #expect(missing.count <= day.lost && day.lost <= missing.count + day.onTheirWay, "\(words)")
    #expect(stored.count > day.measured.count * 16 / 20, "\(words)")
  }

  /// Each move happens once, under the id that it had from the first, and those of a trip in their order.
  private func checkMoves(_ day: PhoneDay) {
    #expect(day.movesRefused.isEmpty && day.idsChanged == 0)
    var wanted: [String: [PhoneMove]] = [:]
    for move in day.moves where !day.movesInMemoryAtKill.contains(move.time) {
      wanted["\(move.trip)", default: []].append(move)
    }
    for (trip, moves) in wanted {
      // What only a full disk's memory had may have happened as well.
      let happened = (day.history.moves[trip] ?? []).filter { !day.movesInMemoryAtKill.contains($0.time) }
      #expect(happened == moves, "\(trip)")
    }
    #expect(day.history.moves.keys.allSatisfy { trip in day.moves.contains { "\($0.trip)" == trip } })
  }
}
