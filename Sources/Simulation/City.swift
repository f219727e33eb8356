// A city made of numbers: streets to drive on, for demonstrations and load tests that need no map.
//
// A grid of streets with uneven blocks and bent lines, wider arterials every few blocks, two diagonal avenues, some
// streets closed, traffic lights where it is busy. It is a square inside the given circle. Positions inside are metres
// east and north of the centre; they become coordinates with the scale of WGS 84 at the centre.
public import HubGeo

/// A street network, immutable and shared by all drivers. The same seed gives the same city. About 100 bytes a
/// crossing.
public final class City: Sendable {
  /// A crossing of streets, by its index in the city's tables.
  typealias Crossing = Int32

  public let center: Coordinate
  /// All crossings are within this distance of the centre.
  public let radiusMeters: Double

  /// The number of crossings along a side of the square.
  let side: Int
  /// Where each crossing is: metres east and north of the centre.
  let places: [SIMD2<Double>]
  /// Up to `City.neighbourSlots` crossings beside each, −1 where there are fewer, and the speed limits of the ways.
  let neighbours: [Crossing]
  let limits: [Float]
  /// The cycle of the lights at each crossing, in seconds, 0 without lights, and its phase.
  let lightCycles: [Float]
  let lightOffsets: [Float]

  private let metersPerLatitude: Double
  private let metersPerLongitude: Double

  static let neighbourSlots = 8
  /// In metres: the mean length of a block, and the radii that a city may have.
  static let blockMeters = 120.0
  public static let radii = 300.0...50_000.0
  /// Metres per second: 30, 50 and 60 km/h.
  static let residentialSpeed = 30 / 3.6
  static let streetSpeed = 50 / 3.6
  static let arterialSpeed = 60 / 3.6
  /// The fastest that anyone may drive anywhere.
  public static let highestSpeed = arterialSpeed

  /// Builds the city. O(radius²): under 1 ms for a radius of 5 km. A radius outside of `radii` is brought into it. The
  /// scale is good to 1 % within 80° of the equator; nearer to a pole blocks become narrow.
  public init(seed: UInt64, center: Coordinate, radiusMeters: Double) {
    let radius = min(max(radiusMeters, City.radii.lowerBound), City.radii.upperBound)
    var random = SplitMix64(seed: seed, index: 0, purpose: 0xC17F)
    var plan = CityPlan(radius: radius, random: &random)
    plan.build(&random)
    self.center = center
    self.radiusMeters = radius
    side = plan.side
    places = plan.places
    neighbours = plan.neighbours
    limits = plan.limits
    lightCycles = plan.lightCycles
    lightOffsets = plan.lightOffsets
    let plane = LocalPlane(origin: center)
    metersPerLatitude = plane.metersPerDegreeNorth
    metersPerLongitude = max(plane.metersPerDegreeEast, plane.metersPerDegreeNorth / 100)
  }

  /// The coordinate of a place in metres east and north of the centre.
  func coordinate(_ place: SIMD2<Double>) -> Coordinate {
    let latitude = min(max(center.latitude + place.y / metersPerLatitude, -90), 90)
    var longitude = center.longitude + place.x / metersPerLongitude
    if longitude > 180 { longitude -= 360 } else if longitude < -180 { longitude += 360 }
    guard let coordinate = Coordinate(latitude: latitude, longitude: longitude) else {
      preconditionFailure("both were brought into range")
    }
    return coordinate
  }

  /// Metres east and north of the centre; the inverse of `coordinate`.
  func place(_ coordinate: Coordinate) -> SIMD2<Double> {
    var east = coordinate.longitude - center.longitude
    if east > 180 { east -= 360 } else if east < -180 { east += 360 }
    return SIMD2(east * metersPerLongitude, (coordinate.latitude - center.latitude) * metersPerLatitude)
  }

  /// Whether a car driving in `direction` may enter a crossing at `seconds`. East–west and north–south take turns.
  func isGreen(_ crossing: Crossing, direction: SIMD2<Double>, at seconds: Double) -> Bool {
    let cycle = Double(lightCycles[Int(crossing)])
    guard cycle > 0 else { return true }
    let phase = (seconds + Double(lightOffsets[Int(crossing)])).truncatingRemainder(dividingBy: cycle) / cycle
    // 4 % of the cycle at the end of each half is red for both.
    return abs(direction.x) > abs(direction.y) ? phase < 0.46 : phase >= 0.5 && phase < 0.96
  }

  /// The speed limit from a crossing to the one beside it, m/s, or nil where no street joins them.
  func limit(from first: Crossing, to second: Crossing) -> Double? {
    for slot in City.slots(of: first) where neighbours[slot] == second { return Double(limits[slot]) }
    return nil
  }

  /// The indices of a crossing's neighbours in `neighbours` and `limits`.
  static func slots(of crossing: Crossing) -> Range<Int> {
    Int(crossing) * neighbourSlots..<(Int(crossing) + 1) * neighbourSlots
  }
}
