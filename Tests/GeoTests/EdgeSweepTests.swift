// The sweep over a polygon's edges against all pairs of them, and how much it does.
import HubTestSupport
import Testing

@testable import HubGeo

/// What is wrong with drawn rings, by a look at each pair of edges and each corner of a hole.
private enum Verdict: Equatable {
  case fine, crossing, holeOutside

  init(_ rings: [[PlanePoint]]) {
    var edges: [(ring: Int, number: Int, a: PlanePoint, b: PlanePoint)] = []
    for (ring, points) in rings.enumerated() {
      for number in 0..<points.count - 1 { edges.append((ring, number, points[number], points[number + 1])) }
    }
    for i in edges.indices {
      for j in edges.indices.dropFirst(i + 1) {
        let (e, f) = (edges[i], edges[j])
        let relation = EdgeRelation(e.a, e.b, and: f.a, f.b)
        let isNext = f.number == e.number + 1 || e.number == 0 && f.number == rings[e.ring].count - 2
        let isFine = e.ring != f.ring ? relation != .crossing : relation == (isNext ? .touching : .apart)
        guard isFine else {
          self = .crossing
          return
        }
      }
    }
    let isOutside = rings.dropFirst().joined().contains { Verdict.isOutside($0, rings[0]) }
    self = isOutside ? .holeOutside : .fine
  }

  /// By the crossings of a ray to the east.
  private static func isOutside(_ point: PlanePoint, _ ring: [PlanePoint]) -> Bool {
    var isInside = false
    for (a, b) in zip(ring, ring.dropFirst()) {
      let turn = a.turn(by: b, to: point)
      if turn == 0, point.isBetween(a, b) { return false }
      if (a.y > point.y) != (b.y > point.y), (turn > 0) == (b.y > a.y) { isInside.toggle() }
    }
    return !isInside
  }

  init(of rings: [[Coordinate]]) {
    do throws(PolygonError) {
      _ = try Polygon(rings: rings, limit: 10_000)
      self = .fine
    } catch {
      switch error {
      case .selfCrossing, .ringsCross: self = .crossing
      case .holeOutside: self = .holeOutside
      case .noRing, .tooManyPositions, .tooFewPositions, .notClosed, .noArea, .aroundPole:
        Issue.record("\(error) is not what was drawn")
        self = .fine
      }
    }
  }
}

/// A ring on a grid, closed, without a position twice in a row, that has corners and is not on one line; nil where
/// chance made another one.
private func ring(_ corners: Int, _ size: Int, _ random: inout SplitMix64) -> [Coordinate]? {
  var positions: [Coordinate] = []
  for _ in 0..<corners {
    let position = at(
      Double(Int.random(in: 0..<size, using: &random)), Double(Int.random(in: 0..<size, using: &random)))
    if positions.last != position { positions.append(position) }
  }
  while positions.count > 1, positions.first == positions.last { positions.removeLast() }
  let points = positions.map { PlanePoint($0) }
  guard points.count >= 3, points.contains(where: { points[0].turn(by: points[1], to: $0) != 0 }) else { return nil }
  return positions + [positions[0]]
}

@Suite struct EdgeSweepTests {
  @Test("Rings on a coarse grid, where nearly all touch, overlap or cross, are judged as by all pairs of edges")
  func coarseGrids() {
    var random = SplitMix64(seed: 17)
    var verdicts: [Verdict] = []
    for round in 0..<30_000 {
      let size = 3 + round % 6
      let count = 1 + round % 3
      let rings = (0..<count).compactMap { _ in ring(Int.random(in: 3...7, using: &random), size, &random) }
      guard rings.count == count else { continue }
      let expected = Verdict(rings.map(PlanePoint.drawn))
      #expect(Verdict(of: rings) == expected, "\(rings)")
      verdicts.append(expected)
    }
    for verdict in [Verdict.fine, .crossing, .holeOutside] {
      #expect(verdicts.count { $0 == verdict } > 100, "each verdict is met")
    }
  }

  @Test("Triangles that touch each other in many ways, as holes of one ring, are judged as by all pairs of edges")
  func holesThatTouch() {
    var random = SplitMix64(seed: 3)
    let outer = [at(0, 0), at(0, 8), at(8, 8), at(8, 0), at(0, 0)]
    var fine = 0
    for _ in 0..<10_000 {
      let holes = (0..<Int.random(in: 1...4, using: &random)).compactMap { _ in ring(3, 9, &random) }
      let rings = [outer] + holes
      let expected = Verdict(rings.map(PlanePoint.drawn))
      #expect(Verdict(of: rings) == expected, "\(rings)")
      if expected == .fine, holes.count > 1 { fine += 1 }
    }
    #expect(fine > 200)
  }

  /// Stars whose corners are then changed a little: one is put elsewhere, or on another corner or edge.
  @Test("Large rings with one fault, anywhere on Earth, are judged as by all pairs of edges")
  func largeRings() {
    var random = SplitMix64(seed: 23)
    var faults = 0
    for round in 0..<400 {
      let center = [at(41.15, -8.61), at(-16.8, 180), at(70, -179.99), at(0, 0)][round % 4]
      let corners = Int.random(in: 20...90, using: &random)
      var star = PolygonOracleTests.star(center, corners: corners, degrees: 0.5, &random)
      let (a, b) = (Int.random(in: 1..<corners, using: &random), Int.random(in: 1..<corners, using: &random))
      switch round % 5 {
      case 0: break
      case 1: star.swapAt(a, b)
      case 2: star[a] = star[b]
      case 3: star[a] = center
      default: star[a] = at(star[b].latitude, star[a].longitude)
      }
      let drawn = PlanePoint.drawn(star)
      let expected = Verdict([drawn])
      #expect(Verdict(of: [star]) == expected)
      if expected == .crossing { faults += 1 }
    }
    #expect(faults > 100 && faults < 350)
  }

  @Test("Edges along meridians and parallels, and rows of corners on one line, are judged as by all pairs of edges")
  func stairsAndCombs() {
    var random = SplitMix64(seed: 29)
    for _ in 0..<2_000 {
      // A comb whose teeth and gaps lie on few meridians and parallels, now and then with a tooth too long.
      let teeth = Int.random(in: 2...12, using: &random)
      var positions = [at(0, 0)]
      for tooth in 0..<teeth {
        let height = Double(Int.random(in: 1...3, using: &random))
        let x = Double(2 * tooth)
        positions += [at(height, x), at(height, x + 1), at(1, x + 1), at(1, x + 2)]
      }
      positions += [at(Double(Int.random(in: -1...2, using: &random)), Double(2 * teeth)), at(0, 1), at(0, 0)]
      var distinct: [Coordinate] = []
      for position in positions where distinct.last != position { distinct.append(position) }
      #expect(Verdict(of: [distinct]) == Verdict([PlanePoint.drawn(distinct)]), "\(distinct)")
    }
  }

  @Test("Where the rings are turned, begun elsewhere or mirrored, the verdict is the same")
  func symmetries() {
    var random = SplitMix64(seed: 31)
    for round in 0..<3_000 {
      guard let positions = ring(Int.random(in: 4...6, using: &random), 5, &random) else { continue }
      let expected = Verdict(of: [positions])
      let open = positions.dropLast()
      let start = round % open.count
      let begunElsewhere = Array(open[start...] + open[..<start]) + [open[start]]
      let mirrored = positions.map { at($0.longitude, $0.latitude) }
      for other in [positions.reversed(), begunElsewhere, mirrored] { #expect(Verdict(of: [Array(other)]) == expected) }
    }
  }
}

#if DEBUG
  /// Drawings that take a sweep as much as may be.
  private enum Drawing: CaseIterable {
    /// Spikes from a middle: the boxes around all edges overlap.
    case star
    /// Long teeth beside each other, which the line meets one by one, or all at once.
    case uprightComb, lyingComb
    /// A spiral, of which the line meets each round twice; fifteen corners a round.
    case spiral
    /// Triangles that are holes of a box and all have one corner in common.
    case fan
    /// Triangles one beside the other, and one above the other.
    case rowOfHoles, stackOfHoles

    func rings(_ size: Int) -> [[Coordinate]] {
      func position(_ radius: Double, _ degrees: Double) -> Coordinate {
        let sides = SineCosine(degrees: degrees)
        return at(radius * sides.sine, radius * sides.cosine)
      }
      func comb(_ position: (Double, Double) -> Coordinate) -> [Coordinate] {
        let teeth = size / 2 - 1
        let edge = (0..<teeth).flatMap { tooth -> [Coordinate] in
          let x = 40 * Double(tooth) / Double(teeth)
          return [position(x, 1), position(x + 10 / Double(teeth), 30)]
        }
        return [position(0, 0)] + edge + [position(40, 0), position(0, 0)]
      }
      let box = [at(-50, -50), at(-50, 50), at(50, 50), at(50, -50), at(-50, -50)]
      let holes = 0..<size / 3
      switch self {
      case .star:
        let corners = (0..<size).map { position($0 % 2 == 0 ? 40 : 20, Double($0) * 360 / Double(size)) }
        return [corners + [corners[0]]]
      case .uprightComb: return [comb { at($1, $0) }]
      case .lyingComb: return [comb { at($0, $1) }]
      case .spiral:
        let way = (0..<size / 2).map { (Double($0) * 24, 5 + Double($0) * 60 / Double(size)) }
        let outer = way.map { position($0.1, $0.0) }
        let inner = way.reversed().map { position($0.1 - 30 / Double(size), $0.0) }
        return [outer + inner + [outer[0]]]
      case .fan:
        return [box]
          + holes.map {
            let degrees = Double($0) * 360 / Double(holes.count)
            let next = degrees + 180 / Double(holes.count)
            return [at(0, 0), position(40, degrees), position(40, next), at(0, 0)]
          }
      case .rowOfHoles:
        return [box] + holes.map { triangle(at: Double($0) * 80 / Double(holes.count) - 40, 0, holes.count) }
      case .stackOfHoles:
        return [box] + holes.map { triangle(at: 0, Double($0) * 80 / Double(holes.count) - 40, holes.count) }
      }
    }

    private func triangle(at x: Double, _ y: Double, _ count: Int) -> [Coordinate] {
      let side = 40 / Double(count)
      let wide = self == .stackOfHoles ? 30 : side
      let high = self == .rowOfHoles ? 30 : side
      return [at(y, x), at(y, x + wide), at(y + high, x), at(y, x)]
    }
  }

  @Suite struct EdgeSweepWork {
    @Test("The work grows like n log n, whatever is drawn", arguments: Drawing.allCases)
    fileprivate func work(_ drawing: Drawing) throws {
      func steps(_ size: Int) throws -> Double {
        Double(try EdgeSweep.steps(try Polygon(rings: drawing.rings(size), limit: 20_000)))
      }
      for size in [60, 250, 1000, 4000] {
        let bound = 10 * Double(size) * (Double(size).log2Rounded + 4)
        #expect(try steps(size) <= bound, "\(size)")
      }
      // Four times as many edges: 4.7 times the work, where the square would be 16.
      #expect(try steps(4000) / steps(1000) < 6)
    }
  }

  extension Double {
    fileprivate var log2Rounded: Double { Double(Int.bitWidth - Int(self).leadingZeroBitCount) }
  }
#endif
