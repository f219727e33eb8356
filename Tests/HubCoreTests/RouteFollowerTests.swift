// A driver on its route: where it is, that crossings do not confuse it, when it has left, and what a search finds.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

private let munich = at(48.1, 11.5)

/// A place by metres east and north of the origin.
private func place(_ east: Double, _ north: Double, from origin: Coordinate = munich) -> Coordinate {
  LocalPlane(origin: origin).coordinate(eastMeters: east, northMeters: north)
}

private func route(_ points: [(Double, Double)], from origin: Coordinate = munich) throws -> Route {
  try Route(points: points.map { place($0.0, $0.1, from: origin) })
}

/// A line through points, by metres along it: the truth that a drive has.
private struct Line {
  let points: [(Double, Double)]

  var length: Double { zip(points, points.dropFirst()).reduce(0) { $0 + Line.length($1.0, $1.1) } }

  static func length(_ a: (Double, Double), _ b: (Double, Double)) -> Double {
    ((a.0 - b.0) * (a.0 - b.0) + (a.1 - b.1) * (a.1 - b.1)).squareRoot()
  }

  func at(_ along: Double) -> (Double, Double) {
    var left = along
    for (from, to) in zip(points, points.dropFirst()) {
      let length = Line.length(from, to)
      if left <= length { return (from.0 + (to.0 - from.0) * left / length, from.1 + (to.1 - from.1) * left / length) }
      left -= length
    }
    return points[points.count - 1]
  }
}

/// A driver whose way is counted as the hub counts it.
private struct Drive {
  var follower: RouteFollower
  private var odometer = Odometer()
  private var seconds = 0.0
  let origin: Coordinate

  init(_ route: Route, isOff: Bool = false, from origin: Coordinate = munich, tripMeters: Double = 0) {
    follower = RouteFollower(RoutePath(route), isOff: isOff, drivenMeters: 0, tripMeters: tripMeters)
    self.origin = origin
  }

  mutating func fix(
    _ east: Double, _ north: Double, speed: Double? = 10, heading: Double? = nil, accuracy: Double = 5
  ) {
    seconds += 4
    let position = Position(
      coordinate: place(east, north, from: origin), speed: speed, heading: heading, accuracy: accuracy,
      confidence: .high, timestamp: .test(seconds))
    odometer.follow(position, after: nil, maximumSpeed: 90)
    follower.follow(position, drivenMeters: odometer.meters, rules: TripRules())
  }

  /// Follows a line with positions that are off by a few metres, and checks the place on it all the way.
  mutating func follow(_ line: Line, step: Double, noise: Double, _ random: inout SplitMix64, within bound: Double) {
    var along = 0.0
    var last = 0.0
    while along <= line.length {
      let (east, north) = line.at(along)
      let off = random.normals() * noise
      fix(east + off.x, north + off.y)
      #expect(follower.isPlaced && abs(follower.along - along) < bound, "\(follower.along) at \(along)")
      #expect(follower.along >= last, "it never goes back")
      last = follower.along
      along += step
    }
  }
}

@Suite struct RouteFollowerTests {
  @Test("a figure of eight is passed in its order: no jump at the crossing", arguments: [15.0, 40, 90])
  func crossing(step: Double) throws {
    let line = Line(points: [(0, 0), (400, 400), (400, 0), (0, 400), (-300, 400)])
    var random = SplitMix64(seed: 1)
    var drive = Drive(try route(line.points))
    drive.follow(line, step: step, noise: 4, &random, within: 25)
  }

  @Test("a route that comes back along the same road is passed there and back")
  func thereAndBack() throws {
    let line = Line(points: [(0, 0), (1000, 0), (0, 0), (0, -500)])
    var random = SplitMix64(seed: 2)
    var drive = Drive(try route(line.points))
    drive.follow(line, step: 30, noise: 3, &random, within: 45)
  }

  @Test("the antimeridian and a high latitude are places like others", arguments: [at(0, 179.995), at(70, -179.99)])
  func antimeridian(origin: Coordinate) throws {
    let points = (0...60).map { step -> (Double, Double) in (Double(step) * 50 - 1500, step % 2 == 0 ? 0.0 : 20.0) }
    let line = Line(points: points)
    var random = SplitMix64(seed: 3)
    var drive = Drive(try route(line.points, from: origin), from: origin)
    drive.follow(line, step: 30, noise: 3, &random, within: 25)
    #expect(abs(drive.follower.path.lengthMeters / line.length - 1) < 0.007, "a sphere's metres, not the ellipsoid's")
  }

  @Test("off is the third fix in a row further than 25 m, on again the second within 15 m")
  func leaving() throws {
    var drive = Drive(try route([(0, 0), (5000, 0)]))
    for step in 0..<5 { drive.fix(Double(step) * 40, 24) }
    #expect(!drive.follower.isOff)
    drive.fix(240, 27)
    drive.fix(280, 27)
    drive.fix(320, 20)
    drive.fix(360, 27)
    drive.fix(400, 27)
    #expect(!drive.follower.isOff, "not in a row")
    drive.fix(440, 27)
    #expect(drive.follower.isOff && !drive.follower.isPlaced)
    drive.fix(480, 10)
    drive.fix(520, 16)
    drive.fix(560, 10)
    #expect(drive.follower.isOff, "back is nearer than off")
    drive.fix(600, 10)
    #expect(!drive.follower.isOff)
    drive.fix(640, 0)
    #expect(drive.follower.isPlaced && abs(drive.follower.along - 640) < 5)
  }

  @Test("a fix that may be wrong by more than the threshold says nothing, nor does one of a driver that stands")
  func unsure() throws {
    var drive = Drive(try route([(0, 0), (5000, 0)]))
    for step in 0..<10 { drive.fix(Double(step) * 40, 60, accuracy: 26) }
    for _ in 0..<10 { drive.fix(400, 60, speed: 0.5) }
    #expect(!drive.follower.isOff && drive.follower.isPlaced)
    for step in 0..<3 { drive.fix(440 + Double(step) * 40, 60, speed: nil) }
    #expect(drive.follower.isOff)
    // For long they say that its place on the line is not known.
    var long = Drive(try route([(0, 0), (5000, 0)]))
    for step in 0..<20 { long.fix(Double(step) * 40, 60, accuracy: 26) }
    #expect(!long.follower.isPlaced && !long.follower.isOff)
  }

  @Test("who stands beside the route is not back on it, however its position wanders, nor do such fixes break a row")
  func besideTheRoute() throws {
    var drive = Drive(try route([(0, 0), (5000, 0)]), isOff: true)
    for step in 0..<6 { drive.fix(400, step % 2 == 0 ? 10 : 40, speed: 0.5) }
    for _ in 0..<6 { drive.fix(400, 10, speed: 0.5) }
    #expect(drive.follower.isOff)
    drive.fix(440, 10)
    drive.fix(440, 30, speed: 0.5)
    #expect(drive.follower.isOff)
    drive.fix(480, 10)
    #expect(!drive.follower.isOff)
  }

  @Test("after a short cut, and after a restart in the middle, the driver is found again where it is")
  func foundAgain() throws {
    // A detour of 2 km that the driver does not take.
    let points = [(0.0, 0.0), (500, 0), (500, 1000), (700, 1000), (700, 0), (3000, 0)]
    var drive = Drive(try route(points))
    for step in 0..<12 { drive.fix(Double(step) * 40, 0) }
    for step in 12..<30 { drive.fix(Double(step) * 40, 0) }
    #expect(drive.follower.isPlaced)
    #expect(abs(drive.follower.along - (29 * 40 + 2000)) < 10)
    var restarted = Drive(try route(points))
    for step in 0..<5 { restarted.fix(1500 + Double(step) * 40, 5) }
    #expect(!restarted.follower.isOff && restarted.follower.isPlaced)
    #expect(abs(restarted.follower.along - (1660 + 2000)) < 10)
  }

  /// Out for 3 km and back on the other side of the road, with an edge each 40 m.
  private func outAndBack() throws -> (route: Route, length: Double) {
    let steps = (0...75).map { Double($0) * 40 }
    let points = steps.map { ($0, 0.0) } + steps.reversed().map { ($0, 6.0) }
    return (try route(points), 6006)
  }

  @Test("after a restart it is where the trip's distance has it, with the first fix", arguments: [400.0, 4000, 5900])
  func restarted(tripMeters: Double) throws {
    let (route, length) = try outAndBack()
    func place(_ along: Double) -> (Double, Double) { along <= 3000 ? (along, 0) : (max(0, length - along), 6) }
    // The odometer is some 5 % short: it cuts bends, and what was driven meanwhile is a straight line.
    var drive = Drive(route, tripMeters: tripMeters * 0.95)
    #expect(!drive.follower.isPlaced)
    for step in 0..<3 {
      let along = tripMeters + Double(step) * 30
      drive.fix(place(along).0, place(along).1)
      // A sphere's metres are up to 0.4 % fewer here.
      #expect(drive.follower.isPlaced && abs(drive.follower.along - along) < 25, "\(drive.follower.along) at \(along)")
    }
  }

  @Test("a route that is changed on the way begins where the driver is; one that it is not near is not followed")
  func changed() throws {
    let new = try route([(0, 0), (3000, 0)])
    var drive = Drive(new, tripMeters: 2000)
    drive.fix(10, 3)
    #expect(drive.follower.isPlaced && abs(drive.follower.along - 10) < 1)
    drive.fix(50, 3)
    #expect(drive.follower.isPlaced && abs(drive.follower.along - 50) < 1)
    var other = Drive(new, tripMeters: 2000)
    other.fix(500, 3)
    other.fix(500, 3, speed: 0)
    #expect(!other.follower.isPlaced && !other.follower.isOff, "neither its beginning nor 2 km on")
    other.fix(540, 3)
    #expect(other.follower.isPlaced && abs(other.follower.along - 540) < 3, "it goes along it")
  }

  @Test("of the way out and the way back it is on the one that its course is of")
  func course() throws {
    var drive = Drive(try outAndBack().route)
    for step in 0..<5 { drive.fix(Double(step) * 40, 0, heading: 90) }
    // Across to the way back, 2 km before it would be there.
    for step in 0..<4 { drive.fix(1500 - Double(step) * 40, 3, heading: 270) }
    #expect(drive.follower.isPlaced && abs(drive.follower.along - (6006 - 1380)) < 25, "\(drive.follower.along)")
  }

  @Test("on a long edge one fix moves the driver no farther than it can have gone")
  func longEdge() throws {
    var drive = Drive(try route([(0, 0), (3000, 0)]))
    drive.fix(0, 0)
    drive.fix(2000, 0, speed: 0)
    #expect(drive.follower.along < 130, "\(drive.follower.along)")
  }

  @Test("who drives the route backwards is not shown as getting on")
  func backwards() throws {
    var drive = Drive(try route([(0, 0), (3000, 0)]))
    for step in 0..<20 { drive.fix(Double(step) * 40, 0) }
    let along = drive.follower.along
    for step in 0..<15 { drive.fix(760 - Double(step) * 40, 0) }
    #expect(drive.follower.along == along && !drive.follower.isPlaced && !drive.follower.isOff)
  }

  @Test("what a search by boxes finds is the nearest edge of all, for random lines and places")
  func oracle() throws {
    var random = SplitMix64(seed: 4)
    for round in 0..<60 {
      let origin = round % 3 == 0 ? at(10, 179.99) : at(.random(in: -80...80, using: &random), 20)
      var points = [(0.0, 0.0)]
      for _ in 0..<Int.random(in: 1...400, using: &random) {
        let way = random.normals() * 60
        points.append((points[points.count - 1].0 + way.x, points[points.count - 1].1 + way.y))
      }
      let path = RoutePath(try route(points, from: origin))
      let length = path.lengthMeters
      for _ in 0..<20 {
        let near = points.randomElement(using: &random)!
        let here = place(
          near.0 + .random(in: -40...40, using: &random), near.1 + .random(in: -40...40, using: &random), from: origin)
        let ground = GroundScale(latitude: here.latitude)
        let found = path.match(
          here, course: nil, within: 25, expected: length / 2, weight: 1e-3, from: 0, ground)
        // All of the line, 256 edges at a time.
        var best = Double.infinity
        for start in stride(from: 0, to: path.vertexCount - 1, by: RoutePath.edgesPerStretch) {
          let match = path.match(here, from: start, along: 0...length, expected: 0, weight: 0, ground)
          best = min(best, match?.off ?? .infinity)
        }
        if best > 25 {
          #expect(found == nil)
        } else {
          // It prefers where the driver should be by a millimetre for each metre.
          let (match, off) = try #require(found)
          #expect(match.off >= best && match.off <= min(25, best + length / 1000) && off == best)
        }
      }
    }
  }

  @Test("where a line is a knot, a search opens so many of its boxes, from where the driver is on it")
  func knot() throws {
    // Edges of 10 m to and fro at 20 m, all within reach; in the last box one comes by.
    let (edges, boxes) = (RoutePath.edgesPerBox, RoutePath.boxesPerSearch + 1)
    var points = (0...edges * boxes).map { ($0 % 2 == 0 ? -5.0 : 5.0, 20.0) }
    points[points.count - 1].1 = 0
    let path = RoutePath(try route(points))
    #expect(path.vertexCount == edges * boxes + 1)
    func off(from edge: Int) -> Double? {
      path.match(
        munich, course: nil, within: 25, expected: 0, weight: 0, from: edge, GroundScale(latitude: munich.latitude))?
        .off
    }
    #expect(try abs(#require(off(from: 0)) - 20) < 1.5, "the last one is one too many")
    for box in [1, boxes - 1] { #expect(try #require(off(from: box * edges)) < 15, "\(box)") }
  }

  @Test("a line drawn every few centimetres has an edge every 2 m; one with its places all in one point is a line too")
  func dense() throws {
    let path = RoutePath(try Route(points: (0..<5000).map { place(Double($0) * 0.5, 0) }))
    #expect(path.vertexCount < 1300 && abs(path.lengthMeters - 2500) < 15)
    let point = RoutePath(try Route(points: [munich, munich, munich]))
    #expect(point.vertexCount == 2 && point.lengthMeters == 0)
    var drive = Drive(try Route(points: [munich, munich]))
    for _ in 0..<5 { drive.fix(0, 0) }
    #expect(drive.follower.isPlaced)
    for _ in 0..<5 { drive.fix(100, 0) }
    #expect(drive.follower.isOff)
  }
}
