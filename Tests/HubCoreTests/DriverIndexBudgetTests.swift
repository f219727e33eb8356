// Searches that stop early: what they report of their hits, and how they continue.

import HubGeo
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct DriverIndexBudgetTests {
  /// A city of 5,000 with a depot of 500 on one spot.
  private func city(_ random: inout SplitMix64) -> DriverIndex {
    var index = DriverIndex(capacity: 5_000)
    let center = at(41.15, -8.61)
    for driver in 0..<UInt32(5_000) {
      let distance = 5_000 * Double.random(in: 0...1, using: &random).squareRoot()
      let bearing = Double.random(in: 0..<360, using: &random)
      index.move(
        driver,
        to: driver < 500 ? center : center.destination(bearingDegrees: bearing, distanceMeters: distance))
    }
    return index
  }

  @Test("A nearest search out of budget is exact up to the distance that it names")
  func exhausted() {
    var random = SplitMix64(seed: 3)
    let index = city(&random)
    var stopped = 0
    for budget in [0, 1, 5, 9, 10, 12, 15, 20, 40, 100, 1_000] {
      for _ in 0..<20 {
        let center = at(41.15 + .random(in: -0.05...0.05, using: &random), -8.61)
        var (all, hits): ([DriverHit], [DriverHit]) = ([], [])
        #expect(index.nearest(to: center, limit: 50, budget: .unlimited, into: &all) == .complete)
        let limits = SearchBudget(cells: budget, candidates: budget * 10)
        switch index.nearest(to: center, limit: 50, budget: limits, into: &hits) {
        case .complete: #expect(hits == all)
        case .exhausted(let meters):
          stopped += 1
          let sure = all.filter { $0.distanceMeters < meters - 1e-5 }
          #expect(Array(hits.prefix(sure.count)) == sure)
        }
      }
    }
    #expect(stopped > 100 && stopped < 220)
  }

  @Test("A crowd larger than the budget does not hold the search for longer than its budget")
  func crowd() {
    var index = DriverIndex(capacity: 5_000)
    for driver in 0..<UInt32(5_000) { index.move(driver, to: at(1, 1)) }
    var hits: [DriverHit] = []
    var asked = 0
    let outcome = index.nearest(
      to: at(1, 1), limit: 10, budget: SearchBudget(cells: 1_000, candidates: 100), into: &hits
    ) { _, _ in
      asked += 1
      return false
    }
    #expect(outcome == .exhausted(completeWithinMeters: 0) && asked == 100)
  }

  @Test("Who stays is not missed where a leaf is split and merged again between two pieces")
  func reshaped() {
    var random = SplitMix64(seed: 6)
    let center = at(41.15, -8.61)
    func place() -> Coordinate {
      center.destination(
        bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: .random(in: 0..<2_000, using: &random))
    }
    let fives = SearchBudget(cells: 1_000, candidates: 5)
    for _ in 0..<200 {
      var index = DriverIndex(capacity: 100)
      for driver in 0..<UInt32(12) { index.move(driver, to: place()) }
      var hits: [DriverHit] = []
      var cursor = index.within(center: center, radiusMeters: 5_000, budget: fives, into: &hits)
      #expect(hits.count == 5)
      let visited = hits.map(\.driver)
      // A crowd comes and goes, and all but one of those that were visited with it: the eight that are left fit one
      // leaf again, in another order.
      for driver in 20..<UInt32(60) { index.move(driver, to: place()) }
      for driver in 20..<UInt32(60) { index.remove(driver) }
      for driver in visited.dropFirst() { index.remove(driver) }
      while let from = cursor {
        cursor = index.within(center: center, radiusMeters: 5_000, from: from, budget: fives, into: &hits)
      }
      #expect(Set(hits.map(\.driver)) == Set(0..<12))
    }
  }

  @Test("A within search in pieces gives each driver once, however small the pieces", arguments: [1, 7, 100, 10_000])
  func pieces(size: Int) {
    var random = SplitMix64(seed: 4)
    let index = city(&random)
    let center = at(41.15, -8.62)
    var whole: [DriverHit] = []
    #expect(index.within(center: center, radiusMeters: 2_000, into: &whole) == nil)
    for cells in [0, 1_000] {
      let budget = SearchBudget(cells: cells, candidates: size)
      var hits: [DriverHit] = []
      var calls = 1
      var cursor = index.within(center: center, radiusMeters: 2_000, budget: budget, into: &hits)
      while let from = cursor, calls < 100_000 {
        calls += 1
        cursor = index.within(center: center, radiusMeters: 2_000, from: from, budget: budget, into: &hits)
      }
      #expect(hits == whole)
      #expect(calls > whole.count / (size + 1))
    }
  }

  @Test("A box search in pieces, too, gives each driver once")
  func boxInPieces() {
    var random = SplitMix64(seed: 5)
    let index = city(&random)
    let box = BoundingBox(center: at(41.15, -8.62), radiusMeters: 2_000)
    var (whole, drivers): ([UInt32], [UInt32]) = ([], [])
    #expect(index.within(box, into: &whole) == nil)
    let budget = SearchBudget(cells: 1_000, candidates: 13)
    var cursor = index.within(box, budget: budget, into: &drivers)
    while let from = cursor { cursor = index.within(box, from: from, budget: budget, into: &drivers) }
    #expect(drivers == whole && whole.count > 500)
  }

  @Test("Drivers that stay where they are come in pieces even while all others move", arguments: [7, 50])
  func piecesWhileMoving(size: Int) {
    var random = SplitMix64(seed: 6)
    var index = DriverIndex(capacity: 3_000)
    let center = at(41.15, -8.61)
    func place(_ random: inout SplitMix64) -> Coordinate {
      center.destination(
        bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: .random(in: 0...3_000, using: &random))
    }
    for driver in 0..<UInt32(3_000) { index.move(driver, to: place(&random)) }
    var hits: [DriverHit] = []
    var cursor: SearchCursor? = .start
    while let from = cursor {
      cursor = index.within(
        center: center, radiusMeters: 4_000, from: from, budget: SearchBudget(cells: 1_000, candidates: size),
        into: &hits)
      for driver in 0..<UInt32(1_500) { index.move(driver, to: place(&random)) }
    }
    let found = Set(hits.map(\.driver))
    #expect((UInt32(1_500)..<3_000).allSatisfy { found.contains($0) })
  }

  @Test("Of a crowd on one spot those who stay come in pieces while others go and come")
  func crowdInPieces() {
    var random = SplitMix64(seed: 7)
    var index = DriverIndex(capacity: 600)
    for driver in 0..<UInt32(300) { index.move(driver, to: at(1, 1)) }
    var hits: [DriverHit] = []
    var cursor: SearchCursor? = .start
    while let from = cursor {
      cursor = index.within(
        center: at(1, 1), radiusMeters: 10, from: from, budget: SearchBudget(cells: 1_000, candidates: 3), into: &hits)
      for _ in 0..<4 { index.remove(UInt32.random(in: 0..<150, using: &random) * 2) }
      index.move(UInt32.random(in: 300..<600, using: &random), to: at(1, 1))
    }
    let found = Set(hits.map(\.driver))
    #expect((0..<UInt32(150)).allSatisfy { found.contains($0 * 2 + 1) })
  }
}
