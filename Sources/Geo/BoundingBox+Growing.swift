// Boxes made of boxes: all that is near one, and one around several.

extension BoundingBox {
  /// A box around all places within `meters` of this one, made larger by 1e-9° so that rounding leaves none outside;
  /// where that holds a pole it has all longitudes. The distance must not be negative or NaN (a precondition).
  public func grown(byMeters meters: Double) -> BoundingBox {
    // The circle that is widest in longitude is the one around the corner that is nearest to a pole.
    let edge = abs(north) > abs(south) ? north : south
    func around(_ latitude: Double) -> BoundingBox {
      BoundingBox(center: Coordinate(clampingLatitude: latitude, wrappingLongitude: 0), radiusMeters: meters)
    }
    let (northern, southern) = (around(north), around(south))
    let reach = around(edge).widthDegrees * 0.5
    guard widthDegrees + 2 * reach < 360, northern.widthDegrees < 360, southern.widthDegrees < 360 else {
      return BoundingBox(uncheckedSouth: southern.south, west: -180, north: northern.north, east: 180)
    }
    return BoundingBox(
      uncheckedSouth: southern.south, west: Coordinate.wrappedLongitude(west - reach), north: northern.north,
      east: Coordinate.wrappedLongitude(east + reach))
  }

  /// The narrowest box around all of some boxes; nil where there are none. O(n log n).
  public init?(around boxes: [BoundingBox]) {
    guard let first = boxes.first else { return nil }
    let south = boxes.reduce(first.south) { min($0, $1.south) }
    let north = boxes.reduce(first.north) { max($0, $1.north) }
    // Going east from the westernmost one, the widest stretch that no box has is what the box leaves out.
    let sorted = boxes.sorted { $0.west < $1.west }
    var reached = sorted[0].west + sorted[0].widthDegrees
    var widest = 0.0
    var west = sorted[0].west
    for box in sorted.dropFirst() {
      if box.west - reached > widest {
        widest = box.west - reached
        west = box.west
      }
      reached = max(reached, box.west + box.widthDegrees)
    }
    if sorted[0].west + 360 - reached >= widest { west = sorted[0].west }
    // The one that ends last, seen from there; its own border, to avoid rounding.
    var (last, end) = (first, -Double.infinity)
    for box in boxes {
      let own = (box.west < west ? box.west + 360 : box.west) + box.widthDegrees
      if own > end { (last, end) = (box, own) }
    }
    guard end - west < 360 else {
      self.init(uncheckedSouth: south, west: -180, north: north, east: 180)
      return
    }
    self.init(uncheckedSouth: south, west: west, north: north, east: last.east)
  }
}
