import HubGeo
import HubTestSupport
import Testing

@Suite struct BoundingBoxTests {
  private func box(_ south: Double, _ west: Double, _ north: Double, _ east: Double) -> BoundingBox {
    BoundingBox(south: south, west: west, north: north, east: east)!
  }

  @Test("What is not a box is refused")
  func refused() {
    #expect(BoundingBox(south: 1, west: 0, north: 0, east: 1) == nil)
    #expect(BoundingBox(south: .nan, west: 0, north: 1, east: 1) == nil)
    #expect(BoundingBox(south: 0, west: -180.1, north: 1, east: 1) == nil)
    #expect(BoundingBox(south: 0, west: 0, north: 90.1, east: 1) == nil)
    #expect(BoundingBox(south: 0, west: 0, north: 1, east: .infinity) == nil)
  }

  @Test("A box over the antimeridian has both sides of it and both of its names")
  func antimeridian() {
    let fiji = box(-20, 177, -15, -178)
    #expect(fiji.crossesAntimeridian && fiji.widthDegrees == 5)
    #expect(fiji.contains(at(-17, 179)) && fiji.contains(at(-17, -179)) && !fiji.contains(at(-17, 0)))
    #expect(fiji.contains(at(-17, 180)) && fiji.contains(at(-17, -180)))
    #expect(box(0, 170, 1, 180).contains(at(0.5, -180)) && box(0, -180, 1, -170).contains(at(0.5, 180)))
    #expect(fiji.center == at(-17.5, 179.5))
  }

  @Test("The box of a circle has every place of the circle and is not much larger")
  func circle() {
    var random = SplitMix64(seed: 6)
    for _ in 0..<5_000 {
      let center = random.coordinate()
      let radius = min(20_015_000, Double.random(in: 1...8, using: &random).exponent10)
      let around = BoundingBox(center: center, radiusMeters: radius)
      for _ in 0..<4 {
        let edge = center.destination(
          bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: radius * (1 - 1e-9))
        #expect(around.contains(edge))
      }
      #expect(around.contains(center))
      #expect(around.north - around.south <= 2 * radius / 111_194 + 1e-6)
    }
    #expect(
      BoundingBox(center: at(89.9, 0), radiusMeters: 20_000) == box(89.9 - 20_000 / 111_195.08, -180, 90, 180)
        || BoundingBox(center: at(89.9, 0), radiusMeters: 20_000).widthDegrees == 360)
    #expect(BoundingBox(center: at(0, 0), radiusMeters: .infinity).contains(at(-90, 180)))
  }
}

extension Double {
  /// 10 to the power of this.
  fileprivate var exponent10: Double {
    var result = 1.0
    var rest = self
    while rest >= 1 { (result, rest) = (result * 10, rest - 1) }
    return result * (1 + 9 * rest)
  }
}
