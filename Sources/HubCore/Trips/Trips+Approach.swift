// Trips that go on, and how far a driver is from one that nobody drives yet.
import HubGeo
import HubMessages

extension Trips {
  /// Throws where there is no such trip, and where its subscribers were let go.
  func findFollowed(_ id: Identifier, at uptime: Int64) throws(ErrorReply) -> Int {
    let trip = try findKnown(id)
    guard !self[trip].isOver(at: uptime) else {
      throw ErrorReply(invalidIn: self[trip].status, "trip \(id) is over: nobody follows it any more")
    }
    return trip
  }

  /// The way from a driver's place to a pickup, by the area's experience, for a driver of whose pace nothing is known.
  func approach(from place: Coordinate, to pickup: Coordinate, crowMeters: Double) -> Estimate {
    legs.circuity.estimate(
      Leg(
        place: place, target: UnitVector(pickup), crowMeters: crowMeters, pace: Pace().expected(timings.trips)))
  }
}
