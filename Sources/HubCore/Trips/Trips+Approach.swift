// Active trips, and the distance of a driver from a trip without a driver.
import HubGeo
import HubMessages

extension Trips {
  /// Throws where there is no such trip, and where it is closed.
  func findFollowed(_ id: Identifier, at uptime: Int64) throws(ErrorReply) -> Int {
    let trip = try findKnown(id)
    guard !self[trip].isOver(at: uptime) else {
      throw ErrorReply(invalidIn: self[trip].status, "trip \(id) is over: nobody follows it any more")
    }
    return trip
  }

  /// The estimate from a driver's coordinate to a pickup, by the cell's circuity and the default speed.
  func approach(from place: Coordinate, to pickup: Coordinate, crowMeters: Double) -> Estimate {
    legs.circuity.estimate(
      Leg(
        place: place, target: UnitVector(pickup), crowMeters: crowMeters, pace: Pace().expected(timings.trips)))
  }
}
