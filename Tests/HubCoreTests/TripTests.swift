// A trip's parties, and the memory of its last moves.
import HubMessages
import Testing

@testable import HubCore

@Suite struct TripTests {
  @Test("a party is who the trip names, in the role it names it in")
  func parties() {
    let now = Moment(uptime: 0, timestamp: time(0))
    var trip = Trip(id: id("t"), number: 1, status: .accepted, at: time(0), by: .ops, now: now)
    let report = TripStatusReport(tripID: id("t"), status: .requested, timestamp: time(0))
    trip.take(report, rider: id("rob"), driver: id("dana"))
    #expect(trip.party(of: Actor(role: .driver, id: id("dana"))) == .driver)
    #expect(trip.party(of: Actor(role: .driver, id: id("rob"))) == .stranger)
    #expect(trip.party(of: Actor(role: .rider, id: id("rob"))) == .rider)
    #expect(trip.party(of: Actor(role: .rider, id: id("dana"))) == .stranger)
    #expect(trip.party(of: Actor(role: .ops, id: id("anyone"))) == .ops)
  }

  @Test("the last 16 moves are remembered, the 17th pushes out the first")
  func recentMoves() {
    var moves = RecentMoves()
    for hash in 1...16 as ClosedRange<UInt64> { moves.insert(hash) }
    #expect((1...16).allSatisfy { moves.contains($0) })
    moves.insert(17)
    #expect(!moves.contains(1))
    #expect((2...17).allSatisfy { moves.contains($0) })
    for hash in 18...40 as ClosedRange<UInt64> { moves.insert(hash) }
    #expect((1...60).filter { moves.contains($0) } == Array(25...40))
  }
}
