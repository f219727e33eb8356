// Who may search for which drivers: ops for all; riders for free ones around them, as PublicAudience shows them;
// drivers for none. The same over the socket and HTTP.
import HubCore
import HubGeo
import HubMessages

extension DriverSearch {
  /// The refusal at a limit of riders.
  private static let reach = "a rider may look \(Int(PublicAudience.maximumRadiusMeters)) metres around a point"

  /// The audience of the answer; throws where the role has no right to it.
  func audience(for role: Role, maximumLimit: Int) throws(ErrorReply) -> Audience {
    if let limit, limit > maximumLimit {
      throw ErrorReply(code: .badMessage, message: "limit must be a whole number from 1 to \(maximumLimit)")
    }
    switch role {
    case .ops: return .ops
    case .driver: throw DriverSearch.refusal("a driver may not look for other drivers")
    case .rider:
      try checkRider()
      return .riders
    }
  }

  private func checkRider() throws(ErrorReply) {
    if let limit, limit > PublicAudience.maximumDrivers {
      throw DriverSearch.refusal("a rider may ask for up to \(PublicAudience.maximumDrivers) drivers")
    }
    guard filter.tags.isEmpty, !filter.includesStale, filter.status == nil || filter.status == .available else {
      throw DriverSearch.refusal("a rider sees available drivers only, and may not look for tags")
    }
    switch area {
    case .nearby(_, let radius):
      guard radius ?? 0 <= PublicAudience.maximumRadiusMeters else { throw DriverSearch.refusal(DriverSearch.reach) }
    case .box(let box): try checkReach(of: box)
    case .polygons(let polygons): try checkReach(of: polygons.boundingBox)
    }
  }

  /// For a box this small, its corners are farthest from its middle.
  private func checkReach(of box: BoundingBox) throws(ErrorReply) {
    let middle = box.center
    for latitude in [box.south, box.north] {
      let corner = Coordinate(clampingLatitude: latitude, wrappingLongitude: box.west)
      guard middle.distance(to: corner) <= PublicAudience.maximumRadiusMeters, box.widthDegrees < 180 else {
        throw DriverSearch.refusal("\(DriverSearch.reach): no corner of the area's box may be farther from its middle")
      }
    }
  }

  private static func refusal(_ text: String) -> ErrorReply { ErrorReply(code: .forbidden, message: text) }
}
