// Area updates as JSON: elements have a bounded size, so room is reserved once for each.
import HubBytes
import HubGeo

extension JSONWriter {
  /// Writes an area update from its type to its payload's last member.
  static func writeHead(
    _ update: AreaUpdate, on channel: Channel, _ time: TimeFormat, _ buffer: inout ByteBuffer
  ) {
    buffer.append("{\"type\":\"area_update\",\"payload\":{\"channel\":", channel)
    buffer.append(",\"cell\":", update.cell)
    buffer.append(",\"tick\":", update.tick)
    buffer.append(",\"full\":", update.isFull)
    buffer.append(",\"drivers\":")
    buffer.append(list: update.drivers.indices) { buffer, index in
      buffer.withRoom(for: MessageLimits.areaDriverBytes) { write(update.drivers[index], time, &$0) }
      if !update.details.isEmpty { write(update.details[index], &buffer) }
      buffer.append("}")
    }
    buffer.append(",\"left\":", update.left)
    buffer.append(",\"more\":", update.more)
  }

  private static func write(_ driver: AreaUpdate.Driver, _ time: TimeFormat, _ room: inout ByteRoom) {
    room.append("{\"driverId\":\"")
    room.append(driver.driverID.text)
    room.append("\",\"latitude\":")
    room.append(fixed: driver.coordinate.latitude, decimals: 7)
    room.append(",\"longitude\":")
    room.append(fixed: driver.coordinate.longitude, decimals: 7)
    if let heading = driver.heading {
      room.append(",\"heading\":")
      room.append(double: heading)
    }
    if let speed = driver.speed {
      room.append(",\"speed\":")
      room.append(double: speed)
    }
    switch driver.status {
    case .available: room.append(",\"status\":\"available\",\"timestamp\":")
    case .unavailable: room.append(",\"status\":\"unavailable\",\"timestamp\":")
    case .background: room.append(",\"status\":\"background\",\"timestamp\":")
    case .onTrip: room.append(",\"status\":\"on_trip\",\"timestamp\":")
    }
    room.append(driver.timestamp, as: time)
    switch driver.timeSource {
    case .fix: break
    case .hub: room.append(",\"timeSource\":\"hub\"")
    }
  }

  private static func write(_ details: AreaUpdate.Details, _ buffer: inout ByteBuffer) {
    buffer.withRoom(for: MessageLimits.areaDetailBytes) { room in
      if let trip = details.tripID {
        room.append(",\"tripId\":\"")
        room.append(trip.text)
        room.append("\"")
      }
      room.append(",\"accuracy\":")
      room.append(double: details.accuracy)
      room.append(",\"confidence\":\"")
      room.append(details.confidence.name)
      room.append("\"")
    }
    buffer.append(",\"vehicleType\":", details.vehicleType)
    if !details.isOnline { buffer.append(",\"online\":false") }
  }
}
