// Trips that can still be followed, and the estimate of a driver's way to a pickup.
import HubGeo
import HubMessages

extension Trips {
  /// Finds a trip that can still be followed. Throws where there is none, and after its grace.
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
