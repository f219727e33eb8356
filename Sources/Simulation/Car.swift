// A car on the streets of a city: its speed, and its route.
//
// The speed is the largest from which it can still brake: v ≤ √(u² + 2 b s) for a speed u in s metres at a comfortable
// deceleration b. At each crossing it takes the street nearest to the target, with some randomness: no search, and
// drivers do not all take the same street.
import Glibc  // atan2: a pure function
import HubGeo

/// The state of one car. Metres, seconds, metres per second.
struct Car: Sendable {
  private(set) var speed = 0.0
  /// True from its arrival at the target until it gets another.
  private(set) var isAtTarget = false
  /// The street it is on, from one crossing to the next, and how far along it is.
  private(set) var from: City.Crossing
  private(set) var to: City.Crossing
  private var along = 0.0
  private var length = 0.0
  private var origin = SIMD2<Double>.zero
  private var direction = SIMD2<Double>.zero
  private(set) var limit = 0.0
  /// Where it goes after `to`, and how fast it may be there.
  private var next: City.Crossing
  private var cornerSpeed = 0.0
  private var target: City.Crossing
  /// The route to follow, in order. Empty where the car finds its own.
  private var path: ArraySlice<City.Crossing> = []
  private var crossingsPassed = 0
  /// The fraction of the speed limit that this driver drives at.
  private let style: Double
  /// Degrees clockwise from north: the direction of the street.
  private(set) var heading = 0.0

  static let acceleration = 1.8
  static let comfortableBraking = 2.0
  static let hardestBraking = 4.0
  /// Metres before a crossing where a red light stops a car.
  static let stopLine = 5.0
  /// Within this of a target, and this slow, a car is there.
  static let arrivalMeters = 1.5
  static let arrivalSpeed = 2.5

  init(city: City, random: inout SplitMix64) {
    style = random.uniform(0.85, 0.99)
    from = Car.connected(in: city, &random)
    to = from
    next = from
    target = from
    // The car starts on any street that leads away from `from`: `enter` needs a crossing to come from.
    next = chooseNext(in: city, &random)
    enter(in: city, &random)
    aim(at: target(within: 300...2000, in: city, &random), in: city, &random)
    along = length * random.uniform(0, 0.5)
  }

  /// Metres east and north of the city's centre.
  var place: SIMD2<Double> { origin + direction * along }

  /// Some crossing that has a street.
  private static func connected(in city: City, _ random: inout SplitMix64) -> City.Crossing {
    let start = random.below(city.places.count)
    for step in 0..<city.places.count {
      let crossing = City.Crossing((start + step) % city.places.count)
      if City.slots(of: crossing).contains(where: { city.neighbours[$0] >= 0 }) { return crossing }
    }
    preconditionFailure("arterials are never closed")
  }
}

// MARK: - Driving

extension Car {
  /// Drives for one tick. O(1).
  mutating func advance(in city: City, at seconds: Double, stopping: Bool, _ random: inout SplitMix64) {
    let dt = SimulatedDriver.tickSeconds
    let stopsHere = stopping && to == target
    if stopsHere, isAtTarget { return }
    let remaining = length - along
    var wanted = min(limit * style, approach(stopsHere ? 0 : cornerSpeed, in: remaining))
    let toLine = remaining - Car.stopLine
    // A car that can't stop before the line any more drives on.
    let canStop = speed * speed <= 2 * Car.hardestBraking * max(toLine, 0) + 0.01
    if toLine >= 0, canStop, !city.isGreen(to, direction: direction, at: seconds) {
      wanted = min(wanted, approach(0, in: toLine))
    }
    let before = speed
    speed = max(0, min(max(wanted, speed - Car.hardestBraking * dt), speed + Car.acceleration * dt))
    along += (before + speed) / 2 * dt
    let isThere = stopsHere && length - along < Car.arrivalMeters && speed < Car.arrivalSpeed
    if isThere {
      along = min(along, length)
      speed = 0
      isAtTarget = true
    } else if along >= length {
      // It was too fast to stop, and turns round.
      if to == target, !stopping { isAtTarget = true }
      pass(in: city, &random)
    }
  }

  /// The speed from which `end` can be reached in `meters`, looking one tick ahead.
  private func approach(_ end: Double, in meters: Double) -> Double {
    let ahead = max(0, meters - speed * SimulatedDriver.tickSeconds)
    return (end * end + 2 * Car.comfortableBraking * ahead).squareRoot()
  }

  private mutating func pass(in city: City, _ random: inout SplitMix64) {
    let over = along - length
    enter(in: city, &random)
    along = min(over, length / 2)
    crossingsPassed += 1
    // Closed streets can lead a car in circles: after so many crossings the one ahead becomes its target.
    if crossingsPassed > 4 * city.side + 40 { target = to }
  }

  /// Turns into the street to `next` and decides where to go after it.
  private mutating func enter(in city: City, _ random: inout SplitMix64) {
    (from, to) = (to, next)
    let way = city.places[Int(to)] - city.places[Int(from)]
    length = (way * way).sum().squareRoot()
    origin = city.places[Int(from)]
    direction = way / length
    along = 0
    limit = city.limit(from: from, to: to) ?? City.residentialSpeed
    let degrees = atan2(direction.x, direction.y) * 180 / Double.pi
    heading = degrees < 0 ? degrees + 360 : degrees
    decide(in: city, &random)
  }

  /// Chooses the street after this one and the speed for the turn into it.
  private mutating func decide(in city: City, _ random: inout SplitMix64) {
    if path.first == to { path.removeFirst() }
    next = path.first ?? chooseNext(in: city, &random)
    let way = city.places[Int(next)] - city.places[Int(to)]
    let turn = (way * direction).sum() / (way * way).sum().squareRoot()  // the cosine of the angle
    let bend = turn > 0.95 ? City.highestSpeed : turn > 0.5 ? 9 : turn > -0.3 ? 5.5 : 2.5
    cornerSpeed = min(bend, (city.limit(from: to, to: next) ?? City.residentialSpeed) * style)
  }
}

// MARK: - Finding the way

extension Car {
  /// Aims at another crossing; the way changes from the next crossing on.
  ///
  /// - Parameter path: the way that it takes from `to` on, both ends among it; empty to find it.
  mutating func aim(
    at crossing: City.Crossing, along path: [City.Crossing] = [], in city: City, _ random: inout SplitMix64
  ) {
    target = crossing
    self.path = path[...]
    isAtTarget = false
    crossingsPassed = 0
    decide(in: city, &random)
  }

  /// A crossing whose distance from here is in `meters`, or at least another one.
  func target(
    within meters: ClosedRange<Double>, in city: City, _ random: inout SplitMix64
  ) -> City.Crossing {
    var found = from
    for _ in 0..<12 {
      let crossing = Car.connected(in: city, &random)
      if crossing == to || crossing == from { continue }
      found = crossing
      let way = city.places[Int(crossing)] - place
      if meters.contains((way * way).sum().squareRoot()) { break }
    }
    return found
  }

  /// The best neighbour of `to` to continue to; it turns back only where there is no other way.
  private func chooseNext(in city: City, _ random: inout SplitMix64) -> City.Crossing {
    let goal = city.places[Int(target)]
    var best = from
    var bestScore = Double.infinity
    for slot in City.slots(of: to) {
      let crossing = city.neighbours[slot]
      if crossing < 0 { break }
      if crossing == from { continue }
      let way = city.places[Int(crossing)] - goal
      let score = (way * way).sum().squareRoot() + random.uniform(0, 40)
      if score < bestScore { (best, bestScore) = (crossing, score) }
    }
    return best
  }
}
