// What a driver does all day: waits, drives to a rider, and on with the rider. It is northwards all day long.
import HubGeo
import HubMessages
import HubTestSupport

/// A car and its trips, a second at a time.
struct PhoneRide {
  /// The moves of a trip, and how long (s) the driver waits, or drives, before each.
  private static let steps: [(status: TripStatus, seconds: ClosedRange<Int>, isDriving: Bool)] = [
    (.requested, 60...600, false), (.accepted, 5...30, false), (.driverEnRoute, 5...20, false),
    (.arrivedPickup, 120...400, true), (.tripStarted, 30...120, false), (.arrivedDestination, 200...600, true),
    (.completed, 10...40, false),
  ]

  private var step = 0
  private var left = 60
  private var number = 0
  private var speed = 0.0
  private(set) var meters = 0.0

  /// The trip that the driver is on.
  var trip: Identifier? { step == 0 ? nil : tripID }

  private var tripID: Identifier { Identifier("T\(number)")! }

  /// One more second; the move that is due then.
  mutating func second(_ random: inout SplitMix64) -> (trip: Identifier, status: TripStatus)? {
    let wanted = Self.steps[step].isDriving && left > 10 ? 14.0 : 0
    speed = wanted > speed ? min(wanted, speed + 1.5) : max(wanted, speed - 2)
    meters += speed
    left -= 1
    guard left <= 0 else { return nil }
    let move = (tripID, Self.steps[step].status)
    step += 1
    if step == Self.steps.count { next() }
    left = Int.random(in: Self.steps[step].seconds, using: &random)
    return move
  }

  /// This trip is nothing to the driver any more.
  mutating func giveUp() {
    next()
    left = 60
  }

  private mutating func next() {
    step = 0
    number += 1
  }

  func fix(at time: Timestamp) -> Fix {
    let place = Coordinate(latitude: 40 + meters / 111_195, longitude: 11)!
    return Fix(coordinate: place, timestamp: time, accuracy: 5, heading: speed > 1 ? 0 : nil, speed: speed)
  }
}
