import LocationHubClient

let hub = try DriverHub(
  "ws://127.0.0.1:8080/v1/ws", tokens: .development(.driver, "driver-8"), store: .folder("driver-8"))
hub.start()
