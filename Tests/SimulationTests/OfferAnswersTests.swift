// Drivers that are offered trips of others: what they answer, and that they drive what they have accepted.
import HubGeo
import HubMessages
import HubSimulation
import Testing

@Suite struct OfferAnswersTests {
  private let city = City(seed: 3, center: Coordinate(latitude: 48.137, longitude: 11.575)!, radiusMeters: 1000)

  @Test("Most offers are accepted, some are declined and some not seen; the same seed gives the same answers")
  func answers() {
    var (first, second) = (OfferAnswers(seed: 5, index: 7), OfferAnswers(seed: 5, index: 7))
    var counts: [OfferAnswers.Answer: Int] = [:]
    for _ in 0..<1000 {
      let (answer, seconds) = first.next()
      let again = second.next()
      #expect(again.answer == answer && again.seconds == seconds && (1...7).contains(seconds))
      counts[answer, default: 0] += 1
    }
    #expect((750...850).contains(counts[.accept] ?? 0) && (80...160).contains(counts[.decline] ?? 0))
    #expect((40...120).contains(counts[.silence] ?? 0))
  }

  @Test("An accepted trip is driven to its end; while there is one no other is taken, and one that is lost is given up")
  func accepted() throws {
    var random = SplitMix64(seed: 9, index: 0, purpose: 1)
    var driver = SimulatedDriver(index: 0, city: city, seed: 4, start: Timestamp(milliseconds: 1_763_680_000_000))
    driver.takesTrips = false
    _ = driver.step(to: 60)
    #expect(driver.trip == nil, "it has no trips of its own")
    let (pickup, dropoff) = (city.anyPlace(&random), city.anyPlace(&random))
    #expect(driver.accept(pickup: pickup, dropoff: dropoff)?.trip.status == .accepted)
    #expect(driver.accept(pickup: pickup, dropoff: dropoff) == nil)
    var moves: [TripStatus] = []
    var pickedUp: Coordinate?
    for second in 61..<7200 where driver.trip != nil {
      for move in driver.step(to: Double(second)).moves {
        moves.append(move.trip.status)
        if move.trip.status == .arrivedPickup { pickedUp = move.location }
      }
    }
    #expect(moves == [.driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed])
    #expect(try #require(pickedUp).distance(to: pickup) < 50)
    #expect(driver.accept(pickup: pickup, dropoff: dropoff) != nil)
    driver.giveUp()
    #expect(driver.trip == nil)
  }
}
