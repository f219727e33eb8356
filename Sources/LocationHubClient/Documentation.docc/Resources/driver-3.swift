import LocationHubClient

let hub = try DriverHub(
  "ws://127.0.0.1:8080/v1/ws", tokens: .development(.driver, "driver-8"), store: .folder("driver-8"))
hub.start()

let watching = Task {
  for await state in hub.connection {
    switch state {
    case .idle: print("not started")
    case .connecting(let attempt): print("connecting, attempt \(attempt)")
    case .live: print("live")
    case .waiting(_, let error): print("trying again soon: \(error)")
    case .stopped(let error): print("stopped: \(error)")
    }
  }
}

for step in 0..<5 {
  guard let place = Coordinate(latitude: 37.7749 + Double(step) / 5_000, longitude: -122.4194) else { break }
  let fix = Fix(coordinate: place, timestamp: .now, accuracy: 5, heading: 0, speed: 11)
  print(hub.send(fix, trip: "trip-8"))
  try await Task.sleep(for: .seconds(2))
}
