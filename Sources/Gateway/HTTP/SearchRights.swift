// Who may look for which drivers: ops for all; riders for free ones around them, as PublicAudience shows them; drivers
// for none. The same over the socket and over HTTP.
import HubCore
import HubGeo
import HubMessages

/// Why somebody may not look for drivers, or not so.
struct SearchRefusal: Error, Equatable {
  var code = ErrorCode.forbidden
  var text: String

  /// Of riders, where a limit of theirs is passed.
  private static let reach = "a rider may look \(Int(PublicAudience.maximumRadiusMeters)) metres around a point"

  /// The audience that the answer is for.
  static func audience(
    of role: Role, asking search: DriverSearch, maximumLimit: Int
  ) throws(SearchRefusal) -> Audience {
    if let limit = search.limit, limit > maximumLimit {
      throw SearchRefusal(code: .badMessage, text: "limit must be a whole number from 1 to \(maximumLimit)")
    }
    switch role {
    case .ops: return .ops
    case .driver: throw SearchRefusal(text: "a driver may not look for other drivers")
    case .rider:
      try checkRider(search)
      return .everybody
    }
  }

  private static func checkRider(_ search: DriverSearch) throws(SearchRefusal) {
    if let limit = search.limit, limit > PublicAudience.maximumDrivers {
      throw SearchRefusal(text: "a rider may ask for up to \(PublicAudience.maximumDrivers) drivers")
    }
    let filter = search.filter
    guard filter.tags.isEmpty, !filter.includesStale, filter.status == nil || filter.status == .available else {
      throw SearchRefusal(text: "a rider sees available drivers only, and may not look for tags")
    }
    switch search.area {
    case .nearby(_, let radius):
      guard radius ?? 0 <= PublicAudience.maximumRadiusMeters else { throw SearchRefusal(text: reach) }
    case .box(let box): try checkReach(of: box)
    case .polygons(let polygons): try checkReach(of: polygons.boundingBox)
    }
  }

  /// The corners are a box's points farthest from its middle, where it is as small as this.
  private static func checkReach(of box: BoundingBox) throws(SearchRefusal) {
    let middle = box.center
    for latitude in [box.south, box.north] {
      let corner = Coordinate(clampingLatitude: latitude, wrappingLongitude: box.west)
      guard middle.distance(to: corner) <= PublicAudience.maximumRadiusMeters, box.widthDegrees < 180 else {
        throw SearchRefusal(text: "\(reach): no corner of the area's box may be farther from its middle")
      }
    }
  }
}
