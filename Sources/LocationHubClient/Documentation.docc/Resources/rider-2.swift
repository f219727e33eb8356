import LocationHubClient

let hub = try RiderHub("ws://127.0.0.1:8080/v1/ws", tokens: .development(.rider, "rider-8"))
hub.start()

for await event in hub.trip("trip-8") {
  print(event)
}
