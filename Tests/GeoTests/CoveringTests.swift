import HubGeo
import HubTestSupport
import Testing

@Suite struct CoveringTests {
  /// A precision at which cells are no more than some dozens across the radius.
  private func precision(for radiusMeters: Double) -> Int {
    GeohashCell.precisions.reversed().first {
      GeohashCell(bits: 0, precision: $0)!.heightDegrees * 111_195 * 12 > radiusMeters
    } ?? 1
  }

  @Test("A circle's covering has every place of the circle, no cell twice, and none that lies outside")
  func circle() throws {
    var random = SplitMix64(seed: 10)
    for _ in 0..<300 {
      let center = random.coordinate()
      let radius = [50.0, 700, 5_000, 80_000, 1_000_000, 9_000_000].randomElement(using: &random)!
      let precision = precision(for: radius)
      let cells: [GeohashCell]
      do {
        cells = try GeohashCell.covering(center: center, radiusMeters: radius, precision: precision, limit: 20_000)
      } catch {
        #expect(abs(center.latitude) > 85)  // rows around a pole have very many cells
        continue
      }
      let set = Set(cells)
      #expect(set.count == cells.count)
      for _ in 0..<60 {
        let distance = radius * (1 - 1e-9) * Double.random(in: 0...1, using: &random).squareRoot()
        let place = center.destination(bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: distance)
        #expect(set.contains(GeohashCell(place, precision: precision)))
      }
      for cell in cells.shuffled(using: &random).prefix(4) {
        #expect(minimumDistance(from: center, to: cell) <= radius * 1.000_001 + 0.01)
      }
    }
  }

  /// The distance to the nearest point of a cell, by search along its borders.
  private func minimumDistance(from center: Coordinate, to cell: GeohashCell) -> Double {
    if cell.contains(center) { return 0 }
    let box = cell.box
    func side(_ place: (Double) -> Coordinate) -> Double {
      // The distance along a side has one valley, or one hill, whose ends are looked at too.
      var best = min(center.distance(to: place(0)), center.distance(to: place(1)))
      for step in 0...64 { best = min(best, center.distance(to: place(Double(step) / 64))) }
      var (low, high) = (0.0, 1.0)
      for _ in 0..<80 {
        let (a, b) = (low + (high - low) / 3, high - (high - low) / 3)
        if center.distance(to: place(a)) < center.distance(to: place(b)) { high = b } else { low = a }
      }
      best = min(best, center.distance(to: place((low + high) / 2)))
      return best
    }
    func latitude(_ t: Double) -> Double { box.south + (box.north - box.south) * t }
    func longitude(_ t: Double) -> Double { box.west + (box.east - box.west) * t }
    return min(
      min(side { at(latitude($0), box.west) }, side { at(latitude($0), box.east) }),
      min(side { at(box.south, longitude($0)) }, side { at(box.north, longitude($0)) }))
  }

  @Test("A circle around a pole has the whole row at the pole")
  func pole() throws {
    let cells = try GeohashCell.covering(center: at(90, 0), radiusMeters: 10_000, precision: 3, limit: 1_000)
    #expect(cells.count == 256 && cells.allSatisfy { $0.box.north == 90 })
    let south = try GeohashCell.covering(center: at(-89.99, 50), radiusMeters: 10_000, precision: 2, limit: 1_000)
    #expect(south.count == 32 && south.allSatisfy { $0.box.south == -90 })
  }

  @Test("A circle on the antimeridian has cells of both sides only")
  func antimeridian() throws {
    let cells = try GeohashCell.covering(center: at(-17, 180), radiusMeters: 5_000, precision: 5, limit: 100)
    #expect(cells.contains { $0.box.east == 180 } && cells.contains { $0.box.west == -180 })
    #expect(cells.count < 25 && cells.allSatisfy { abs($0.center.longitude) > 179.9 })
  }

  @Test("A circle of no radius has the one cell, a circle of all radii all cells")
  func extremes() throws {
    let place = at(48.2, 16.37)
    let one = try GeohashCell.covering(center: place, radiusMeters: 0, precision: 8, limit: 4)
    #expect(one == [GeohashCell(place, precision: 8)])
    for center in [place, at(90, 0), at(0, 180)] {
      #expect(try GeohashCell.covering(center: center, radiusMeters: 2.1e7, precision: 1, limit: 32).count == 32)
      #expect(
        try GeohashCell.covering(center: center, radiusMeters: .infinity, precision: 2, limit: 1_024).count == 1_024)
    }
  }

  @Test("A box's covering is exactly the cells that touch it")
  func boxes() throws {
    var random = SplitMix64(seed: 11)
    for _ in 0..<400 {
      let (a, b) = (random.coordinate(), random.coordinate())
      let box = try #require(
        BoundingBox(
          south: min(a.latitude, b.latitude), west: a.longitude, north: max(a.latitude, b.latitude), east: b.longitude))
      let cells = try GeohashCell.covering(box, precision: 2, limit: 1_024)
      let all = (0..<1_024).map { GeohashCell(bits: UInt64($0), precision: 2)! }
      // A cell that only touches with its east or north border is the neighbour of one that holds the point.
      let touching = Set(all.filter { $0.box.intersects(box) })
      #expect(touching.isSuperset(of: cells) && Set(cells).count == cells.count)
      for _ in 0..<50 {
        let place = random.coordinate()
        if box.contains(place), abs(place.longitude) != 180 {
          #expect(cells.contains(GeohashCell(place, precision: 2)))
        }
      }
    }
    #expect(try GeohashCell.covering(.world, precision: 3, limit: 32_768).count == 32_768)
  }

  @Test("More cells than the limit are refused")
  func limits() {
    #expect(throws: CoveringError.tooManyCells(limit: 32_767)) {
      try GeohashCell.covering(.world, precision: 3, limit: 32_767)
    }
    #expect(throws: CoveringError.tooManyCells(limit: 100)) {
      try GeohashCell.covering(.world, precision: 12, limit: 100)
    }
    #expect(throws: CoveringError.tooManyCells(limit: 100)) {
      try GeohashCell.covering(center: at(0, 0), radiusMeters: 1e6, precision: 12, limit: 100)
    }
    #expect(throws: CoveringError.tooManyCells(limit: 100)) {
      try GeohashCell.covering(center: at(90, 0), radiusMeters: 1, precision: 12, limit: 100)
    }
  }
}
