import LocationHubClient

let hub = try RiderHub("ws://127.0.0.1:8080/v1/ws", tokens: .development(.rider, "rider-8"))
hub.start()

for await event in hub.trip("trip-8") {
  switch event {
  case .snapshot(let snapshot): print("the trip is", snapshot.trip?.status.name ?? "not there yet")
  case .position(let position): print("the driver is at", position.coordinate)
  case .eta(let eta): print("there in \(Int(eta.eta)) s")
  case .update(let update): print(update.status == .driverEnRoute ? "on the way" : update.status.name)
  case .notice(let notice): print(notice.title)
  case .gap: print("something was missed; a snapshot follows")
  case .ended(let reason): print("over: \(reason)")
  }
}
