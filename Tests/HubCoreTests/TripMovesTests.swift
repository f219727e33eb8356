// The whole table of a trip's moves, written out by hand so that a slip in the rule shows.
import HubMessages
import Testing

@testable import HubCore

@Suite struct TripMovesTests {
  /// From each state, in the order of `TripStatus`, what may follow.
  static let table: [(TripStatus, [TripStatus])] = [
    (.requested, [.accepted, .cancelled]),
    (.accepted, [.driverEnRoute, .cancelled]),
    (.driverEnRoute, [.arrivedPickup, .cancelled]),
    (.arrivedPickup, [.tripStarted, .cancelled]),
    (.tripStarted, [.arrivedDestination, .cancelled]),
    (.arrivedDestination, [.completed, .cancelled]),
    (.completed, []),
    (.cancelled, []),
  ]

  @Test("forward one step at a time, cancelled from every state before completed, nothing else")
  func moves() {
    #expect(TripMovesTests.table.map(\.0) == TripStatus.allCases)
    for (from, targets) in TripMovesTests.table {
      for to in TripStatus.allCases { #expect(from.allows(to) == targets.contains(to), "\(from) → \(to)") }
    }
  }

  @Test("a driver is bound from accepted to arrived_destination")
  func occupies() {
    #expect(
      TripStatus.allCases.filter(\.occupiesDriver)
        == [.accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination])
  }

  @Test("ops and the driver may make every move, a rider asks again and cancels early or what is over, a stranger none")
  func parties() {
    let early: [TripStatus] = [.requested, .accepted, .driverEnRoute, .arrivedPickup]
    for from in TripStatus.allCases {
      for to in TripStatus.allCases {
        #expect(TripParty.ops.mayMove(from: from, to: to))
        #expect(TripParty.driver.mayMove(from: from, to: to))
        let mayRider = to == .requested || to == .cancelled && (early.contains(from) || from.isFinal)
        #expect(TripParty.rider.mayMove(from: from, to: to) == mayRider)
        #expect(!TripParty.stranger.mayMove(from: from, to: to))
      }
    }
  }
}
