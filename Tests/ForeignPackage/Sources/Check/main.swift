// A driver and a rider in one program: names do not collide, all that the API gives can be used with one import, and the
// two see each other.
import Foundation
import Geo
import LocationHubClient

let url = CommandLine.arguments[1]
let home = Geo.Coordinate(name: "home")
let notification: Notification? = nil  // Foundation's

let driver = try DriverHub(url, tokens: .development(.driver, "check-1"), store: .memory)
let rider = try RiderHub(url, tokens: .development(.rider, "check-2"))
driver.start()
rider.start()
var marker = MarkerInterpolator()
var position: Position?
events: for await event in rider.trip("check-trip") {
  switch event {
  case .snapshot:
    guard let place = LocationHubClient.Coordinate(latitude: 48, longitude: 11) else { fatalError("a place") }
    driver.send(Fix(coordinate: place, timestamp: .now, accuracy: 5, speed: 10), trip: "check-trip")
  case .position(let new):
    position = new
    let trip = try await driver.move("check-trip", to: .driverEnRoute, expecting: .accepted)
    precondition(trip.status == .driverEnRoute && trip.driverID == "check-1")
  case .update(let update):
    if update.status == .driverEnRoute, position != nil { break events }
  case .eta, .notice: break
  case .gap, .ended: fatalError("\(event)")
  }
}
precondition(position!.driverID == "check-1" && abs(position!.coordinate.latitude - 48) < 1e-6)
do throws(HubError) {
  try await driver.move("no-trip", to: .accepted)
} catch {
  precondition(error.code == .hub(.unknownTrip))
}
await driver.stop(erasing: true)
await rider.stop()
print("\(home.name): a driver and a rider have met")
