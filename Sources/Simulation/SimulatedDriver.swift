// A driver in a simulated city: drives by the rules, serves trips, and has a phone that measures where it is.
//
// Time moves in fixed ticks, so that a drive is the same however often it is looked at. The driver's chance and the
// phone's come from generators of their own, seeded by (seed, index): no driver depends on how many others there are.
public import HubGeo
public import HubMessages

/// One driver. About 350 bytes, and 1 µs for each second of driving.
public struct SimulatedDriver: Sendable {
  /// The driver's true state, which the phone measures with errors.
  public struct Truth: Sendable, Equatable {
    public let coordinate: Coordinate
    /// Metres per second.
    public let speed: Double
    /// Degrees clockwise from north, 0 ≤ heading < 360, of the street; kept at a standstill.
    public let heading: Double
  }

  /// The result of a step.
  public struct Step: Sendable {
    /// The true state at the last tick.
    public let truth: Truth
    /// The newest fix that fell due, or nil when none did or the receiver had none.
    public let fix: Fix?
    /// The true state when that fix was measured, to judge filters by; nil without a fix.
    public let fixTruth: Truth?
    /// The trip's moves, in order. Nearly always empty, which costs nothing.
    public let moves: [TripMove]
  }

  public let index: Int
  /// The trip being served.
  public private(set) var trip: SimulatedTrip?

  /// Whether it drives by the shortest way to a pickup and a dropoff; its own trips then have that route.
  public var takesRoutes = false
  /// Whether it may begin trips of its own; those that were offered begin by `accept`.
  public var takesTrips = true

  let city: City
  var random: SplitMix64
  var car: Car
  var duty: Duty
  private var receiver: Receiver
  private let start: Timestamp
  private let fixTicks: Int
  private let fixPhase: Int
  private var pickup: City.Crossing = 0
  private var dropoff: City.Crossing = 0
  private var tick = 0
  private var nextTripNumber = 0

  /// Seconds of a tick.
  public static let tickSeconds = 0.5
  /// The share of trips that are cancelled on the way to the pickup.
  static let cancelledFraction = 0.04

  /// A driver at its own crossing, at time 0, which is `start` on the clock of its fixes. `fixInterval` is in seconds,
  /// rounded to whole ticks. O(1).
  public init(index: Int, city: City, seed: UInt64, start: Timestamp, fixInterval: Double = 1) {
    self.index = index
    self.city = city
    self.start = start
    random = SplitMix64(seed: seed, index: index, purpose: 0xD21)
    receiver = Receiver(seed: seed, index: index)
    fixTicks = max(1, Int((min(fixInterval, 3600) / SimulatedDriver.tickSeconds).rounded()))
    // Not all phones measure in the same moment.
    fixPhase = random.below(fixTicks)
    car = Car(city: city, random: &random)
    duty = .cruising(until: random.uniform(5, 120))
  }

  /// Seconds of the simulation since its start.
  public var seconds: Double { Double(tick) * SimulatedDriver.tickSeconds }

  /// Drives on to the last tick that is not after `seconds`; an earlier time changes nothing. To be called about once
  /// for each fix interval: of several due fixes only the newest is kept.
  public mutating func step(to seconds: Double) -> Step {
    var fix: Fix?
    var fixTruth: Truth?
    var moves: [TripMove] = []
    while self.seconds + SimulatedDriver.tickSeconds <= seconds {
      tick += 1
      drive(&moves)
      guard tick % fixTicks == fixPhase else { continue }
      let truth = truth
      fix = receiver.measure(truth, in: city, at: self.seconds, timestamp)
      fixTruth = fix == nil ? nil : truth
    }
    return Step(truth: truth, fix: fix, fixTruth: fixTruth, moves: moves)
  }

  /// The true state at the last tick.
  public var truth: Truth {
    Truth(coordinate: city.coordinate(car.place), speed: car.speed, heading: car.heading)
  }

  /// The last tick by the clock of the driver's fixes.
  public var timestamp: Timestamp {
    Timestamp(milliseconds: start.milliseconds + Int64((seconds * 1000).rounded()))
  }
}

// MARK: - What a driver decides

extension SimulatedDriver {
  private mutating func drive(_ moves: inout [TripMove]) {
    if !duty.isStanding {
      car.advance(in: city, at: seconds, stopping: duty.stopsAtTarget, &random)
    }
    switch duty {
    case .cruising(let until):
      if seconds >= until, takesTrips {
        request(&moves)
      } else {
        wander()
      }
    case .deciding(let until):
      guard seconds >= until else { return wander() }
      move(to: .accepted, &moves)
      duty = .startingOut(until: seconds + random.uniform(2, 6))
    case .startingOut(let until):
      guard seconds >= until else { return wander() }
      move(to: .driverEnRoute, &moves)
      drive(to: pickup)
      duty = .toPickup
    case .toPickup:
      if random.chance(SimulatedDriver.cancelledFraction / 300) { return end(.cancelled, &moves) }
      if car.isAtTarget {
        move(to: .arrivedPickup, &moves)
        duty = .boarding(until: seconds + random.uniform(15, 60))
      }
    case .boarding(let until):
      guard seconds >= until else { return }
      move(to: .tripStarted, &moves)
      drive(to: dropoff)
      duty = .toDropoff
    case .toDropoff:
      if car.isAtTarget {
        move(to: .arrivedDestination, &moves)
        duty = .alighting(until: seconds + random.uniform(5, 25))
      }
    case .alighting(let until):
      if seconds >= until { end(.completed, &moves) }
    }
  }

  /// Accepts a requested trip, and drives to the crossings nearest to its pickup and dropoff. Gives the state change to
  /// send; nil where the driver has a trip. O(crossings).
  public mutating func accept(pickup: Coordinate, dropoff: Coordinate) -> TripMove? {
    guard trip == nil else { return nil }
    self.pickup = city.crossing(nearest: pickup)
    self.dropoff = city.crossing(nearest: dropoff)
    trip = SimulatedTrip(number: nextTripNumber, pickup: pickup, dropoff: dropoff, route: [], status: .requested)
    nextTripNumber += 1
    var moves: [TripMove] = []
    move(to: .accepted, &moves)
    duty = .startingOut(until: seconds + random.uniform(2, 6))
    return moves.first
  }

  /// Cruises without a trip, for instance because another driver got the one that this driver had accepted.
  public mutating func giveUp() {
    trip = nil
    duty = .cruising(until: seconds + random.uniform(20, 180))
    car.aim(at: car.target(within: 300...2000, in: city, &random), in: city, &random)
  }

  private mutating func drive(to crossing: City.Crossing) {
    let path = takesRoutes ? city.route(from: car.to, to: crossing) : []
    car.aim(at: crossing, along: path, in: city, &random)
  }

  /// Drives about without an end.
  private mutating func wander() {
    if car.isAtTarget { car.aim(at: car.target(within: 300...2000, in: city, &random), in: city, &random) }
  }

  private mutating func request(_ moves: inout [TripMove]) {
    pickup = car.target(within: 300...2000, in: city, &random)
    dropoff = car.target(within: 800...6000, in: city, &random)
    if dropoff == pickup { dropoff = car.target(within: 100...6000, in: city, &random) }
    let route = takesRoutes ? city.route(from: pickup, to: dropoff) : []
    trip = SimulatedTrip(
      number: nextTripNumber, pickup: city.coordinate(city.places[Int(pickup)]),
      dropoff: city.coordinate(city.places[Int(dropoff)]), route: route.map { city.coordinate(city.places[Int($0)]) },
      status: .requested)
    nextTripNumber += 1
    move(to: .requested, &moves)
    duty = .deciding(until: seconds + random.uniform(2, 10))
    wander()
  }

  private mutating func move(to status: TripStatus, _ moves: inout [TripMove]) {
    guard var trip else { return }
    trip.status = status
    self.trip = trip
    moves.append(TripMove(trip: trip, timestamp: timestamp, location: truth.coordinate))
  }

  private mutating func end(_ status: TripStatus, _ moves: inout [TripMove]) {
    move(to: status, &moves)
    giveUp()
  }
}
