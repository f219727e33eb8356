import HubGeo
import HubMessages
import Testing

@testable import HubSimulation

private let center = Coordinate(latitude: 48.137, longitude: 11.575)!
private let start = Timestamp(milliseconds: 1_763_680_000_000)

/// Metres from a place to the nearest street, by looking at all.
private func distanceToStreet(_ place: SIMD2<Double>, _ city: City) -> Double {
  var nearest = Double.infinity
  for crossing in 0..<city.places.count {
    let first = city.places[crossing]
    for slot in City.slots(of: City.Crossing(crossing)) where city.neighbours[slot] >= 0 {
      let way = city.places[Int(city.neighbours[slot])] - first
      let part = min(max(((place - first) * way).sum() / (way * way).sum(), 0), 1)
      let off = place - first - way * part
      nearest = min(nearest, (off * off).sum().squareRoot())
    }
  }
  return nearest
}

@Suite("The city")
struct CityTests {
  let city = City(seed: 7, center: center, radiusMeters: 2000)

  @Test("The same seed gives the same city, another seed another")
  func seeds() {
    let same = City(seed: 7, center: center, radiusMeters: 2000)
    #expect(same.places == city.places && same.neighbours == city.neighbours && same.lightCycles == city.lightCycles)
    #expect(City(seed: 8, center: center, radiusMeters: 2000).places != city.places)
  }

  @Test("All of it lies inside the radius", arguments: [0, 300, 2000, 20_000, 1e9])
  func radius(_ radius: Double) {
    let city = City(seed: 1, center: center, radiusMeters: radius)
    #expect(City.radii.contains(city.radiusMeters))
    #expect(city.places.allSatisfy { ($0 * $0).sum().squareRoot() <= city.radiusMeters })
  }

  @Test("Streets go both ways, and have a limit")
  func streets() {
    for crossing in 0..<City.Crossing(city.places.count) {
      for slot in City.slots(of: crossing) where city.neighbours[slot] >= 0 {
        let limit = city.limit(from: crossing, to: city.neighbours[slot])
        #expect(city.limit(from: city.neighbours[slot], to: crossing) == limit)
        #expect((limit ?? 0) >= City.residentialSpeed - 0.001)
      }
    }
  }

  @Test("At a light one direction has green, and each gets its turn")
  func lights() throws {
    let crossing = City.Crossing(try #require(city.lightCycles.firstIndex { $0 > 0 }))
    var greens = (0, 0)
    for second in 0..<1000 {
      let east = city.isGreen(crossing, direction: SIMD2(1, 0), at: Double(second))
      let north = city.isGreen(crossing, direction: SIMD2(0, 1), at: Double(second))
      #expect(!(east && north))
      greens.0 += east ? 1 : 0
      greens.1 += north ? 1 : 0
    }
    #expect((400...500).contains(greens.0) && (400...500).contains(greens.1))
  }

  @Test("Places and coordinates are each other's inverse, across the antimeridian too")
  func coordinates() throws {
    let fiji = City(seed: 1, center: try #require(Coordinate(latitude: -17, longitude: 179.999)), radiusMeters: 2000)
    for place in fiji.places {
      let back = fiji.place(fiji.coordinate(place)) - place
      #expect(abs(back.x) < 1e-6 && abs(back.y) < 1e-6)
    }
    #expect(fiji.places.contains { fiji.coordinate($0).longitude < 0 })
  }
}

@Suite("Simulated drivers")
struct SimulatedDriverTests {
  let city = City(seed: 7, center: center, radiusMeters: 2000)

  private func driver(_ index: Int, seed: UInt64 = 3) -> SimulatedDriver {
    SimulatedDriver(index: index, city: city, seed: seed, start: start)
  }

  @Test("The same seed gives the same drive, however it is stepped")
  func deterministic() {
    var one = driver(5)
    var two = driver(5)
    var other = driver(5, seed: 4)
    var differs = false
    for second in 1...900 {
      let step = one.step(to: Double(second))
      _ = two.step(to: Double(second) - 0.5)
      let half = two.step(to: Double(second))
      #expect(step.truth == half.truth)
      differs = differs || other.step(to: Double(second)).truth != step.truth
    }
    #expect(differs)
  }

  @Test("The same seed gives the same fixes")
  func sameFixes() {
    func fixes() -> [Fix] {
      var driver = driver(9)
      return (1...600).compactMap { driver.step(to: Double($0)).fix }
    }
    let first = fixes()
    #expect(first == fixes())
    #expect(first.count > 550)
    #expect(zip(first, first.dropFirst()).allSatisfy { $0.timestamp < $1.timestamp })
  }

  @Test("Cars stay on streets, under the limits, and change speed like cars")
  func driving() {
    var metersDriven = 0.0
    for index in 0..<8 {
      var driver = driver(index)
      var last = driver.truth.speed
      for tick in 1...3600 {
        let truth = driver.step(to: Double(tick) * SimulatedDriver.tickSeconds).truth
        #expect(truth.speed <= driver.car.limit * 1.001 + 0.5)
        let change = (truth.speed - last) / SimulatedDriver.tickSeconds
        #expect(change <= Car.acceleration + 1e-9)
        // The last metre of a stop is not modelled finely.
        #expect(
          change >= -Car.hardestBraking - 1e-9 || truth.speed == 0 && last < Car.arrivalSpeed * 2,
          "\(last) to \(truth.speed)")
        #expect((0..<360).contains(truth.heading))
        if tick % 40 == 0 { #expect(distanceToStreet(city.place(truth.coordinate), city) < 0.01) }
        last = truth.speed
        metersDriven += truth.speed * SimulatedDriver.tickSeconds
      }
    }
    // City traffic with lights and stops: 10 to 45 km/h.
    let mean = metersDriven / (8 * 1800)
    #expect((2.8...12.5).contains(mean), "mean speed \(mean) m/s")
  }

  @Test("A step of the truth is as long as the speed says")
  func continuity() {
    var driver = driver(2)
    var last = city.place(driver.truth.coordinate)
    for tick in 1...3600 {
      let truth = driver.step(to: Double(tick) * SimulatedDriver.tickSeconds).truth
      let way = city.place(truth.coordinate) - last
      #expect((way * way).sum().squareRoot() <= City.highestSpeed * SimulatedDriver.tickSeconds + 0.01)
      last += way
    }
  }

  @Test("Trips go through the legal states in order, and the driver is where they say")
  func trips() {
    let order: [TripStatus] = [
      .requested, .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed,
    ]
    var ended: [TripStatus: Int] = [:]
    for index in 0..<40 {
      var driver = driver(index)
      var current: SimulatedTrip?
      for second in 1...3600 {
        for move in driver.step(to: Double(second)).moves {
          if let before = current, !before.status.isFinal {
            #expect(move.trip.number == before.number)
            let isNext = order.firstIndex(of: move.trip.status) == order.firstIndex(of: before.status).map { $0 + 1 }
            #expect(isNext || move.trip.status == .cancelled && before.status == .driverEnRoute)
          } else {
            #expect(move.trip.status == .requested)
            #expect(move.trip.number == (current?.number ?? -1) + 1)
          }
          if move.trip.status == .arrivedPickup { #expect(distance(move.location, move.trip.pickup) < 2) }
          if move.trip.status == .arrivedDestination { #expect(distance(move.location, move.trip.dropoff) < 2) }
          current = move.trip
          ended[move.trip.status, default: 0] += 1
        }
      }
    }
    #expect(ended[.completed, default: 0] > 80)
    #expect(ended[.cancelled, default: 0] > 0)
  }

  private func distance(_ first: Coordinate, _ second: Coordinate) -> Double {
    let way = city.place(first) - city.place(second)
    return (way * way).sum().squareRoot()
  }
}

@Suite("Simulated receivers")
struct ReceiverTests {
  let city = City(seed: 7, center: center, radiusMeters: 2000)

  @Test("68 % of the fixes lie within their stated accuracy, and their errors drift")
  func honest() {
    var (inside, count, outliers, product, square) = (0, 0, 0, 0.0, 0.0)
    for index in 0..<60 {
      var driver = SimulatedDriver(index: index, city: city, seed: 12, start: start)
      var last: SIMD2<Double>?
      for second in 1...1800 {
        let step = driver.step(to: Double(second))
        guard let fix = step.fix, let truth = step.fixTruth, let accuracy = fix.accuracy else {
          last = nil
          continue
        }
        let error = city.place(fix.coordinate) - city.place(truth.coordinate)
        let length = (error * error).sum().squareRoot()
        count += 1
        inside += length <= accuracy ? 1 : 0
        outliers += length > 4 * accuracy ? 1 : 0
        let unit = error / accuracy
        if let last, length < 4 * accuracy {
          product += (unit * last).sum()
          square += (unit * unit).sum()
        }
        last = length < 4 * accuracy ? unit : nil
      }
    }
    #expect(abs(Double(inside) / Double(count) - 0.68) < 0.02, "\(inside) of \(count)")
    #expect((0.001...0.006).contains(Double(outliers) / Double(count)))
    // The drift's share of the variance is 0.85² = 0.72, and it hardly changes within a second.
    #expect(abs(product / square - 0.72 * 0.975) < 0.05, "correlation \(product / square)")
  }

  @Test("Some fixes are missing, and some have no speed or heading")
  func gaps() {
    var (fixes, withoutSpeed, withoutHeading) = (0, 0, 0)
    for index in 0..<40 {
      var driver = SimulatedDriver(index: index, city: city, seed: 2, start: start)
      for second in 1...1800 {
        guard let fix = driver.step(to: Double(second)).fix else { continue }
        fixes += 1
        withoutSpeed += fix.speed == nil ? 1 : 0
        withoutHeading += fix.heading == nil ? 1 : 0
        if let heading = fix.heading { #expect(heading >= 0 && heading < 360) }
        if let speed = fix.speed { #expect(speed >= 0) }
      }
    }
    #expect((0.97...0.995).contains(Double(fixes) / 72_000), "\(fixes)")
    #expect((0.015...0.025).contains(Double(withoutSpeed) / Double(fixes)), "\(withoutSpeed)")
    #expect(withoutHeading > withoutSpeed)
  }

  @Test("Fixes come at the interval asked for, each driver in its own moment")
  func interval() {
    var phases: Set<Int64> = []
    for index in 0..<40 {
      var driver = SimulatedDriver(index: index, city: city, seed: 2, start: start, fixInterval: 4)
      var last: Int64?
      for tick in 1...400 {
        guard let fix = driver.step(to: Double(tick) / 2).fix else { continue }
        let time = fix.timestamp.milliseconds - start.milliseconds
        if let last { #expect((time - last) % 4000 == 0) }
        last = time
        phases.insert(((time % 4000) + 4000) % 4000)
      }
    }
    #expect(phases.count > 4)
  }
}

@Suite("SplitMix64")
struct SplitMix64Tests {
  @Test("It gives the published sequence")
  func vector() {
    // The first values for seed 1234567, as in Rosetta Code's task "Pseudo-random numbers/Splitmix64".
    var random = SplitMix64(seed: 1_234_567)
    let expected: [UInt64] = [
      6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431,
      16_408_922_859_458_223_821,
    ]
    #expect(expected.map { _ in random.next() } == expected)
  }

  @Test("Normal values have mean 0 and variance 1, and uniform ones stay in range")
  func distributions() {
    var random = SplitMix64(seed: 5)
    var (sum, squares) = (0.0, 0.0)
    var counts = [Int](repeating: 0, count: 7)
    for _ in 0..<50_000 {
      let pair = random.normals()
      sum += pair.x + pair.y
      squares += (pair * pair).sum()
      counts[random.below(7)] += 1  // traps where it is out of range
      let unit = random.unit()
      #expect(unit >= 0 && unit < 1)
    }
    #expect(counts.allSatisfy { abs(Double($0) / 50_000 - 1 / 7.0) < 0.01 })
    #expect(abs(sum / 100_000) < 0.02 && abs(squares / 100_000 - 1) < 0.02)
  }
}

@Suite("Routes and shifts")
struct RouteTests {
  let city = City(seed: 7, center: center, radiusMeters: 2000)

  @Test("A route is a row of streets, and the shortest there is")
  func shortest() throws {
    var random = SplitMix64(seed: 3)
    for _ in 0..<20 {
      let start = City.Crossing(random.below(city.places.count))
      let goal = City.Crossing(random.below(city.places.count))
      let route = city.route(from: start, to: goal)
      let lengths = lengths(from: start)
      guard let best = lengths[goal] else {
        #expect(route.isEmpty)
        continue
      }
      #expect(route.first == start && route.last == goal)
      var length = 0.0
      for (from, to) in zip(route, route.dropFirst()) {
        #expect(city.limit(from: from, to: to) != nil)
        length += distance(from, to)
      }
      #expect(abs(length - best) < 1e-6)
    }
  }

  private func distance(_ first: City.Crossing, _ second: City.Crossing) -> Double {
    let way = city.places[Int(second)] - city.places[Int(first)]
    return (way * way).sum().squareRoot()
  }

  /// The oracle: all lengths from a crossing, each improved until none can be.
  private func lengths(from start: City.Crossing) -> [City.Crossing: Double] {
    var lengths = [start: 0.0]
    var changed: Set = [start]
    while let crossing = changed.popFirst() {
      for slot in City.slots(of: crossing) where city.neighbours[slot] >= 0 {
        let length = lengths[crossing]! + distance(crossing, city.neighbours[slot])
        if length < lengths[city.neighbours[slot]] ?? .infinity {
          lengths[city.neighbours[slot]] = length
          changed.insert(city.neighbours[slot])
        }
      }
    }
    return lengths
  }

  @Test("A driver with routes keeps to them from pickup to dropoff")
  func follows() throws {
    var trips = 0
    for index in 0..<10 {
      var driver = SimulatedDriver(index: index, city: city, seed: 5, start: start)
      driver.takesRoutes = true
      var second = 0.0
      while second < 3000 {
        second += 1
        let step = driver.step(to: second)
        for move in step.moves where move.trip.status == .requested {
          #expect(move.trip.route.first == move.trip.pickup && move.trip.route.last == move.trip.dropoff)
          trips += 1
        }
        guard let trip = driver.trip, trip.status == .tripStarted else { continue }
        let nearest = zip(trip.route, trip.route.dropFirst()).map { start, end in
          let (from, to, here) = (city.place(start), city.place(end), city.place(step.truth.coordinate))
          let part = min(max(((here - from) * (to - from)).sum() / ((to - from) * (to - from)).sum(), 0), 1)
          let off = here - from - (to - from) * part
          return (off * off).sum().squareRoot()
        }.min()
        #expect(try #require(nearest) < 3, "driver \(index) at \(second)")
      }
    }
    #expect(trips > 10)
  }

  @Test("No trip comes in while a driver takes none")
  func rests() {
    var driver = SimulatedDriver(index: 0, city: city, seed: 5, start: start)
    driver.takesTrips = false
    #expect(driver.step(to: 2000).moves.isEmpty)
    driver.takesTrips = true
    #expect(driver.step(to: 2010).moves.first?.trip.status == .requested)
  }

  @Test("A shift has all its parts, none begins during a trip, and the same seed gives the same one")
  func shift() {
    var seen: [Shift.Part: Int] = [:]
    for index in 0..<50 {
      var (shift, same) = (Shift(seed: 1, index: index), Shift(seed: 1, index: index))
      #expect(shift.step(to: 700, isOnTrip: true) == nil && same.step(to: 700, isOnTrip: true) == nil)
      for second in stride(from: 700.0, to: 7200, by: 1) {
        let part = shift.step(to: second, isOnTrip: false)
        #expect(same.step(to: second, isOnTrip: false) == part)
        if let part { seen[part, default: 0] += 1 }
      }
    }
    #expect(Set(seen.keys) == Set(Shift.Part.allCases) && seen.values.allSatisfy { $0 > 50 })
  }
}
