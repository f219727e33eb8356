// Trips of the demo that riders request, and that the hub offers to the drivers near by.
import HubGeo
import HubMessages
import HubSimulation

struct OfferRequests {
  /// The chance of a request in each second: about every tenth second.
  private static let chance = 0.1

  private var random: SplitMix64
  private let city: City
  private var number = 0

  init(_ options: FleetOptions) {
    city = options.city
    random = SplitMix64(seed: options.seed, index: 0, purpose: 0x0FFE3)
  }

  /// Called once a second: the trip that a rider requests, with `offer`; mostly nil.
  mutating func next(riders: [Identifier], at time: Timestamp) -> (rider: Int, status: TripStatusReport)? {
    guard !riders.isEmpty, random.chance(OfferRequests.chance) else { return nil }
    let rider = random.below(riders.count)
    number += 1
    guard let id = Identifier("\(riders[rider])-offer-\(number)") else { return nil }
    var report = TripStatusReport(
      tripID: id, status: .requested, timestamp: time, pickup: city.anyPlace(&random), dropoff: city.anyPlace(&random))
    var criteria = OfferCriteria()
    criteria.atOnce = 2
    criteria.seconds = 10
    report.offer = criteria
    return (rider, report)
  }
}
