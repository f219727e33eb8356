import LocationHubClient

let hub = try DriverHub(
  "ws://127.0.0.1:8080/v1/ws", tokens: .development(.driver, "driver-8"), store: .folder("driver-8"))
hub.start()

for step in 0..<5 {
  guard let place = Coordinate(latitude: 37.7749 + Double(step) / 5_000, longitude: -122.4194) else { break }
  let fix = Fix(coordinate: place, timestamp: .now, accuracy: 5, heading: 0, speed: 11)
  print(hub.send(fix, trip: "trip-8"))
  try await Task.sleep(for: .seconds(2))
}
