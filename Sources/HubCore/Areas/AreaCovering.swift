// Which cells an area channel stands for: one, or those round a place, in the size that fits the radius.
import HubGeo
import HubMessages

enum AreaCovering {
  /// Cells that a circle is covered with at most; and the limit where it is covered with the largest ones, because no
  /// smaller ones are few enough: as many as a session may have subscriptions. A circle of 500 km takes some 60 cells
  /// of 156 km at 45° of latitude, and 230 at 80°, where cells are 27 km wide.
  private static let usualCells = 16
  static let mostCells = 256

  /// Characters of an area's geohash that an audience may ask for.
  static func precisions(_ audience: Audience) -> ClosedRange<Int> {
    switch audience {
    case .everybody: 5...8
    case .ops: Channel.areaPrecisions.lowerBound...Channel.areaPrecisions.upperBound
    }
  }

  /// The cells; nil where there are too many, or the channel is no area.
  ///
  /// A circle gets the smallest cells of which 16 or fewer touch it: of 1 km some 11 of 1.2 by 0.6 km, of 5 km some 9
  /// of 5 by 5 km. That keeps what is sent beyond the circle within some two and a half times its area.
  static func cells(of channel: Channel, _ audience: Audience) -> [GeohashCell]? {
    let (center, radius): (Coordinate, Double)
    switch channel {
    case .area(let cell): return [cell]
    case .nearby(let place, let meters): (center, radius) = (place, meters)
    case .trip, .driver, .fence, .fleet, .trips, .raw: return nil
    }
    let precisions = precisions(audience)
    for precision in precisions.reversed() {
      let limit = precision == precisions.lowerBound ? mostCells : usualCells
      do throws(CoveringError) {
        return try GeohashCell.covering(center: center, radiusMeters: radius, precision: precision, limit: limit)
      } catch {
        continue
      }
    }
    return nil
  }
}
